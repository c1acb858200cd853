#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Policies in the simulator beside what their authors' simulators gave: average and 99th percentile of completion times.

peers.py PATH_OF_DATA     a folder with a copy of petuum/adaptdl's branch osdi21-artifact as adaptdl-osdi21/simulator: traces/, workloads*/ and
                          the results that its authors ship, results-jobload/POLICY-LOAD/summary.json

16 nodes of 4 GPUs, a round a minute, 30 s of restart, as there. `sluice sim` of $SLUICE_BUILD is called.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

_CLUSTER = ["--cluster", "16x4", "--most-gpus", "ncf=1,64", "--most-local-batch", "yolov3=8"]
_LOADS = {"0.5": "workloads-0.5", "1.0": "workloads", "1.5": "workloads-1.5", "2.0": "workloads-2.0"}
_PEERS = ("tiresias", "optimus", "pollux")
_REPRODUCE = {"las": "tiresias", "optimus-oracle": "optimus"}


def simulate(program, data, workload, policies):
    """{policy: (average, 99th percentile)} in seconds."""
    result = subprocess.run([program, "sim", "--workload", workload, "--profiles", data / "traces", *_CLUSTER, "--policy", ",".join(policies), "--json"],
                            stdout=subprocess.PIPE, text=True, check=True)
    found = {}
    for name, figures in json.loads(result.stdout)["policies"].items():
        times = sorted(job["end_s"] - job["arrival_s"] for job in figures["job"])
        found[name] = (statistics.mean(times), nearest_percentile(times))
    return found


def nearest_percentile(times):
    """As the peers count it: of 160 jobs the second longest."""
    return times[int(0.99 * len(times))]


def shipped(data, peer, load, workload):
    """The same of the authors' results; None where they ship none."""
    path = data / "results-jobload" / f"{peer}-{load}" / "summary.json"
    if not path.exists():
        return None
    times = sorted(json.loads(path.read_text(encoding="ascii"))["jcts"].get(workload, {}).values())
    return (statistics.mean(times), nearest_percentile(times)) if times else None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--loads", nargs="+", default=["1.0"], choices=list(_LOADS))
    parser.add_argument("--policies", nargs="+", default=["fifo", "las", "srtf-oracle", "optimus-oracle"])
    options = parser.parse_args()
    program = Path(os.environ.get("SLUICE_BUILD", ""), "contrib/sluice/sluice").resolve()
    if not program.exists():
        parser.error("SLUICE_BUILD names no build folder (contrib/prepare makes one)")
    data = options.data / "adaptdl-osdi21" / "simulator"
    if not data.is_dir():
        sys.exit(f"peers.py: there is no {data}: a copy of petuum/adaptdl's branch osdi21-artifact is needed")
    for load in options.loads:
        table = {}  # policy -> {workload: figures}
        for path in sorted((data / _LOADS[load]).glob("workload-*.csv")):
            for policy, figures in simulate(program, data, path, options.policies).items():
                table.setdefault(policy, {})[path.stem] = figures
            for peer in _PEERS:
                if figures := shipped(data, peer, load, path.stem):
                    table.setdefault(f"{peer}, shipped", {})[path.stem] = figures
        workloads = sorted(next(iter(table.values())))
        print(f"load {load}: average, 99th percentile (s)")
        print(f"{'policy':18}" + "".join(f"{name:>16}" for name in workloads) + f"{'mean':>9}  of Pollux")
        pollux = table.get("pollux, shipped", {})
        for policy, row in table.items():
            mean = statistics.mean(figures[0] for figures in row.values())
            ratio = statistics.mean(row[name][0] / pollux[name][0] for name in workloads) if pollux else float("nan")
            print(f"{policy:18}" + "".join(f"{row[name][0]:9.0f}{row[name][1]:7.0f}" for name in workloads) + f"{mean:9.0f}  {ratio:9.3f}")
        for policy, peer in _REPRODUCE.items():
            theirs = table.get(f"{peer}, shipped")
            if policy in table and theirs:
                off = [table[policy][name][0] / theirs[name][0] - 1 for name in workloads]
                print(f"{policy} reproduces {peer} within {100 * max(map(abs, off)):.1f}% ({', '.join(f'{100 * value:+.1f}' for value in off)})")


if __name__ == "__main__":
    main()
