# SPDX-License-Identifier: GPL-2.0-or-later
"""What the tests on real daemons share: their clusters, jobs without a process, and the truth about who holds which GPU.

SLUICE_BUILD names the build folder whose plugins are tested, SLUICE_FULL_TESTS=1 asks for the long forms.
"""

import contextlib
import itertools
import os
import re
import shutil
import sys
import tempfile
import time
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "contrib" / "cluster"))

from sluice_cluster import Cluster, ClusterError, hostlist, installation, processes, records, wait_for  # noqa: E402  found by the line above

EXAMPLES = ROOT / "contrib" / "cluster" / "examples"
FULL = os.environ.get("SLUICE_FULL_TESTS") == "1"
USERS = ("nobody", "daemon", "games", "root")

_LOG_LINES_OF_A_FAILURE = 25


def build_folder():
    """The build tree; tests that need a program of it are skipped without one."""
    folder = os.environ.get("SLUICE_BUILD")
    if not folder:
        raise unittest.SkipTest("SLUICE_BUILD names no build folder")
    return Path(folder).resolve()


RELEASE = installation.slurm_release()
# `scontrol reconfigure` replaces slurmctld by a new process, which knows nothing of what the old one had read.
RECONFIGURE_STARTS_ANEW = RELEASE >= (23, 11)


def gpu_request(count):
    """How scontrol writes a request for GPUs."""
    return f"gres{'/' if RELEASE >= (23, 11) else ':'}gpu:{count}"


def say(text):
    """A line for people, shown by tests/run.py below the name of the test."""
    print(text, flush=True)


class ClusterTest(unittest.TestCase):
    """Tests with clusters of their own, in a folder that nothing outlives. A failure shows the end of each slurmctld's log."""

    @classmethod
    def setUpClass(cls):
        cls.scratch = Path(tempfile.mkdtemp(prefix="sluice-test-"))
        cls.scratch.chmod(0o755)
        cls.addClassCleanup(shutil.rmtree, cls.scratch, ignore_errors=True)
        cls.clusters = []

    @classmethod
    def cluster(cls, description, name=None, **options):
        """A started cluster. It ends with the class unless it is stopped before."""
        options.setdefault("dbd", False)
        cluster = Cluster(cls.scratch / (name or f"c{len(cls.clusters) + 1}"), description, **options)
        cls.addClassCleanup(cluster.stop)
        cls.clusters.append(cluster)
        cluster.start()
        return cluster

    def _callTestMethod(self, method):
        with self._logs_at_failure():
            super()._callTestMethod(method)

    @contextlib.contextmanager
    def subTest(self, *arguments, **parameters):
        with super().subTest(*arguments, **parameters), self._logs_at_failure():
            yield

    @contextlib.contextmanager
    def _logs_at_failure(self):
        try:
            yield
        except unittest.SkipTest:
            raise
        except Exception as error:
            for cluster in self.clusters:
                lines = cluster.log("slurmctld").splitlines()[-_LOG_LINES_OF_A_FAILURE:]
                error.add_note("\n".join([f"slurmctld of {cluster.directory.name}, the end of its log:", *(f"  {line}" for line in lines)]))
            raise


def wait_registered(cluster):
    """After a restart of slurmctld: until each node with GPUs has told which it has."""
    def registered():
        nodes = cluster.node_records().values()
        return all("IDX" in node["GresUsed"] for node in nodes if node["Gres"] != "(null)")
    wait_for(registered, 60, "registration of the nodes")


def replace_file(path, text):
    """By rename, for whoever reads it at any time sees all of it."""
    new = path.with_name(path.name + ".new")
    new.write_bytes(text if isinstance(text, bytes) else text.encode())
    new.rename(path)


def allocate(cluster, *words, user=None, timeout=20):
    """A job without any process, started at once: its id. It holds what it was given until end_job()."""
    result = cluster.run(["salloc", "--no-shell", *words], user=user, timeout=timeout)
    return int(re.search(r"Granted job allocation (\d+)", result.stderr).group(1))


def end_all(cluster):
    """Cancels root's jobs and returns once every GPU is free."""
    cluster.run(["scancel", "--user=root"])
    wait_for(lambda: not any(cluster.node_gres().values()), 20, "all GPUs free")


def hold_gpus(cluster, node, gpus):
    """Jobs of one GPU, so that of an idle node of eight exactly `gpus` are taken."""
    holders = {}
    while len(holders) < 8:
        job = allocate(cluster, "-N1", "-n1", "--gpus=1", "-w", node)
        holders[next(iter(cluster.job_gres()[job][node]))] = job
    cluster.run(["scancel", *(str(job) for gpu, job in holders.items() if gpu not in gpus)])
    wait_for(lambda: cluster.node_gres()[node] == gpus, 20, f"GPUs {gpus} of {node}")


def end_job(cluster, job):
    """Cancels it and returns once it has given back everything."""
    cluster.run(["scancel", str(job)])
    wait_ended(cluster, job)


def wait_ended(cluster, job, timeout=30):
    return wait_for(lambda: (fields := cluster.job(job))["JobState"] in ENDED and fields, timeout, f"end of job {job}")


ENDED = {"BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "TIMEOUT"}


def nodes_and_tick(nodes):
    """A description with the node that settle() needs beside the lines of `nodes`, whose partition `main` is the default."""
    names = " ".join(re.findall(r"Nodes=(\S+)", nodes)).replace(" ", ",")
    return (f"{nodes.rstrip()}\nNodes=t1 Gpus=0 Sockets=1 CoresPerSocket=2\n"
            f"Partition=main Nodes={names} Default=YES MaxTime=INFINITE State=UP\nPartition=tick Nodes=t1 MaxTime=INFINITE State=UP\n")


def settle(cluster, timeout=60):
    """Returns {job: (state, reason)} of the jobs that have not ended, once what could start has started and what ends has ended.

    The node t1 holds one job of the lowest priority, others like it wait. Ending it has slurmctld schedule at once, unless a job
    is completing; when the next one runs, that pass has tried every job before it.
    """
    queue = _queue(cluster)
    for _ in range(2 - sum(name == "tick" and state == "PENDING" for name, state, _ in queue.values())):
        cluster.sbatch(["-p", "tick", "-J", "tick", "-n1", "-c2", "--nice=2147483645", "-o", "/dev/null"], "exec sleep 100000")
    old = {job for job, (name, state, _) in queue.items() if name == "tick" and state != "PENDING"}
    if old:
        cluster.query(["scancel", *map(str, old)])

    def passed():
        queue = _queue(cluster)
        ticking = any(name == "tick" and state == "RUNNING" and job not in old for job, (name, state, _) in queue.items())
        jobs = {job: (state, reason) for job, (name, state, reason) in queue.items() if name != "tick"}
        done = ticking and not any(state in ("COMPLETING", "CONFIGURING") for state, _ in jobs.values())
        return done and (jobs,)

    return wait_for(passed, timeout, "a pass of the scheduler with nothing on its way out")[0]


def _queue(cluster):
    lines = cluster.query(["squeue", "-ha", "-o", "%i|%j|%T|%r"]).stdout.splitlines()
    return {int(job): (name, state, reason) for job, name, state, reason in (line.split("|") for line in lines)}


def sluice_lines(cluster):
    """What Sluice has logged in slurmctld, without time stamps."""
    return [line.partition("] ")[2] for line in cluster.log("slurmctld").splitlines() if "] sluice: " in line or "error: sluice: " in line]


def tres_gpus(tres):
    """GPUs in a TRES text: gres/gpu where it stands, else the sum of its types."""
    counts = dict(re.findall(r"(gres/gpu(?::[^=,]+)?)=(\d+)", tres))
    if "gres/gpu" in counts:
        return int(counts["gres/gpu"])
    return sum(map(int, counts.values()))


def gpu_errors(cluster):
    """Everything that is wrong with the books about GPUs and cores, as texts; empty when all of them agree.

    The books: the jobs' detail lines (node, cores, GPU indexes), the jobs' TRES, the nodes' GresUsed with its count and its
    indexes, the nodes' AllocTRES, and squeue. They are read one after the other, again when a job has started or ended meanwhile.
    """
    while True:
        before = _queue(cluster)
        errors = _gpu_errors_now(cluster)
        if _queue(cluster) == before:
            return errors


def _gpu_errors_now(cluster):
    errors = []
    owners = {}
    cores = {}
    counted = {}
    queue = dict(line.split("|") for line in cluster.query(["squeue", "-ha", "-tR,CG,S", "-O", "JobID:|,tres-alloc:200"])
                 .stdout.replace(" ", "").splitlines())
    for line in cluster.query(["scontrol", "-o", "-d", "show", "job"]).stdout.splitlines():
        if not line.startswith("JobId="):
            continue
        fields = records.parse_line(line)
        job, state = fields["JobId"], fields["JobState"]
        held = records.job_gpus(line)
        if state not in ("RUNNING", "SUSPENDED", "COMPLETING"):
            continue
        total = sum(map(len, held.values()))
        for name, value in (("TRES", fields.get("TRES") or fields.get("AllocTRES", "")), ("squeue", queue.get(job, ""))):
            if cluster.dbd and tres_gpus(value) != total:
                errors.append(f"job {job} holds {total} GPUs, its {name} says {value}")
        for node, indexes in held.items():
            counted[node] = counted.get(node, 0) + len(indexes)
            for index in indexes:
                if (other := owners.setdefault((node, index), job)) != job:
                    errors.append(f"GPU {index} of {node} is held by jobs {other} and {job}")
        for node, cpus in _job_cpus(line).items():
            for cpu in cpus:
                if (other := cores.setdefault((node, cpu), job)) != job:
                    errors.append(f"CPU {cpu} of {node} is held by jobs {other} and {job}")
    for name, fields in cluster.node_records().items():
        used = records.gpu_indexes(fields.get("GresUsed", ""))
        count = sum(map(int, re.findall(r"gpu:[^:,]+:(\d+)\(IDX", fields.get("GresUsed", ""))))
        owned = {index for node, index in owners if node == name}
        if used != owned:
            errors.append(f"{name}: GresUsed={fields.get('GresUsed')}, its jobs hold {sorted(owned)}")
        if count != counted.get(name, 0):
            errors.append(f"{name}: GresUsed={fields.get('GresUsed')}, its jobs hold {counted.get(name, 0)} GPUs")
        if cluster.dbd and tres_gpus(fields.get("AllocTRES", "")) != counted.get(name, 0):
            errors.append(f"{name}: AllocTRES={fields.get('AllocTRES')}, its jobs hold {counted.get(name, 0)} GPUs")
    return errors


def _job_cpus(line):
    """{node: set of CPU numbers} of one record of `scontrol -d show job`."""
    cpus = {}
    for nodes, numbers in re.findall(r" Nodes=(\S+) CPU_IDs=([0-9,-]+) Mem=", line):
        for node in hostlist.expand(nodes):
            cpus.setdefault(node, set()).update(itertools.chain.from_iterable(
                range(int(first), int(last or first) + 1)
                for first, _, last in (part.partition("-") for part in numbers.split(","))))
    return cpus
