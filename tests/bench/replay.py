#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Jobs of a trace on two private clusters, stock Slurm and Sluice, at the same times: what is predicted of the GPUs they got.

replay.py PHILLY.csv.gz     jobs of 1 to 16 GPUs from a CSV with the columns timestamp, duration, num_gpus (petuum/adaptdl, branch
                            osdi21-artifact: simulator/traces/philly.csv.gz)
replay.py                   jobs of the same kind, made up

Jobs are drawn from all of the trace. Nearly all there have one GPU, for which any GPU is as good: --one-gpu-share says how many are
taken. Time is scaled so that the load is --load of the GPUs. A job is an allocation (salloc --no-shell) that is ended when its time is over; with
--by-work that is its time on the best GPUs of idle nodes, longer by as much as a step is predicted longer on the GPUs that it got. Predicted is, from
common/placement/node_choice.hpp, the step time of a job that nothing is known of, and the GB/s of its slowest set; both clusters are
counted by one program from what `scontrol -d show job` says that each job holds.
"""

import argparse
import csv
import datetime
import gzip
import itertools
import json
import math
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "integration"))

from harness import Cluster, gpu_errors, records, wait_for  # noqa: E402  found by the line above

_TOPOLOGIES = ROOT / "tests" / "data" / "topology"
CLASSES = {"dgx1": "dgx1-v100", "pairs": "nvlink-pairs8", "pcie": "pcie8", "nvswitch": "dgx-a100"}
_LARGE = 8
_SHORTEST, _LONGEST = 0.5, 12  # of a job, relative to the mean
_SECONDS = 900
_SCHEDULER = "sched_interval=1,sched_min_interval=10000,batch_sched_delay=0,bf_interval=1,bf_resolution=1,bf_window=60"


# (arrival, duration, GPUs) of each job


def read_trace(path):
    """In the trace's own seconds, by arrival."""
    with gzip.open(path, "rt", encoding="ascii") if path.suffix == ".gz" else open(path, encoding="ascii") as file:
        rows = [(datetime.datetime.fromisoformat(row["timestamp"]).timestamp(), float(row["duration"]), int(row["num_gpus"]))
                for row in csv.DictReader(file) if row["timestamp"] and row["duration"] and row["num_gpus"]]
    return sorted(row for row in rows if row[1] > 0 and 1 <= row[2] <= 16)


def made_up(count, dice):
    """As in the trace: many arrive at once, most are short, sizes are powers of two."""
    at = 0.0
    jobs = []
    for _ in range(count):
        at += dice.expovariate(1) if dice.random() < 0.7 else dice.expovariate(0.2)
        jobs.append((at, dice.lognormvariate(0, 1), dice.choices((1, 2, 4, 8, 16), (50, 16, 17, 15, 2))[0]))
    return jobs


def choose_jobs(rows, count, one_gpu_share, dice):
    """`count` jobs drawn from all of the trace, of which the given share has one GPU, by arrival."""
    one = [row for row in rows if row[2] == 1]
    several = [row for row in rows if row[2] > 1]
    ones = min(round(count * one_gpu_share), len(one))
    return sorted(dice.sample(one, ones) + dice.sample(several, min(count - ones, len(several))))


def scale(jobs, gpus, load, mean_seconds):
    """To the cluster's seconds: durations of the given mean, without extremes, and arrivals such that the load is `load`."""
    mean = statistics.mean(job[1] for job in jobs)
    durations = [min(max(job[1] / mean, _SHORTEST), _LONGEST) for job in jobs]
    durations = [duration * mean_seconds / statistics.mean(durations) for duration in durations]
    work = sum(duration * job[2] for duration, job in zip(durations, jobs))
    length = work / (gpus * load)
    # The gaps of weeks without a job would leave nothing but bursts: arrivals keep their order and the square roots of their gaps.
    gaps = [math.sqrt(max(0.0, later[0] - job[0])) for job, later in zip(jobs, jobs[1:])]
    total = sum(gaps) or 1.0
    at = 0.0
    scaled = []
    for duration, job, gap in zip(durations, jobs, [*gaps, 0.0]):
        scaled.append((at, duration, job[2]))
        at += gap / total * length
    return scaled


def request(gpus, per_node, number):
    """Both forms ask for the same nodes and GPUs."""
    nodes = -(-gpus // per_node)
    return [f"-N{nodes}", f"--gpus={gpus}"] if number % 2 and nodes == 1 else [f"-N{nodes}", f"--gpus-per-node={gpus // nodes}"]


class Play:
    """All jobs on one cluster."""

    def __init__(self, cluster, jobs, per_node, stretch):
        """stretch: GPUs of each node of a job -> by how much it takes longer there."""
        self.cluster = cluster
        self.waited = [None] * len(jobs)
        self.held = [None] * len(jobs)  # the GPUs on each node
        self.errors = []
        self._jobs = jobs
        self._per_node = per_node
        self._stretch = stretch
        # of each job: what a longer one may take on the worst GPUs
        self._minutes = math.ceil(2 * max(duration for _, duration, _ in jobs) / 60)
        self._threads = []

    def submit(self, number):
        thread = threading.Thread(target=self._guarded, args=(number,), daemon=True)
        self._threads.append(thread)
        thread.start()

    def wait(self):
        for thread in self._threads:
            thread.join(_SECONDS)
        wait_for(lambda: not any(self.cluster.node_gres().values()), 60, "all GPUs free")

    def check(self):
        self.errors += gpu_errors(self.cluster)

    def _guarded(self, number):
        try:
            self._run(number)
        except Exception as failure:  # the play goes on; whoever asked for it sees them
            self.errors.append(f"job {number}: {failure}")

    def _run(self, number):
        _, duration, gpus = self._jobs[number]
        words = ["salloc", "--no-shell", f"-t{self._minutes}", "-J", f"j{number}", *request(gpus, self._per_node, number)]
        submitted = time.monotonic()
        answer = self.cluster.run(words, timeout=_SECONDS).stderr
        started = time.monotonic()
        job = int(re.search(r"Granted job allocation (\d+)", answer).group(1))
        self.waited[number] = started - submitted
        self.held[number] = self._gpus_of(job)
        time.sleep(max(0.0, started + duration * self._stretch(self.held[number]) - time.monotonic()))
        self.cluster.query(["scancel", str(job)])

    def _gpus_of(self, job):
        held = records.job_gpus(self.cluster.query(["scontrol", "-o", "-d", "show", "job", str(job)]).stdout)
        return [sorted(gpus) for _, gpus in sorted(held.items()) if gpus]


def assess(program, topology, placements):
    """[(GB/s, step time)] of each job."""
    lines = [";".join(",".join(map(str, gpus)) for gpus in held) for held in placements]
    result = subprocess.run([program, topology], input="\n".join(lines) + "\n", capture_output=True, text=True, check=False)
    if result.returncode:
        raise RuntimeError(result.stderr)
    return [tuple(map(float, line.split())) for line in result.stdout.splitlines()]


def best_of_idle_nodes(program, topology, sizes):
    """{size: (GB/s, step time)} where every GPU is free: no job can have more."""
    best = {}
    for size in sizes:
        nodes = -(-size // 8)
        placements = [[gpus] * nodes for gpus in itertools.combinations(range(8), size // nodes)]
        best[size] = min(assess(program, topology, placements), key=lambda value: value[1])
    return best


def replay(name, jobs, nodes, directory, program, keep, by_work):
    """Figures of one class, {figure: (stock, sluice)}, and what was wrong."""
    topology = _TOPOLOGIES / f"{CLASSES[name]}.topo-m.txt"
    best = best_of_idle_nodes(program, topology, {job[2] for job in jobs})

    def stretch(held):
        return assess(program, topology, [held])[0][1] / best[sum(map(len, held))][1] if by_work else 1

    text = f"Nodes=n[1-{nodes}] Sockets=2 CoresPerSocket=64 Memory=512000 Topology={topology}\n"
    plays = []
    try:
        for kind in ("stock", "sluice"):
            cluster = Cluster(directory / f"{name}-{kind}", text, stock=kind == "stock", dbd=False,
                              settings={"SchedulerParameters": _SCHEDULER, "KillWait": 1})
            plays.append(Play(cluster, jobs, 8, stretch))
            cluster.start()
        begin = time.monotonic()
        for number, job in enumerate(jobs):
            time.sleep(max(0.0, begin + job[0] - time.monotonic()))
            for play in plays if number % 2 else plays[::-1]:
                play.submit(number)
            if number % 25 == 24:
                plays[1].check()
        for play in plays:
            play.wait()
            play.check()
        seconds = time.monotonic() - begin
    finally:
        for play in plays:
            play.cluster.stop()
    if keep:
        keep.mkdir(parents=True, exist_ok=True)
        (keep / f"{name}.log").write_text(plays[1].cluster.log("slurmctld"), encoding="utf-8")
    errors = [f"{kind}: {error}" for kind, play in zip(("stock", "sluice"), plays) for error in play.errors]
    if errors:
        return {}, errors
    predicted = [assess(program, topology, play.held) for play in plays]
    several = [number for number, job in enumerate(jobs) if job[2] > 1]
    large = [number for number, job in enumerate(jobs) if job[2] >= _LARGE]

    def both(figure):
        return [figure(play, values) for play, values in zip(plays, predicted)]

    figures = {
        "1/step, all": both(lambda play, values: sum(1 / values[n][1] for n in range(len(jobs)))),
        "1/step, 2+ GPUs": both(lambda play, values: sum(1 / values[n][1] for n in several)),
        "GPUs/step, all": both(lambda play, values: sum(jobs[n][2] / values[n][1] for n in range(len(jobs)))),
        "GB/s, 2+ GPUs": both(lambda play, values: sum(values[n][0] for n in several)),
        "wait, all (s)": both(lambda play, values: statistics.mean(play.waited)),
        "wait, 8+ GPUs (s)": both(lambda play, values: statistics.mean(play.waited[n] for n in large) if large else 0),
        "median wait, 8+ (s)": both(lambda play, values: statistics.median(play.waited[n] for n in large) if large else 0),
    }
    for size in sorted({jobs[n][2] for n in several}):
        figures[f"1/step, mean of {size}"] = both(lambda play, values: statistics.mean(1 / values[n][1] for n in several if jobs[n][2] == size))
    bound = sum(1 / best[jobs[n][2]][1] for n in several)
    rates = sum(best[jobs[n][2]][0] for n in several)
    figures["GB/s of the bound"] = both(lambda play, values: sum(values[n][0] for n in several) / rates)
    figures["1/step of the bound"] = both(lambda play, values: sum(1 / values[n][1] for n in several) / bound)
    figures["seconds"] = [seconds, seconds]
    return figures, []


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trace", type=Path, nargs="?", help="CSV (.gz) with timestamp, duration, num_gpus; without: jobs made up")
    parser.add_argument("--jobs", type=int, default=300)
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--load", type=float, default=0.85)
    parser.add_argument("--one-gpu-share", type=float, default=0.3)
    parser.add_argument("--sizes", type=int, nargs="+", help="GPUs of the jobs, drawn evenly, in place of the trace's own (powers of two)")
    parser.add_argument("--mean-seconds", type=float, default=5, help="mean time that a job holds its GPUs")
    parser.add_argument("--by-work", action="store_true", help="a job holds its GPUs until its work is done: longer on slower sets")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--classes", nargs="+", default=list(CLASSES), choices=list(CLASSES))
    parser.add_argument("--keep", type=Path, help="a folder for the logs of the Sluice clusters")
    parser.add_argument("--json", action="store_true", help="the figures alone, for programs")
    options = parser.parse_args()
    build = os.environ.get("SLUICE_BUILD")
    program = Path(build or ".", "tests/bench/assess_sets").resolve()
    if not build or not program.exists():
        parser.error("SLUICE_BUILD names no build folder with tests/bench/assess_sets (`make bench` there makes it)")
    if options.trace and not options.trace.is_file():
        parser.error(f"there is no file {options.trace}: a copy of petuum/adaptdl's simulator/traces/philly.csv.gz is needed, or none for jobs made up")
    dice = random.Random(options.seed)
    rows = read_trace(options.trace) if options.trace else made_up(20 * options.jobs, dice)
    chosen = choose_jobs(rows, options.jobs, options.one_gpu_share, dice)
    if options.sizes:
        chosen = [(at, duration, dice.choice(options.sizes)) for at, duration, _ in chosen]
    jobs = scale(chosen, 8 * options.nodes, options.load, options.mean_seconds)
    sizes = ", ".join(f"{sum(job[2] == size for job in jobs)} of {size}" for size in sorted({job[2] for job in jobs}))
    if not options.json:
        print(f"{len(jobs)} jobs ({sizes} GPUs) on {options.nodes} nodes of 8, load {options.load}, arrivals within {jobs[-1][0]:.0f} s, seed {options.seed}, "
              f"{'from ' + options.trace.name if options.trace else 'made up'}", flush=True)
    status = 0
    results = {}
    for name in options.classes:
        with tempfile.TemporaryDirectory(prefix="sluice-bench-") as scratch:
            os.chmod(scratch, 0o755)
            figures, errors = replay(name, jobs, options.nodes, Path(scratch), program, options.keep, options.by_work)
        results[name] = {"figures": figures, "errors": errors}
        if errors:
            status = 1
            print(*errors, sep="\n", file=sys.stderr)
        if not options.json:
            for figure, (stock, sluice) in figures.items():
                print(f"{name:9} {figure:20} stock {stock:10.3f}  sluice {sluice:10.3f}  ratio {sluice / stock if stock else 1:6.3f}", flush=True)
    if options.json:
        print(json.dumps(results))
    sys.exit(status)


if __name__ == "__main__":
    main()
