#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""`sluice topo collect` on a real cluster, with a program in place of lstopo: through srun into class files that slurmctld then chooses by."""

import os
import re
import shutil
import unittest
from pathlib import Path

from harness import ROOT, ClusterTest, allocate, build_folder, end_job, replace_file, sluice_lines, wait_for

DATA = ROOT / "tests" / "data" / "topology"
NODES = "Nodes=n[1-3] Gpus=4 Sockets=2 CoresPerSocket=4\nNodes=n4 Gpus=0 Sockets=1 CoresPerSocket=2\n"


class Collect(ClusterTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if Path("/proc/driver/nvidia/gpus").exists():
            raise unittest.SkipTest("the GPUs of this machine are not those that the test makes up")
        cls.slurm = cls.cluster(NODES, sluice={"Interval": 1})
        cls.machines = cls.scratch / "machines"
        cls.machines.mkdir()
        # Links 0-1 and 2-3 on n1 and n2, none on n3.
        for node, source in (("n1", "hwloc3"), ("n2", "hwloc3"), ("n3", "hwloc1")):
            shutil.copy(DATA / f"power8-4p100.{source}.xml", cls.machines / node)
        programs = cls.scratch / "bin"
        programs.mkdir()
        lstopo = programs / "lstopo-no-graphics"
        lstopo.write_text(f'#!/bin/sh\nexec cat "{cls.machines}/$SLURMD_NODENAME"\n', encoding="utf-8")
        lstopo.chmod(0o755)
        cls.path = f"{programs}:{os.environ['PATH']}"
        cls.folder = cls.slurm.layout.etc / "classes"

    def collect(self, *words, status=0):
        """What it says."""
        result = self.slurm.run([build_folder() / "contrib/sluice/sluice", "topo", "collect", "--directory", self.folder, *words],
                                env={"PATH": self.path}, check=False)
        self.assertEqual(result.returncode, status, result.stdout + result.stderr)
        return result.stdout

    def test_from_the_nodes_into_the_choice(self):
        said = self.collect("--dry-run")
        self.assertIn("nothing written", said)
        self.assertFalse(self.folder.exists())

        said = self.collect()
        classes = dict(re.findall(r"^(4x-\S+\.topo)  (\S+)  \(new\)$", said, re.MULTILINE))
        self.assertEqual(sorted(classes.values()), ["n3", "n[1-2]"], said)
        self.assertNotIn("n4", said)
        self.assertEqual({path.name for path in self.folder.iterdir()}, {"classes.conf", *classes})
        self.assertIn("nothing has changed", self.collect())

        conf = self.slurm.layout.etc / "sluice.conf"
        own = [line for line in conf.read_text(encoding="utf-8").splitlines() if not line.startswith(("TopologyDir", "Topology"))]
        lines = (self.folder / "classes.conf").read_text(encoding="utf-8")
        replace_file(conf, "\n".join(own) + "\n" + lines)
        self.slurm.run(["scontrol", "reconfigure"])
        told = [rf"{self.folder}/{file}: {count} nodes with 4 GPUs" for file, count in
                ((file, 2 if nodes == "n[1-2]" else 1) for file, nodes in classes.items())]
        wait_for(lambda: all(any(text in line for line in sluice_lines(self.slurm)) for text in told), 20, "the class files in slurmctld")

        with self.subTest("jobs get pairs that are linked"):
            first = allocate(self.slurm, "-wn1", "--gpus=1")
            second = allocate(self.slurm, "-wn1", "--gpus=2")
            self.assertEqual(self.slurm.job_gres()[first]["n1"], {0})
            self.assertEqual(self.slurm.job_gres()[second]["n1"], {2, 3})
            for job in (first, second):
                end_job(self.slurm, job)

        with self.subTest("a node that fails stays in its class and is named"):
            replace_file(self.machines / "n2", "<topology><object>")
            said = self.collect(status=4)
            self.assertRegex(said, r"FAILED +n2: lstopo-no-graphics:1: the file ends within <object> \(stays in 4x-")
            self.assertIn("nothing has changed", said)
            self.assertEqual((self.folder / "classes.conf").read_text(encoding="utf-8"), lines)

        with self.subTest("a list of nodes, one that is another machine now"):
            shutil.copy(self.machines / "n3", self.machines / "n2")
            said = self.collect("--nodelist=n2", "--", "--cpus-per-task=1")
            self.assertRegex(said, r"n2: was 4x-\S+, now 4x-")
            self.assertRegex((self.folder / "classes.conf").read_text(encoding="utf-8"), r"(?m)Nodes=n1$(.|\n)*Nodes=n\[2-3\]$|Nodes=n\[2-3\]$(.|\n)*Nodes=n1$")

        with self.subTest("nodes that are busy are named"):
            job = allocate(self.slurm, "-wn1", "--exclusive")
            self.assertRegex(self.collect(), r"not asked +n1: allocated \(stays in 4x-")
            said = self.slurm.run([build_folder() / "contrib/sluice/sluice", "topo", "collect", "--directory", self.folder,
                                   "--nodelist=n1", "--timeout=2"], env={"PATH": self.path}, check=False)
            self.assertEqual(said.returncode, 4, said.stdout)
            self.assertRegex(said.stderr, r"topo collect: srun: ")
            end_job(self.slurm, job)


if __name__ == "__main__":
    unittest.main()
