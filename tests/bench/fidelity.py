#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The same jobs in `sluice sim` and on a private cluster: predicted and measured completion times.

A workload and the tables of its applications, in the form of sluice-sim(1), go to both. In the simulator they are virtual time; on the cluster each job
is a small script that makes steps at the speed that the table has for the GPUs it holds, prints a recorded loss, checkpoints when it is told and goes on from there.
A table has a line for each size on one node, and one batch; jobs do not leave their node. What earlier runs would have taught Sluice is written into its StateDir.

Times are those of the files, times --stretch. A restart costs about --restart seconds altogether: Slurm makes a requeued job wait 6 s and starts it at the next
look of its scheduler, --slurm-wait seconds in all, and the job loads for the rest; at its first start it loads for all of it, as the simulator has it.
"""

import argparse
import csv
import json
import math
import os
import pwd
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

from harness import ENDED, Cluster, gpu_errors, sluice_lines, wait_for  # noqa: E402  found by the line above

DATA = ROOT / "tests" / "data" / "fidelity"
USER = "nobody"
_MOST_SECONDS = 3600

# Where it is goes by the clock, not by its own sleep, so that a busy machine does not slow it. Times of what happens to it are printed beside the steps.
JOB = r'''
import csv, json, os, signal, sys, time
tables, kept, load, load_again = sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4])
told = []
signal.signal(signal.SIGUSR1, lambda *_: told.append(time.time()))
gpus = len(os.environ["CUDA_VISIBLE_DEVICES"].split(","))
def note(what):
    print(f"# {what} {gpus} {time.time():.3f}", flush=True)
note("start")
saved = json.load(open(kept))["step"] if os.path.exists(kept) else 0
def rows(name):
    return list(csv.DictReader(open(os.path.join(tables, name))))
seconds = next(float(row["step_time"]) for row in rows("placements.csv") if row["placement"] == str(gpus))
curve = [(float(row["progress"]), float(row["metric"])) for name in sorted(os.listdir(tables)) if name.startswith("validation-") for row in rows(name)]
total = int(curve[-1][0])
def loss(step):
    low = max((point for point in curve if point[0] <= step), default=curve[0])
    high = min((point for point in curve if point[0] > step), default=low)
    return low[1] if high[0] <= low[0] else low[1] + (high[1] - low[1]) * (step - low[0]) / (high[0] - low[0])
time.sleep(load_again if saved or os.environ.get("SLURM_RESTART_COUNT", "0") != "0" else load)
note("go")
begin = time.monotonic()
step = saved
while step < total:
    time.sleep(max(0.02, begin + (step + 1 - saved) * seconds - time.monotonic()))
    now = min(total, saved + int((time.monotonic() - begin) / seconds))
    if now > step:
        step = now
        print(f"step {step} loss {loss(step):.5f}", flush=True)
    if told and step < total:
        json.dump({"step": step}, open(kept, "w"))
        print(f"# told {gpus} {told[0]:.3f}", flush=True)
        open(os.environ["SLUICE_CHECKPOINT_DONE"], "w").close()
        while True:
            time.sleep(1)
note("end")
'''


def read_csv(path):
    with open(path, encoding="ascii") as file:
        return list(csv.DictReader(file))


def write_csv(path, rows):
    with open(path, "w", encoding="ascii", newline="") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


class Scenario:
    """The files in a folder of their own, their times stretched."""

    def __init__(self, workload, profiles, folder, stretch):
        self.workload = folder / "workload.csv"
        self.profiles = folder / "profiles"
        self.jobs = read_csv(workload)
        for job in self.jobs:
            job["time"] = f"{float(job['time']) * stretch:g}"
        write_csv(self.workload, self.jobs)
        self.applications = sorted({job["application"] for job in self.jobs})
        self.steps = {}  # of an application: seconds of a step by GPUs
        self.total = {}  # of an application: steps
        self.batch = {}
        for name in self.applications:
            (self.profiles / name).mkdir(parents=True)
            rows = read_csv(profiles / name / "placements.csv")
            for row in rows:
                row["step_time"] = f"{float(row['step_time']) * stretch:g}"
                row["sync_time"] = f"{float(row['sync_time']) * stretch:g}"
            write_csv(self.profiles / name / "placements.csv", rows)
            self.steps[name] = {int(row["placement"]): float(row["step_time"]) for row in rows}
            (curve,) = (profiles / name).glob("validation-*.csv")
            self.batch[name] = int(re.search(r"\d+", curve.name).group())
            curve_rows = read_csv(curve)
            write_csv(self.profiles / name / curve.name, curve_rows)
            self.total[name] = int(curve_rows[-1]["progress"])

    def most_gpus(self):
        return max(max(steps) for steps in self.steps.values())


def simulate(build, scenario, options, policy):
    """What `sluice sim --json` prints, twice the same."""
    words = [build / "contrib" / "sluice" / "sluice", "sim", "--workload", scenario.workload, "--profiles", scenario.profiles,
             "--cluster", f"1x{options.gpus}", "--most-gpus", str(scenario.most_gpus()), "--never-stop", "--round", str(options.round),
             "--restart", str(options.restart), "--cooldown", str(options.cooldown), "--size-error", "0", "--exact-steps",
             "--policy", policy, "--json"]
    runs = [subprocess.run(words, capture_output=True, text=True, check=False) for _ in range(2)]
    if runs[0].returncode:
        raise RuntimeError(runs[0].stderr)
    same = runs[0].stdout == runs[1].stdout
    jobs = json.loads(runs[0].stdout)["policies"][policy]["job"]
    return same, {job["name"]: {"completion_s": job["end_s"] - job["arrival_s"], "wait_s": job["start_s"] - job["arrival_s"],
                                "resizes": job["resizes"], "gpu_s": job["gpu_hours"] * 3600} for job in jobs}


def write_history(scenario, folder):
    """Step times of earlier runs, as slurmctld keeps them (doc/formats/step-samples-v1.txt)."""
    folder.mkdir(parents=True)
    user = pwd.getpwnam(USER).pw_uid
    lines = ["sluice step samples 1"]
    for name in scenario.applications:
        lines += [f"{user}/{name} - 1 {gpus} {gpus} {scenario.batch[name] / gpus:g} 0 0 {seconds:g} 8"
                  for gpus, seconds in scenario.steps[name].items()]
    (folder / "step-samples").write_text("\n".join(lines) + "\n", encoding="ascii")


class Play:
    """The workload on a cluster of its own."""

    def __init__(self, scenario, options, policy, folder):
        self.policy = policy
        self.jobs = {}
        self.late_s = 0.0  # sbatch behind the arrival, the most
        self.errors = []
        self._scenario = scenario
        self._options = options
        self._folder = folder / policy
        self._folder.mkdir()
        self._kept = self._folder / "checkpoints"
        self._kept.mkdir()
        self._kept.chmod(0o777)
        write_history(scenario, self._folder / "state")
        conf = {"Policy": policy, "Interval": options.round, "ResizeCooldown": options.cooldown, "RestartCost": options.restart,
                "MinSampleInterval": 1, "StateDir": self._folder / "state"}
        self.cluster = Cluster(self._folder / "cluster", f"Nodes=n1 Gpus={options.gpus} Sockets=2 CoresPerSocket={options.gpus}\n", dbd=False, sluice=conf,
                               # a job that is made small may run longer than it was expected to
                               settings={"OverTimeLimit": "UNLIMITED"})

    def run(self, begin):
        """From the time `begin` on."""
        (self.cluster.layout.jobs / "job.py").write_text(JOB, encoding="ascii")
        ids = {}
        for job in self._scenario.jobs:
            arrival = begin + float(job["time"])
            time.sleep(max(0.0, arrival - time.time()))
            self.late_s = max(self.late_s, time.time() - arrival)
            ids[job["name"]] = self._submit(job)
        left = begin + _MOST_SECONDS - time.time()
        wait_for(lambda: all(fields["JobState"] in ENDED for fields in self.cluster.jobs().values()), left, "end of all jobs")
        self.errors += gpu_errors(self.cluster)
        for job in self._scenario.jobs:
            self.jobs[job["name"]] = self._measured(job, begin, self.cluster.job(ids[job["name"]]))

    def _log(self, job):
        return self.cluster.layout.jobs / f"{job['name']}.log"

    def _submit(self, job):
        application = job["application"]
        log = self._log(job)
        log.touch()
        log.chmod(0o666)
        load = self._options.restart
        # as long as it runs as it is asked for, and as long again: so backfill goes by the simulator's limits
        minutes = math.ceil(2 * self._scenario.total[application] * self._scenario.steps[application][int(job["num_replicas"])] / 60)
        words = ["-J", job["name"], f"-t{minutes}", "-N1", f"--gpus-per-node={job['num_replicas']}", "--cpus-per-gpu=1", "-o", log, "--open-mode=append",
                 f"--train-gpus=1-{self._scenario.most_gpus()}", "--train-resize=restart", "--train-signal=USR1@20",
                 f"--train-target=steps:{self._scenario.total[application]}", f"--train-model={application}",
                 f"--train-batch={self._scenario.batch[application]}"]
        command = (f"exec /usr/bin/python3 -SE {self.cluster.layout.jobs}/job.py {self._scenario.profiles / application} "
                   f"{self._kept}/{job['name']} {load} {max(0.0, load - self._options.slurm_wait)}")
        return self.cluster.sbatch(words, command, user=USER, cwd="/tmp")

    def _measured(self, job, begin, fields):
        """From what the job has printed."""
        events = [(what, int(gpus), float(at)) for what, gpus, at in
                  re.findall(r"^# (\w+) (\d+) ([\d.]+)$", self._log(job).read_text(encoding="ascii"), re.MULTILINE)]
        arrival = begin + float(job["time"])
        if fields["JobState"] != "COMPLETED" or not events or events[-1][0] != "end":
            self.errors.append(f"{self.policy}: job {job['name']} is {fields['JobState']}: {events}")
            return None
        sizes, restarts, told, gpu_s = [], [], None, 0.0
        since = None
        for what, gpus, at in events:
            if what == "start":
                sizes.append(gpus)
                since = at
            elif what == "go" and told is not None:
                restarts.append(at - told)
            if what in ("told", "end"):
                gpu_s += gpus * (at - since)
                told = at
        return {"completion_s": events[-1][2] - arrival, "wait_s": events[0][2] - arrival, "sizes": sizes, "resizes": len(restarts),
                "restart_s": restarts, "gpu_s": gpu_s}


def compare(scenario, predicted, measured):
    """Figures of a policy, for people and programs."""
    names = [job["name"] for job in scenario.jobs if measured[job["name"]]]

    def mean(of, figure):
        return statistics.mean(of[name][figure] for name in names)

    restarts = [seconds for name in names for seconds in measured[name]["restart_s"]]
    return {
        "completion_s": [mean(predicted, "completion_s"), mean(measured, "completion_s")],
        "wait_s": [mean(predicted, "wait_s"), mean(measured, "wait_s")],
        "gpu_s": [mean(predicted, "gpu_s"), mean(measured, "gpu_s")],
        "resizes": [sum(predicted[name]["resizes"] for name in names), sum(measured[name]["resizes"] for name in names)],
        "restart_s": statistics.mean(restarts) if restarts else None,
        "restarts_s": restarts,
        "jobs": {name: {"predicted": predicted[name], "measured": measured[name]} for name in names},
    }


def print_tables(results):
    for policy, result in results.items():
        print(f"\n{policy}: completion of a job, seconds\n\n| job | predicted | measured | ratio | waits, predicted | measured | GPUs, measured | resizes, predicted | measured |")
        print("|---|---|---|---|---|---|---|---|---|")
        for name, job in result["jobs"].items():
            a, b = job["predicted"], job["measured"]
            print(f"| {name} | {a['completion_s']:.1f} | {b['completion_s']:.1f} | {b['completion_s'] / a['completion_s']:.2f} | {a['wait_s']:.1f} | {b['wait_s']:.1f} "
                  f"| {', '.join(map(str, b['sizes']))} | {a['resizes']} | {b['resizes']} |")
        a, b = result["completion_s"]
        print(f"| average | {a:.1f} | {b:.1f} | {b / a:.2f} | {result['wait_s'][0]:.1f} | {result['wait_s'][1]:.1f} | | {result['resizes'][0]} | {result['resizes'][1]} |")
        if result["restarts_s"]:
            print(f"\n{len(result['restarts_s'])} restarts: {min(result['restarts_s']):.1f} to {max(result['restarts_s']):.1f} s, mean {result['restart_s']:.1f}")


def run(options, build, folder):
    """(results by policy, errors)"""
    scenario_folder = folder / "scenario"
    scenario_folder.mkdir()
    scenario = Scenario(options.workload, options.profiles, scenario_folder, options.stretch)
    plays = [Play(scenario, options, policy, folder) for policy in options.policies]
    errors = []
    predicted = {}
    for policy in options.policies:
        same, predicted[policy] = simulate(build, scenario, options, policy)
        if not same:
            errors.append(f"{policy}: two runs of the simulator differ")

    def guarded(play, begin):
        try:
            play.run(begin)
        except Exception as failure:
            play.errors.append(f"{play.policy}: {failure}")

    try:
        for play in plays:
            play.cluster.start()
        begin = time.time() + 1
        threads = [threading.Thread(target=guarded, args=(play, begin)) for play in plays]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        seconds = time.time() - begin
    finally:
        for play in plays:
            play.cluster.stop()
    results = {}
    for play in plays:
        errors += play.errors
        if options.keep:
            options.keep.mkdir(parents=True, exist_ok=True)
            (options.keep / f"{play.policy}.log").write_text("\n".join(line for line in play.cluster.log("slurmctld").splitlines()) + "\n", encoding="utf-8")
            for log in play.cluster.layout.jobs.glob("*.log"):
                (options.keep / f"{play.policy}-{log.name}").write_bytes(log.read_bytes())
        if len(play.jobs) == len(scenario.jobs):
            results[play.policy] = compare(scenario, predicted[play.policy], play.jobs)
            results[play.policy].update(late_s=play.late_s, seconds=seconds)
        if not play.errors and any("damaged" in line for line in sluice_lines(play.cluster)):
            errors.append(f"{play.policy}: the history was not read")
    return results, errors


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workload", type=Path, default=DATA / "workload.csv")
    parser.add_argument("--profiles", type=Path, default=DATA)
    parser.add_argument("--gpus", type=int, default=16, help="of the one node")
    parser.add_argument("--policies", nargs="+", default=["fifo", "sluice"])
    parser.add_argument("--stretch", type=float, default=1, help="factor on arrivals and step times")
    parser.add_argument("--round", type=int, default=2, help="Interval of sluice.conf, seconds")
    parser.add_argument("--restart", type=int, default=10, help="RestartCost of sluice.conf, seconds")
    parser.add_argument("--slurm-wait", type=float, default=8.5, help="seconds of a restart that are Slurm's")
    parser.add_argument("--cooldown", type=int, default=24, help="ResizeCooldown of sluice.conf, seconds")
    parser.add_argument("--keep", type=Path, help="a folder for logs")
    parser.add_argument("--json", action="store_true", help="for programs")
    options = parser.parse_args()
    build = os.environ.get("SLUICE_BUILD")
    if not build:
        parser.error("SLUICE_BUILD names no build folder")
    # a cluster's folder has to be one that jobs of any user can enter
    with tempfile.TemporaryDirectory(prefix="sluice-fidelity-") as name:
        Path(name).chmod(0o755)
        results, errors = run(options, Path(build).resolve(), Path(name))
    if options.json:
        print(json.dumps({"policies": results, "errors": errors}))
    else:
        print_tables(results)
        for error in errors:
            print(error, file=sys.stderr)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
