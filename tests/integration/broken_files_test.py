#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Files that are broken, missing or cannot be written: one line in the log says so, and jobs run as on stock Slurm. Advise mode."""

import os
import re
import subprocess
import time
import unittest

from harness import EXAMPLES, RECONFIGURE_STARTS_ANEW, ClusterTest, allocate, build_folder, end_job, gpu_errors, gpu_request, records, replace_file, sluice_lines, wait_for, wait_registered

CLIQUES = f"Nodes=n1 Gpus=8 Sockets=2 CoresPerSocket=16 Topology={EXAMPLES}/two-cliques.topo-m.txt\n"
RECORD = 'sluice1:{"r":0,"k":%d,"l":2.5,"n":3,"g":2}'


class Files(ClusterTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.slurm = cls.cluster(CLIQUES, sluice={"Interval": 1, "MinSampleInterval": 1})
        cls.conf = cls.slurm.layout.etc / "sluice.conf"
        cls.topology = next(cls.slurm.layout.topology.iterdir())
        cls.good = {path: path.read_text(encoding="utf-8") for path in (cls.conf, cls.topology)}

    def setUp(self):
        for path, text in self.good.items():
            replace_file(path, text)
        self.reconfigure()

    def restart(self):
        """What the new slurmctld logs of Sluice as it starts."""
        mark = self.mark()
        self.slurm.restart("slurmctld")
        wait_registered(self.slurm)
        time.sleep(1.5)  # longer than a round of the deciding thread
        return self.since(mark)

    def reconfigure(self):
        """What is logged then."""
        mark = self.mark()
        self.slurm.run(["scontrol", "reconfigure"])
        time.sleep(1.5)
        return self.since(mark)

    def mark(self):
        return len(self.slurm.log("slurmctld"))

    def since(self, mark):
        return [line.partition("] ")[2] for line in self.slurm.log("slurmctld")[mark:].splitlines() if "sluice: " in line]

    def assert_told_once(self, lines, pattern):
        told = [line for line in lines if re.search(pattern, line)]
        self.assertEqual(len(told), 1, "\n".join([pattern, *lines]))
        self.assertIn("error: sluice: ", told[0])

    def assert_jobs_run(self):
        job = allocate(self.slurm, "-N1", "--gpus=2", "--train-gpus=1-4", "--train-resize=off")
        self.assertEqual(len(self.slurm.job_gres()[job]["n1"]), 2)
        self.assertEqual(gpu_errors(self.slurm), [])
        end_job(self.slurm, job)
        self.slurm.run(["srun", "--gpus=2", "--train-gpus=2", "true"], user="nobody")
        # slurmctld, killed while a job completes, takes long to notice that it has.
        wait_for(lambda: not self.slurm.run(["squeue", "-ha", "-t", "completing"]).stdout, 30, "no job on its way out")

    def at_start_and_on_reconfigure(self, breaking, pattern):
        breaking()
        with self.subTest("on scontrol reconfigure"):
            self.assert_told_once(self.reconfigure(), pattern)
            if not RECONFIGURE_STARTS_ANEW:
                self.assertEqual(self.reconfigure(), [], "once is enough")
            self.assert_jobs_run()
        with self.subTest("at the start"):
            self.assert_told_once(self.restart(), pattern)
            self.assert_jobs_run()

    def test_broken_topology(self):
        text = self.good[self.topology].replace("NV2", "NVX", 1)
        self.at_start_and_on_reconfigure(lambda: replace_file(self.topology, text),
                                         rf'{self.topology}:2: .*"NVX" .*write .*NV#')

    def test_topology_with_a_cell_too_many(self):
        text = self.good[self.topology].replace("\tNV2", "\tNV2\tNV2", 1)
        self.at_start_and_on_reconfigure(lambda: replace_file(self.topology, text), rf"{self.topology}:2: ")

    def test_topology_of_other_kind(self):
        self.at_start_and_on_reconfigure(lambda: replace_file(self.topology, bytes(range(256)) * 100), rf"{self.topology}: holds no topology")

    def test_topology_that_is_a_fifo(self):
        def make():
            self.topology.unlink(missing_ok=True)
            os.mkfifo(self.topology)

        self.addCleanup(self.topology.unlink)
        self.at_start_and_on_reconfigure(make, rf"{self.topology}: not an ordinary file")

    def test_missing_topology(self):
        self.at_start_and_on_reconfigure(lambda: self.topology.unlink(missing_ok=True), rf"{self.topology}: No such file")

    def test_broken_conf(self):
        for line, pattern in (("Intervall=3", r"sluice\.conf:5: Intervall: no such key: write one of Policy, Interval"),
                              ("MinGain=much", r"sluice\.conf:5: MinGain: .*much"),
                              ("Policy=best", r'sluice\.conf:5: Policy: "best" is no policy: write one of fifo')):
            with self.subTest(line=line):
                replace_file(self.conf, self.good[self.conf] + line + "\n")
                self.assert_told_once(self.reconfigure(), pattern)
        self.at_start_and_on_reconfigure(lambda: replace_file(self.conf, self.good[self.conf] + "x\n"),
                                         r'sluice\.conf:5: "x" is no Key=Value')

    def test_the_configuration_before_stays(self):
        replace_file(self.conf, self.good[self.conf] + "nonsense\n")
        if RECONFIGURE_STARTS_ANEW:
            self.assert_told_once(self.reconfigure(), "until it is right Sluice only advises")
        else:
            self.assert_told_once(self.reconfigure(), "the configuration before stays in force")
            job = allocate(self.slurm, "-N1", "--gpus=4")
            self.assertEqual(self.slurm.job_gres()[job]["n1"], {0, 2, 4, 6}, "the topology file is still known")
            end_job(self.slurm, job)

    def test_missing_conf(self):
        self.conf.unlink()
        self.assertEqual([line for line in self.restart() if line.startswith("error")], [], "all of it has defaults")
        self.assert_jobs_run()

    def test_what_was_learned(self):
        folder = self.slurm.layout.state / "slurmctld" / "sluice"
        good = '7 0 - gpt2 - 0 1700000000 1 sluice1:{"r":0,"k":1200,"l":2.3125,"n":87,"g":4,"v":3.5}\n'
        runs, samples = folder / "runs", folder / "step-samples"
        damaged = f"sluice runs 1\n8 0 - gpt2 -\n{good}"
        newer = "sluice step samples 9\n0/gpt2 a 1 1 1 64 8 0 0.5 1 more\n"
        replace_file(runs, damaged)
        replace_file(samples, newer)
        lines = self.restart()
        self.assert_told_once(lines, rf"{runs}: damaged lines left out: 1; the file is kept as {runs}\.unread")
        self.assert_told_once(lines, rf'{samples}: "sluice step samples 9" is not .*; what was learned there is left out; the file is kept as {samples}\.unread')
        self.assertEqual([path.with_name(path.name + ".unread").read_text(encoding="utf-8") for path in (runs, samples)], [damaged, newer])
        wait_for(lambda: runs.exists() and runs.read_text(encoding="utf-8") == f"sluice runs 1\n{good}", 20, "the good line alone")
        self.assertEqual(runs.stat().st_mode & 0o777, 0o600, "users' jobs are nobody else's business")
        self.assert_jobs_run()

    def test_state_folder_that_cannot_be_made(self):
        replace_file(self.conf, self.good[self.conf] + "StateDir=/proc/sluice/state\n")
        self.assert_told_once(self.restart(), "/proc/sluice/state: .*lost when slurmctld ends")
        self.assert_jobs_run()

    def test_full_disk(self):
        folder = self.scratch / "small"
        folder.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], capture_output=True, check=False).returncode:
            self.skipTest("a file system of 64 KiB cannot be mounted here")
        self.addCleanup(subprocess.run, ["umount", "-l", folder], check=False)
        replace_file(self.conf, self.good[self.conf] + f"StateDir={folder}/state\n")
        mark = self.mark()
        self.restart()
        self.addCleanup(self.restart)
        self.addCleanup(replace_file, self.conf, self.good[self.conf])
        jobs = [allocate(self.slurm, "-N1", "--gpus=2", "--train-gpus=2") for _ in range(4)]
        self.send(jobs, 1)
        journal = folder / "state" / "jobs"
        wait_for(lambda: journal.exists() and f"job/{jobs[-1]} " in journal.read_text(encoding="utf-8"), 20, "the first record")

        filler = folder / "filler"
        with open(filler, "wb", buffering=0) as file:
            try:
                while True:
                    file.write(b"\0" * 4096)
            except OSError:
                pass  # full
        for step in range(2, 60):
            time.sleep(1.05)
            self.send(jobs, step)
            if any("No space left" in line and "kept in memory" in line for line in self.since(mark)):
                break
        time.sleep(2)
        self.assert_told_once(self.since(mark), f"{folder}.*No space left.*kept in memory")
        end_job(self.slurm, jobs.pop())
        self.assert_jobs_run()

        filler.unlink()
        self.send(jobs, 1000)
        wait_for(lambda: '\\"k\\":1000' in journal.read_text(encoding="utf-8"), 20, "what was kept in memory")
        for job in jobs:
            end_job(self.slurm, job)

    def send(self, jobs, step):
        for job in jobs:
            self.slurm.run(["scontrol", "update", f"jobid={job}", f"comment={RECORD % step}"])


class NoLoss(ClusterTest):
    def test_status_says_what_was_seen(self):
        slurm = self.cluster(CLIQUES, sluice={"MinSampleInterval": 1})
        log = slurm.layout.jobs / "training.log"
        job = slurm.sbatch(["--gpus=1", "--train-gpus=1", f"--train-loss={log}", "-o", "/dev/null"],
                           f"for i in $(seq 200); do echo \"epoch=$i accuracy=0.$i lr=1e-3\" >> {log}; sleep 0.5; done", user="nobody")
        slurm.wait_job(job, "RUNNING")
        sluice = build_folder() / "contrib" / "sluice" / "sluice"

        def told():
            status = slurm.run([sluice, "status", job], check=False)
            return "no loss found in" in status.stdout and status.stdout

        text = wait_for(told, 90, lambda: f"no word of it:\n{slurm.run([sluice, 'status', job], check=False)}")
        self.assertRegex(text, rf"no loss found in {log}.*accuracy")


class Advise(ClusterTest):
    def test_nothing_is_changed(self):
        """Jobs go where stock Slurm puts them, and keep what they have asked for."""
        slurm = self.cluster(CLIQUES, sluice={"Interval": 1, "AdviseOnly": "yes"})
        stock = self.cluster(CLIQUES, stock=True)
        for words in (["-N1", "--gpus=1"], ["-N1", "--gpus=3"], ["-N1", "--gpus=2"]):
            jobs = [allocate(cluster, *words) for cluster in (slurm, stock)]
            self.assertEqual(*(cluster.job_gres()[job]["n1"] for cluster, job in zip((slurm, stock), jobs)))
        told = [line for line in sluice_lines(slurm) if "would choose" in line]
        self.assertEqual(len(told), 3)
        self.assertTrue(any(best != stock_set for line in told for best, stock_set in re.findall(r"GPUs (\S+) \(.*stock (\S+) \(", line)))

        waiting = slurm.sbatch(["-N1", "--gpus=4", "--train-gpus=1-8", "-o", "/dev/null"], "sleep 1000")
        wait_for(lambda: any(f"job {waiting}: would" in line for line in sluice_lines(slurm)), 20, "advice for a job that waits")
        fields = slurm.job(waiting)
        self.assertEqual((fields["JobState"], fields["TresPerJob"]), ("PENDING", gpu_request(4)))
        self.assertIn("would", fields["AdminComment"])

    def test_of_one_job(self):
        slurm = self.cluster(CLIQUES, sluice={"Interval": 1})
        allocate(slurm, "-N1", "--gpus=1")
        job = allocate(slurm, "-N1", "--gpus=3", "--train-gpus=1-4", "--train-advise=yes")
        line = next(line for line in sluice_lines(slurm) if f"job {job}: would choose" in line)
        self.assertEqual(records.gpu_indexes(f"gpu:3(IDX:{re.search(r'stock ([0-9,-]+)', line).group(1)})"), slurm.job_gres()[job]["n1"])


if __name__ == "__main__":
    unittest.main()
