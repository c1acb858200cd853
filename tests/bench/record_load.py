#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What jobs that report their losses cost slurmctld: latency of scheduling with and without Sluice, by turns on one machine.

Two clusters run beside each other, one of them stock Slurm, each with the same jobs; on the other each job has an agent that reads a
log, which gets a line a second, and reports as often as sluice.conf's MaxRecordsPerSecond allows. More jobs wait. By turns each
slurmctld has one core to itself and its clients, as on a machine of its own, and all else has the others. Measured in its turn are the
mean cycles of the main scheduler and of backfill (sdiag), how long `sbatch --test-only` takes, and the CPU time of slurmctld. Agents
report less often the longer they know their job, so every round begins with new jobs.
"""

import argparse
import contextlib
import os
import re
import shutil
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "integration"))

from harness import Cluster, wait_for  # noqa: E402  found by the line above

_SETTINGS = {"SchedulerParameters": "default_queue_depth=10000,sched_interval=2,sched_min_interval=0,bf_interval=2,bf_resolution=60,bf_max_job_test=10000"}
_BUDGET = 20  # MaxRecordsPerSecond, its default
_NUMBERS = {"main cycle": "Main schedule statistics", "backfill cycle": "Backfilling stats"}


class Feeder(threading.Thread):
    """A line a second for each log."""

    def __init__(self, logs):
        super().__init__(daemon=True)
        self._logs = [open(log, "a", encoding="ascii", buffering=1) for log in logs]
        self._over = threading.Event()

    def run(self):
        step = 0
        while not self._over.is_set():
            began = time.monotonic()
            step += 10
            for log in self._logs:
                log.write(f"step {step} loss {1 / (0.001 * step + 0.2) + 1.5:.5f}\n")
            self._over.wait(max(0.0, began + 1 - time.monotonic()))

    def stop(self):
        self._over.set()
        self.join()
        for log in self._logs:
            log.close()


def agents_cost(cluster):
    """(processes, CPU seconds so far, largest resident MiB) of the agents."""
    ticks, most, count = 0, 0.0, 0
    for process in Path("/proc").iterdir():
        if not process.name.isdigit():
            continue
        try:
            name, _, rest = (process / "stat").read_text(encoding="ascii", errors="replace").partition(") ")
            if not name.endswith("(sluice-agent") or str(cluster.directory) not in (process / "environ").read_text(errors="replace"):
                continue
            fields = rest.split()
            ticks += int(fields[11]) + int(fields[12])
            most = max(most, int(fields[21]) * os.sysconf("SC_PAGE_SIZE") / 2**20)
            count += 1
        except OSError:
            pass  # it has ended
    return count, ticks / os.sysconf("SC_CLK_TCK"), most


def cpu_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def move(pid, cores):
    """All threads of a process; those that they make follow."""
    for thread in os.listdir(f"/proc/{pid}/task"):
        try:
            os.sched_setaffinity(int(thread), cores)
        except ProcessLookupError:
            pass  # it has ended


def seconds_of(argv, environment, cores):
    """How long a program runs on these cores."""
    outside = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    began = time.monotonic()
    null = [(os.POSIX_SPAWN_OPEN, descriptor, os.devnull, os.O_RDWR, 0) for descriptor in (1, 2)]
    os.waitpid(os.posix_spawn(argv[0], argv, environment, file_actions=null), 0)
    seconds = time.monotonic() - began
    os.sched_setaffinity(0, outside)
    return seconds


class Side:
    """One of the clusters, with its jobs."""

    def __init__(self, directory, stock, options):
        interval = max(1, options.jobs // _BUDGET)
        text = f"Nodes=n[1-{options.nodes}] Sockets=2 CoresPerSocket={-(-options.jobs // options.nodes)} Memory=512000\n"
        self.stock = stock
        self.cluster = Cluster(directory / self.name(), text, stock=stock, dbd=False, settings=_SETTINGS,
                               sluice=None if stock else {"MinSampleInterval": interval, "Interval": 10})
        self.cluster.start()
        self.feeder = None
        self.jobs = []

    def name(self):
        return "stock" if self.stock else "sluice"

    def queue(self, count, nodes):
        """Jobs that wait for all nodes to be idle."""
        waiting = "".join(f"-N{nodes} --exclusive -o/dev/null --time=60 --wrap=true\n" for _ in range(count))
        self.cluster.run(["xargs", "-P2", "-L1", "sbatch", "-Q"], input=waiting, timeout=600)

    def renew(self, count):
        """New jobs that run, beside the old ones, so that nodes are never idle; then these end."""
        run, old = self.cluster.run, self.jobs
        logs = [self.cluster.layout.jobs / f"{number}-{time.monotonic_ns()}.log" for number in range(count)]
        words = [f"-n1 -o/dev/null --mem=1 {'' if self.stock else f'--train-loss={log} '}--wrap='exec sleep 100000'" for log in logs]
        run(["xargs", "-P2", "-L1", "sbatch", "-Q"], input="\n".join(words) + "\n", timeout=600)

        def running():
            return run(["squeue", "-h", "-tR", "-o%i"]).stdout.split()

        wait_for(lambda: len(running()) == len(old) + count, 600, f"{count} jobs that run")
        self.jobs = sorted(set(running()) - set(old))
        if old:
            self.feeder.stop()
            run(["scancel", *old])
            wait_for(lambda: len(running()) == count, 600, "the end of the old jobs")
        self.feeder = Feeder(logs)
        self.feeder.start()

    def stop(self):
        if self.feeder:
            self.feeder.stop()
        self.cluster.stop()

    def measure(self, seconds, cores):
        """{figure: value} of one turn; what agents did in it is a text beside it."""
        run, pid = self.cluster.run, self.cluster.pid("slurmctld")
        environment = self.cluster.client_environment()
        sbatch = [shutil.which("sbatch", path=environment["PATH"]), "--test-only", "-n1", "--wrap=true"]
        move(pid, cores)
        time.sleep(5)
        run(["sdiag", "-r"])
        cpu, (agents, agents_cpu, _), began = cpu_seconds(pid), agents_cost(self.cluster), time.monotonic()
        tests = []
        while time.monotonic() < began + seconds:
            tests.append(seconds_of(sbatch, environment, cores))
            time.sleep(0.2)
        passed = time.monotonic() - began
        sdiag = run(["sdiag"]).stdout
        figures = {"slurmctld CPU, cores": (cpu_seconds(pid) - cpu) / passed}
        move(pid, os.sched_getaffinity(0))
        _, agents_after, resident = agents_cost(self.cluster)
        for name, heading in _NUMBERS.items():
            figures[f"{name}, ms"] = int(re.search(r"Mean cycle:\s+(\d+)", sdiag.partition(heading)[2]).group(1)) / 1e3
        figures["sbatch --test-only, ms"] = 1e3 * statistics.median(tests)
        said = f"{agents} agents: {100 * (agents_after - agents_cpu) / passed / max(agents, 1):.3f}% of a core each, at most {resident:.1f} MiB resident; " \
               f"{updates(sdiag) / passed:.1f} records a second"
        return figures, said


def updates(sdiag):
    """Job updates since sdiag -r: nobody but agents sends any here."""
    found = re.search(r"REQUEST_UPDATE_JOB\s.*count:(\d+)", sdiag)
    return int(found.group(1)) if found else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=300)
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--waiting", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=45, help="of a turn")
    parser.add_argument("--rounds", type=int, default=8, help="of two turns")
    options = parser.parse_args()
    if not os.environ.get("SLUICE_BUILD"):
        parser.error("SLUICE_BUILD names no build folder (contrib/prepare makes one)")
    all_cores = os.sched_getaffinity(0)
    if len(all_cores) < 2:
        parser.error("one core: slurmctld needs one of its own beside")
    own = {min(all_cores)}
    os.sched_setaffinity(0, all_cores - own)
    print(f"{options.jobs} jobs that report, {options.waiting} that wait, {options.rounds} rounds of two turns of {options.seconds:.0f} s, load {os.getloadavg()[0]:.1f} "
          f"on {len(all_cores)} cores", flush=True)
    turns = {True: [], False: []}
    with tempfile.TemporaryDirectory(prefix="sluice-bench-") as scratch, contextlib.ExitStack() as stack:
        os.chmod(scratch, 0o755)
        sides = []
        for stock in (True, False):
            sides.append(Side(Path(scratch), stock, options))
            stack.callback(sides[-1].stop)
        for number in range(options.rounds):
            for side in sides:
                side.renew(options.jobs)
                if number == 0:
                    side.queue(options.waiting, options.nodes)
            time.sleep(45)  # agents look for a loss within half a minute
            for side in sides if number % 2 == 0 else reversed(sides):
                figures, said = side.measure(options.seconds, own)
                turns[side.stock].append(figures)
                print(f"  {number + 1} {side.name():6} " + ", ".join(f"{key} {value:.4f}" for key, value in figures.items()) + ("" if side.stock else f"; {said}"), flush=True)
    for key in turns[True][0]:
        stock, sluice = ([figures[key] for figures in turns[kind]] for kind in (True, False))
        ratios = [b / a for a, b in zip(stock, sluice)]
        error = statistics.stdev(ratios) / len(ratios) ** 0.5 if len(ratios) > 1 else float("nan")
        print(f"{key:24} stock {statistics.mean(stock):8.4f}  sluice {statistics.mean(sluice):8.4f}  ratio {statistics.mean(ratios):6.3f} +- {error:.3f}", flush=True)


if __name__ == "__main__":
    main()
