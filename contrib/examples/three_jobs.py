#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Three malleable PyTorch jobs on a private cluster of 4 nodes x 8 GPUs, shown as they go: the play of contrib/quickstart.

Other people's jobs hold three of the four nodes. Two training jobs share the fourth; a third one comes, and Sluice takes GPUs
from one of the two by checkpoint and restart. Then a node becomes free, and Sluice gives GPUs where they lower a loss most.
Fails (exit status 1) unless a job was shrunk, a job was grown, and each continued from its checkpoint.
"""
import argparse
import json
import os
import re
import shutil
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "cluster"))
from sluice_cluster import Cluster  # noqa: E402

DESCRIPTION = HERE.parent / "cluster" / "examples" / "dgx1v-4x8.conf"
# Everything about ten times faster than on a real cluster, where training takes hours and a restart a minute.
SLUICE_CONF = {"Interval": 5, "ResizeCooldown": 40, "MaxResizesPerHour": 60, "RestartCost": 8, "MinSampleInterval": 2,
               "MinGain": 0.01}
# name, learning rate, steps: the first learns fast and flattens out, the last has most to gain.
JOBS = [("quick", 0.40, 6000), ("steady", 0.08, 6000), ("late", 0.05, 6000)]
NEIGHBOURS = 3
LIMIT_SECONDS = 420


class Show:
    """Lines on the terminal, each with the time since the start."""

    def __init__(self):
        self.begun = time.monotonic()
        self.live = sys.stdout.isatty()

    def seconds(self):
        return time.monotonic() - self.begun

    def say(self, text):
        if self.live:
            print("\r\033[K", end="")
        print(f"[{self.seconds():5.0f} s] {text}", flush=True)

    def progress(self, text):
        if self.live:
            width = shutil.get_terminal_size().columns - 12
            print(f"\r\033[K[{self.seconds():5.0f} s] {text[:width]}", end="", flush=True)


def summary_of(fields):
    """What Sluice wrote into the job's AdminComment."""
    try:
        return json.loads(fields.get("AdminComment", "")).get("sluice", {})
    except ValueError:
        return {}


class Play:
    def __init__(self, cluster, sluice, show):
        self.cluster = cluster
        self.sluice = sluice
        self.show = show
        self.names = {}
        self.said = {}
        self.log_lines = 0

    def submit(self, name, learning_rate, steps):
        folder = self.cluster.directory / "jobs"
        script = (HERE / "train.sbatch").read_text(encoding="utf-8")
        job = self.cluster.sbatch(["--job-name", name, "--output", f"{folder}/{name}.log", "--train-loss", f"{folder}/{name}.log",
                                   f"--chdir={folder}"], script.replace('"$@"', f"--learning-rate {learning_rate} --steps {steps} --seconds-per-step 0.4"),
                                  env={"PYTHON": sys.executable, "SLURM_SUBMIT_DIR": str(HERE)}, cwd=HERE)
        self.names[job] = name
        self.show.say(f"{name}: job {job} submitted: 4 GPUs asked for, 1 to 8 possible")
        return job

    def follow(self):
        """Says what is new in Sluice's log lines, and shows where each job is."""
        lines = [line for line in self.cluster.log("slurmctld").splitlines() if "sluice: job " in line]
        for line in lines[self.log_lines:]:
            text = line.split("sluice: ", 1)[1]
            number = re.match(r"job (\d+): ", text)
            if number and int(number[1]) in self.names:
                self.show.say(f"{self.names[int(number[1])]}: {text[number.end():]}")
        self.log_lines = len(lines)
        states = []
        for job, fields in self.cluster.jobs().items():
            if job in self.names:
                gpus = re.search(r"gres/gpu=(\d+)", fields.get("TRES", "")) if fields["JobState"] == "RUNNING" else None
                states.append(f"{self.names[job]} {fields['JobState'].lower()} {gpus[1] + ' GPUs' if gpus else ''} {self.last_loss(job)}")
        self.show.progress(" | ".join(states))

    def last_loss(self, job):
        for line in reversed(self.log_of(job).splitlines()):
            if line.startswith("step "):
                return line
        return ""

    def log_of(self, job):
        path = self.cluster.directory / "jobs" / f"{self.names[job]}.log"
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""

    def wait(self, what, condition, seconds):
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                raise SystemExit(f"\nnot within {seconds} s: {what}\n{self.cluster.log('slurmctld')[-3000:]}")
            self.follow()
            time.sleep(1)
        self.follow()

    def running(self, job):
        return self.cluster.job(job)["JobState"] == "RUNNING"

    def steps(self, job):
        return len(re.findall(r"^step \d+: loss", self.log_of(job), re.MULTILINE))

    def trains(self, job):
        """It runs, and has printed a loss since its last checkpoint."""
        log = self.log_of(job)
        return (self.running(job) and not summary_of(self.cluster.job(job)).get("pending_target")
                and log.rfind("\nstep ") > log.rfind("\ncheckpoint of step "))

    def resized(self, better):
        """Jobs with a resize for which better(from, to) holds, by Sluice's own history of them."""
        found = []
        for job, fields in self.cluster.jobs().items():
            if job in self.names:
                found += [job for resize in summary_of(fields).get("resizes", []) if better(resize["from"], resize["to"])]
        return found

    def curve(self, job):
        """The loss as a line of blocks, one for every few steps."""
        points = [json.loads(line) for line in
                  self.cluster.run([self.sluice, "losses", self.cluster.directory / "jobs" / f"{self.names[job]}.log"]).stdout.splitlines()]
        losses = [point["loss"] for point in points if isinstance(point["loss"], float)]
        width = 60
        means = [sum(part) / len(part) for part in (losses[i * len(losses) // width:(i + 1) * len(losses) // width] for i in range(width)) if part]
        low, high = min(means), max(means)
        blocks = " ▁▂▃▄▅▆▇█"
        drawn = "".join(blocks[round((value - low) / (high - low or 1) * (len(blocks) - 1))] for value in means)
        return f"{self.names[job]:>8} {high:.3f} {drawn} {low:.3f}"

    def check_continued(self, job):
        """After each checkpoint the job must go on from that very step."""
        log = self.log_of(job)
        written = [int(step) for step in re.findall(r"^checkpoint of step (\d+) written", log, re.MULTILINE)]
        continued = [int(step) for step in re.findall(r"^continued from the checkpoint of step (\d+)", log, re.MULTILINE)]
        if not continued or continued != written[:len(continued)]:
            raise SystemExit(f"{self.names[job]}: checkpoints at steps {written}, continued from {continued}")
        self.show.say(f"{self.names[job]}: trained on from its checkpoints at steps {', '.join(map(str, continued))}")


def play(cluster, sluice, show):
    theatre = Play(cluster, sluice, show)
    neighbours = [cluster.sbatch(["--job-name", "neighbour", "--nodes=1", "--gpus-per-node=8", "--output=/dev/null"], "sleep 600")
                  for _ in range(NEIGHBOURS)]
    theatre.wait("the neighbours run", lambda: all(map(theatre.running, neighbours)), 30)
    show.say(f"{NEIGHBOURS} of the 4 nodes are taken by jobs that know nothing of Sluice")

    first, second = theatre.submit(*JOBS[0]), theatre.submit(*JOBS[1])
    theatre.wait("both jobs train", lambda: theatre.steps(first) > 8 and theatre.steps(second) > 8, 90)
    third = theatre.submit(*JOBS[2])
    theatre.wait("a job is shrunk so that the third one starts", lambda: theatre.running(third) and theatre.resized(lambda a, b: b < a), 120)

    cluster.run(["scancel", neighbours[0]])
    show.say("a neighbour has ended: 8 more GPUs")
    theatre.wait("a job is grown", lambda: theatre.resized(lambda a, b: b > a), 120)
    theatre.wait("every job trains", lambda: all(map(theatre.trains, (first, second, third))), 120)

    show.say("the GPUs each job holds now, what stock Slurm would have given, the fitted curve, and why it was resized:")
    for job in (first, second, third):
        print(cluster.run([sluice, "status", job]).stdout, end="")
    print("  (a restart's reason names the loss still to fall, and how much of it falls within 40 s, ResizeCooldown, with and without it)")
    show.say("the losses so far:")
    for job in (first, second, third):
        print(theatre.curve(job))
    grown, shrunk = theatre.resized(lambda a, b: b > a), theatre.resized(lambda a, b: b < a)
    for job in sorted(set(grown + shrunk)):
        theatre.check_continued(job)
    show.say("enough is seen: all jobs are cancelled")
    cluster.run(["scancel", *neighbours[1:], first, second, third])
    theatre.wait("all jobs have ended", lambda: not cluster.run(["squeue", "-h"]).stdout.strip(), 60)
    show.say("sluice report:")
    print(cluster.run([sluice, "report"]).stdout, end="")
    show.say(f"{len(grown)} grown, {len(shrunk)} shrunk, each from its checkpoint")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--directory", required=True, type=Path, help="scratch directory of the cluster")
    parser.add_argument("--sluice", default="sluice", help="the sluice program")
    options = parser.parse_args()
    show = Show()
    show.say("starting slurmctld, slurmdbd, MariaDB, munged and 4 slurmd in " + str(options.directory))
    with Cluster(options.directory, DESCRIPTION, sluice=SLUICE_CONF) as cluster:
        os.chmod(options.directory, 0o755)
        show.say("4 nodes x 8 fake GPUs, linked like a DGX-1V, are up")
        play(cluster, options.sluice, show)
    show.say("the cluster is stopped, nothing is left running")


if __name__ == "__main__":
    main()
