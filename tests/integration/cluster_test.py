#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""contrib/cluster on real daemons. Run as root. SLUICE_CLUSTER_MODE=stock (the default) needs only Slurm and MariaDB;
SLUICE_CLUSTER_MODE=sluice runs the same tests with Sluice's plugins, which SLUICE_BUILD or an installation has."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

_CONTRIB = Path(__file__).resolve().parents[2] / "contrib" / "cluster"
sys.path.insert(0, str(_CONTRIB))

from sluice_cluster import Cluster, ClusterError, DescriptionError, UsageError, wait_for  # noqa: E402  found by the line above
from sluice_cluster import config_files, description, gpu_topology, hostlist, installation, processes, records  # noqa: E402

PROGRAM = _CONTRIB / "cluster"
EXAMPLES = _CONTRIB / "examples"
STOCK = {"stock": True, "sluice": False}[os.environ.get("SLUICE_CLUSTER_MODE", "stock")]
MODE_OPTIONS = ["--stock"] if STOCK else []
TWO_NODES = "Nodes=n[1-2] Gpus=4 Sockets=2 CoresPerSocket=4\n"


class Scratch(unittest.TestCase):
    """A folder for each test, in which other users may run jobs, and which nothing outlives."""

    def setUp(self):
        self.scratch = Path(tempfile.mkdtemp(prefix="sluice-"))
        self.scratch.chmod(0o755)
        self.addCleanup(shutil.rmtree, self.scratch)

    def cluster(self, text=TWO_NODES, name="c", **options):
        cluster = Cluster(self.scratch / name, text, stock=STOCK, **options)
        self.addCleanup(cluster.stop)
        return cluster

    def program(self, *words, **options):
        return subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, timeout=120, check=False, **options)

    def assert_nothing_left(self, directory):
        """Asks the cluster's own search, and the kernel: nobody works in the folder or has a file of it open."""
        self.assertEqual([processes.command_line(pid) for pid in processes.find(directory)], [])
        for entry in Path("/proc").glob("[0-9]*"):
            for link in [entry / "cwd", *self._open_files(entry)]:
                with contextlib.suppress(OSError):
                    self.assertFalse(os.readlink(link).startswith(f"{directory}/"), processes.command_line(entry.name))

    @staticmethod
    def _open_files(entry):
        try:
            return list((entry / "fd").iterdir())
        except OSError:
            return []


class Life(Scratch):
    def test_start_and_stop_by_command_line(self):
        directory = self.scratch / "c"
        self.addCleanup(self.program, "stop", directory)
        began = time.monotonic()
        started = self.program("start", directory, EXAMPLES / "dgx1v-4x8.conf", *MODE_OPTIONS)
        seconds = time.monotonic() - began
        self.assertEqual(started.returncode, 0, started.stderr)
        self.assertIn("n[1-4] with 8 fake GPUs each", started.stdout)
        self.assertLess(seconds, 15)
        print(f"\nfour nodes with accounting started in {seconds:.1f} s", file=sys.stderr)

        self.assertEqual(self.program("start", directory, *MODE_OPTIONS).returncode, 1, "it runs already")
        environment = self.program("env", directory).stdout
        nodes = subprocess.run(["bash", "-c", f'{environment} sinfo -hNo "%N %t %G"'], capture_output=True, text=True, check=True)
        self.assertEqual(nodes.stdout, "".join(f"n{i} idle gpu:8(S:0-1)\n" for i in range(1, 5)))
        self.assertEqual(self.program("status", directory).returncode, 0)
        self.assertEqual(self.program("run", directory, "--", "sh", "-c", "exit 7").returncode, 7)

        stopped = self.program("stop", directory)
        self.assertEqual((stopped.returncode, stopped.stderr), (0, ""))
        self.assertIn("none is left", stopped.stdout)
        self.assert_nothing_left(directory)
        self.assertEqual(self.program("status", directory).returncode, 1)
        self.assertEqual(self.program("stop", directory).returncode, 0, "a second stop is fine")

    def test_two_side_by_side(self):
        first, second = self.cluster(name="a"), self.cluster(name="b")
        first.start()
        second.start()
        self.assertFalse(set(first.ports.values()) & set(second.ports.values()))
        jobs = [cluster.sbatch(["--gpus=1", "-J", cluster.directory.name], "true") for cluster in (first, second)]
        for cluster, job in zip((first, second), jobs):
            self.assertEqual(cluster.wait_job(job)["JobName"], cluster.directory.name)
            self.assertEqual(len(cluster.jobs()), 1)
        first.stop()
        self.assert_nothing_left(first.directory)
        second.wait_job(second.sbatch(["--gpus=1"], "true"))

    def test_starts_at_the_same_time(self):
        directories = [self.scratch / name for name in "abc"]
        for directory in directories:
            self.addCleanup(self.program, "stop", directory)
        starts = [subprocess.Popen([PROGRAM, "start", directory, *MODE_OPTIONS], stdout=subprocess.DEVNULL) for directory in directories]
        self.assertEqual([start.wait(120) for start in starts], [0, 0, 0])
        self.assertEqual(len({port for directory in directories for port in Cluster.attach(directory).ports.values()}), 18)

    def test_start_again_in_the_same_folder(self):
        for _ in range(2):
            with self.cluster(dbd=False) as cluster:
                self.assertEqual(cluster.sbatch(["--gpus=1"], "true"), 1)

    def test_groups_partitions_and_slurm_lines(self):
        cluster = self.cluster("Nodes=a1 Gpus=2 GpuType=p100\nNodes=b[1-2] Gpus=4 GpuType=rtx\nNodes=c1 Gpus=0\n"
                               "Partition=gpus Nodes=a1,b[1-2] Default=YES\nPartition=cpus Nodes=c1\n"
                               "Slurm=SchedulerParameters+=bf_continue\nSlurm=MaxJobCount=77\n",
                               dbd=False, settings={"KillWait": 9}, conf=["MaxArraySize=55"])
        cluster.start()
        config = cluster.run(["scontrol", "show", "config"]).stdout
        for pattern in ("SchedulerParameters .*,bf_continue", "MaxJobCount .* 77", "KillWait .* 9 sec", "MaxArraySize .* 55"):
            self.assertRegex(config, pattern)
        job = cluster.sbatch(["--gpus-per-node=rtx:3", "-N2"], "sleep 1000")
        cluster.wait_job(job, "RUNNING")
        held = cluster.job_gres()[job]
        self.assertEqual({node: len(gpus) for node, gpus in held.items()}, {"b1": 3, "b2": 3})
        self.assertEqual(cluster.node_gres(), {"a1": set(), "c1": set(), **held})
        self.assertEqual(cluster.wait_job(cluster.sbatch(["-p", "cpus"], "true"))["NodeList"], "c1")

    def test_stop_ends_jobs_that_hide(self):
        cluster = self.cluster(dbd=False)
        cluster.start()
        # The second sleep has no environment, session, parent, or open file of the cluster's.
        hidden = "cd /; (env -i setsid /bin/sleep 4242 </dev/null >/dev/null 2>&1 &); touch \"$0.ready\"; sleep 4243"
        script = cluster.layout.jobs / "job"
        job = cluster.sbatch(["--export=NONE", "-o", "/dev/null"], f"sh -c '{hidden}' {script}", user="nobody")
        cluster.wait_job(job, "RUNNING")
        wait_for(Path(f"{script}.ready").exists, 20, "the job")
        for pid in processes.find(cluster.directory):
            if "slurmstepd" in processes.command_line(pid):
                os.kill(pid, signal.SIGKILL)
        cluster.stop()
        self.assert_nothing_left(cluster.directory)
        self.assertEqual(subprocess.run(["pgrep", "-f", "sleep 424[23]"], capture_output=True, text=True, check=False).stdout, "")

    def test_stop_after_each_daemon_was_killed(self):
        cluster = self.cluster()
        for daemon in cluster.daemons:
            with self.subTest(killed=daemon):
                cluster.start()
                job = cluster.sbatch(["--gpus=1"], "sleep 1000", user="nobody")
                cluster.wait_job(job, "RUNNING")
                cluster.kill(daemon)
                self.assertIsNone(cluster.pid(daemon))
                cluster.stop()
                self.assert_nothing_left(cluster.directory)

    def test_stop_where_namespaces_are_forbidden(self):
        cluster = self.cluster()
        with mock.patch.object(processes, "_labelled", contextlib.nullcontext):
            cluster.start()
            for user in ("root", "nobody"):
                cluster.wait_job(cluster.sbatch(["--gpus=1", "--export=NONE"], "/usr/bin/srun /bin/sleep 1000", user=user), "RUNNING")
            cluster.kill("slurmctld")
            cluster.kill("n1")
        cluster.stop()
        self.assert_nothing_left(cluster.directory)

    def test_stop_after_start_was_killed(self):
        directory = self.scratch / "c"
        self.addCleanup(self.program, "stop", directory)
        for delay in (0.1, 0.3, 0.6, 1.2, 2.4):
            with self.subTest(killed_after=delay):
                start = subprocess.Popen([PROGRAM, "start", directory, *MODE_OPTIONS], stdout=subprocess.DEVNULL)
                time.sleep(delay)
                start.kill()
                start.wait()
                began = time.monotonic()
                self.assertEqual(self.program("stop", directory).returncode, 0)
                self.assertLess(time.monotonic() - began, 15, "nothing is waited for in vain")
                self.assert_nothing_left(directory)

    def test_nothing_is_waited_for_when_a_start_is_cut_off(self):
        """When MariaDB is almost ready: told to end then, it hangs."""
        for number in (signal.SIGINT, signal.SIGKILL):
            with self.subTest(number.name):
                directory = self.scratch / number.name
                self.addCleanup(self.program, "stop", directory)
                # No pipe: who was started by a program that is killed would keep it open.
                messages = self.scratch / f"{number.name}.err"
                with messages.open("w") as err:
                    # Who runs the tests in the background may have SIGINT ignored, which is inherited.
                    start = subprocess.Popen([PROGRAM, "start", directory, "--stock"], stdout=subprocess.DEVNULL, stderr=err,
                                             preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
                log = directory / "log" / "mariadbd.out"
                wait_for(lambda: log.exists() and "Buffer pool(s) load completed" in log.read_text(errors="replace"), 20, "mariadbd")
                # Held there until it is told to end.
                os.kill(int((directory / "run" / "mariadbd.pid").read_text(encoding="ascii")), signal.SIGSTOP)
                began = time.monotonic()
                start.send_signal(number)
                start.wait(timeout=60)
                if number == signal.SIGINT:
                    self.assertEqual((start.returncode, messages.read_text(encoding="utf-8")), (130, "cluster: interrupted\n"))
                self.assertEqual(self.program("stop", directory).returncode, 0)
                self.assertLess(time.monotonic() - began, 10)
                self.assert_nothing_left(directory)

    def test_the_builds_programs_are_found(self):
        build = self.scratch / "build"
        tool = build / "contrib" / "sluice" / "sluice"
        tool.parent.mkdir(parents=True)
        tool.write_text("#!/bin/sh\necho it runs\n", encoding="ascii")
        tool.chmod(0o755)
        with mock.patch.dict(os.environ, SLUICE_BUILD=str(build)):
            cluster = Cluster(self.scratch / "c", TWO_NODES, stock=True, dbd=False)
            self.addCleanup(cluster.stop)
            cluster.start()
        with mock.patch.dict(os.environ):
            os.environ.pop("SLUICE_BUILD", None)
            self.assertEqual(self.program("run", cluster.directory, "--", "sluice").stdout, "it runs\n")
            environment = self.program("env", cluster.directory).stdout
        self.assertEqual(subprocess.run(["bash", "-c", f"{environment} sluice"], capture_output=True, text=True, check=True).stdout, "it runs\n")

    def test_stop_of_stopped_daemons(self):
        cluster = self.cluster(dbd=False)
        cluster.start()
        cluster.kill("slurmctld", signal.SIGSTOP)
        cluster.stop()
        self.assert_nothing_left(cluster.directory)

    def test_failed_start_says_why_and_leaves_nothing(self):
        directory = self.scratch / "c"
        failed = self.program("start", directory, "--set", "SelectType=select/none_such", *MODE_OPTIONS)
        self.assertEqual(failed.returncode, 1)
        self.assertRegex(failed.stderr, "slurmctld ended with status 1; the end of its log(.|\n)*none_such")
        self.assert_nothing_left(directory)

    def test_other_peoples_folder_is_refused(self):
        (self.scratch / "c").mkdir()
        (self.scratch / "c" / "thesis.tex").write_text("x", encoding="utf-8")
        refused = self.program("start", self.scratch / "c", *MODE_OPTIONS)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("new or empty folder", refused.stderr)
        self.assertEqual(self.program("stop", self.scratch / "c").returncode, 0)
        self.assertTrue((self.scratch / "c" / "thesis.tex").exists())

    def test_folder_that_users_cannot_enter_is_refused(self):
        (self.scratch / "closed").mkdir(mode=0o700)
        refused = self.program("start", self.scratch / "closed" / "c", *MODE_OPTIONS)
        self.assertEqual(refused.returncode, 1)
        self.assertIn(f"chmod o+x {self.scratch}/closed", refused.stderr)


class Jobs(unittest.TestCase):
    """On one cluster that all of these tests use."""

    @classmethod
    def setUpClass(cls):
        cls.scratch = Path(tempfile.mkdtemp(prefix="sluice-"))
        cls.scratch.chmod(0o755)
        cls.addClassCleanup(shutil.rmtree, cls.scratch)
        cls.cluster = Cluster(cls.scratch / "c", TWO_NODES, stock=STOCK, settings={"AccountingStorageEnforce": "limits"})
        cls.addClassCleanup(cls.cluster.stop)
        cls.cluster.start()

    def setUp(self):
        self.cluster.run(["scancel", "--user=root"])
        self.cluster.run(["scancel", "--user=nobody"])
        self.assert_all_free()

    def assert_all_free(self):
        wait_for(lambda: not any(self.cluster.node_gres().values()) and not self.cluster.job_gres(), 20, "all GPUs free")

    def wait_saved(self):
        """slurmctld writes down which jobs run only some seconds after a submission. One that is killed before starts them again."""
        now = time.time()
        self.cluster.wait_job(self.cluster.sbatch([], "true"))
        wait_for(lambda: (self.cluster.layout.state / "slurmctld" / "job_state").stat().st_mtime > now + 1, 20, "a saved state")

    def test_nobody_sees_the_fake_gpus(self):
        job = self.cluster.sbatch(["--gpus-per-node=2", "-N2", "-o", "seen-%j"],
                                  'srun sh -c \'echo "$SLURMD_NODENAME $(id -un) $CUDA_VISIBLE_DEVICES"\'\nsleep 1000', user="nobody")
        self.cluster.wait_job(job, "RUNNING")
        seen = self.cluster.layout.jobs / f"seen-{job}"
        lines = wait_for(lambda: seen.exists() and len(text := seen.read_text().splitlines()) == 2 and sorted(text), 30, "output")
        held = self.cluster.job_gres()[job]
        self.assertEqual(self.cluster.node_gres(), held)
        self.assertEqual(lines, [f"{node} nobody {','.join(map(str, sorted(held[node])))}" for node in ("n1", "n2")])
        self.cluster.run(["scancel", str(job)])
        self.cluster.wait_job(job, "CANCELLED")
        self.assert_all_free()

    def test_requeued_job_starts_again_within_seconds(self):
        job = self.cluster.sbatch(["--gpus=3", "--requeue"], "sleep 1000", user="nobody")
        self.cluster.wait_job(job, "RUNNING")
        began = time.monotonic()
        self.cluster.run(["scontrol", "requeue", str(job)])
        wait_for(lambda: self.cluster.job(job)["Restarts"] == "1" and self.cluster.job(job)["JobState"] == "RUNNING", 30, "restart")
        self.assertLess(time.monotonic() - began, 15)
        self.assertEqual(sum(map(len, self.cluster.job_gres()[job].values())), 3)
        self.cluster.run(["scancel", str(job)])

    def test_sacct_shows_gpus_and_limits_hold(self):
        self.cluster.run(["sacctmgr", "-i", "modify", "user", "nobody", "set", "GrpTRES=gres/gpu=2"])
        self.addCleanup(self.cluster.run, ["sacctmgr", "-i", "modify", "user", "nobody", "set", "GrpTRES=gres/gpu=-1"])
        first = self.cluster.sbatch(["--gpus=2"], "sleep 4", user="nobody")
        second = self.cluster.sbatch(["--gpus=1"], "true", user="nobody")
        self.cluster.wait_job(first, "RUNNING")
        wait_for(lambda: self.cluster.job(second)["Reason"] == "AssocGrpGRES", 20, "the limit")
        self.cluster.wait_job(second)

        def accounted():
            rows = self.cluster.run(["sacct", "-XPn", "-j", str(first), "-o", "State,User,Account,AllocTRES"]).stdout
            return rows.startswith("COMPLETED") and rows

        self.assertIn("|nobody|default|", (row := wait_for(accounted, 30, "sacct")))
        self.assertIn("gres/gpu=2", row)

    def test_daemons_come_back(self):
        job = self.cluster.sbatch(["--gpus=1"], "sleep 1000", user="nobody")
        self.cluster.wait_job(job, "RUNNING")
        held = self.cluster.job_gres()
        self.wait_saved()
        for daemon in self.cluster.daemons:
            with self.subTest(daemon=daemon):
                self.cluster.kill(daemon)
                self.cluster.restart(daemon)
                self.assertTrue(self.cluster.pid(daemon))
                self.assertEqual(self.cluster.wait_job(job, "RUNNING")["Restarts"], "0")
        self.assertEqual(self.cluster.job_gres(), held)
        self.cluster.wait_job(self.cluster.sbatch(["--gpus=1"], "true", user="nobody"))
        self.cluster.run(["scancel", str(job)])

    def test_queries_wait_for_the_controller(self):
        self.cluster.kill("slurmctld")
        restart = subprocess.Popen(["sh", "-c", f"sleep 1; exec {PROGRAM} restart {self.cluster.directory} slurmctld"])
        self.assertEqual(set(self.cluster.node_gres()), {"n1", "n2"})
        self.assertEqual(restart.wait(60), 0)

    def test_what_fails_is_said(self):
        with self.assertRaisesRegex(ClusterError, "sbatch.*exit status 1(.|\n)*Invalid"):
            self.cluster.sbatch(["--gpus-per-node=99", "-N1", "--partition=none"], "true")
        job = self.cluster.sbatch(["--gpus=1"], "exit 3")
        with self.assertRaisesRegex(ClusterError, f"job {job} is FAILED .*ExitCode=3:0.*expected COMPLETED"):
            self.cluster.wait_job(job)
        with self.assertRaisesRegex(ClusterError, "knows no job 99999"):
            self.cluster.job(99999)
        with self.assertRaisesRegex(UsageError, "no daemon 'n9'.*slurmctld, n1, n2"):
            self.cluster.kill("n9")

    def test_other_users_cannot_touch_the_cluster(self):
        for path in (self.cluster.layout.secret, self.cluster.layout.state, self.cluster.layout.etc / "slurmdbd.conf"):
            self.assertNotEqual(self.cluster.run(["cat", path], user="nobody", check=False).returncode, 0)
            self.assertIn("Permission denied", self.cluster.run(["ls", f"{path}/"], user="nobody", check=False).stderr
                          if path.is_dir() else self.cluster.run(["cat", path], user="nobody", check=False).stderr)

    def test_other_users_are_clients_only(self):
        # The tree may lie where they cannot look.
        folder = Path(tempfile.mkdtemp(prefix="sluice-"))
        folder.chmod(0o755)
        self.addCleanup(shutil.rmtree, folder)
        shutil.copytree(PROGRAM.parent, folder / "cluster", ignore=shutil.ignore_patterns("__pycache__"))

        def program(*words):
            return self.cluster.run([folder / "cluster" / PROGRAM.name, *words], user="nobody", check=False)

        self.assertIn("n[1-2]", program("run", self.cluster.directory, "--", "sinfo", "-h").stdout)
        for words in (["start", "/tmp/sluice-none", "--stock"], ["stop", self.cluster.directory], ["status", self.cluster.directory],
                      ["kill", self.cluster.directory, "n1"], ["restart", self.cluster.directory, "n1"]):
            refused = program(*words)
            self.assertEqual((refused.returncode, refused.stdout), (1, ""))
            self.assertIn("this takes root", refused.stderr)

    def test_everything_listens_on_loopback_where_the_host_name_does(self):
        if "NoInAddrAny" not in self.cluster.layout.slurm_conf.read_text():
            self.skipTest("this host's name does not stand for 127.0.0.1")
        ports = set(self.cluster.ports.values())
        listening = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        addresses = {fields[1] for fields in listening if fields[3] == "0A" and int(fields[1].split(":")[1], 16) in ports}
        self.assertEqual({address.split(":")[0] for address in addresses}, {"0100007F"})
        self.assertEqual(len(addresses), len(ports))


class Texts(unittest.TestCase):
    """What needs no daemon."""

    def test_broken_descriptions(self):
        cases = {
            "": ": no nodes",
            "Nodes=n[1-4] Gpus=eight": ":1: Gpus=eight: expected a whole number from 0 to 64, e.g. Gpus=8",
            "# x\n\nNodes=n1 Gpus=99": ":3: Gpus=99: expected",
            "Nodes=n1 Sockets=0": ":1: Sockets=0: expected",
            "Nodes=n[4-1]": r":1: Nodes=n\[4-1\]: '4-1' does not go up.*e.g. Nodes=n\[1-4\]",
            "Nodes=n[1-99999]": ":1: Nodes=.*longer than",
            "Nodes=": ":1: Nodes=: '' is not a name",
            "Nodes=a/b": ":1: Nodes=a/b: 'a/b' is not a name",
            "Nodes=n1\nNodes=n[1-2]": r":2: Nodes=n\[1-2\]: the name n1 is already taken",
            "Nodes=slurmctld": ":1: Nodes=slurmctld: the name slurmctld is already taken",
            "Nodes=n1 Gpu=8": ":1: 'Gpu=8': expected Key=Value with one of the keys Nodes, Gpus,",
            "Nodes=n1 8": ":1: '8': expected Key=Value",
            "Nodes=n1 Gpus=8 gpus=8": ":1: Gpus is given twice",
            "Nodes=n1 GpuType=a:b": ":1: GpuType=a:b: one word",
            "Nodes=n1 GpuType='a": ":1: No closing quotation",
            "Nodes=n1 Topology=none.txt": "none.txt: No such file",
            "Nodes=n1 Topology=none.xml": ":1: Topology=none.xml: there is no file",
            "Nodes=n1 Gpus=4 Topology=two-cliques.topo-m.txt": ":1: Gpus=4: but .*two-cliques.topo-m.txt describes 8 GPUs",
            "Gpus=8": ":1: 'Gpus=8': a line begins with Nodes=LIST, Partition=NAME or Slurm=Key=Value",
            "Nodes=n1\nSlurm=x": ":2: 'Slurm=x': a line begins",
        }
        for text, expected in cases.items():
            with self.subTest(text=text), self.assertRaisesRegex(DescriptionError, expected):
                description.parse(text, EXAMPLES / "broken.conf")

    def test_broken_description_by_command_line(self):
        with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
            file.write("Nodes=n[1-4] Gpus=eight\n")
            file.flush()
            broken = subprocess.run([PROGRAM, "start", "/tmp/sluice-none", file.name, "--stock"], capture_output=True, text=True,
                                    check=False)
        self.assertEqual((broken.returncode, broken.stderr),
                         (3, f"cluster: {file.name}:1: Gpus=eight: expected a whole number from 0 to 64, e.g. Gpus=8\n"))
        self.assertFalse(Path("/tmp/sluice-none").exists())

    def test_wrong_usage(self):
        for words in ([], ["start"], ["begin", "x"], ["run", "x"], ["run", "x", "--"], ["stop", "x", "--", "ls"], ["kill", "x"],
                      ["kill", "x", "n1", "--signal", "99"], ["start", "x", "--set", "Key"], ["start", "x", "--stock", "--sluice", "A=b"]):
            with self.subTest(words=words):
                wrong = subprocess.run([PROGRAM, *words], capture_output=True, text=True, check=False)
                self.assertEqual(wrong.returncode, 2, wrong.stderr)

    def test_broken_topology_texts(self):
        good = (EXAMPLES / "two-cliques.topo-m.txt").read_text(encoding="utf-8")
        rows = good.splitlines()
        cases = {
            "hello": "no line begins with the column GPU0",
            good.replace("GPU1\tGPU2", "GPU2\tGPU1", 1): "t:1: the columns have to begin with GPU0, GPU1",
            good.replace("NV2", "NVX", 1): "t:2: row GPU0, column GPU2: 'NVX'",
            good.replace(" X ", "NV2", 1): "t:2: row GPU0, column GPU0: 'NV2'",
            good.replace("NV2", "NV3", 1): "GPU2 and GPU0: 2 links one way, 3 the other",
            good.replace("0-15", "0-", 1): "t:2: CPU Affinity '0-'",
            "\n".join(rows[:5]): "t:1: 8 GPU columns but 4 GPU rows",
            "\n".join(rows[:2] + rows[3:]): "t:3: row GPU2: expected the rows",
            "\n".join([rows[0], "GPU0\tX"]): "t:2: row GPU0 has 1 cells, expected 8",
        }
        for text, expected in cases.items():
            with self.subTest(expected=expected), self.assertRaisesRegex(DescriptionError, expected):
                gpu_topology.parse(text, "t")

    def test_topology_text(self):
        with_nics = ("\x1b[4m\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n"
                     "GPU0\t X \tNV12\tPXB\t0-3\t1\t\tN/A\nGPU1\tNV12\t X \tSYS\t4-7\t0\t\tN/A\nNIC0\tPXB\tSYS\t X\n")
        topology = gpu_topology.parse(with_nics, "t")
        self.assertEqual(topology.links, ((-1, 12), (12, -1)))
        self.assertEqual(topology.cpus, (frozenset(range(4)), frozenset(range(4, 8))))
        self.assertEqual(topology.numa, (1, 0))
        self.assertEqual(gpu_topology.parse(with_nics.replace("\t", "  "), "t"), topology)

    def test_cores_near_the_gpus(self):
        def cores(shape, rows):
            text = "\t".join(["", *(f"GPU{i}" for i in range(len(rows))), "CPU Affinity", "NUMA Affinity"]) + "\n"
            for i, (cpus, numa) in enumerate(rows):
                text += "\t".join([f"GPU{i}", *("X" if i == j else "SYS" for j in range(len(rows))), cpus, numa]) + "\n"
            with tempfile.TemporaryDirectory() as folder:
                (Path(folder) / "t").write_text(text, encoding="utf-8")
                group = description.parse(f"Nodes=n1 {shape} Topology=t", Path(folder) / "d").groups[0]
            return [config_files._ranges(near) for near in description.gpu_cores(group)]

        small, threads, wide = "Sockets=2 CoresPerSocket=8", "Sockets=2 CoresPerSocket=10 ThreadsPerCore=2", "Sockets=2 CoresPerSocket=32"
        self.assertEqual(cores(threads, [("0-9,20-29", "0"), ("10-19,30-39", "1")]), ["0-9", "10-19"], "the lists fit")
        self.assertEqual(cores(small, [("8-11", "1"), ("0-3", "0")]), ["8-11", "0-3"], "finer than a socket")
        self.assertEqual(cores(small, [("0-19", "0"), ("20-39", "1")]), ["0-7", "8-15"], "a bigger machine: by NUMA node")
        self.assertEqual(cores(wide, [("0-15", "0"), ("16-31", "1")]), ["0-31", "32-63"], "a smaller machine: by NUMA node")
        self.assertEqual(cores(small, [("48-63", "3"), ("16-31", "1"), ("112-127", "7"), ("80-95", "5")]),
                         ["0-7", "0-7", "8-15", "8-15"], "NUMA nodes in any order")
        self.assertEqual(cores(small, [("20-39", "N/A"), ("0-19", "N/A")]), ["8-15", "0-7"], "by the lists' order")
        self.assertEqual(cores(small, [("N/A", "N/A"), ("N/A", "N/A")]), ["0-7", "8-15"], "nothing known")

    def test_settings(self):
        settings = config_files.Settings({"A": "1", "SchedulerParameters": "x", "CompleteWait": 0})
        for text in ("schedulerparameters+=y", "a=", "New=2", "New+=3"):
            settings.change(text)
        settings.add_line("NodeName=n1")
        self.assertEqual(settings.text(), "SchedulerParameters=x,y\nCompleteWait=0\nNew=2,3\nNodeName=n1\n")
        for text in ("x", "=x", "a b=c", "A=1\nB=2"):
            with self.assertRaises(UsageError):
                settings.change(text)

    def test_plugstack(self):
        files = installation.SluiceFiles((), Path("/b/spank_sluice.so"), Path("/b/sluice-agent"))
        self.assertEqual(config_files.plugstack_conf(files, {"Interval": 5, "minSampleInterval": 2}),
                         "optional /b/spank_sluice.so agent=/b/sluice-agent min_interval=2\n")
        self.assertEqual(config_files.plugstack_conf(installation.SluiceFiles((), files.spank, None), {}), "optional /b/spank_sluice.so\n")
        self.assertEqual(config_files.plugstack_conf(None, {}), "")

    def test_host_lists_and_records(self):
        self.assertEqual(hostlist.expand("n[1-3,07],gpu-1"), ["n1", "n2", "n3", "n07", "gpu-1"])
        self.assertEqual(records.gpu_indexes("gpu:v100:3(IDX:0-1,5),shard:2(IDX:7)"), {0, 1, 5})
        self.assertEqual(records.gpu_indexes("gpu:(null):0(IDX:N/A)"), set())
        self.assertEqual(records.gpu_indexes("gpu:(null):2(IDX:0,3)"), {0, 3})
        self.assertEqual(records.gpu_indexes("gpu:p100:1(IDX:0),gpu:rtx:1(IDX:6)"), {0, 6})
        line = ("JobId=7 JobName=my job=1 JobState=RUNNING JOB_GRES=gpu:3   Nodes=n[1-2] CPU_IDs=0 Mem=0 GRES=gpu:1(IDX:3)"
                "   Nodes=n3 CPU_IDs=0-1 Mem=0 GRES=gpu:1(IDX:0) MinCPUsNode=1 Comment={\"a\": \"b c\"} Power=")
        self.assertEqual(records.job_gpus(line), {"n1": {3}, "n2": {3}, "n3": {0}})
        fields = records.parse_line(line)
        self.assertEqual((fields["JobName"], fields["Comment"], fields["Power"]), ("my job=1", '{"a": "b c"}', ""))

    def test_examples(self):
        for path in sorted(EXAMPLES.glob("*.conf")):
            with self.subTest(path.name):
                nodes, gpus = map(int, re.search(r"(\d)x(\d)", path.name).groups())
                parsed = description.read(path)
                self.assertEqual((len(parsed.node_names), parsed.most_gpus), (nodes, gpus))
                for group in parsed.groups:
                    self.assertEqual({len(near) for near in description.gpu_cores(group)}, {group.cores_per_socket})


if __name__ == "__main__":
    unittest.main()
