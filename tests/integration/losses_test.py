#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Losses of real jobs, from where their agents find them, and what becomes of jobs whose sources are none."""

import json
import os
import re
import signal
import socket
import subprocess
import threading
import time
import unittest
from pathlib import Path

from harness import ClusterTest, build_folder, wait_for

TWO_NODES = "Nodes=n[1-2] Gpus=4 Sockets=2 CoresPerSocket=16\n"
_MOST_RESIDENT_KIB = 20 * 1024


def agents(slurm, job):
    """{pid: its parent's pid} of the agent of a job: one works, one watches it."""
    found = {}
    for process in Path("/proc").iterdir():
        if not process.name.isdigit():
            continue
        try:
            if (process / "comm").read_text(encoding="ascii") != "sluice-agent\n":
                continue
            variables = (process / "environ").read_text(encoding="utf-8", errors="replace").split("\0")
            if {f"SLURM_JOB_ID={job}", f"SLURM_CONF={slurm.layout.slurm_conf}"} <= set(variables):
                found[int(process.name)] = int(re.search(r"PPid:\s+(\d+)", (process / "status").read_text(encoding="utf-8")).group(1))
        except OSError:
            pass  # it has ended
    return found


def worker(slurm, job):
    """Its pid; None while there is none."""
    found = agents(slurm, job)
    return next((pid for pid, parent in found.items() if parent in found), None)


class JobsWithLosses(ClusterTest):
    SLUICE = {}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.sluice = build_folder() / "contrib" / "sluice" / "sluice"
        cls.slurm = cls.cluster(TWO_NODES, sluice={"Interval": 1, **cls.SLUICE})

    def submit(self, script, *words):
        job = self.slurm.sbatch(["-N1", "-n1", "-o", str(self.slurm.layout.jobs / "%j.out"), *words], script, user="nobody")
        self.addCleanup(self.slurm.run, ["scancel", str(job)], check=False)
        self.slurm.wait_job(job, {"RUNNING", "COMPLETED"})
        return job

    def status(self, job):
        """What `sluice status --json` says of the record; {} while there is none."""
        result = self.slurm.run([self.sluice, "status", job, "--json"], check=False)
        return json.loads(result.stdout)["sluice"].get("record", {}) if result.returncode == 0 else {}

    def wait_step(self, job, least, seconds=60):
        return wait_for(lambda: (record := self.status(job)).get("k", -1) >= least and record, seconds,
                        lambda: f"step {least} of job {job}: {self.status(job)}")


class Losses(JobsWithLosses):
    SLUICE = {"MinSampleInterval": 1}

    def test_told_by_the_job_itself(self):
        job = self.submit(f'for i in $(seq 10 10 10000); do {self.sluice} emit step=$i loss=2.5; sleep 0.2; done', "--train-model=m")
        self.assertEqual(self.wait_step(job, 50)["l"], 2.5)
        job = self.submit('for i in $(seq 10 10 10000); do echo "{\\"step\\": $i, \\"loss\\": 1.5}" >> "$SLUICE_EMIT"; echo "loss: 9"; sleep 0.2; done',
                          "--train-model=m")
        self.assertEqual(self.wait_step(job, 50)["l"], 1.5)

    def test_trainer_state(self):
        script = """
            for i in $(seq 1 1000); do
                echo '{"log_history": [' > state.new
                for j in $(seq 1 $i); do echo "{\\"loss\\": 3.25, \\"step\\": ${j}0}, "; done | sed '$s/, $//' >> state.new
                echo ']}' >> state.new
                mv state.new $SLURM_JOB_ID.trainer_state.json
                sleep 0.5
            done"""
        job = self.submit(script, "--train-loss=state:%j.trainer_state.json", "-D", str(self.slurm.layout.jobs))
        self.assertEqual(self.wait_step(job, 50)["l"], 3.25)

    def test_one_agent_and_its_files_whatever_is_exported(self):
        """Under --export=NONE a job's script and its steps get little of the environment that says so."""
        for batch in ("ALL", "NONE"):
            for step in ("ALL", "NONE", "PATH"):
                with self.subTest(batch=batch, step=step):
                    loop = 'i=0; while i=$((i + 10)); do echo "{\\"step\\": $i, \\"loss\\": 1.5}" >> "$SLUICE_EMIT"; /bin/sleep 0.2; done'
                    job = self.submit(f"PATH=/usr/bin:/bin\nsrun --export={step} /bin/sh -c '{loop}'", "--train-model=m", f"--export={batch}")
                    self.assertEqual(self.wait_step(job, 50)["l"], 1.5)
                    self.assertEqual(len(agents(self.slurm, job)), 2, "one that works, and who watches it")

    def test_an_agent_that_dies_is_started_once_more(self):
        job = self.submit('for i in $(seq 10 10 100000); do echo "step $i loss 2.5"; sleep 0.2; done', "--train-model=m")
        step = self.wait_step(job, 50)["k"]
        first = wait_for(lambda: worker(self.slurm, job), 20, "the agent")
        os.kill(first, signal.SIGKILL)
        second = wait_for(lambda: (now := worker(self.slurm, job)) != first and now, 20, "the second agent")
        # It reads all that the run has printed, and goes on.
        record = self.wait_step(job, step + 50)
        self.assertGreater(record["n"], record["k"] / 10 - 5)
        os.kill(second, signal.SIGKILL)
        wait_for(lambda: not agents(self.slurm, job), 20, "the end of the agent")
        time.sleep(3)
        self.assertEqual(agents(self.slurm, job), {})
        self.assertEqual(self.slurm.job(job)["JobState"], "RUNNING")

    def test_sources_that_are_none(self):
        jobs = self.slurm.layout.jobs
        secret = self.scratch / "secret.log"
        secret.write_text("step 1 loss 1\n", encoding="ascii")
        secret.chmod(0o600)
        (jobs / "link.log").symlink_to(secret)
        os.mkfifo(jobs / "fifo.log", 0o666)
        subprocess.run(["truncate", "-s", "10G", jobs / "sparse.log"], check=True)
        (jobs / "line.log").write_bytes(b"x" * (40 << 20))
        silent = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(silent.close)
        held = []
        threading.Thread(target=self.accept, args=(silent, held), daemon=True).start()
        sources = {f"{jobs}/link.log": "link|Permission", f"{jobs}/fifo.log": "fifo", "/dev/zero": "zero", f"{jobs}/sparse.log": "no named number",
                   f"{jobs}/line.log": "no named number", f"tfevents:{jobs}/none": "none", "state:/dev/zero": "zero",
                   f"mlflow:abc@http://127.0.0.1:{silent.getsockname()[1]}": "127.0.0.1"}
        ids = {source: self.submit("sleep 45; echo done", f"--train-loss={source}") for source in sources}
        said = {}
        for source, job in ids.items():
            said[source] = wait_for(lambda: self.status(job).get("x"), 60, f"a word of {source}")
            for pid in agents(self.slurm, job):
                resident = int(re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text(encoding="ascii")).group(1))
                self.assertLess(resident, _MOST_RESIDENT_KIB, source)
        for source, pattern in sources.items():
            with self.subTest(source=source):
                self.assertRegex(said[source], pattern)
                self.slurm.wait_job(ids[source], "COMPLETED", timeout=90)
        self.assertNotIn("step", said[f"{jobs}/link.log"])

    @staticmethod
    def accept(server, held):
        try:
            while True:
                held.append(server.accept())
        except OSError:
            pass  # closed


class FirstAndLast(JobsWithLosses):
    """With a record a minute: nothing of a job is lost at its beginning or its end."""

    def ended(self, job, state="COMPLETED"):
        """The record of a job that has come to its end."""
        self.slurm.wait_job(job, state)
        return self.status(job)

    def ended_again(self, job):
        self.slurm.wait_job(job, "PENDING")
        wait_for(lambda: self.slurm.job(job)["JobState"] == "COMPLETED", 60, f"the second end of job {job}")
        return self.status(job)

    def test_what_is_written_before_the_agent_looks(self):
        record = self.ended(self.submit('for i in 1 2 3 4 5; do echo "step $i loss $i.5"; done; cd /; exec > /dev/null; sleep 1', "--train-model=m"))
        self.assertEqual((record["n"], record["k"], record["l"]), (5, 5, 5.5))

    def test_what_others_have_left_in_a_file(self):
        csv = self.slurm.layout.jobs / "c.csv"
        words = ("--train-loss=%x.csv", "-J", "c", "-D", str(csv.parent))
        header, rows = "epoch,step,train_loss", 'for i in 1 2 3; do echo "0,$i,$i.5" >> c.csv; sleep 0.3; done'
        for before, first in ((None, f"echo {header} > c.csv"), (f"{header}\n0,900,0.1\n", ":"), (f"{header}\n0,900,0.1\n", f"echo {header} > c.csv")):
            with self.subTest(before=before, first=first):
                csv.unlink(missing_ok=True)
                if before:
                    csv.write_text(before, encoding="ascii")
                    csv.chmod(0o666)
                record = self.ended(self.submit(f"{first}\n{rows}", *words))
                self.assertEqual((record["n"], record["k"], record["l"]), (3, 3, 3.5))

    def test_the_end_of_a_job_is_told(self):
        # without an end of line behind the last loss
        script = 'for i in $(seq 1 200); do echo "step $i loss $((1000 / i)).5"; sleep 0.01; done; printf "step 201 loss 4.25"'
        job = self.submit(script, "--train-model=m")
        record = self.ended(job)
        self.assertEqual((record["n"], record["k"], record["l"], record["z"]), (201, 201, 4.25, 1))
        text = self.slurm.run([self.sluice, "status", job]).stdout
        self.assertNotIn("more losses are needed", text)
        self.assertNotIn("forecast", text)
        self.assertIn("no loss found in", self.ended(self.submit("echo nothing", "--train-model=m"))["x"])

    def test_the_end_of_a_job_that_is_cancelled(self):
        job = self.submit('i=0; while :; do i=$((i + 1)); echo "step $i loss 2.5"; sleep 0.1; done', "--train-model=m")
        wait_for(lambda: self.status(job), 20, "the first record")
        time.sleep(2)
        self.slurm.run(["scancel", str(job)])
        self.slurm.wait_job(job, "CANCELLED")
        printed = self.slurm.layout.jobs / f"{job}.out"
        record = wait_for(lambda: (record := self.status(job)).get("z") and record, 10, "the last record")
        self.assertEqual(record["n"], len(re.findall("(?m)^step", printed.read_text(encoding="ascii"))))

    def test_a_requeued_job_goes_on_with_its_curve(self):
        # without GPUs and without sizes
        job = self.submit('for i in 1 2 3; do echo "step $((3 * SLURM_RESTART_COUNT + i)) loss 2.5"; done; [ "$SLURM_RESTART_COUNT" = 1 ] || sleep 60',
                          "--train-model=m", "--requeue", "--open-mode=append")
        wait_for(lambda: self.status(job), 20, "the first record")
        self.slurm.run(["scontrol", "requeue", str(job)])
        record = self.ended_again(job)
        self.assertEqual((record["r"], record["n"], record["k"]), (1, 6, 6))

    def test_records_come_soon_at_first(self):
        job = self.submit('i=0; while :; do i=$((i + 1)); echo "step $i loss 2.5"; sleep 0.1; done', "--train-model=m")
        first = wait_for(lambda: self.status(job), 20, "the first record")["n"]
        wait_for(lambda: self.status(job)["n"] > first, 10, "the second record")


if __name__ == "__main__":
    unittest.main()
