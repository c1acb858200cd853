#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Random jobs, event by event: the books about GPUs stay right, and nothing waits that stock Slurm would have started.

A story is a list of events, drawn beforehand from a seed. What fails prints it.
"""

import concurrent.futures
import json
import os
import random
import re
import threading
import time
import unittest
from dataclasses import dataclass

from harness import EXAMPLES, FULL, USERS, ClusterTest, gpu_errors, nodes_and_tick, records, say, settle, sluice_lines, wait_for, wait_registered

JOBS = 200 if FULL else 60
KILLS = 10 if FULL else 3
DGX1 = EXAMPLES / "dgx1-v100.topo-m.txt"
NODES = "Nodes=n[1-4] Gpus=8 Sockets=2 CoresPerSocket=20 Topology={}"
# The main scheduler takes whatever fits, in order of submission; backfill stays out of it. What runs after an event does then
# not depend on the clock.
FIRST_FIT = {"SchedulerParameters": "bf_interval=3600,bf_min_age_reserve=2000000,default_queue_depth=10000,sched_interval=1,"
                                    "sched_min_interval=10000,batch_sched_delay=0"}
# What an agent sends, with the step left open.
RECORD = ('sluice1:{"r":0,"k":%d,"l":2.3,"n":87,"g":1,"v":3.5,"b":[0.00125,0.25,2],"c":[1e-10,0,0,1e-06,0,1e-04],'
          '"s":0.06,"f":6,"e":1,"p":86}')
# Ends well when asked to by USR1.
SCRIPT = "trap 'exit 0' USR1\nsleep 100000 &\nwait\n"


@dataclass(frozen=True)
class Event:
    what: str  # submit, finish, cancel, requeue, requeuehold, hold, release
    job: int   # position in the story
    user: str = ""
    words: tuple = ()

    def __str__(self):
        return " ".join([self.what, str(self.job), self.user, *self.words]).strip()


def story(seed, jobs):
    """Events that give every job an end."""
    dice = random.Random(seed)
    events, alive, held = [], [], []
    submitted = 0
    while submitted < jobs or alive:
        if submitted < jobs and (len(alive) < 4 or dice.random() < (0.6 if len(alive) < 18 else 0.3)):
            events.append(Event("submit", submitted, dice.choice(USERS), request(dice)))
            alive.append(submitted)
            submitted += 1
            continue
        job = dice.choice(alive)
        if job in held:
            what = dice.choice(("release", "cancel"))
        else:
            what = dice.choices(("finish", "cancel", "requeue", "requeuehold", "hold"), (50, 20, 3, 8, 8))[0]
        events.append(Event(what, job))
        if what in ("finish", "cancel"):
            alive.remove(job)
        if what in ("hold", "requeuehold"):
            held.append(job)
        if what in ("finish", "cancel", "release") and job in held:
            held.remove(job)
    return events


def request(dice):
    """The words of one submission."""
    size = dice.choice((1, 1, 2, 2, 3, 4, 4, 5, 6, 7, 8))
    kind = dice.choices(("node", "job", "nodes", "gres", "task", "cpu"), (40, 15, 15, 10, 8, 12))[0]
    if kind == "cpu":
        return ("-N1", f"-n{dice.choice((1, 4, 16))}")
    words = {
        "node": ("-N1", f"--gpus={size}"),
        "job": (f"--gpus={size + dice.choice((0, 4, 8))}",),
        "nodes": (f"-N{dice.choice((2, 3))}", f"--gpus-per-node={min(size, 4)}"),
        "gres": ("-N1", f"--gres=gpu:{size}", f"-n{dice.choice((1, 2, 8))}"),
        "task": (f"-n{min(size, 6)}", "--gpus-per-task=1"),
    }[kind]
    if kind in ("node", "job") and dice.random() < 0.6:
        gpus = int(words[-1].rpartition("=")[2])
        words += (f"--train-gpus={gpus}" if dice.random() < 0.5 else f"--train-gpus=1-{gpus}",
                  f"--train-model=model-{size}", f"--train-resize={dice.choice(('off', 'start'))}")
    return words


def fits(words, nodes):
    """Whether a request could start on nodes with so many (free GPUs, free cores); False also where only Slurm could tell."""
    options = dict(word.partition("=")[::2] if word.startswith("--") else (word[:2], word[2:]) for word in words)
    tasks = int(options.get("-n", 1))
    if "--gpus-per-task" in options:
        return sum(min(node) for node in nodes) >= tasks
    per_node = int(options.get("--gpus-per-node") or options.get("--gpus") or options.get("--gres", "gpu:0").rpartition(":")[2])
    wanted = int(options.get("-N", 1))
    return sum(gpus >= per_node and cores >= tasks for gpus, cores in nodes) >= wanted


class Driver:
    """Carries the events of a story out on one cluster. Each is carried through whatever happens to slurmctld meanwhile."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.ids = {}
        self.users = {}

    def submit(self, event):
        user = None if event.user == "root" else event.user
        words = [word for word in event.words if not (self.cluster.stock and word.startswith("--train-"))]
        self.users[event.job] = user
        self.ids[event.job] = self.cluster.sbatch([*words, "-J", f"s{event.job}", "-o", "/dev/null"], SCRIPT, user=user)

    def state(self, position):
        """Empty once it has ended."""
        return self.cluster.query(["squeue", "-ha", "-j", str(self.ids[position]), "-o", "%T"]).stdout.strip()

    def carry_out(self, event):
        if event.what == "submit":
            self.submit(event)
        elif event.what == "finish":
            self.finish(event.job)
        elif event.what == "cancel":
            self.cancel(event.job)
        elif event.what == "release":
            self.cluster.run(["scontrol", "release", str(self.ids[event.job])], check=False)
            self.wait_eligible(event.job)
        elif event.what == "hold":
            if self.state(event.job) == "PENDING":
                self.cluster.query(["scontrol", "hold", str(self.ids[event.job])])
        elif self.state(event.job) == "RUNNING":
            self.requeue(event)

    def carry_out_at_once(self, event):
        """With no job started before all of it has happened: the nodes of a job do not end it at the same moment, and what starts
        on the first of them can be in the way of an older job that needs them all."""
        self.cluster.query(["scontrol", "update", "partitionname=main", "state=down"])
        self.carry_out(event)
        self.cluster.query(["scontrol", "update", "partitionname=main", "state=up"])

    def finish(self, position):
        """A job that runs is asked to end by itself."""
        if self.state(position) == "RUNNING":
            self.cluster.run(["scancel", "-b", "-s", "USR1", str(self.ids[position])], check=False)
            deadline = time.monotonic() + 2
            while self.state(position) and time.monotonic() < deadline:
                time.sleep(0.05)
        self.cancel(position)

    def cancel(self, position):
        deadline = time.monotonic() + 60
        while self.state(position):
            # A slurmctld that was killed may have forgotten that it was told, or that the job has ended.
            self.cluster.run(["scancel", str(self.ids[position])], check=False)
            if time.monotonic() > deadline:
                raise AssertionError(f"job {self.ids[position]} does not end")
            time.sleep(0.05)

    def requeue(self, event):
        self.cluster.query(["scontrol", event.what, str(self.ids[event.job])])
        wait_for(lambda: self.state(event.job) in ("PENDING", "RUNNING"), 30, f"requeue of job {self.ids[event.job]}")
        if event.what == "requeue":
            self.wait_eligible(event.job)

    def wait_eligible(self, position):
        """Slurm lets a requeued job wait until its old credential has expired."""
        def eligible():
            fields = self.cluster.job(self.ids[position])
            if fields["JobState"] != "PENDING" or fields["EligibleTime"] == "Unknown":
                return True
            return time.mktime(time.strptime(fields["EligibleTime"], "%Y-%m-%dT%H:%M:%S")) < time.time()
        wait_for(eligible, 30, f"eligible time of job {self.ids[position]}")

    def running(self, jobs):
        """Positions in the story."""
        return {position for position, job in self.ids.items() if jobs.get(job, ("",))[0] == "RUNNING"}


class RandomJobs(ClusterTest):
    def test_the_same_story_under_stock_slurm_and_under_sluice(self):
        """The nodes are chosen by Slurm's rule in both, and all cores are near all GPUs (where they are not, that rule looks at the
        cores near the free GPUs): else the two clusters soon stand differently and each has its luck.
        test_nothing_waits_that_fits() is for those."""
        one_numa_node = self.scratch / "one-numa-node.topo-m.txt"
        text = DGX1.read_text(encoding="utf-8")
        one_numa_node.write_text(re.sub(r"\t[0-9,-]+\t[01]$", "\t0-39\t0", text, flags=re.MULTILINE), encoding="utf-8")
        description = nodes_and_tick(NODES.format(one_numa_node).replace("Sockets=2 CoresPerSocket=20", "Sockets=1 CoresPerSocket=40"))
        seed = 7
        events = story(seed, JOBS)
        say(f"seed {seed}: {JOBS} jobs, {len(events)} events")
        settings = {**FIRST_FIT, "SelectTypeParameters": "CR_Core,CR_LLN"}
        drivers = [Driver(self.cluster(description, name, dbd=True, stock=stock, settings=settings, **options))
                   for name, stock, options in (("stock", True, {}), ("sluice", False, {"sluice": {"Interval": 3600}}))]
        most = more = 0
        with concurrent.futures.ThreadPoolExecutor(2) as both:
            for number, event in enumerate(events):
                list(both.map(lambda driver: driver.carry_out_at_once(event), drivers))
                jobs = list(both.map(lambda driver: settle(driver.cluster), drivers))
                stock, sluice = (driver.running(known) for driver, known in zip(drivers, jobs))
                self.assertLessEqual(stock, sluice, f"stock Slurm has started more; {tell(seed, events, number)}")
                self.assertEqual(gpu_errors(drivers[1].cluster), [], tell(seed, events, number))
                most = max(most, len(sluice))
                more += stock != sluice
        for driver in drivers:
            self.assert_all_free(driver.cluster)
        say(f"up to {most} jobs ran at once; after {more} events more ran under Sluice than under stock Slurm")

    def test_nothing_waits_that_fits(self):
        seed = 8
        jobs = 200 if FULL else 40
        events = story(seed, jobs)
        say(f"seed {seed}: {jobs} jobs, {len(events)} events")
        cluster = self.cluster(nodes_and_tick(NODES.format(DGX1)), settings=FIRST_FIT, sluice={"Interval": 3600})
        driver = Driver(cluster)
        waited = 0
        for number, event in enumerate(events):
            driver.carry_out(event)
            waiting = [job for job, (state, reason) in settle(cluster).items() if state == "PENDING" and reason in ("Resources", "Priority")]
            nodes = [(8 - len(records.gpu_indexes(node["GresUsed"])), 40 - int(node["CPUAlloc"]))
                     for name, node in cluster.node_records().items() if name != "t1"]
            for job in waiting:
                words = next(e.words for e in events if e.what == "submit" and driver.ids.get(e.job) == job)
                self.assertFalse(fits(words, nodes), f"{words} waits, free GPUs and cores: {nodes}; {tell(seed, events, number)}")
            waited += len(waiting)
            self.assertEqual(gpu_errors(cluster), [], tell(seed, events, number))
        self.assert_all_free(cluster)
        say(f"{waited} times a job waited, and could not have started")

    def test_slurmctld_killed_at_random_moments(self):
        seed = 11
        dice = random.Random(seed)
        events = story(seed, JOBS)
        kills = set(dice.sample(range(len(events) // 6, len(events) * 5 // 6), KILLS))
        say(f"seed {seed}: {JOBS} jobs, {len(events)} events, slurmctld killed in events {sorted(kills)}")
        cluster = self.cluster(nodes_and_tick(NODES.format(DGX1)), dbd=True, sluice={"Interval": 2})
        driver = Driver(cluster)
        lost = 0
        for number, event in enumerate(events):
            if number in kills:
                lost += self.kill_meanwhile(driver, event, dice.uniform(0, 0.3), tell(seed, events, number))
            else:
                driver.carry_out(event)
            settle(cluster)
            self.assertEqual(gpu_errors(cluster), [], tell(seed, events, number))
            if event.what == "submit":
                self.send_record(driver, event)
        self.assert_all_free(cluster)
        say(f"{lost} submissions were made again: slurmctld was killed before it had saved them")

    def kill_meanwhile(self, driver, event, delay, story_so_far):
        """Kills slurmctld `delay` seconds into an event, starts it again, and compares. Returns how many jobs had to be submitted again.

        Slurm saves its state some seconds after a change; everything older than the event has been saved.
        """
        cluster = driver.cluster
        before = settle(cluster)
        books = {job: cluster.job(job) for job in before}
        changed = time.time()
        wait_for(lambda: os.stat(cluster.layout.state / "slurmctld" / "job_state").st_mtime > changed or self.touch(cluster), 60, "saved state")
        failure = []

        def carry_out():
            try:
                driver.carry_out(event)
            except Exception as error:
                failure.append(error)

        acting = threading.Thread(target=carry_out)
        acting.start()
        time.sleep(delay)
        cluster.kill("slurmctld")
        cluster.restart("slurmctld")
        acting.join()
        wait_registered(cluster)
        with_record = sum('"record"' in fields.get("AdminComment", "") for fields in books.values())
        known = wait_for(lambda: [line for line in sluice_lines(cluster) if "known from before" in line][-1:], 10, "what was stored")[0]
        self.assertGreaterEqual(int(known.split()[1]), with_record)
        again = 0
        if event.what == "submit":
            again = self.submitted_once(driver, event)
            failure.clear()
        elif event.what in ("finish", "cancel"):
            driver.cancel(event.job)  # slurmctld may have forgotten that it has ended
        self.assertEqual(failure, [], story_so_far)
        after = settle(cluster)
        touched = driver.ids.get(event.job)
        for job, (state, reason) in before.items():
            if job == touched:
                continue
            # slurmctld, stock or not, may forget that a job has started in the seconds before; the node refuses it when it starts again.
            if state == "PENDING" and f"JobId={job}: Job credential revoked" in cluster.log("slurmctld"):
                continue
            self.assertIn(job, after, f"lost job {job}; {story_so_far}")
            now = cluster.job(job)
            if state == "RUNNING":
                self.assertEqual((after[job][0], now["Restarts"], now["Nodes"], now["GRES"]),
                                 ("RUNNING", books[job]["Restarts"], books[job]["Nodes"], books[job]["GRES"]), story_so_far)
                self.assert_summary_kept(books[job], now, story_so_far)
            self.assertEqual("Held" in after[job][1], "Held" in reason, f"job {job}: {after[job]}; {story_so_far}")
        return again

    def assert_summary_kept(self, before, after, story_so_far):
        """Its agent may have added a record meanwhile."""
        old, new = (json.loads(fields.get("AdminComment") or "{}").get("sluice", {}) for fields in (before, after))
        self.assertEqual(new.get("placements"), old.get("placements"), story_so_far)
        self.assertLessEqual(set(old), set(new), story_so_far)

    def touch(self, cluster):
        """A change that matters to nobody, so that slurmctld saves its state once more."""
        tick = next(job for job, fields in cluster.jobs().items() if fields["JobName"] == "tick" and fields["JobState"] == "RUNNING")
        cluster.run(["scontrol", "update", f"jobid={tick}", f"comment={time.time()}"])
        time.sleep(0.5)

    def submitted_once(self, driver, event):
        """The client may have been told nothing, or twice. Returns 1 where slurmctld had forgotten the job."""
        lines = driver.cluster.query(["squeue", "-ha", "-n", f"s{event.job}", "-o", "%i"]).stdout.split()
        for extra in lines[1:]:
            driver.cluster.query(["scancel", extra])
        if not lines:
            driver.submit(event)
            return 1
        driver.ids[event.job] = int(lines[0])
        return 0

    def send_record(self, driver, event):
        """As the agent of a running job would, and reads it back from the job record."""
        if not any(word.startswith("--train-") for word in event.words) or driver.state(event.job) != "RUNNING":
            return
        job = driver.ids[event.job]
        driver.cluster.run(["scontrol", "update", f"jobid={job}", f"comment={RECORD % (event.job + 1)}"], user=driver.users[event.job])
        summary = json.loads(driver.cluster.job(job)["AdminComment"])["sluice"]
        self.assertEqual(summary["record"]["k"], event.job + 1)

    def assert_all_free(self, cluster):
        self.assertEqual(gpu_errors(cluster), [])
        self.assertEqual(settle(cluster), {})
        self.assertEqual(set().union(*cluster.node_gres().values()), set())
        self.assertTrue(cluster.pid("slurmctld"))


def tell(seed, events, number):
    return f"seed {seed}, after event {number} of:\n" + "\n".join(f"  {i}: {event}" for i, event in enumerate(events[:number + 1]))


if __name__ == "__main__":
    unittest.main()
