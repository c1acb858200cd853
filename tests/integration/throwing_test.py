#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Plugins that throw wherever Slurm has called, after their work is done (a test build): slurmctld lives, and jobs run as on stock Slurm."""

import re
import shutil
import unittest

from harness import EXAMPLES, RECONFIGURE_STARTS_ANEW, ClusterTest, allocate, build_folder, end_job, gpu_errors, say, wait_for

# What this test is sure to call, by the log that it writes to.
IN_SLURMCTLD = {"init", "job_test", "job_begin", "nodeinfo_set_all", "reconfigure", "job_submit", "job_modify", "deciding thread"}
IN_SLURMD = {"take_option", "slurm_spank_task_init"}
IN_SBATCH = {"take_option", "slurm_spank_init_post_opt"}


class Throwing(ClusterTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = cls.scratch / "plugins"
        shutil.copytree(build_folder() / "plugins" / "throwing" / ".libs", folder)
        for part, front in (("select", "select_cons_tres_sluice.so"), ("spank", "spank_sluice.so")):
            shutil.copy(build_folder() / "plugins" / part / ".libs" / front, folder)
        (folder / "sluice-agent").symlink_to(build_folder() / "plugins" / "spank" / "sluice-agent")
        cls.slurm = cls.cluster(EXAMPLES / "dgx1v-4x8.conf", plugin_dirs=[folder], sluice={"Interval": 1})

    def thrown(self, text):
        """{entry point: lines}"""
        found = {}
        for name in re.findall(r"sluice: ([a-z_ ]+): std::exception; doing what stock Slurm does", text):
            found[name] = found.get(name, 0) + 1
        return found

    def test_twenty_jobs(self):
        before = {daemon: self.slurm.pid(daemon) for daemon in self.slurm.daemons}
        submitted = self.slurm.run(["sbatch", "--parsable", "--gpus=2", "--train-gpus=1-4", "-o", "/dev/null", "--wrap", "srun true"])
        jobs = [int(submitted.stdout)]
        words = (["-N1", "--gpus=3"], ["--gpus=2", "--train-gpus=1-4", "--train-resize=restart"], ["-N2", "--gpus-per-node=1"], ["-n2"])
        jobs += [self.slurm.sbatch([*words[number % 4], "-o", "/dev/null"], "srun sleep 0.2", user=("nobody", None)[number % 2])
                 for number in range(19)]
        for job in jobs:
            self.slurm.wait_job(job)

        held = allocate(self.slurm, "-N1", "--gpus=2", "--train-gpus=1-2")
        self.slurm.run(["scontrol", "update", f"jobid={held}", "comment=mine"])
        self.assertEqual(self.slurm.job(held)["Comment"], "mine")
        self.assertEqual(gpu_errors(self.slurm), [])
        self.slurm.run(["scontrol", "suspend", str(held)])
        self.slurm.run(["scontrol", "resume", str(held)])
        self.slurm.run(["scontrol", "reconfigure"])
        end_job(self.slurm, held)
        wait_for(lambda: not any(self.slurm.node_gres().values()), 20, "all GPUs free")
        self.assertEqual({daemon: self.slurm.pid(daemon) for daemon in self.slurm.daemons}, before, "the same processes as at the start")

        self.check_lines("sbatch", submitted.stderr, IN_SBATCH)
        self.check_lines("n1", self.slurm.log("n1"), IN_SLURMD)
        self.check_lines("slurmctld", self.slurm.log("slurmctld"), IN_SLURMCTLD)

    def check_lines(self, where, text, expected):
        thrown = self.thrown(text)
        say(f"{where}: {len(thrown)} of ours threw")
        self.assertLessEqual(expected, set(thrown))
        if where != "n1":  # each slurmstepd is a new process
            processes = 2 if where == "slurmctld" and RECONFIGURE_STARTS_ANEW else 1
            self.assertEqual({name: lines for name, lines in thrown.items() if lines > processes * (1 + (name == "init"))}, {},
                             "both plugins have init")


if __name__ == "__main__":
    unittest.main()
