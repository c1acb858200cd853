#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Jobs that are resized by checkpoint and restart: on a real slurmctld, with a real agent beside a small stand-in for training.

Each case has a node of 8 GPUs in a partition of its own and begins at once; the tests look at how it ended.
"""

import re
import subprocess
import time
import unittest

from harness import ENDED, ClusterTest, build_folder, gpu_errors, gpu_request, replace_file, sluice_lines, wait_for

CONF = {"Interval": 1, "ResizeCooldown": 8, "RestartCost": 1, "MinSampleInterval": 1, "MinGain": 0.01, "MaxResizesPerHour": 1000}

# Prints a falling loss, faster with more GPUs; what it does when told to checkpoint is its first argument.
TRAINER = r'''
import json, os, signal, sys, time
mode, path = sys.argv[1], sys.argv[2]
gpus = len(os.environ["CUDA_VISIBLE_DEVICES"].split(","))
step = json.load(open(path))["step"] if os.path.exists(path) else 0
told = []
if mode == "early":
    open(os.environ["SLUICE_CHECKPOINT_DONE"], "w").close()
if mode != "ignore":
    signal.signal(signal.SIGUSR1, lambda *_: told.append(True))
print(f"run on {gpus} GPUs from step {step}", flush=True)
while True:
    time.sleep(0.4 / gpus)
    step += 1
    print(f"step {step}: loss {1 / (0.003 * step + 0.2) + 0.5:.6f}", flush=True)
    if told:
        if mode == "early":
            time.sleep(3)
        json.dump({"step": step}, open(path, "w"))
        print(f"saved step {step}", flush=True)
        if mode == "exit143":
            sys.exit(143)
        if mode == "exit0":
            sys.exit(0)
        if mode in ("answer", "early"):
            open(os.environ["SLUICE_CHECKPOINT_DONE"], "w").close()
        while True:
            time.sleep(1)
'''


class Resizing(ClusterTest):
    """One cluster; a node, a partition and a job a case."""

    cases = {}

    @classmethod
    def start_cluster(cls, names):
        build_folder()
        lines = ["Nodes=n[1-%d] Gpus=8 Sockets=2 CoresPerSocket=8" % len(names)]
        lines += [f"Partition={name} Nodes=n{number} MaxTime=INFINITE State=UP{' Default=YES' if number == 1 else ''}"
                  for number, name in enumerate(names, 1)]
        cls.slurm = cls.cluster("\n".join(lines) + "\n", sluice=CONF, dbd=True)
        cls.folder = cls.slurm.layout.jobs
        (cls.folder / "trainer.py").write_text(TRAINER, encoding="ascii")

    @classmethod
    def train(cls, case, mode, *, sizes="4,8", gpus=4, cpus=1, signal="USR1@4", prefix="", script=None, user="nobody",
              exclusive=False):
        """A job that Sluice will want to grow from `gpus` to the next of `sizes`."""
        checkpoint = f"/tmp/sluice-resize-test-{cls.folder.stat().st_ino}-{case}.json"
        cls.addClassCleanup(subprocess.run, ["rm", "-f", checkpoint], check=False)
        command = f"{prefix}/usr/bin/python3 {cls.folder}/trainer.py {mode} {checkpoint}"
        log = cls.log_path(case)
        log.touch()
        log.chmod(0o666)
        return cls.slurm.sbatch(["-p", case, "-J", case, "-N1", f"--gpus-per-node={gpus}", f"--cpus-per-gpu={cpus}", "-o", log, f"--train-gpus={sizes}",
                                 "--train-resize=restart", f"--train-signal={signal}", *["--exclusive"] * exclusive],
                                (script or "{command}").replace("{command}", command), user=user, cwd="/tmp")

    @classmethod
    def log_path(cls, case):
        return cls.folder / f"{case}.log"

    def log_of(self, case):
        return self.log_path(case).read_text(encoding="utf-8", errors="replace")

    def runs(self, case):
        """[(GPUs, first step)] of the runs so far."""
        return [(int(gpus), int(step)) for gpus, step in re.findall(r"^run on (\d+) GPUs from step (\d+)", self.log_of(case), re.MULTILINE)]

    def wait_runs(self, case, count, timeout=60):
        wait_for(lambda: len(self.runs(case)) >= count, timeout, f"run {count} of {case}")
        return self.runs(case)

    def saved(self, case):
        return [int(step) for step in re.findall(r"^saved step (\d+)", self.log_of(case), re.MULTILINE)]

    def wait_told(self, job, timeout=60):
        """Until slurmctld has told the job to checkpoint."""
        wait_for(lambda: any(f"job {job}: restart from" in line and "told" in line for line in sluice_lines(self.slurm)), timeout,
                 f"signal to job {job}")

    def end(self, job):
        self.slurm.run(["scancel", str(job)])


class RestartTest(Resizing):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.start_cluster(["both", "ignore", "silent", "exit143", "exit0", "cancel", "trap", "steps", "noagent", "early",
                           "cores", "certain", "suspended", "held", "alone"])
        cls.jobs = {
            "both": cls.train("both", "answer", sizes="2,4,8"),
            "ignore": cls.train("ignore", "ignore"),
            "silent": cls.train("silent", "silent"),
            "exit143": cls.train("exit143", "exit143"),
            "exit0": cls.train("exit0", "exit0"),
            "cancel": cls.train("cancel", "silent", signal="USR1@60"),
            "trap": cls.train("trap", "answer", signal="B:USR1@30",
                              script="{command} &\nchild=$!\ntrap 'kill -USR1 $child' USR1\nwait; wait; wait; wait\n"),
            "steps": cls.train("steps", "answer", prefix="srun --overlap "),
            "early": cls.train("early", "early", signal="USR1@30"),
            "cores": cls.train("cores", "answer", cpus=3),
            "certain": cls.train("certain", "answer", gpus=8),
            "held": cls.train("held", "silent", signal="USR1@60"),
            "noagent": cls.train("noagent", "answer", sizes="4", gpus=4),
        }

    def test_grown_then_shrunk_from_its_checkpoints(self):
        job = self.jobs["both"]
        runs = self.wait_runs("both", 2)
        self.assertEqual(runs, [(4, 0), (8, self.saved("both")[0])])
        self.assertEqual(self.slurm.job(job)["NumCPUs"], "8")
        rigid = self.slurm.sbatch(["-p", "both", "-N1", "--gpus-per-node=4", "-o", "/dev/null"], "sleep 1000")
        runs = self.wait_runs("both", 3)
        self.assertIn(runs[2][0], (2, 4))
        self.assertEqual(runs[2][1], self.saved("both")[1])
        self.assertEqual(self.slurm.job(job)["NumCPUs"], str(runs[2][0]))
        self.slurm.wait_job(rigid, "RUNNING")
        self.assertEqual(gpu_errors(self.slurm), [])
        self.end(rigid)
        self.end(job)
        wait_for(lambda: self.slurm.job(job)["JobState"] == "CANCELLED", 30, "end of the job")

        history = re.findall(r'"from":(\d+),"to":(\d+)', self.slurm.job(job)["AdminComment"])
        self.assertEqual([(int(a), int(b)) for a, b in history[:2]], [(4, 8), (8, runs[2][0])])
        rows = wait_for(lambda: self.sacct(job), 20, "accounting of the job")
        self.assertGreaterEqual(len(rows), 3)
        self.assertEqual([state for state, _, _ in rows[:2]], ["REQUEUED", "REQUEUED"])
        self.assertEqual([gpus for _, gpus, _ in rows[:3]], [4, 8, runs[2][0]])
        report = self.slurm.run([build_folder() / "contrib/sluice/sluice", "report", "--format", "json"]).stdout
        reported = re.search(rf'"id":"{job}".*?"gpu_seconds":(\d+)', report)
        self.assertIsNotNone(reported, report)
        self.assertEqual(int(reported[1]), sum(gpus * seconds for _, gpus, seconds in rows))

    def sacct(self, job):
        """[(state, GPUs, seconds)] of all records, once the last one has ended."""
        lines = self.slurm.run(["sacct", "-nXDP", "-j", str(job), "--format=State,AllocTRES,ElapsedRaw,End"]).stdout.splitlines()
        rows = [line.split("|") for line in lines]
        if not rows or any(row[3] == "Unknown" for row in rows):
            return None
        return [(row[0].split()[0], int((re.search(r"gres/gpu=(\d+)", row[1]) or [0, 0])[1]), int(row[2])) for row in rows]

    def test_who_ignores_the_signal_is_left_alone_until_its_time_is_up(self):
        self.assertEqual(self.wait_runs("ignore", 2), [(4, 0), (8, 0)])
        steps = [int(step) for step in re.findall(r"^step (\d+):", self.log_of("ignore").split("run on 8")[0], re.MULTILINE)]
        self.assertEqual(steps, list(range(1, len(steps) + 1)))
        told = self.line_time(f"job {self.jobs['ignore']}: restart from")
        requeued = self.line_time(f"job {self.jobs['ignore']}: requeued, without word")
        self.assertGreaterEqual(requeued - told, 3.9)

    def line_time(self, text):
        for line in self.slurm.log("slurmctld").splitlines():
            if text in line and (stamp := re.match(r"\[(\S+)T(\d+):(\d+):([\d.]+)\]", line)):
                return int(stamp[2]) * 3600 + int(stamp[3]) * 60 + float(stamp[4])
        raise AssertionError(f"no line with '{text}'")

    def test_who_saves_and_says_nothing_goes_on_from_what_it_saved(self):
        runs = self.wait_runs("silent", 2)
        self.assertEqual(runs, [(4, 0), (8, self.saved("silent")[0])])

    def test_exit_143_in_the_window_asks_for_the_restart(self):
        runs = self.wait_runs("exit143", 2)
        self.assertEqual(runs, [(4, 0), (8, self.saved("exit143")[0])])

    def test_exit_0_without_an_answer_is_the_end(self):
        fields = self.slurm.wait_job(self.jobs["exit0"], "COMPLETED")
        self.assertEqual(fields["Restarts"], "0")
        time.sleep(3)
        self.assertEqual(self.slurm.job(self.jobs["exit0"])["JobState"], "COMPLETED")

    def test_a_cancelled_job_stays_cancelled(self):
        job = self.jobs["cancel"]
        self.wait_told(job)
        self.end(job)
        wait_for(lambda: self.slurm.job(job)["JobState"] == "CANCELLED", 30, "end of the job")
        wait_for(lambda: any(f"job {job}: restart from 4 to 8 GPUs given up" in line for line in sluice_lines(self.slurm)), 10, "giving up")
        self.assertEqual(self.slurm.job(job)["JobState"], "CANCELLED")

    def test_batch_shell_alone_with_a_trap(self):
        self.assertEqual(self.wait_runs("trap", 2), [(4, 0), (8, self.saved("trap")[0])])

    def test_steps_hear_the_signal_once(self):
        self.assertEqual(self.wait_runs("steps", 2), [(4, 0), (8, self.saved("steps")[0])])

    def test_only_an_answer_to_the_signal_is_one(self):
        self.assertEqual(self.wait_runs("early", 2), [(4, 0), (8, self.saved("early")[0])])

    def test_a_size_that_cannot_start_is_taken_back(self):
        """8 GPUs with 3 cores each are more than the node has."""
        job = self.jobs["cores"]
        self.assertEqual(self.wait_runs("cores", 2, timeout=90), [(4, 0), (4, self.saved("cores")[0])])
        self.assertTrue(any(f"job {job}: does not start with 8 GPUs: asks for 4 again" in line for line in sluice_lines(self.slurm)))

    def test_nobody_shrinks_for_a_job_that_making_room_may_not_help(self):
        job = self.jobs["certain"]
        wait_for(lambda: '"record"' in self.slurm.job(job)["AdminComment"], 30, "a record")
        node = self.slurm.job(job)["NodeList"]
        picky = self.slurm.sbatch(["-p", "certain", "-w", node, "-N1", "--gpus-per-node=4", "-o", "/dev/null"], "sleep 1000", user="games")
        time.sleep(12)
        self.assertEqual([line for line in sluice_lines(self.slurm) if f"job {job}: restart" in line], [])
        self.end(picky)

    def test_who_has_its_node_alone_keeps_it(self):
        """An exclusive job holds all GPUs, whatever it asks for: a smaller size would make no room."""
        job = self.train("alone", "answer", sizes="2,4", gpus=4, exclusive=True)
        self.wait_runs("alone", 1)
        wait_for(lambda: '"record"' in self.slurm.job(job)["AdminComment"], 30, "a record")
        rigid = self.slurm.sbatch(["-p", "alone", "-N1", "--gpus-per-node=4", "-o", "/dev/null"], "sleep 1000")
        time.sleep(10)
        self.assertEqual([line for line in sluice_lines(self.slurm) if f"job {job}: restart" in line], [])
        self.end(rigid)

    def test_a_suspended_job_is_not_requeued(self):
        job = self.train("suspended", "silent", signal="USR1@3")
        self.wait_told(job)
        self.slurm.run(["scontrol", "suspend", str(job)])
        time.sleep(6)
        self.assertEqual(self.slurm.job(job)["JobState"], "SUSPENDED")
        self.slurm.run(["scontrol", "resume", str(job)])
        self.assertEqual(self.wait_runs("suspended", 2)[1][0], 8)

    def test_a_job_that_is_held_meanwhile_keeps_its_size(self):
        job = self.jobs["held"]
        self.wait_told(job)
        self.slurm.run(["scontrol", "requeuehold", str(job)])
        wait_for(lambda: any(f"job {job}: restart from 4 to 8 GPUs given up: it is held" in line for line in sluice_lines(self.slurm)), 30, "giving up")
        fields = self.slurm.job(job)
        self.assertEqual((fields["JobState"], fields["TresPerNode"]), ("PENDING", gpu_request(4)))

    def test_without_its_agent_the_job_goes_on(self):
        job = self.jobs["noagent"]
        self.wait_runs("noagent", 1)
        agents = wait_for(lambda: self.agents(job), 20, "the agent")
        for pid in agents:
            subprocess.run(["kill", "-9", str(pid)], check=True)
        before = self.log_of("noagent").count("\n")
        wait_for(lambda: self.log_of("noagent").count("\n") > before + 10, 20, "more steps")
        self.assertEqual(self.slurm.job(job)["JobState"], "RUNNING")

    def agents(self, job):
        found = []
        for line in subprocess.run(["ps", "-eo", "pid=,args="], capture_output=True, text=True, check=True).stdout.splitlines():
            pid, _, command = line.strip().partition(" ")
            if "sluice-agent" not in command or "--pid=" not in command:
                continue
            try:
                with open(f"/proc/{pid}/environ", "rb") as file:
                    variables = file.read().split(b"\0")
            except OSError:
                continue
            if f"SLURM_JOB_ID={job}".encode() in variables and str(self.slurm.layout.slurm_conf).encode() in b"\0".join(variables):
                found.append(int(pid))
        return found


class PluginListTest(ClusterTest):
    """slurmctld ends and starts job_submit plugins under its locks when the list of them changes."""

    def reconfigure(self, slurm, text):
        replace_file(slurm.layout.slurm_conf, text)  # a slurmd that reads half a file ends
        slurm.run(["scontrol", "reconfigure"], timeout=20)

    def test_the_list_changes_while_sluice_decides(self):
        build_folder()
        slurm = self.cluster("Nodes=n1 Gpus=8 Sockets=2 CoresPerSocket=8\n", sluice=CONF)
        text = slurm.layout.slurm_conf.read_text(encoding="utf-8")
        self.assertIn("JobSubmitPlugins=sluice\n", text)
        for turn in range(40):
            plugins = ("sluice,all_partitions", "all_partitions", "sluice")[turn % 3]
            self.reconfigure(slurm, text.replace("JobSubmitPlugins=sluice\n", f"JobSubmitPlugins={plugins}\n"))
        self.reconfigure(slurm, text)
        job = slurm.sbatch(["-N1", "--gpus-per-node=1", "--train-gpus=1-8", "-o", "/dev/null"], "sleep 1000")
        wait_for(lambda: any(f"job {job}: " in line and "GPUs" in line for line in sluice_lines(slurm)), 20, "a line about the job")
        refused = slurm.run(["scontrol", "update", f"jobid={job}", "comment=sluice1:broken"], check=False)
        self.assertEqual(refused.returncode, 0)
        self.assertNotIn("Comment=sluice1", str(slurm.job(job)))


class KilledControllerTest(Resizing):
    """kill -9 of slurmctld in each phase of a restart: the job ends up with its new size and its own checkpoint."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.start_cluster(["signalled", "requeued"])

    def restart_controller(self):
        self.slurm.kill("slurmctld")
        self.slurm.restart("slurmctld")

    def finish(self, case, job):
        runs = self.wait_runs(case, 2, timeout=90)
        self.assertEqual(runs[0], (4, 0))
        self.assertEqual(runs[1], (8, self.saved(case)[-1]))
        wait_for(lambda: self.slurm.job(job)["JobState"] == "RUNNING", 30, "the job runs")
        wait_for(lambda: not gpu_errors(self.slurm), 20, "books that agree")
        self.assertIn('"record"', self.slurm.job(job)["AdminComment"])
        self.end(job)
        wait_for(lambda: self.slurm.job(job)["JobState"] in ENDED, 30, "end of the job")

    def test_between_signal_and_requeue(self):
        job = self.train("signalled", "silent", signal="USR1@8")
        self.wait_told(job)
        self.restart_controller()
        self.finish("signalled", job)

    def test_between_requeue_and_start(self):
        job = self.train("requeued", "answer")
        wait_for(lambda: any(f"job {job}: requeued" in line for line in sluice_lines(self.slurm)), 60, "the requeue")
        self.restart_controller()
        self.finish("requeued", job)


if __name__ == "__main__":
    unittest.main()
