#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What a pass of the scheduler costs with Sluice, as a ratio to select/cons_tres alone, in one run on one machine.

Two private slurmctld with the same emulated nodes of 8 GPUs and the same pending jobs of 1 to 16 GPUs take turns, each time from the
same saved state. Three passes are timed:

    starts    the main scheduler, most of the jobs start
    full      the main scheduler, every GPU is taken
    backfill  backfill, every GPU is taken: when could each job start?

The CPU time is that of the very thread that schedules, so other work on the machine hardly matters; the time on the clock is sdiag's.
"""

import argparse
import contextlib
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))

from emulated_nodes import ROOT, EmulatedNodes, wait_for  # noqa: E402  found by the line above

_TOPOLOGIES = ROOT / "tests" / "data" / "topology"
CLASSES = {
    "dgx1": ("dgx1-v100",),
    "mixed": ("dgx1-v100", "nvlink-pairs8", "cliques8", "pcie8"),
}
_SIZES = (1, 2, 3, 4, 6, 8, 12, 16)
_SHARES = (40, 15, 4, 16, 4, 13, 3, 5)  # percent
_FILLING_JOBS = 20
_SCHEDULER = ("default_queue_depth=100000,sched_interval=3600,sched_min_interval=0,max_sched_time=1500,batch_sched_delay=0,"
              "bf_max_job_test=100000,bf_max_time=1500,bf_yield_interval=10000000,bf_window=10080,bf_resolution=600,bf_interval=")
_THREADS = {"starts": "sched_agent", "full": "sched_agent", "backfill": "bckfl"}
# thread -> where sdiag has its numbers, and that of the jobs that a pass tried
_NUMBERS = {
    "sched_agent": ("Main schedule statistics", "Mean depth cycle"),
    "bckfl": ("Backfilling stats", "Last depth cycle (try sched)"),
}
_SHORT_PASSES = 15
_SECONDS = 1500


def requests(count, seed):
    """Options of sbatch for `count` jobs. Each form asks for GPUs in another way."""
    dice = random.Random(seed)
    for _ in range(count):
        gpus = dice.choices(_SIZES, _SHARES)[0]
        minutes = dice.randrange(60, 2880)
        if gpus > 8:
            form = dice.choice((["--gpus=%d" % gpus], ["-N2", "--gpus-per-node=%d" % (gpus // 2)]))
        else:
            form = dice.choice((["-N1", f"--gpus={gpus}"], ["-N1", f"--gpus-per-node={gpus}"], ["-N1", f"--gres=gpu:{gpus}"]))
        yield [*form, f"--time={minutes}"]


class Side:
    """One of the two clusters, stock or Sluice, and its saved state."""

    def __init__(self, directory, stock, description, nodes, jobs, seed):
        self.name = "stock" if stock else "sluice"
        self.results = {}
        self._saved = directory / f"{self.name}.saved"
        self.cluster = EmulatedNodes(directory / self.name, description, ("starting", "filling", "waiting"), stock=stock, dbd=False,
                                     settings={"SchedulerParameters": _SCHEDULER + "3600", "MessageTimeout": 3600})
        self._filling = [["-pfilling", f"-N{nodes // _FILLING_JOBS}", "--gpus-per-node=8", f"--time={60 * hours}"]
                         for hours in range(1, _FILLING_JOBS + 1)]
        self._starting = [["-pstarting", *request] for request in requests(jobs, seed)]
        self._waiting = [["-pwaiting", *request] for request in requests(jobs, seed + 1)]

    def prepare(self):
        self.cluster.start()
        # One shell for all: starting sbatch is most of the time.
        lines = "".join(" ".join(words) + "\n" for words in self._filling + self._starting + self._waiting)
        self.cluster.run(["xargs", "-P2", "-L1", "sbatch", "-Q", "-o/dev/null", "--wrap=true"], input=lines, timeout=_SECONDS)
        self._end()
        shutil.copytree(self._state, self._saved)

    @property
    def _state(self):
        return self.cluster.layout.state / "slurmctld"

    def _end(self):
        pid = self.cluster.pid("slurmctld")
        os.kill(pid, 15)
        wait_for(lambda: not self.cluster.pid("slurmctld"), 60, "the end of slurmctld")

    def _begin(self, backfill_interval):
        conf = self.cluster.layout.slurm_conf
        conf.write_text(re.sub(r"bf_interval=\d+", f"bf_interval={backfill_interval}", conf.read_text(encoding="utf-8")), encoding="utf-8")
        shutil.rmtree(self._state)
        shutil.copytree(self._saved, self._state)
        self.cluster.restart("slurmctld")
        self.cluster.power_up()

    def time_passes(self, names):
        if "starts" in names:
            self._begin(3600)
            self._measure(["starts"], lambda: self._up("starting"))
            self._end()
        if "full" in names or "backfill" in names:
            self._begin(2)
            self._up("filling")
            wait_for(lambda: not self._run(["squeue", "-h", "-tPD", "-pfilling", "-o%i"]), _SECONDS, "jobs on every GPU")
            time.sleep(2)  # for a pass that is still to come
            self._measure(names, lambda: self._up("waiting"))
            self._end()

    def _up(self, partition):
        self._run(["scontrol", "update", f"PartitionName={partition}", "State=UP"])

    def _run(self, words):
        return self.cluster.run(words, timeout=_SECONDS).stdout

    def _measure(self, names, begin):
        """Appends (CPU seconds of the thread, seconds on the clock, jobs tried, jobs that have started): means of the passes."""
        passes = {name: thread for name, thread in _THREADS.items() if name in names and (name == "starts") == (names == ["starts"])}
        self._run(["sdiag", "-r"])
        before = {name: self._cpu_seconds(thread) for name, thread in passes.items()}
        begin()
        for name, thread in passes.items():
            _, depth = _NUMBERS[thread]
            numbers = self._wait_pass(thread, 1)
            # One is over in some milliseconds.
            for count in range(2, _SHORT_PASSES + 1 if name == "full" else 2):
                begin()
                numbers = self._wait_pass(thread, count)
            cpu = (self._cpu_seconds(thread) - before[name]) / numbers["Total cycles"]
            started = len(self._run(["squeue", "-h", "-tCF", "-pstarting,waiting", "-o%i"]).split())
            self.results.setdefault(name, []).append((cpu, numbers["Mean cycle"] / 1e6, numbers[depth], started))

    def _wait_pass(self, thread, count):
        heading, depth = _NUMBERS[thread]
        return wait_for(lambda: (read := self._numbers(heading)).get("Total cycles", 0) >= count and read[depth] and read, _SECONDS, f"a pass of {thread}")

    def _numbers(self, heading):
        text = self._run(["sdiag"]).partition(heading)[2].split("\n\n")[0]
        return {key.strip(): int(value) for key, value in re.findall(r"^\s+([A-Z][^:]*):\s+(\d+)$", text, re.MULTILINE)}

    def _cpu_seconds(self, thread):
        total = 0
        for task in Path(f"/proc/{self.cluster.pid('slurmctld')}/task").iterdir():
            with contextlib.suppress(OSError):
                if (task / "comm").read_text(encoding="ascii").strip() == thread:
                    total += int((task / "schedstat").read_text(encoding="ascii").split()[0])
        return total / 1e9


def describe(name, nodes):
    topologies = CLASSES[name]
    share = nodes // len(topologies)
    return "".join(f"Nodes={letter}[1-{share}] Sockets=2 CoresPerSocket=20 ThreadsPerCore=2 Memory=512000 "
                   f"Topology={_TOPOLOGIES / topology}.topo-m.txt\n" for letter, topology in zip("abcd", topologies))


def run_class(name, options, directory):
    sides = [Side(directory, stock, describe(name, options.nodes), options.nodes, options.jobs, options.seed) for stock in (True, False)]
    try:
        for side in sides:
            side.prepare()
        for number in range(options.rounds):
            for side in sides if number % 2 == 0 else sides[::-1]:
                side.time_passes(options.passes)
                print(f"  round {number + 1} {side.name}: " + ", ".join(
                    f"{key} {values[-1][0]:.3f} s CPU, {values[-1][1]:.3f} s ({values[-1][2]} tried, {values[-1][3]} run)"
                    for key, values in side.results.items()), flush=True)
    finally:
        for side in sides:
            side.cluster.stop()
    stock, sluice = (side.results for side in sides)
    for key in options.passes:
        row = f"{name:6} {key:9}"
        for column in (0, 1):
            medians = [statistics.median(value[column] for value in results[key]) for results in (stock, sluice)]
            row += f"  {'CPU' if column == 0 else 'clock'}: stock {medians[0]:9.4f} s, sluice {medians[1]:9.4f} s, ratio {medians[1] / medians[0]:5.3f}"
        print(row, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--classes", nargs="+", default=list(CLASSES), choices=list(CLASSES))
    parser.add_argument("--passes", nargs="+", default=list(_THREADS), choices=list(_THREADS))
    options = parser.parse_args()
    if not os.environ.get("SLUICE_BUILD"):
        parser.error("SLUICE_BUILD names no build folder (contrib/prepare makes one)")
    print(f"{options.nodes} nodes, {options.jobs} jobs, {options.rounds} rounds, seed {options.seed}, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    for name in options.classes:
        with tempfile.TemporaryDirectory(prefix="sluice-bench-") as scratch:
            os.chmod(scratch, 0o755)
            run_class(name, options, Path(scratch))


if __name__ == "__main__":
    main()
