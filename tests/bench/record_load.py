#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What jobs that report their losses cost slurmctld: latency of scheduling with and without Sluice, one after the other on one machine.

Each job is a real one with an agent beside it, which reads a log that gets a line a second and reports as often as sluice.conf's
MaxRecordsPerSecond allows. More jobs wait. Measured are the mean cycles of the main scheduler and of backfill (sdiag) and how long
`sbatch --test-only` takes, as a user sees it. The agents run on the same machine here and take their share of its cores: a cluster's
controller does not have that load, so the CPU time of slurmctld is printed beside it.
"""

import argparse
import os
import re
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


def measure(directory, stock, options):
    """{figure: value} of one cluster."""
    interval = max(1, options.jobs // _BUDGET)
    text = f"Nodes=n[1-{options.nodes}] Sockets=2 CoresPerSocket={-(-options.jobs // options.nodes // 2)} Memory=512000\n"
    cluster = Cluster(directory / ("stock" if stock else "sluice"), text, stock=stock, dbd=False, settings=_SETTINGS,
                      sluice=None if stock else {"MinSampleInterval": interval, "Interval": 10})
    cluster.start()
    try:
        logs = [cluster.layout.jobs / f"{number}.log" for number in range(options.jobs)]
        words = [f"-n1 -o/dev/null --mem=1 {'' if stock else f'--train-loss={log} '}--wrap='exec sleep 100000'" for log in logs]
        cluster.run(["xargs", "-P2", "-L1", "sbatch", "-Q"], input="\n".join(words) + "\n", timeout=600)
        wait_for(lambda: len(cluster.run(["squeue", "-h", "-tR", "-o%i"]).stdout.split()) == options.jobs, 600, f"{options.jobs} jobs that run")
        waiting = "".join("-N1 --exclusive -o/dev/null --time=60 --wrap=true\n" for _ in range(options.waiting))
        cluster.run(["xargs", "-P2", "-L1", "sbatch", "-Q"], input=waiting, timeout=600)
        feeder = Feeder(logs)
        feeder.start()
        time.sleep(45)  # agents look for a loss within half a minute
        pid = cluster.pid("slurmctld")
        cluster.run(["sdiag", "-r"])
        cpu, (agents, agents_cpu, _), began = cpu_seconds(pid), agents_cost(cluster), time.monotonic()
        tests = []
        while time.monotonic() < began + options.seconds:
            at = time.monotonic()
            cluster.run(["sbatch", "--test-only", "-n1", "--wrap=true"], check=False)
            tests.append(time.monotonic() - at)
            time.sleep(0.5)
        seconds = time.monotonic() - began
        _, agents_after, resident = agents_cost(cluster)
        sdiag = cluster.run(["sdiag"]).stdout
        figures = {"slurmctld CPU, cores": (cpu_seconds(pid) - cpu) / seconds, "sbatch --test-only, s": statistics.median(tests)}
        for name, heading in _NUMBERS.items():
            figures[f"{name}, s"] = int(re.search(r"Mean cycle:\s+(\d+)", sdiag.partition(heading)[2]).group(1)) / 1e6
        if not stock:
            print(f"  {agents} agents: {100 * (agents_after - agents_cpu) / seconds / max(agents, 1):.3f}% of a core each, at most {resident:.1f} MiB resident; "
                  f"{updates(sdiag) / seconds:.1f} records a second", flush=True)
        feeder.stop()
        return figures
    finally:
        cluster.stop()


def updates(sdiag):
    """Job updates since sdiag -r: nobody but agents sends any here."""
    found = re.search(r"REQUEST_UPDATE_JOB\s.*count:(\d+)", sdiag)
    return int(found.group(1)) if found else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=300)
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--waiting", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    if not os.environ.get("SLUICE_BUILD"):
        parser.error("SLUICE_BUILD names no build folder (contrib/prepare makes one)")
    print(f"{options.jobs} jobs that report, {options.waiting} that wait, {options.rounds} rounds of {options.seconds:.0f} s, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", flush=True)
    results = {True: [], False: []}
    for number in range(options.rounds):
        for stock in (True, False) if number % 2 == 0 else (False, True):
            with tempfile.TemporaryDirectory(prefix="sluice-bench-") as scratch:
                os.chmod(scratch, 0o755)
                results[stock].append(measure(Path(scratch), stock, options))
            print(f"  round {number + 1} {'stock' if stock else 'sluice'}: " + ", ".join(f"{key} {value:.4f}" for key, value in results[stock][-1].items()), flush=True)
    for key in results[True][0]:
        stock, sluice = (statistics.mean(figures[key] for figures in results[kind]) for kind in (True, False))
        print(f"{key:24} stock {stock:8.4f}  sluice {sluice:8.4f}  ratio {sluice / stock if stock else 1:6.3f}", flush=True)


if __name__ == "__main__":
    main()
