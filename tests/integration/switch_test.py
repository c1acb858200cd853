#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Turning Sluice on and off again, with the restart that Slurm asks for, under jobs that run."""

import unittest

from harness import ClusterTest, build_folder, gpu_errors, replace_file, sluice_lines, wait_for, wait_registered

STOCK = {"SelectType=select/cons_tres_sluice": "SelectType=select/cons_tres", "JobSubmitPlugins=sluice": "#JobSubmitPlugins=sluice"}


class SwitchTest(ClusterTest):
    def test_stock_to_sluice_and_back_with_twenty_jobs(self):
        build_folder()
        slurm = self.cluster("Nodes=n[1-5] Gpus=8 Sockets=2 CoresPerSocket=8\n", sluice={"Interval": 1})
        with_sluice = slurm.layout.slurm_conf.read_text(encoding="utf-8")
        without = with_sluice
        for new, old in STOCK.items():
            self.assertIn(f"{new}\n", without)
            without = without.replace(f"{new}\n", f"{old}\n")

        self.switch(slurm, without)
        requests = (["-N1", "--gpus=1"], ["-N1", "--gpus=2"], ["-N2", "--gpus-per-node=1"], ["-N1", "--gres=gpu:1", "--cpus-per-gpu=2"])
        jobs = [slurm.sbatch([*requests[number % 4], "-o", "/dev/null"], "srun --overlap sleep 1000", user=("nobody", None)[number % 2])
                for number in range(20)]
        for job in jobs:
            slurm.wait_job(job, "RUNNING")
        held = slurm.job_gres()
        self.assertEqual(set(held), set(jobs))

        for text in (with_sluice, without, with_sluice):
            self.switch(slurm, text)
            self.assertEqual({job: slurm.job(job)["JobState"] for job in jobs}, dict.fromkeys(jobs, "RUNNING"))
            self.assertEqual(slurm.job_gres(), held)
            self.assertEqual(gpu_errors(slurm), [])
            more = slurm.sbatch(["-N1", "--gpus=1", "-o", "/dev/null"], "sleep 1000")
            slurm.wait_job(more, "RUNNING")
            self.assertEqual(gpu_errors(slurm), [])
            placed = any(f"job {more}: node" in line for line in sluice_lines(slurm))
            self.assertEqual(placed, text == with_sluice)
            slurm.run(["scancel", str(more)])
            wait_for(lambda job=more: slurm.job(job)["JobState"] == "CANCELLED" and slurm.job_gres() == held, 30, "the end of one more job")

        slurm.run(["scancel", *map(str, jobs)])
        wait_for(lambda: not any(slurm.node_gres().values()), 60, "all GPUs free")
        self.assertEqual({slurm.job(job)["Restarts"] for job in jobs}, {"0"})

    def switch(self, slurm, text):
        """SelectType counts after a restart of slurmctld and slurmd."""
        replace_file(slurm.layout.slurm_conf, text)
        slurm.restart("slurmctld")
        for node in slurm.nodes:
            slurm.restart(node)
        wait_registered(slurm)


if __name__ == "__main__":
    unittest.main()
