#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Policies in the simulator beside what their authors' simulators gave.

peers.py PATH_OF_DATA [PART...]   a folder with copies of two public repositories:
    adaptdl-osdi21/simulator/       petuum/adaptdl, branch osdi21-artifact: traces/, workloads*/ and the results that its authors ship,
                                    results-jobload/POLICY-LOAD/summary.json
    sia-artifacts/sia-simulator/    siasosp23/artifacts: traces/ and workloads/

Parts: pollux and sia are their workloads with their clusters, limits and costs; sensitivity is sluice beside fifo where costs, knowledge, jobs
and load are other ones; times is how long it takes. `sluice sim` of $SLUICE_BUILD is called. A run that fails is said, and the exit code is 1.
"""

import argparse
import collections
import csv
import itertools
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

# name, options of `sluice sim`, whether what is known is drawn by chance
Row = collections.namedtuple("Row", "name options by_chance")
# of one run, seconds; the 99th percentile is the nearest, as the peers count it: of 160 jobs the second longest
Figures = collections.namedtuple("Figures", "average p99 makespan restarts gpu_hours wait")

_POLICIES = [Row(name, ("--policy", name), name in ("goodput", "sluice"))
             for name in ("fifo", "las", "srtf-oracle", "optimus-oracle", "goodput", "sluice", "sluice-oracle")]
_FIFO = _POLICIES[0]
_BOUND = Row("lower bound", ("--policy", "fifo", "--bound"), False)
_SLUICE = _POLICIES[5]


def sluice_with(*options, by_chance=True):
    return Row("sluice " + " ".join(options), (*_SLUICE.options, *options), by_chance)


# What exact step times and exact sizes give is the row sluice-oracle.
_KNOWING = [sluice_with("--size-error", error) for error in ("0", "1.0", "unknown")] + [
    sluice_with("--exact-steps"), sluice_with("--exact-steps", "--size-error", "1.0"),
    sluice_with("--exact-steps", "--size-error", "unknown", by_chance=False), sluice_with("--doubling")]

_LOADS = {"0.5": "workloads-0.5", "1.0": "workloads", "1.5": "workloads-1.5", "2.0": "workloads-2.0"}
_POLLUX_SETTING = ("--cluster", "16x4", "--most-gpus", "ncf=1,64", "--most-local-batch", "yolov3=8")
_REPRODUCE = {"las": "tiresias", "optimus-oracle": "optimus"}
_TUNED = ("workload-1", "workload-2")

_SIA_SETTING = ("--cluster", "6x4,2x8:dgx-ext,3x8:rtx", "--restart", "cifar10=50,deepspeech2=25,bert=120,yolov3=80,imagenet=250,ncf=15",
                "--slower", "cifar10=1.8,imagenet=1.2,yolov3=1.2,bert=1.2,deepspeech2=1.2,ncf=1.5")
_SIA_GROUPS = {"philly 1-2, for tuning": ("philly", (1, 2)), "philly 3-5": ("philly", (3, 4, 5)), "saturn 1-5": ("saturn", (1, 2, 3, 4, 5)),
               "newtrace 1-5": ("newtrace", (1, 2, 3, 4, 5))}
# Sia (SOSP 2023), table 3: average, 99th percentile, makespan (hours), restarts a job; over 8 traces of philly, 10 of each other
_SIA_PAPER = {"Sia": {"philly": (0.6, 9.5, 14.2, 2.9), "saturn": (0.7, 10.9, 14.9, 3.4), "newtrace": (0.7, 4.6, 52.2, 5.0)},
              "Pollux": {"philly": (1.0, 14.9, 24.5, 5.8), "saturn": (1.0, 15.0, 25.5, 5.3), "newtrace": (1.5, 10.3, 62.3, 5.4)},
              "Gavel": {"philly": (1.9, 30.0, 33.8, 5.7), "saturn": (2.5, 38.7, 43.0, 7.5), "newtrace": (11.3, 98.1, 110.0, 4.5)}}
# of its authors' simulator, run again (p = -0.5; the integer program solved by HiGHS): average and 99th percentile, seconds
_SIA_AGAIN = {"philly/workload-1": (1943, 28206), "saturn/workload-1": (2077, 27521)}

_SENSITIVITY = {
    "restart costs x": {"0.25": ("--restart", "7.5"), "0.5": ("--restart", "15"), "1": (), "2": ("--restart", "60"), "4": ("--restart", "120")},
    "size error x": {"0": ("--size-error", "0"), "0.5": ("--size-error", "0.3"), "1": (), "2": ("--size-error", "1.2"), "4": ("--size-error", "2.4")},
    "malleable": {"0.1": ("--malleable", "0.1"), "0.25": ("--malleable", "0.25"), "0.5": ("--malleable", "0.5"), "1": ()},
    "load x": {load: () for load in _LOADS}}

# seconds that the peers' simulators took on 2 cores of a server: theirs, the row here, the workload
_PEER_SECONDS = [("Tiresias", 21, "las", "workload-6"), ("Optimus", 200, "optimus-oracle", "workload-6"), ("Pollux", 2796, "goodput", "workload-6"),
                 ("Pollux", 2796, "sluice", "workload-6"), ("Sia", 243, "sluice", "philly/workload-1")]

# Student's t, two-sided 95 %, by degrees of freedom from 1 on
_T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086)


def nearest_percentile(times):
    return sorted(times)[int(0.99 * len(times))]


def figures_of(policy):
    """Of what `sluice sim --json` says of a policy."""
    times = [job["end_s"] - job["arrival_s"] for job in policy["job"]]
    wait = policy.get("longest_wait_s", max(job["start_s"] - job["arrival_s"] for job in policy["job"]))
    return Figures(statistics.mean(times), nearest_percentile(times), policy["makespan_s"], policy["restarts_per_job"], policy["gpu_hours"], wait)


def mean_of(values, digits=3, factor=1.0):
    """Mean and 95 % confidence interval as text."""
    values = [value * factor for value in values]
    text = f"{statistics.mean(values):.{digits}f}"
    if len(values) > 1:
        text += f" ± {_T[min(len(values) - 1, len(_T)) - 1] * statistics.stdev(values) / math.sqrt(len(values)):.{digits}f}"
    return text


def of_bound(seeds, bounds, workloads):
    """Averages relative to the lower bounds: mean over workloads, and over seeds."""
    if not all(name in bounds for name in workloads):
        return "failed"
    return mean_of([statistics.mean(seed[name].average / bounds[name] for name in workloads) for seed in seeds], 2)


def print_row(*cells):
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def print_head(*cells):
    print_row(*cells)
    print("|" + "---|" * len(cells))


class Bench:
    def __init__(self, options, parser):
        self.program = Path(os.environ.get("SLUICE_BUILD", ""), "contrib/sluice/sluice").resolve()
        if not self.program.exists():
            parser.error("SLUICE_BUILD names no build folder (contrib/prepare makes one)")
        self.pollux = options.data / "adaptdl-osdi21" / "simulator"
        self.sia = options.data / "sia-artifacts" / "sia-simulator"
        self.seeds = options.seeds
        self.parallel = options.parallel
        self.policies = options.policies
        self.failed = 0

    def there(self, folder, what):
        if not folder.is_dir():
            print(f"peers.py: there is no {folder}: a copy of {what} is needed", file=sys.stderr)
            self.failed += 1
        return folder.is_dir()

    def fails(self, row, workload, seed, errors):
        print(f"peers.py: {row.name}, {workload}, seed {seed}: {errors.strip()}", file=sys.stderr)
        self.failed += 1

    def command(self, workload, setting, row, seed=1):
        profiles = f"{self.pollux / 'traces'}:{self.sia / 'traces'}"
        return [self.program, "sim", "--workload", workload, "--profiles", profiles, *setting, *row.options, "--seed", str(seed), "--json"]

    def simulate(self, workload, setting, row, seed):
        result = subprocess.run(self.command(workload, setting, row, seed), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        if result.returncode != 0:
            self.fails(row, workload, seed, result.stderr)
            return None
        return figures_of(next(iter(json.loads(result.stdout)["policies"].values())))

    def bounds(self, workloads, setting):
        """{workload: average completion time that no policy can beat}; without those that failed."""
        found = {}
        with ThreadPoolExecutor(self.parallel) as pool:
            runs = {name: pool.submit(subprocess.run, self.command(path, setting, _BOUND), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
                    for name, path in workloads.items()}
        for name, run in runs.items():
            if run.result().returncode == 0:
                found[name] = json.loads(run.result().stdout)["bound"]["avg_jct_s"]
            else:
                self.fails(_BOUND, workloads[name], 1, run.result().stderr)
        return found

    def simulate_all(self, workloads, setting, rows):
        """[{workload: figures} of each seed] by row; None instead where a run failed."""
        with ThreadPoolExecutor(self.parallel) as pool:
            runs = {(row, seed, name): pool.submit(self.simulate, path, setting, row, seed)
                    for row in rows for seed in range(1, 1 + (self.seeds if row.by_chance else 1)) for name, path in workloads.items()}
            found = {}
            for row in rows:
                seeds = [{name: runs[row, seed, name].result() for name in workloads} for seed in range(1, 1 + (self.seeds if row.by_chance else 1))]
                found[row] = None if any(figures is None for seed in seeds for figures in seed.values()) else seeds
        return found

    def shipped(self, peer, load, workloads):
        """The same of the authors' results: the average and the 99th percentile alone."""
        path = self.pollux / "results-jobload" / f"{peer}-{load}" / "summary.json"
        if not path.exists():
            return None
        times = json.loads(path.read_text(encoding="ascii"))["jcts"]
        if not all(name in times for name in workloads):
            return None
        nan = float("nan")
        return [{name: Figures(statistics.mean(times[name].values()), nearest_percentile(times[name].values()), nan, nan, nan, nan) for name in workloads}]

    # --- parts

    def part_pollux(self, load):
        workloads = {path.stem: path for path in sorted((self.pollux / _LOADS[load]).glob("workload-*.csv"))}
        found = self.simulate_all(workloads, _POLLUX_SETTING, [row for row in _POLICIES + _KNOWING if not self.policies or row.name in self.policies])
        lines = {row.name: seeds for row, seeds in found.items()}
        peers = {peer: self.shipped(peer, load, workloads) for peer in ("tiresias", "optimus", "pollux")}
        lines.update({f"{peer}, shipped": seeds for peer, seeds in peers.items() if seeds})
        bounds = self.bounds(workloads, _POLLUX_SETTING)
        print(f"\nPollux's workloads, load {load}, seeds 1 to {self.seeds}: average and 99th percentile of completion times (s)\n")
        print_head("policy", *(name.removeprefix("workload-") + (", tuned on" if name in _TUNED else "") for name in workloads))
        for name, seeds in lines.items():
            print_row(name, *(f"{statistics.mean(seed[each].average for seed in seeds):.0f} {statistics.mean(seed[each].p99 for seed in seeds):.0f}"
                              if seeds else "failed" for each in workloads))
        print_row(_BOUND.name, *(f"{bounds[each]:.0f}" if each in bounds else "failed" for each in workloads))
        groups = [[name for name in workloads if name in _TUNED], [name for name in workloads if name not in _TUNED]]
        if peers["pollux"]:
            print("\nRelative to Pollux, means over workloads, ± 95 % over seeds; makespan, restarts and averages relative to the lower bound of those reported\n")
            titles = [", ".join(name.removeprefix("workload-") for name in group) for group in groups]
            print_head("policy", f"tuned on {titles[0]}: average", "99 %", f"reported, {titles[1]}: average", "99 %", "makespan, h", "restarts a job", "of the bound")
            for name, seeds in lines.items():
                print_row(name, *[*self.ratios(seeds, peers["pollux"][0], groups), of_bound(seeds, bounds, groups[1])] if seeds else ["failed"])
        for policy, peer in _REPRODUCE.items():
            if lines.get(policy) and peers[peer]:
                off = [lines[policy][0][name].average / peers[peer][0][name].average - 1 for name in workloads]
                print(f"\n{policy} reproduces {peer} within {100 * max(map(abs, off)):.1f} % ({', '.join(f'{100 * value:+.1f}' for value in off)})")

    @staticmethod
    def ratios(seeds, pollux, groups):
        cells = [mean_of([statistics.mean(getattr(seed[name], key) / getattr(pollux[name], key) for name in group) for seed in seeds])
                 for group in groups for key in ("average", "p99")]
        reported = [seed[name] for seed in seeds for name in groups[1]]
        makespan, restarts = (statistics.mean(getattr(figures, key) for figures in reported) for key in ("makespan", "restarts"))
        return cells + ["" if math.isnan(makespan) else f"{makespan / 3600:.1f}", "" if math.isnan(restarts) else f"{restarts:.2f}"]

    def part_sia(self):
        rows = [row for row in _POLICIES if not self.policies or row.name in self.policies]
        print(f"\nSia's workloads, seeds 1 to {self.seeds}: means over workloads and seeds; relative to what Sia's paper has of more such workloads, ± 95 % over seeds\n")
        print_head("workloads", "policy", "average, h", "99 %, h", "makespan, h", "restarts a job", "of Sia's average", "of its 99 %", "of the bound")
        again = {row: [] for row in rows}
        for title, (family, numbers) in _SIA_GROUPS.items():
            workloads = {f"{family}/workload-{number}": self.sia / "workloads" / family / f"workload-{number}.csv" for number in numbers}
            theirs = _SIA_PAPER["Sia"][family]
            bounds = self.bounds(workloads, _SIA_SETTING)
            for row, seeds in self.simulate_all(workloads, _SIA_SETTING, rows).items():
                if not seeds:
                    print_row(title, row.name, "failed")
                    continue
                means = [statistics.mean(getattr(run, key) for seed in seeds for run in seed.values()) for key in ("average", "p99", "makespan", "restarts")]
                ratios = [mean_of([statistics.mean(getattr(run, key) for run in seed.values()) / theirs[i] / 3600 for seed in seeds], 2)
                          for i, key in enumerate(("average", "p99"))]
                print_row(title, row.name, f"{means[0] / 3600:.2f}", *(f"{mean / 3600:.1f}" for mean in means[1:3]), f"{means[3]:.1f}", *ratios, of_bound(seeds, bounds, workloads))
                again[row] += [(name, seeds) for name in _SIA_AGAIN if name in workloads]
            for name, families in _SIA_PAPER.items():
                print_row(title, f"{name}, paper", *families[family], *(f"{families[family][i] / theirs[i]:.2f}" for i in (0, 1)), "")
        print("\nBeside Sia's simulator, run again: average and 99th percentile (s), and relative to it\n")
        print_head("policy", *_SIA_AGAIN)
        print_row("Sia", *(f"{average} {p99}" for average, p99 in _SIA_AGAIN.values()))
        for row, found in again.items():
            print_row(row.name, *(self.beside(theirs, name, dict(found)) for name, theirs in _SIA_AGAIN.items()))

    @staticmethod
    def beside(theirs, name, found):
        if name not in found:
            return "failed"
        ours = [(seed[name].average, seed[name].p99) for seed in found[name]]
        return (" ".join(f"{statistics.mean(one[i] for one in ours):.0f}" for i in (0, 1)) + "; "
                + ", ".join(mean_of([one[i] / theirs[i] for one in ours]) for i in (0, 1)))

    def part_sensitivity(self):
        print(f"\nsluice relative to fifo, Pollux's workloads 3, 4 and 6, seeds 1 to {self.seeds}: the average, the worst of a workload and seed; the same of 99th "
              "percentiles; the longest that a job had no GPUs (h)\n")
        print_head("what", "", "average", "worst", "99 %", "worst", "longest wait: sluice", "fifo", "restarts a job")
        worst = (0, "")
        for what, values in _SENSITIVITY.items():
            for value, setting in values.items():
                folder = self.pollux / _LOADS[value if what == "load x" else "1.0"]
                workloads = {name: folder / f"{name}.csv" for name in ("workload-3", "workload-4", "workload-6")}
                found = self.simulate_all(workloads, (*_POLLUX_SETTING, *setting), [_FIFO, _SLUICE])
                if not found[_FIFO] or not found[_SLUICE]:
                    print_row(what, value, "failed")
                    continue
                stock, ours = found[_FIFO][0], found[_SLUICE]
                cells = []
                for key in ("average", "p99"):
                    ratios = [[getattr(seed[name], key) / getattr(stock[name], key) for name in workloads] for seed in ours]
                    cells += [mean_of([statistics.mean(each) for each in ratios]), f"{max(itertools.chain(*ratios)):.3f}"]
                worst = max(worst, (float(cells[1]), f"{what} {value}"))
                waits = (max(seed[name].wait for seed in ours for name in workloads), max(figures.wait for figures in stock.values()))
                restarts = statistics.mean(seed[name].restarts for seed in ours for name in workloads)
                print_row(what, value, *cells, *(f"{wait / 3600:.1f}" for wait in waits), f"{restarts:.2f}")
        verdict = "no verdict, for runs failed" if self.failed else "sluice is never worse" if worst[0] <= 1 else "sluice is worse there"
        print(f"\nOn average jobs take at most {worst[0]:.3f} of the time that they take under fifo ({worst[1]}): {verdict}")

    def timed(self, workload, setting, row):
        """CPU seconds, and the figures."""
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors, \
                subprocess.Popen(self.command(workload, setting, row), stdout=out, stderr=errors) as child:
            _, status, used = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
            if child.returncode != 0:
                errors.seek(0)
                self.fails(row, workload, 1, errors.read().decode())
                return float("nan"), None
            out.seek(0)
            return used.ru_utime + used.ru_stime, figures_of(next(iter(json.load(out)["policies"].values())))

    def part_times(self):
        print("\nCPU seconds of one core\n")
        print_head("what", "s", "of the peer's time")
        rows = {row.name: row for row in _POLICIES}
        for peer, theirs, policy, workload in _PEER_SECONDS:
            sia = "/" in workload
            path = self.sia / "workloads" / f"{workload}.csv" if sia else self.pollux / "workloads" / f"{workload}.csv"
            seconds, _ = self.timed(path, _SIA_SETTING if sia else _POLLUX_SETTING, rows[policy])
            print_row(f"{policy}, 160 jobs on 64 GPUs ({workload})", f"{seconds:.2f}", f"1 / {theirs / seconds:.0f} ({peer}: {theirs} s)")
        with tempfile.TemporaryDirectory() as folder:
            large = Path(folder, "large.csv")
            self.write_large(large, jobs=10000, hours=16)
            for policy in ("fifo", "sluice"):
                seconds, figures = self.timed(large, ("--cluster", "512x8", *_POLLUX_SETTING[2:]), rows[policy])
                use = f", {figures.gpu_hours:.0f} GPU-hours in {figures.makespan / 3600:.1f} h, average {figures.average:.0f} s" if figures else ", failed"
                print_row(f"{policy}, 10,000 jobs on 4,096 GPUs{use}", f"{seconds:.1f}", "")
        planning = self.program.parents[2] / "tests/bench/planning_bench"
        if planning.exists():
            print(flush=True)
            self.failed += subprocess.run([planning], check=False).returncode != 0
        else:
            print(f"\npeers.py: no {planning}: `make bench` builds it")

    def write_large(self, path, jobs, hours):
        """Pollux's workloads again and again, each from another hour on, so that they come evenly over so many hours."""
        header, lines = None, []
        for workload in sorted((self.pollux / "workloads").glob("workload-*.csv")):
            with open(workload, encoding="ascii", newline="") as file:
                header, *rows = csv.reader(file)
                lines.append(rows)
        time = header.index("time")
        copies = math.ceil(jobs / len(lines[0]))
        every = []
        for copy in range(copies):
            for row in lines[copy % len(lines)]:
                arrival = (float(row[time]) + copy * 3600 * hours / copies) % (3600 * hours)
                every.append([f"{copy}-{row[0]}", f"{arrival:.3f}", *row[2:]])
        every = sorted(every[:jobs], key=lambda row: float(row[time]))
        with open(path, "w", encoding="ascii", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([header, *every])


def main():
    parts = ("pollux", "sia", "sensitivity", "times")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(parts) + " (default: all)")
    parser.add_argument("--seeds", type=int, default=10, help="for what is drawn by chance (default: 10)")
    parser.add_argument("--loads", nargs="+", default=["1.0"], choices=list(_LOADS), help="of Pollux's workloads (default: 1.0)")
    parser.add_argument("--policies", nargs="+", help="these rows of the tables alone")
    parser.add_argument("--parallel", type=int, default=1, help="so many simulations at once (default: 1)")
    options = parser.parse_args()
    if unknown := set(options.policies or ()) - {row.name for row in _POLICIES + _KNOWING}:
        parser.error(f"no row {', '.join(sorted(unknown))}: write some of {', '.join(row.name for row in _POLICIES + _KNOWING)}")
    if options.seeds < 1 or options.parallel < 1:
        parser.error("--seeds and --parallel: a whole number from 1 on is needed")
    if unknown := set(options.parts) - set(parts):
        parser.error(f"no part {', '.join(sorted(unknown))}: write one of {', '.join(parts)}")
    bench = Bench(options, parser)
    wanted = options.parts or parts
    pollux = bench.there(bench.pollux, "petuum/adaptdl's branch osdi21-artifact")
    if pollux and "pollux" in wanted:
        for load in options.loads:
            bench.part_pollux(load)
    sia = pollux and {"sia", "times"} & set(wanted) and bench.there(bench.sia, "siasosp23/artifacts")
    if sia and "sia" in wanted:
        bench.part_sia()
    if pollux and "sensitivity" in wanted:
        bench.part_sensitivity()
    if sia and "times" in wanted:
        bench.part_times()
    return bench.failed > 0


if __name__ == "__main__":
    sys.exit(main())
