#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Between two releases of Slurm: what one has written is read under the other, and plugins of one are no harm to the other.

SLUICE_OTHER_BUILDS="RELEASE=BUILD ..." names builds as contrib/with-release calls them inside; tests/run.py sets it from its --release.
"""

import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from harness import ROOT, ClusterTest, allocate, build_folder, wait_for

CLUSTER = ROOT / "contrib" / "cluster" / "cluster"
WITH_RELEASE = ROOT / "contrib" / "with-release"
PLUGINS = {"select_cons_tres_sluice.so": "select", "sluice_select.so": "select", "job_submit_sluice.so": "job_submit",
           "spank_sluice.so": "spank", "sluice_spank.so": "spank"}
NODES = "Nodes=n1 Gpus=4 Sockets=2 CoresPerSocket=8\n"
RECORD = 'sluice1:{"r":0,"k":70,"l":2.5,"n":30,"g":2,"s":1.5}'


class Between:
    """The tests; a class below for each other release."""

    release = other_build = None

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if not cls.release:
            raise unittest.SkipTest("no build for another release: tests/run.py --release, as contrib/check calls it")
        cls.description = cls.scratch / "nodes.conf"
        cls.description.write_text(NODES, encoding="utf-8")

    def other(self, *words, check=True, **variables):
        """A program where the other release is installed."""
        result = subprocess.run([WITH_RELEASE, self.release, "env", f"SLUICE_BUILD={self.other_build}",
                                 *(f"{key}={value}" for key, value in variables.items()), *map(str, words)],
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=300)
        if check and result.returncode:
            raise AssertionError(f"{words}: exit status {result.returncode}\n{result.stdout[-4000:]}")
        return result.stdout

    def start_other(self, name, *words, check=True, **variables):
        folder = self.scratch / name
        self.addCleanup(self.other, CLUSTER, "stop", folder)
        return folder, self.other(CLUSTER, "start", folder, self.description, "--no-dbd", *words, check=check, **variables)

    def own_plugins(self):
        """Copies of this release's plugins where both sides see them, and how they find libsluice."""
        folder = self.scratch / "own"
        if not folder.exists():
            folder.mkdir()
            for file, part in PLUGINS.items():
                shutil.copy(build_folder() / "plugins" / part / ".libs" / file, folder)
            for library in (build_folder() / "common" / ".libs").glob("libsluice-*.so.*"):
                shutil.copy(library, folder)
            shutil.copy(build_folder() / "plugins" / "spank" / ".libs" / "sluice-agent", folder)
        return folder

    def test_what_the_older_one_wrote_is_read_by_the_newer(self):
        old = self.cluster(NODES, sluice={"Interval": 1, "MinSampleInterval": 1})
        job = allocate(old, "-N1", "--gpus=2", "--train-gpus=1-4")
        old.run(["scontrol", "update", f"jobid={job}", f"comment={RECORD}"])
        journal = old.layout.state / "slurmctld" / "sluice" / "jobs"
        wait_for(lambda: journal.exists() and "k\\\":70" in journal.read_text(encoding="utf-8"), 20, "the record in the journal")
        summary = old.job(job)["AdminComment"]
        old.stop()

        state = self.scratch / "state"
        shutil.copytree(journal.parent, state)
        folder, _ = self.start_other("newer", "--sluice", f"StateDir={state}", "--sluice", "Interval=3600")
        log = folder / "log" / "slurmctld.log"
        wait_for(lambda: "1 jobs known from before" in log.read_text(encoding="utf-8"), 30, lambda: log.read_text(encoding="utf-8")[-3000:])
        self.assertNotIn("damaged", log.read_text(encoding="utf-8"))
        self.assertEqual(json.loads(summary)["sluice"]["record"]["k"], 70)

    def test_plugins_of_another_release_in_slurmctld(self):
        own = self.own_plugins()
        folder, said = self.start_other("mixed", "--plugin-dir", own, check=False, LD_LIBRARY_PATH=own)
        log = folder / "log" / "slurmctld.log"
        text = said + (log.read_text(encoding="utf-8") if log.exists() else "")
        told = re.findall(r"sluice: \S*select_cons_tres_sluice.so is built for Slurm (\S+) and cannot be used here, where Slurm is (\S+): install", text)
        self.assertTrue(told, text[-3000:])
        self.assertEqual(set(told), {(own_release(), self.release)})
        self.assertNotRegex(text, r"(?i)segmentation|core dumped")

    def test_plugins_of_another_release_in_all_other_programs(self):
        """Under a configuration that names the select plugin: they end by themselves, and who needs it says why."""
        own = self.own_plugins()
        folder, _ = self.start_other("clients", "--stock")
        self.other(CLUSTER, "kill", folder, "n1")
        text = (folder / "etc" / "slurm.conf").read_text(encoding="utf-8")
        text = text.replace("SelectType=select/cons_tres\n", "SelectType=select/cons_tres_sluice\n").replace("PluginDir=", f"PluginDir={own}:")
        (folder / "etc" / "mixed.conf").write_text(text, encoding="utf-8")
        for words in ("timeout 5 slurmd -D -N n1", "sinfo", "squeue", "srun -V", "sbatch --wrap true"):
            with self.subTest(program=words):
                said = self.other("sh", "-c", f"{words}; echo status $?", SLURM_CONF=folder / "etc" / "mixed.conf", LD_LIBRARY_PATH=own)
                self.assertLess(int(re.search(r"status (\d+)$", said.strip())[1]), 128, said)
                if words.split()[0] in ("timeout", "sinfo"):
                    self.assertIn("select_cons_tres_sluice.so is built for Slurm", said)

    def test_an_optional_spank_plugin_of_another_release(self):
        own = self.own_plugins()
        folder, _ = self.start_other("spank", "--stock", LD_LIBRARY_PATH=own)
        (folder / "etc" / "plugstack.conf").write_text(f"optional {own}/spank_sluice.so\n", encoding="utf-8")

        def client(*words):
            return self.other("env", f"LD_LIBRARY_PATH={own}", CLUSTER, "run", folder, "--", *words)

        said = client("srun", "--gpus=1", "echo", "it", "runs")
        self.assertIn("it runs", said)
        self.assertIn("spank_sluice.so is built for Slurm", said)
        self.assertRegex(client("sbatch", "-o", "/dev/null", "--wait", "--wrap", "srun true"), r"Submitted batch job \d+")

    def test_newer_plugins_in_older_daemons(self):
        """They may not even be loaded, for want of a newer C library: whatever happens, a message and no crash."""
        folder = self.scratch / "newer-plugins"
        folder.mkdir()
        for file, part in PLUGINS.items():
            self.other("cp", f"{self.other_build}/plugins/{part}/.libs/{file}", folder)
        self.other("sh", "-c", f"cp {self.other_build}/common/.libs/libsluice-*.so.0* {folder}/")
        cluster = self.cluster(NODES, stock=True)
        (cluster.layout.etc / "plugstack.conf").write_text(f"optional {folder}/spank_sluice.so\n", encoding="utf-8")
        for words in (["srun", "--gpus=1", "echo", "it runs"], ["sbatch", "-o", "/dev/null", "--wait", "--wrap", "srun echo it runs"]):
            result = cluster.run(words, env={"LD_LIBRARY_PATH": str(folder)})
            self.assertEqual(result.returncode, 0)
            self.assertIn("spank_sluice.so", result.stderr, "a word about the plugin")
            self.assertRegex(result.stderr, r"version `GLIBC(XX)?_[\d.]+' not found|is built for Slurm", "as sluice-admin(8) says")

        conf = cluster.layout.slurm_conf
        text = conf.read_text(encoding="utf-8").replace("SelectType=select/cons_tres\n", "SelectType=select/cons_tres_sluice\n")
        conf.write_text(re.sub(r"PluginDir=", f"PluginDir={folder}:", text), encoding="utf-8")
        started = cluster.run(["slurmctld", "-D"], check=False, env={"LD_LIBRARY_PATH": str(folder)}, timeout=60)
        self.assertEqual(started.returncode, 1, "it ends by itself")
        self.assertIn("select/cons_tres_sluice", started.stderr + cluster.log("slurmctld"))

    def test_a_cluster_in_any_folder(self):
        """Started from outside, under relative names: its folder, the caller's folder and what jobs write are the same on both sides."""
        for place in ("/srv", "/var/lib"):
            with self.subTest(place=place):
                folder = Path(tempfile.mkdtemp(prefix="sluice-test-", dir=place))
                self.addCleanup(shutil.rmtree, folder)
                folder.chmod(0o755)
                self.check_a_cluster_in(folder)

    def check_a_cluster_in(self, folder):
        def program(*words, check=True):
            result = subprocess.run([CLUSTER, *words], cwd=folder, env={**os.environ, "SLUICE_BUILD": self.other_build},
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=120)
            self.assertEqual(result.returncode == 0, check, result.stdout)
            return result.stdout

        shutil.copy(self.description, folder / "nodes.conf")
        (folder / "job.sh").write_text("#!/bin/sh\nscontrol -V\n", encoding="utf-8")
        plugins = [f"--plugin-dir={self.other_build}/plugins/{part}/.libs" for part in sorted(set(PLUGINS.values()))]
        start = ("start", "--release", self.release, "--no-dbd", *plugins)
        self.addCleanup(program, "stop", "c")
        self.assertIn(f"use it:  {CLUSTER} run {folder}/c -- bash\n", program(*start, "c", "nodes.conf"))
        self.assertIn("a cluster is running", program("start", "--release", self.release, "c", check=False), "before anything is built")
        self.assertIn(f"{CLUSTER} run c -- bash", program("env", "c", check=False))
        self.assertIn("no job with --train-* options", program("run", "c", "--", "sluice", "status"))
        program("run", "c", "--", "sbatch", "--wait", "--gpus=1", "-o", "out", "job.sh")
        self.assertIn(f" {self.release}.", (folder / "out").read_text(encoding="utf-8"))
        self.assertIn("none is left", program("stop", "c"))


class Programs(ClusterTest):
    """contrib/with-release and contrib/cluster where nothing is brought."""

    def refused(self, *words, cwd=None):
        result = subprocess.run(list(map(str, words)), cwd=cwd or self.scratch, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        self.assertNotEqual(result.returncode, 0)
        self.assertEqual(result.stdout, "")
        return result.stderr

    def test_names_of_releases(self):
        listed = subprocess.run([WITH_RELEASE, "--releases"], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
        own = ".".join(own_release().split(".")[:2])
        self.assertIn(own, listed)
        self.assertIn("24.11.5: write 24.11", self.refused(WITH_RELEASE, "24.11.5", "true"))
        self.assertIn("there are " + " ".join(listed), self.refused(WITH_RELEASE, "20.11", "true"))
        self.assertIn("is installed on this machine", self.refused(WITH_RELEASE, "--where", own))
        self.assertIn("no such folder", self.refused(WITH_RELEASE, "--bind", "/none/such", "24.11", "true"))
        self.assertIn("write 24.11", self.refused(CLUSTER, "start", "c", "--release", "24.11.5"))
        self.assertIn("'20.11' is none of " + ", ".join(listed), self.refused(CLUSTER, "start", "c", "--release", "20.11"))

    def test_what_cannot_be_is_said_first(self):
        """Before another release is brought, and Sluice built for it."""
        other = next(release for release in ("24.11", "22.05") if not own_release().startswith(release))
        start = (CLUSTER, "start", "--release", other)
        self.assertIn("a name with blanks", self.refused(*start, "a b"))
        self.assertIn("none.conf: No such file", self.refused(*start, "c", "none.conf"))
        self.assertIn("--stock leaves Sluice out", self.refused(*start, "c", "--stock", "--sluice", "Interval=1"))
        self.assertEqual(list(self.scratch.iterdir()), [])

    def test_folders_with_blanks(self):
        tree = self.scratch / "a b" / "contrib"
        tree.mkdir(parents=True)
        self.addCleanup(shutil.rmtree, tree.parent)
        shutil.copy(ROOT / "contrib" / "prepare", tree)
        self.assertRegex(self.refused(tree / "prepare"), r"^prepare: make and autoconf cannot work with a blank.*a b.*\n$")

    def test_tests_with_the_build_of_another_release(self):
        build = self.scratch / "build-1.02"
        build.mkdir()
        self.addCleanup(shutil.rmtree, build)
        (build / "config.status").write_text('S["SLURM_RELEASE"]="1.02.3"\n', encoding="ascii")
        said = self.refused(ROOT / "tests" / "run.py", "--build", build, "placement")
        self.assertIn(f"{build} is for Slurm 1.02.3, installed is ", said)
        self.assertIn(f"tests/run.py --release 1.02={build} placement", said)
        self.assertIn("that build is for Slurm 1.02.3", self.refused(ROOT / "tests" / "run.py", "--release", f"24.11={build}"))


def own_release():
    version = subprocess.run(["slurmctld", "-V"], capture_output=True, text=True, check=True).stdout
    return version.split()[-1]


for _build in os.environ.get("SLUICE_OTHER_BUILDS", "").split() or ["="]:
    _release, _, _folder = _build.partition("=")
    _name = "Releases" + _release.replace(".", "_")
    globals()[_name] = type(_name, (Between, ClusterTest), {"release": _release, "other_build": _folder, "__module__": __name__})

if __name__ == "__main__":
    unittest.main()
