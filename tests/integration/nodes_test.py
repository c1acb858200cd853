#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Which nodes a job gets, where several would do."""

import json
import re
import time
import unittest

from harness import (EXAMPLES, ROOT, ClusterTest, allocate, build_folder, end_all, end_job, gpu_errors, hold_gpus, replace_file, sluice_lines, wait_for,
                     wait_registered)

PAIRS = "nvlink-pairs.topo-m.txt"
DGX1 = "dgx1-v100.topo-m.txt"


def nodes(count, topology):
    return f"Nodes=n[1-{count}] Gpus=8 Sockets=2 CoresPerSocket=20 Topology={EXAMPLES / topology}\n"


class Nodes(ClusterTest):
    def given(self, cluster, *words):
        """{node: GPUs} of a new job, which is ended."""
        job = allocate(cluster, *words)
        gres = {node: gpus for node, gpus in cluster.job_gres()[job].items() if gpus}
        self.assertEqual(gpu_errors(cluster), [])
        end_job(cluster, job)
        return gres


class OneNode(Nodes):
    def test_a_pair_on_another_node(self):
        cluster = self.cluster(nodes(2, PAIRS))
        # Every pair of n1 is broken.
        hold_gpus(cluster, "n1", {0, 1, 4, 5})
        self.assertEqual(self.given(cluster, "-N1", "--gpus=2"), {"n2": {0, 2}})
        self.assertRegex(sluice_lines(cluster)[-1], r"node n2: GPUs 0,2 \(100\.0 GB/s\); stock Slurm: node n1: GPUs .* GB/s\)$")
        # One GPU breaks no pair there.
        self.assertEqual(list(self.given(cluster, "-N1", "--gpus=1")), ["n1"])
        # Who says which node, gets that.
        self.assertEqual(list(self.given(cluster, "-N1", "--gpus=2", "-w", "n1")), ["n1"])
        self.assertEqual(list(self.given(cluster, "-N1", "--gpus=2", "-x", "n2")), ["n1"])

    def test_small_jobs_leave_whole_nodes(self):
        """What users report of other schedulers: jobs of one GPU on every node, and no room for one of eight."""
        cluster = self.cluster(nodes(3, DGX1))
        for size in (1, 2, 1, 1, 2, 1, 2, 1, 1):
            allocate(cluster, "-N1", f"--gpus={size}")
        allocate(cluster, "-N1", "--gpus=8")
        allocate(cluster, "-N1", "--gpus=4")
        self.assertEqual(gpu_errors(cluster), [])

    def test_gaps_are_filled_first(self):
        cluster = self.cluster(nodes(3, DGX1))
        hold_gpus(cluster, "n2", {0, 1, 2, 3, 4, 5, 6})
        hold_gpus(cluster, "n3", {0, 1, 2, 3})
        self.assertEqual(self.given(cluster, "-N1", "--gpus=1"), {"n2": {7}})
        self.assertEqual(self.given(cluster, "-N1", "--gpus=4"), {"n3": {4, 5, 6, 7}})
        self.assertEqual(list(self.given(cluster, "-N1", "--gpus=8")), ["n1"])

    def test_a_node_without_cores_is_passed_over(self):
        cluster = self.cluster(nodes(3, PAIRS))
        hold_gpus(cluster, "n1", {0, 1, 4, 5})
        allocate(cluster, "-w", "n2", "-N1", "-n38")
        self.assertEqual(self.given(cluster, "-N1", "--gpus=2", "-n4"), {"n3": {0, 2}})

    def test_what_only_stock_can_place_is_placed(self):
        """Cores left on one node only, and there no pair."""
        cluster = self.cluster(nodes(4, PAIRS))
        hold_gpus(cluster, "n4", {0, 1, 4, 5})
        for node in ("n1", "n2", "n3"):
            allocate(cluster, "-w", node, "-N1", "-n39")
        self.assertEqual(list(self.given(cluster, "-N1", "--gpus=2", "-n8")), ["n4"])

    def test_advice_alone(self):
        cluster = self.cluster(nodes(2, PAIRS), sluice={"AdviseOnly": "yes"})
        hold_gpus(cluster, "n1", {0, 1, 4, 5})
        self.assertEqual(list(self.given(cluster, "-N1", "--gpus=2")), ["n1"])
        self.assertRegex(sluice_lines(cluster)[-1], r"would choose node n2: GPUs 0,2 ")
        # Only what Slurm could carry out is advised.
        allocate(cluster, "-w", "n2", "-N1", "-n38")
        self.assertEqual(list(self.given(cluster, "-N1", "--gpus=2", "-n4")), ["n1"])
        self.assertNotIn("node n2", sluice_lines(cluster)[-1])


class SeveralNodes(Nodes):
    def test_equal_shares(self):
        cluster = self.cluster(nodes(4, PAIRS))
        hold_gpus(cluster, "n1", {0, 1, 4, 5})
        hold_gpus(cluster, "n3", {4, 5})
        given = self.given(cluster, "-N2", "--gpus-per-node=2")
        self.assertNotIn("n1", given)
        self.assertTrue(all(gpus in ({0, 2}, {1, 3}, {4, 6}, {5, 7}) for gpus in given.values()), given)

    def test_gpus_of_the_whole_job(self):
        cluster = self.cluster(nodes(4, DGX1))
        for node, gpus in (("n1", {0, 1, 2, 3}), ("n2", {0, 1, 2, 3, 4, 5})):
            hold_gpus(cluster, node, gpus)
        # Stock Slurm begins with the gaps of n1 and n2.
        self.assertEqual(sorted(map(len, self.given(cluster, "--gpus=12").values())), [4, 8])
        self.assertEqual(list(self.given(cluster, "--gpus=8")), ["n3"])
        self.assertEqual(sorted(map(len, self.given(cluster, "-N2", "--gpus=8").values())), [4, 4])

    def with_switches(self, cluster, text):
        replace_file(cluster.layout.etc / "topology.conf", text)
        conf = cluster.layout.etc / "slurm.conf"
        replace_file(conf, conf.read_text(encoding="utf-8") + "TopologyPlugin=topology/tree\n")
        cluster.restart("slurmctld")
        wait_registered(cluster)

    def test_a_node_without_a_switch(self):
        cluster = self.cluster(nodes(5, DGX1))
        self.with_switches(cluster, "SwitchName=s1 Nodes=n2,n4\nSwitchName=s2 Nodes=n3,n5\nSwitchName=top Switches=s[1-2]\n")
        hold_gpus(cluster, "n2", {0})
        self.assertEqual(set(self.given(cluster, "-N2", "--gpus-per-node=8")), {"n3", "n5"})
        hold_gpus(cluster, "n5", {0})
        # Stock Slurm gives no job a node that it cannot reach.
        self.assertEqual(set(self.given(cluster, "-N2", "--gpus-per-node=8")), {"n3", "n4"})

    def test_one_switch(self):
        cluster = self.cluster(nodes(4, DGX1))
        self.with_switches(cluster, "SwitchName=s1 Nodes=n1,n3\nSwitchName=s2 Nodes=n2,n4\nSwitchName=top Switches=s[1-2]\n")
        hold_gpus(cluster, "n1", {0})
        self.assertEqual(set(self.given(cluster, "-N2", "--gpus-per-node=8")), {"n2", "n4"})
        hold_gpus(cluster, "n4", {0})
        self.assertEqual(set(self.given(cluster, "-N2", "--gpus-per-node=8")), {"n2", "n3"})
        self.assertEqual(set(self.given(cluster, "-N2", "--gpus-per-node=4")), {"n1", "n3"})


class Changes(Nodes):
    """Nodes and topology files that are not what they were."""

    def pairs(self, *pairs, nics=""):
        """Eight GPUs, these of them joined."""
        lines = [f"SluiceTopology=1 Gpus=8 Nics={nics.count('Nic=')}", *(f"Gpu={gpu}" for gpu in range(8))]
        lines += [f"Pair={a}-{b} " + ("Links=4 Gbps=100" if (a, b) in pairs else "Path=SYS") for a in range(8) for b in range(a + 1, 8)]
        return "\n".join(lines) + "\n" + nics

    def change(self, cluster, text):
        """Another text for the topology file. Returns what is logged of errors then."""
        replace_file(next(cluster.layout.topology.iterdir()), text)
        before = len(cluster.log("slurmctld"))
        cluster.run(["scontrol", "reconfigure"])
        time.sleep(2)
        cluster.node_records()  # slurmctld has its plugin look at the nodes when somebody asks for them
        time.sleep(1)
        return self.errors_since(cluster, before)

    def errors_since(self, cluster, before):
        return [line.partition("sluice: ")[2] for line in cluster.log("slurmctld")[before:].splitlines() if "error: sluice: " in line]

    def test_class_file_changes(self):
        cluster = self.cluster(nodes(2, PAIRS))
        topology = next(cluster.layout.topology.iterdir())
        self.assertEqual(self.given(cluster, "-N1", "--gpus=2"), {"n1": {0, 2}})
        self.assertEqual(self.change(cluster, self.pairs((3, 6))), [])
        self.assertEqual(self.given(cluster, "-N1", "--gpus=2"), {"n1": {3, 6}})
        # A job over both nodes gets the GPU that has the NIC.
        nic = "Nic=a Paths=SYS,SYS,SYS,SYS,SYS,PIX,SYS,SYS\n"
        self.assertEqual(self.change(cluster, self.pairs((3, 6), nics=nic)), [])
        self.assertEqual(self.given(cluster, "-N2", "--gpus-per-node=1"), {"n1": {5}, "n2": {5}})
        self.assertEqual(self.given(cluster, "-N1", "--gpus=2"), {"n1": {3, 6}})
        # XML cut in half: gres.conf has the links of the first file.
        xml = (ROOT / "tests/data/topology/power8-4p100.hwloc2.xml").read_text(encoding="utf-8")
        told = self.change(cluster, xml[:len(xml) // 2])
        self.assertEqual(len(told), 1, told)
        self.assertRegex(told[0], rf"^{topology}:\d+: .*; its nodes go by gres\.conf$")
        self.assertEqual(self.given(cluster, "-N1", "--gpus=2"), {"n1": {0, 2}})
        # A machine of four GPUs.
        told = self.change(cluster, xml)
        self.assertEqual(len(told), 1, told)
        self.assertEqual(told[0], "node n1 and 1 more: 8 GPUs, where the topology file describes 4; what gres.conf says counts there")
        self.assertEqual(self.given(cluster, "-N1", "--gpus=2"), {"n1": {0, 2}})

    def test_a_node_loses_a_gpu(self):
        group = nodes(1, PAIRS)
        cluster = self.cluster(group.replace("n[1-1]", "n1") + group.replace("n[1-1]", "n2") + "Nodes=cpu1 Sockets=2 CoresPerSocket=20\n")
        held = allocate(cluster, "-N1", "--gpus=2", "-w", "n1")
        before = len(cluster.log("slurmctld"))
        # GPU 7 of n1, whose partner is 5, is dead and out of gres.conf; slurm.conf and the topology file still have it.
        gres_conf = cluster.layout.etc / "gres.conf"
        lines = gres_conf.read_text(encoding="utf-8").splitlines()
        kept = [line for line in lines if not (line.startswith("NodeName=n1 ") and str(cluster.layout.device(7)) in line)]
        self.assertEqual(len(kept), len(lines) - 1)
        replace_file(gres_conf, "\n".join(kept) + "\n")
        cluster.run(["scontrol", "reconfigure"])
        wait_for(lambda: "DRAIN" in cluster.node_records()["n1"]["State"], 30, "drained for its missing GPU")
        end_job(cluster, held)
        self.assertEqual(self.given(cluster, "-N1", "--gpus=2"), {"n2": {0, 2}})
        # The administrator takes note. Slurm wants as many links a line as there are GPUs.
        replace_file(gres_conf, "\n".join(re.sub(r"^(NodeName=n1 .*Links=.*),[-0-9]+$", r"\1", line) for line in kept) + "\n")
        slurm_conf = cluster.layout.slurm_conf
        replace_file(slurm_conf, re.sub(r"(?m)^(NodeName=n1 .*Gres=gpu:)8", r"\g<1>7", slurm_conf.read_text(encoding="utf-8")))
        cluster.restart("slurmctld")
        cluster.run(["scontrol", "reconfigure"])
        cluster.run(["scontrol", "update", "node=n1", "state=resume"], check=False)
        wait_for(lambda: cluster.node_records()["n1"]["State"] == "IDLE", 30, "n1 with seven GPUs")
        hold_gpus(cluster, "n2", {0, 1, 4, 5})
        # The pair of the broken socket, for a job of four still finds the other whole; and the GPU that lost its partner.
        self.assertEqual(self.given(cluster, "-N1", "--gpus=2"), {"n1": {4, 6}})
        self.assertEqual(self.given(cluster, "-N1", "--gpus=1"), {"n1": {5}})
        self.assertEqual(self.errors_since(cluster, before), ["node n1: 7 GPUs, where the topology file describes 8; what gres.conf says counts there"])
        self.assertEqual(gpu_errors(cluster), [])
        # A job without GPUs runs where there are none.
        end_job(cluster, allocate(cluster, "-N1", "-w", "cpu1"))


class StockChoosesTheNodes(Nodes):
    """Who says by which rule nodes are chosen gets them by that rule, and the best GPUs there."""

    def test_rules(self):
        cluster = self.cluster(nodes(2, PAIRS))
        cluster.run(["scontrol", "update", "nodename=n[1-2]", "features=rack1"])
        hold_gpus(cluster, "n1", {0, 1, 4, 5})
        for words in (["--contiguous"], ["--switches=1"], ["-C", "[rack1*1]"]):
            with self.subTest(words=words):
                self.assertEqual(list(self.given(cluster, "-N1", "--gpus=2", *words)), ["n1"])
        self.assertEqual(self.given(cluster, "-N1", "--gpus=2"), {"n2": {0, 2}})
        wanted = {"contiguous nodes": 1, "a limit on switches": 1, "nodes by numbers of features": 1}
        counts = wait_for(lambda: (known := self.counts(cluster))["nodes_given"] == wanted and known["other_nodes"] == 1 and known, 20,
                          lambda: f"the counts; {self.counts(cluster)}")
        self.assertEqual(sum(counts[key] for key in ("as_stock", "other_gpus", "other_nodes")), 8 + 3 + 1)
        shown = self.sluice_status(cluster)
        self.assertRegex(shown, r"(?m)^  placed by Sluice +1 +on other nodes than stock Slurm would have$")
        self.assertRegex(shown, r"(?m)^  on stock Slurm's nodes +1 +a limit on switches$")

    def counts(self, cluster):
        return json.loads(self.sluice_status(cluster, "--json"))

    def sluice_status(self, cluster, *words):
        return cluster.run([build_folder() / "contrib/sluice/sluice", "status", "--controller", *words]).stdout


class AsUnderStockSlurm(Nodes):
    """What other nodes would cost the site or another job is not for Sluice to spend."""

    def two_nodes(self, **options):
        """Two nodes, on the first of which every pair is broken."""
        cluster = self.cluster(nodes(2, PAIRS), **options)
        hold_gpus(cluster, "n1", {0, 1, 4, 5})
        return cluster

    def test_heterogeneous_jobs_start(self):
        """The component that needs a whole node gets it."""
        cluster = self.two_nodes()
        job = cluster.sbatch(["-N1", "--gpus=2", "-o", "/dev/null", ":", "-N1", "--gpus=8"], "sleep 1000")
        cluster.wait_job(job, "RUNNING")
        cluster.wait_job(job + 1, "RUNNING")
        self.assertEqual(cluster.job_gres()[job], {"n1": {2, 3}})

    def test_idle_cores_before_shared_ones(self):
        sharing = "Partition=main Nodes=n[1-2] Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:4\n"
        cluster = self.cluster(nodes(2, PAIRS) + sharing, settings={"PreemptMode": "GANG"})
        hold_gpus(cluster, "n1", {0, 1, 4, 5})
        busy = allocate(cluster, "-N1", "-n40", "-w", "n2")
        job = allocate(cluster, "-N1", "-n2", "--gpus=2")
        self.assertEqual(list(cluster.job_gres()[job]), ["n1"])
        self.assertEqual(cluster.job(busy)["JobState"], "RUNNING")

    def test_weights_are_the_sites(self):
        cluster = self.two_nodes()
        cluster.run(["scontrol", "update", "nodename=n2", "weight=100"])
        self.assertEqual(list(self.given(cluster, "-N1", "--gpus=2")), ["n1"])
        cluster.run(["scontrol", "update", "nodename=n1", "weight=100"])
        self.assertEqual(list(self.given(cluster, "-N1", "--gpus=2")), ["n2"])

    def test_nodes_that_sleep_stay_asleep(self):
        cluster = self.two_nodes(settings={"SuspendProgram": "/bin/true", "ResumeProgram": "/bin/true", "SuspendTime": "36000",
                                          "SuspendTimeout": "1", "ResumeTimeout": "60"})
        cluster.run(["scontrol", "update", "nodename=n2", "state=power_down_force"])
        wait_for(lambda: "POWERED_DOWN" in cluster.node_records()["n2"]["State"], 60, "n2 asleep")
        self.assertEqual(list(self.given(cluster, "-N1", "--gpus=2")), ["n1"])

    def test_limits_on_nodes(self):
        """slurmctld compares with limits what was chosen: a user who may have one node has n1."""
        cluster = self.cluster(nodes(2, PAIRS), dbd=True, settings={"AccountingStorageEnforce": "associations,limits,qos"})
        name = re.search(r"ClusterName=(\S+)", (cluster.layout.etc / "slurm.conf").read_text(encoding="utf-8")).group(1)
        for words in (["add", "qos", "one", "MaxTRESPerUser=node=1"], ["add", "account", "a", f"cluster={name}"],
                      ["add", "user", "root", "account=a", "qos=normal,one"]):
            cluster.run(["sacctmgr", "-i", *words], check=False)
        hold_gpus(cluster, "n1", {0, 1, 4, 5})
        allocate(cluster, "-A", "a", "-q", "one", "-N1", "--gpus=1", "-w", "n1")
        job = cluster.sbatch(["-A", "a", "-q", "one", "-N1", "--gpus=2", "-o", "/dev/null"], "sleep 1000")
        cluster.wait_job(job, "RUNNING", timeout=120)
        self.assertEqual(list(cluster.job_gres()[job]), ["n1"])


class Learned(Nodes):
    """What earlier runs of a model have shown decides where its next one goes."""

    RECORD = 'sluice1:{{"r":0,"k":{step},"l":2.3,"n":87,"g":2,"v":{speed}}}'
    # What a step of each takes on two GPUs joined by links, under one switch, and in two sockets.
    SPEEDS = {"sensitive": {(0, 2): 10, (0, 1): 4, (0, 4): 3}, "deaf": {(0, 2): 10, (0, 1): 9.9, (0, 4): 9.8}}

    def test_sensitive_jobs_get_the_links(self):
        cluster = self.cluster(nodes(1, PAIRS), sluice={"Interval": 1, "MinSampleInterval": 1})
        for model, speeds in self.SPEEDS.items():
            for pair, speed in speeds.items():
                self.run_on(cluster, model, pair, speed)
        # A pair, and two GPUs whose partners are taken.
        hold_gpus(cluster, "n1", {1, 3, 6, 7})
        # The file of samples is looked at every few seconds.
        wait_for(lambda: self.where(cluster, "deaf") == {4, 5}, 30, "the model that was learned")
        self.assertEqual(self.where(cluster, "sensitive"), {0, 2})
        self.assertEqual(self.where(cluster, "never-seen"), {0, 2}, "the fastest, while nothing is known")
        # How the runs went is kept, too.
        runs = cluster.layout.state / "slurmctld" / "sluice" / "runs"
        wait_for(lambda: runs.exists() and {line.split()[3] for line in runs.read_text(encoding="utf-8").splitlines()[1:]} == set(self.SPEEDS), 30,
                 "runs of both models")
        kept = runs.read_text(encoding="utf-8")
        self.assertRegex(kept, r'(?m)^\d+ 0 \S+ deaf - 0 \d+ 0 sluice1:\{"r":0,"k":\d+,')
        # Over a restart of slurmctld, too.
        cluster.restart("slurmctld")
        wait_registered(cluster)
        wait_for(lambda: self.where(cluster, "deaf") == {4, 5}, 30, "what was kept")
        end_all(cluster)
        self.run_on(cluster, "later", (0, 2), 5)
        wait_for(lambda: " later " in runs.read_text(encoding="utf-8"), 30, "a run after the restart")
        self.assertEqual(set(kept.splitlines()) - set(runs.read_text(encoding="utf-8").splitlines()), set())

    def run_on(self, cluster, model, pair, speed):
        """A job of the model on exactly these GPUs, whose agent tells this speed."""
        hold_gpus(cluster, "n1", set(range(8)) - set(pair))
        job = self.train(cluster, model)
        self.assertEqual(cluster.job_gres()[job]["n1"], set(pair))
        step = iter(range(100, 10**6, 100))

        def learned():
            cluster.run(["scontrol", "update", f"jobid={job}", f"comment={self.RECORD.format(step=next(step), speed=speed)}"], check=False)
            time.sleep(1.2)
            samples = cluster.layout.state / "slurmctld" / "sluice" / "step-samples"
            return samples.exists() and any(line.split()[0] == f"0/{model}" and abs(float(line.split()[8]) * speed - 1) < 0.01
                                            for line in samples.read_text(encoding="utf-8").splitlines()[1:])
        wait_for(learned, 60, f"the speed of {model} on {pair}")
        end_all(cluster)

    def where(self, cluster, model):
        job = self.train(cluster, model)
        gpus = cluster.job_gres()[job]["n1"]
        end_job(cluster, job)
        return gpus

    def train(self, cluster, model):
        job = cluster.sbatch(["-N1", "--gpus=2", f"--train-model={model}", "-o", "/dev/null"], "sleep 1000")
        cluster.wait_job(job, "RUNNING")
        return job


if __name__ == "__main__":
    unittest.main()
