#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Which GPUs jobs get on a real cluster, against a brute force that shares no code and no method with libsluice.

The score is that of common/placement/best_sets.hpp: the bottleneck of the best ring, then all rings of direct links together,
then what stays free, then the lower indexes. Here it is computed by trying every order and every packing.
"""

import functools
import itertools
import random
import re
import time
import unittest
from pathlib import Path

from harness import (EXAMPLES, FULL, RELEASE, ClusterTest, allocate, end_all, end_job, gpu_errors, hold_gpus, replace_file, say, sluice_lines,
                     wait_for)

# GB/s in one direction: a link of NVLink 2 or 3, and what a ring gets over the paths of `nvidia-smi topo -m`.
LINK = 25.0
PATHS = {"PIX": 12.0, "PXB": 11.0, "PHB": 10.0, "NODE": 8.0, "SYS": 6.0}


class Machine:
    """The GPUs of one node, from the text of `nvidia-smi topo -m`."""

    def __init__(self, path):
        rows = [line.split() for line in Path(path).read_text(encoding="utf-8").splitlines() if re.match(r"GPU\d", line)]
        self.size = len(rows)
        self.cells = [row[1:1 + self.size] for row in rows]

    def links(self, a, b):
        return int(self.cells[a][b][2:]) if self.cells[a][b].startswith("NV") else 0

    def gbps(self, a, b):
        return LINK * self.links(a, b) or PATHS[self.cells[a][b]]

    @functools.cache
    def bottleneck(self, gpus):
        """The slowest edge of the best ring, over every order of `gpus` (a sorted tuple)."""
        if len(gpus) < 2:
            return 0.0
        first, *rest = gpus
        return max(min(self.gbps(a, b) for a, b in zip((first, *order), (*order, first))) for order in itertools.permutations(rest))

    @functools.cache
    def total(self, gpus):
        """As many rings of links as fit at once, one link in one ring, each ring at the rate of a link."""
        if len(gpus) < 3:
            return self.bottleneck(gpus)
        first, *rest = gpus
        rings = {frozenset(frozenset(edge) for edge in zip((first, *order), (*order, first)))
                 for order in itertools.permutations(rest) if order[0] < order[-1]}
        left = {frozenset(pair): self.links(*pair) for pair in itertools.combinations(gpus, 2)}
        rings = sorted((ring for ring in rings if all(left[edge] for edge in ring)), key=sorted_edges)

        def pack(start, left):
            best = 0
            for index in range(start, len(rings)):
                if all(left[edge] for edge in rings[index]):
                    best = max(best, 1 + pack(index, {edge: count - (edge in rings[index]) for edge, count in left.items()}))
                if best == bound(left):
                    break
            return best

        def bound(left):
            return min(sum(count for edge, count in left.items() if gpu in edge) // 2 for gpu in gpus)

        return max(self.bottleneck(gpus), LINK * pack(0, left))

    @functools.cache
    def pack(self, free, size):
        """The largest sum of total() over sets of `size` that share no GPU."""
        if len(free) < size:
            return 0.0
        first, *rest = free
        best = self.pack(tuple(rest), size)
        for others in itertools.combinations(rest, size - 1):
            left = tuple(gpu for gpu in rest if gpu not in others)
            best = max(best, self.total((first, *others)) + self.pack(left, size))
        return best

    def left_over(self, free):
        """What stays free for the next jobs; most of them ask for a power of two."""
        return sum(self.pack(free, size) * (1 if size in (2, 4, 8) else 0.25) for size in range(2, len(free) + 1))

    @functools.cache
    def best(self, free, size):
        """`free` is a sorted tuple."""
        def score(gpus):
            left = tuple(gpu for gpu in free if gpu not in gpus)
            return self.bottleneck(gpus), self.total(gpus), self.left_over(left), [-gpu for gpu in gpus]
        return set(max(itertools.combinations(free, size), key=score))

    def most(self, free, size):
        """The bandwidth of the best."""
        return self.bottleneck(tuple(sorted(self.best(free, size))))


def sorted_edges(ring):
    return sorted(map(sorted, ring))


class Placement(ClusterTest):
    def assert_best(self, cluster, machine, job, held_before):
        """The job's GPUs on each of its nodes are the best of those that were free there."""
        for node, gpus in cluster.job_gres()[job].items():
            free = tuple(sorted(set(range(machine.size)) - held_before[node]))
            self.assertEqual(gpus, machine.best(free, len(gpus)), f"job {job}, {len(gpus)} of {free} on {node}")

    def run_jobs(self, cluster, machine, count, seed):
        """Starts `count` jobs of random sizes, ends others in between so that they fit; each start is checked."""
        dice = random.Random(seed)
        running = []
        for number in range(count):
            size = dice.choice((1, 1, 2, 2, 2, 3, 4, 4, 5, 6, 7, 8))
            while running and dice.random() < 0.25 or all(machine.size - len(held) < size for held in cluster.node_gres().values()):
                end_job(cluster, running.pop(dice.randrange(len(running))))
            held_before = cluster.node_gres()
            request = dice.choice(([f"--gpus={size}"], [f"--gpus-per-node={size}"], [f"--gres=gpu:{size}"]))
            job = allocate(cluster, "-N1", *request)
            with self.subTest(number=number, seed=seed):
                self.assert_best(cluster, machine, job, held_before)
            running.append(job)
        self.assertEqual(gpu_errors(cluster), [])
        for job in running:
            end_job(cluster, job)
        self.assertEqual(set(map(len, cluster.node_gres().values())), {0})

    def compare_with_stock(self, cluster, machine, jobs):
        """Reads the log of what stock Slurm had chosen for each job from the same free GPUs; says the mean ratio."""
        ratios = []
        better = 0
        lines = [line for line in sluice_lines(cluster) if "stock" in line]
        self.assertEqual(len(lines), jobs)
        for line in lines:
            best, gbps, stock, stock_gbps = re.search(
                r"GPUs (\S+) \((\S+) GB/s\)(?:, stock|; stock Slurm: node \S+: GPUs) (\S+) \((\S+) GB/s\)", line).groups()
            self.assertEqual(float(gbps), machine.bottleneck(indexes(best)), line)
            self.assertEqual(float(stock_gbps), machine.bottleneck(indexes(stock)), line)
            if len(indexes(best)) > 1:
                ratios.append(float(gbps) / float(stock_gbps))
                better += float(gbps) > float(stock_gbps)
        self.assertGreaterEqual(min(ratios), 1.0)
        say(f"{len(ratios)} jobs of more than one GPU: on average {sum(ratios) / len(ratios):.2f} times the bandwidth of stock Slurm's "
            f"choice, {better} jobs got more, none less")


def indexes(text):
    """"0,3-5" -> (0, 3, 4, 5)"""
    spans = [part.partition("-") for part in text.split(",")]
    return tuple(gpu for first, _, last in spans for gpu in range(int(first), int(last or first) + 1))


class BruteForce(unittest.TestCase):
    """What the brute force says where people know the answer."""

    def test_dgx1(self):
        machine = Machine(EXAMPLES / "dgx1-v100.topo-m.txt")
        self.assertEqual(machine.best(tuple(range(8)), 2), {0, 3}, "two links, and the lowest of those")
        self.assertEqual(machine.best((0, 1, 2), 2), {1, 2})
        self.assertEqual(machine.bottleneck((0, 5)), 6.0)
        self.assertEqual(machine.total(tuple(range(8))), 75.0, "six links a GPU, two a ring")
        self.assertEqual(machine.total((0, 1, 2, 3)), 50.0)

    def test_pairs(self):
        machine = Machine(EXAMPLES / "nvlink-pairs.topo-m.txt")
        self.assertEqual(machine.best(tuple(range(8)), 2), {0, 2})
        self.assertEqual(machine.best(tuple(range(1, 8)), 2), {1, 3}, "with GPU 0 taken")
        self.assertEqual(machine.bottleneck((0, 1, 2, 3)), 8.0)

    def test_cliques(self):
        machine = Machine(EXAMPLES / "two-cliques.topo-m.txt")
        self.assertEqual(machine.best(tuple(range(8)), 4), {0, 2, 4, 6})
        self.assertEqual(machine.best(tuple(range(1, 8)), 3), {2, 4, 6}, "the other clique stays whole")


class ManyJobs(Placement):
    def test_a_hundred_jobs_on_one_dgx1(self):
        cluster, machine = self.one_node("dgx1-v100.topo-m.txt")
        self.run_jobs(cluster, machine, 100, seed=1)
        self.compare_with_stock(cluster, machine, 100)

    def test_four_dgx1(self):
        cluster = self.cluster(EXAMPLES / "dgx1v-4x8.conf")
        jobs = 200 if FULL else 50
        machine = Machine(EXAMPLES / "dgx1-v100.topo-m.txt")
        self.run_jobs(cluster, machine, jobs, seed=2)
        self.compare_with_stock(cluster, machine, jobs)

    def test_pairs_that_are_no_neighbours(self):
        cluster, machine = self.one_node("nvlink-pairs.topo-m.txt")
        self.run_jobs(cluster, machine, 40, seed=3)
        self.compare_with_stock(cluster, machine, 40)

    def test_two_interleaved_cliques(self):
        cluster, machine = self.one_node("two-cliques.topo-m.txt")
        self.run_jobs(cluster, machine, 40, seed=4)
        self.compare_with_stock(cluster, machine, 40)

    def test_links_of_gres_conf_without_a_topology_file(self):
        cluster, machine = self.one_node("dgx1-v100.topo-m.txt")
        sluice_conf = cluster.layout.etc / "sluice.conf"
        lines = sluice_conf.read_text(encoding="utf-8").splitlines(keepends=True)
        replace_file(sluice_conf, "".join(line for line in lines if not line.startswith("Topology=")))
        cluster.restart("slurmctld")

        def known():
            end_job(cluster, allocate(cluster, "-N1", "--gpus=1"))
            return "no topology known" not in sluice_lines(cluster)[-1]

        wait_for(known, 30, "the links of gres.conf, which the node brings when it registers")
        self.run_jobs(cluster, machine, 20, seed=5)

    def one_node(self, topology):
        return self.cluster(one_node(topology)), Machine(EXAMPLES / topology)


def one_node(topology, options=""):
    return f"Nodes=n1 Gpus=8 Sockets=2 CoresPerSocket=20 Topology={EXAMPLES}/{topology} {options}\n"


class StockAndOptimum(Placement):
    """What stock Slurm gives, what Sluice gives, and the most there is: from the same free GPUs, on idle nodes and on half-filled ones."""

    MATRICES = {"NVLink pairs": "nvlink-pairs.topo-m.txt", "two cliques": "two-cliques.topo-m.txt", "DGX-1V": "dgx1-v100.topo-m.txt"}
    DRAWS = 40 if FULL else 6

    def test_table(self):
        say(f"Slurm {RELEASE[0]}.{RELEASE[1]:02d}: the slowest edge of the best ring, GB/s")
        say("| links | GPUs | idle: stock | Sluice | optimum | half-filled: stock of optimum | Sluice |")
        say("|---|---|---|---|---|---|---|")
        for title, topology in self.MATRICES.items():
            machine = Machine(EXAMPLES / topology)
            clusters = [self.cluster(one_node(topology), stock=stock) for stock in (True, False)]
            wait_for(lambda cluster=clusters[1]: self.knows_topology(cluster), 30, "the topology")
            dice = random.Random(6)
            draws = [tuple(sorted(dice.sample(range(8), dice.choice((3, 4, 5))))) for _ in range(self.DRAWS)]
            shares = {size: [] for size in range(2, 9)}
            for free in draws:
                for cluster in clusters:
                    hold_gpus(cluster, "n1", set(range(8)) - set(free))
                for size in range(2, len(free) + 1):
                    stock, sluice = (self.given(cluster, machine, size) for cluster in clusters)
                    most = machine.most(free, size)
                    with self.subTest(links=title, free=free, size=size):
                        self.assertEqual(sluice, most)
                        self.assertLessEqual(stock, most)
                    shares[size].append((stock / most, sluice / most))
                for cluster in clusters:
                    end_all(cluster)
            for size in range(2, 9):
                stock, sluice = (self.given(cluster, machine, size) for cluster in clusters)
                most = machine.most(tuple(range(8)), size)
                with self.subTest(links=title, size=size):
                    self.assertEqual(sluice, most)
                mean = [f"{100 * sum(share) / len(share):.0f}%" for share in zip(*shares[size])] or ["-", "-"]
                say(f"| {title} | {size} | {stock:g} | {sluice:g} | {most:g} | {mean[0]} | {mean[1]} |")

    def knows_topology(self, cluster):
        end_job(cluster, allocate(cluster, "-N1", "--gpus=1"))
        return "GPUs" in sluice_lines(cluster)[-1]

    def given(self, cluster, machine, size):
        """The bandwidth of the GPUs that a job of `size` is given now."""
        before = cluster.node_gres()["n1"]
        job = allocate(cluster, "-N1", f"--gpus-per-node={size}")
        gpus = cluster.job_gres()[job]["n1"]
        end_job(cluster, job)
        wait_for(lambda: cluster.node_gres()["n1"] == before, 20, "the GPUs back")
        return machine.bottleneck(tuple(sorted(gpus)))


class Requests(Placement):
    """Every form of a request, on machines where the right answer is known."""

    def test_forms(self):
        cluster = self.cluster(EXAMPLES / "dgx1v-4x8.conf")
        machine = Machine(EXAMPLES / "dgx1-v100.topo-m.txt")
        forms = [("--gpus=2",), ("--gpus-per-node=3",), ("--gres=gpu:4",), ("-n2", "--gpus-per-task=1"), ("-n2", "-N2", "--gpus-per-task=2"),
                 ("-N2", "--gpus-per-node=2"), ("-N3", "--gres=gpu:2"), ("-N2", "--gpus=6"), ("--gpus=12",), ("-N4", "--gpus=4"),
                 ("--gpus=2", "--cpus-per-gpu=3"), ("-N1", "--gpus=2", "-w", "n3")]
        for words in forms:
            with self.subTest(request=" ".join(words)):
                # Something is in the way on every node, another thing on each.
                for node in range(1, 5):
                    allocate(cluster, "-N1", "-w", f"n{node}", f"--gpus={node}")
                held = cluster.node_gres()
                job = allocate(cluster, *words)
                self.assert_best(cluster, machine, job, held)
                self.assertEqual(gpu_errors(cluster), [])
                end_all(cluster)

    def test_typed(self):
        cluster = self.cluster(one_node("dgx1-v100.topo-m.txt", "GpuType=v100"))
        machine = Machine(EXAMPLES / "dgx1-v100.topo-m.txt")
        for words in (("--gpus=v100:2",), ("--gres=gpu:v100:1",), ("--gpus=2",), ("--gpus-per-node=v100:3",)):
            with self.subTest(request=words[0]):
                held = cluster.node_gres()
                job = allocate(cluster, *words)
                self.assert_best(cluster, machine, job, held)
        self.assertEqual(gpu_errors(cluster), [])

    def test_two_types_on_one_node_are_never_mixed(self):
        cluster = self.cluster("Nodes=n1 Gpus=8 Sockets=2 CoresPerSocket=8\n")
        # Every link crosses the types, so that a mixed set would look best.
        links = [[-1 if a == b else int(abs(a - b) == 4) for b in range(8)] for a in range(8)]
        self.change_gpus(cluster, "gpu:p100:4,gpu:rtx:4", [
            f"NodeName=n1 Name=gpu Type={'p100' if gpu < 4 else 'rtx'} File={cluster.layout.device(gpu)} "
            f"Cores={'0-7' if gpu < 4 else '8-15'} Links={','.join(map(str, links[gpu]))}" for gpu in range(8)])
        for words, allowed in ((("--gpus=rtx:2",), {4, 5, 6, 7}), (("--gres=gpu:p100:3",), {0, 1, 2, 3})):
            with self.subTest(request=words[0]):
                job = allocate(cluster, "-N1", *words)
                self.assertLessEqual(cluster.job_gres()[job]["n1"], allowed)
        untyped = allocate(cluster, "-N1", "--gpus=1")
        self.assertEqual(len(cluster.job_gres()[untyped]["n1"]), 1)
        self.assertEqual(gpu_errors(cluster), [])

    def test_node_comes_back_with_seven_gpus(self):
        cluster = self.cluster(one_node("dgx1-v100.topo-m.txt"))
        machine = Machine(EXAMPLES / "dgx1-v100.topo-m.txt")
        gres_conf = (cluster.layout.etc / "gres.conf").read_text(encoding="utf-8").splitlines()
        job = allocate(cluster, "-N1", "--gpus=2")
        # One is dead: gres.conf knows seven, each still with eight links, while slurm.conf and the topology file say eight.
        replace_file(cluster.layout.etc / "gres.conf", "\n".join(gres_conf[:7]) + "\n")
        cluster.run(["scontrol", "reconfigure"])
        wait_for(lambda: "DRAIN" in cluster.node_records()["n1"]["State"], 30, "drained for its missing GPU")
        self.assertTrue(cluster.pid("slurmctld"))
        end_job(cluster, job)

        # The administrator takes note.
        seven = [line.partition(" Links=")[0] + " Links=" + ",".join(line.partition(" Links=")[2].split(",")[:7]) for line in gres_conf[:7]]
        self.change_gpus(cluster, "gpu:7", seven)
        held = cluster.node_gres()
        machine.size = 7
        for size in (2, 3, 2):
            job = allocate(cluster, "-N1", f"--gpus={size}")
            self.assert_best(cluster, machine, job, held)
            held = cluster.node_gres()
        self.assertEqual(gpu_errors(cluster), [])

    def change_gpus(self, cluster, gres, lines):
        """Other GPUs for node n1: its Gres= in slurm.conf and its lines of gres.conf."""
        slurm_conf = cluster.layout.slurm_conf
        replace_file(slurm_conf, re.sub(r"Gres=gpu:\S+", f"Gres={gres}", slurm_conf.read_text(encoding="utf-8")))
        replace_file(cluster.layout.etc / "gres.conf", "\n".join(lines) + "\n")
        cluster.restart("slurmctld")
        cluster.run(["scontrol", "reconfigure"])
        cluster.run(["scontrol", "update", "node=n1", "state=resume"], check=False)
        wait_for(lambda: (node := cluster.node_records()["n1"])["State"] == "IDLE" and gres in re.sub(r"\(.*?\)", "", node["Gres"]), 30,
                 "n1 with its new GPUs")


class Fallbacks(Placement):
    """What stock Slurm would start, starts, if need be on stock Slurm's own choice."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.slurm = cls.cluster(one_node("dgx1-v100.topo-m.txt"))
        cls.machine = Machine(EXAMPLES / "dgx1-v100.topo-m.txt")

    def setUp(self):
        self.slurm.run(["scancel", "--user=root"])
        wait_for(lambda: all(fields["AllocTRES"] == "" for fields in self.slurm.node_records().values()), 20, "nothing runs")

    def test_nobody_is_preempted_for_a_better_set(self):
        cluster = self.cluster(one_node("dgx1-v100.topo-m.txt") +
                               "Partition=low Nodes=ALL Default=YES PriorityTier=1 PreemptMode=REQUEUE\n"
                               "Partition=high Nodes=ALL PriorityTier=10 PreemptMode=OFF\n"
                               "Slurm=PreemptType=preempt/partition_prio\nSlurm=PreemptMode=REQUEUE\n")
        low = cluster.sbatch(["-p", "low", "-n20", "-m", "block:block", "-o", "/dev/null"], "sleep 1000")
        cluster.wait_job(low, "RUNNING")
        # All cores of the first socket are taken, and the best pair lies there.
        high = allocate(cluster, "-p", "high", "-N1", "-n1", "--gpus=2", "--gres-flags=enforce-binding")
        self.assertEqual(len(cluster.job_gres()[high]["n1"]), 2)
        time.sleep(2)
        fields = cluster.job(low)
        self.assertEqual((fields["JobState"], fields["Restarts"]), ("RUNNING", "0"))

    def test_enforced_binding(self):
        for size in range(1, 9):
            with self.subTest(size=size):
                job = allocate(self.slurm, "-N1", "-n2", f"--gpus={size}", "--gres-flags=enforce-binding")
                self.assertEqual(len(self.slurm.job_gres()[job]["n1"]), size)
                end_job(self.slurm, job)

    def test_no_core_left_near_the_best_set(self):
        # All cores of one socket are taken. The best pair of what is free may lie there, and is out of reach.
        first = allocate(self.slurm, "-N1", "-n20", "--gpus=1", "--gres-flags=enforce-binding")
        near = {0, 1, 2, 3} if self.slurm.job_gres()[first]["n1"] <= {0, 1, 2, 3} else {4, 5, 6, 7}
        for _ in range(2):
            job = allocate(self.slurm, "-N1", "-n1", "--gpus=2", "--gres-flags=enforce-binding")
            self.assertFalse(self.slurm.job_gres()[job]["n1"] & near)
        loose = allocate(self.slurm, "-N1", "-n1", "--gpus=2")
        self.assertEqual(len(self.slurm.job_gres()[loose]["n1"]), 2)
        self.assertEqual(gpu_errors(self.slurm), [])

    def test_gpus_of_one_socket(self):
        job = allocate(self.slurm, "-N1", "--gpus-per-socket=3", "--sockets-per-node=1")
        self.assertEqual(len(self.slurm.job_gres()[job]["n1"]), 3)

    def test_one_core_left(self):
        allocate(self.slurm, "-N1", "-n39")
        job = allocate(self.slurm, "-N1", "-n1", "--gpus=8")
        self.assertEqual(len(self.slurm.job_gres()[job]["n1"]), 8)

    def test_exclusive(self):
        job = allocate(self.slurm, "-N1", "--exclusive", "--gpus=3")
        self.assertGreaterEqual(len(self.slurm.job_gres()[job]["n1"]), 3)
        self.assertEqual(gpu_errors(self.slurm), [])

    def test_no_gpus_asked_for(self):
        job = allocate(self.slurm, "-N1", "-n4")
        self.assertEqual(self.slurm.job(job)["NodeList"], "n1")
        self.assertEqual(self.slurm.node_gres(), {"n1": set()})

    def test_reservation_of_cores(self):
        # scontrol looks up in its own list which SelectType has cores, so it is told the name underneath.
        layout = self.slurm.layout
        stock_conf = layout.etc / "stock.conf"
        stock_conf.write_text(layout.slurm_conf.read_text(encoding="utf-8").replace("cons_tres_sluice", "cons_tres"), encoding="utf-8")
        self.slurm.run(["scontrol", "create", "reservation", "ReservationName=r", "Users=root", "StartTime=now", "Duration=60", "Nodes=n1",
                        "CoreCnt=4"], env={"SLURM_CONF": str(stock_conf)})
        self.addCleanup(self.slurm.run, ["scontrol", "delete", "ReservationName=r"])
        inside = allocate(self.slurm, "-N1", "--reservation=r", "--gpus=2")
        outside = allocate(self.slurm, "-N1", "-n36", "--gpus=2")
        for job in (inside, outside):
            self.assertEqual(len(self.slurm.job_gres()[job]["n1"]), 2)
        self.assertEqual(gpu_errors(self.slurm), [])
        for job in (inside, outside):
            end_job(self.slurm, job)

    def test_interactive_steps_see_the_set(self):
        seen = self.slurm.run(["srun", "-N1", "--gpus=2", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES"]).stdout.strip()
        self.assertEqual(seen, "0,3")


if __name__ == "__main__":
    unittest.main()
