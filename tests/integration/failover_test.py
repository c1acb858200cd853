#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Two slurmctld on one StateSaveLocation: only the one in control reads Sluice's state, decides and acts."""

import os
import signal
import socket
import subprocess
import time
import unittest

from harness import ClusterError, ClusterTest, build_folder, processes, sluice_lines, wait_for
from resize_test import CONF, TRAINER

BACKUP = "backup"


class FailoverTest(ClusterTest):
    """A backup of another host name, in a UTS namespace of its own."""

    def with_backup(self, **options):
        build_folder()
        host = socket.gethostname().partition(".")[0]
        cluster = self.cluster("Nodes=n1 Gpus=8\n", sluice=CONF, settings={"SlurmctldHost": "", "SlurmctldTimeout": "10"},
                               conf=[f"SlurmctldHost={host}(127.0.0.1)", f"SlurmctldHost={BACKUP}(127.0.0.2)"], **options)
        self.hosts = cluster.layout.root / "hosts"
        with open("/etc/hosts", encoding="utf-8") as hosts:
            self.hosts.write_text(f"{hosts.read()}\n127.0.0.2 {BACKUP}\n", encoding="utf-8")
        self.etc = cluster.layout.root / "backup-etc"
        subprocess.run(["cp", "-a", cluster.layout.etc, self.etc], check=True)
        conf = self.etc / "slurm.conf"
        conf.write_text(conf.read_text(encoding="utf-8").replace("slurmctld.log", "backup.log").replace("slurmctld.own.pid", "backup.own.pid"),
                        encoding="utf-8")
        return cluster

    def start_backup(self, cluster):
        started = processes.spawn(["unshare", "-um", "sh", "-c",
                                   f"mount --bind {self.hosts} /etc/hosts && hostname {BACKUP} && exec slurmctld -D -f {self.etc}/slurm.conf"],
                                  cluster.directory, cluster.layout.log / "backup.out")
        self.addCleanup(started.wait)
        self.addCleanup(started.kill)
        wait_for(lambda: started.poll() is None and "running in background mode" in self.backup_log(cluster).lower(), 30,
                 lambda: f"a standby: {self.backup_log(cluster)[-2000:]}")
        return started

    def backup_log(self, cluster):
        path = cluster.layout.log / "backup.log"
        return path.read_text(encoding="utf-8") if path.exists() else ""

    def backup_lines(self, cluster):
        return [line.partition("] ")[2] for line in self.backup_log(cluster).splitlines() if "] sluice: " in line]

    def as_backup(self, *argv):
        return subprocess.run(argv, env={**os.environ, "SLURM_CONF": f"{self.etc}/slurm.conf"}, capture_output=True, text=True, check=True)

    def test_a_standby_waits(self):
        cluster = self.with_backup(dbd=True)
        standby = self.start_backup(cluster)
        time.sleep(5)
        self.assertIsNone(standby.poll(), "the standby has ended")
        self.assertEqual([line for line in self.backup_lines(cluster) if "policy" not in line], [])

    def test_a_restart_goes_on_under_the_next_one_and_only_there(self):
        cluster = self.with_backup()
        standby = self.start_backup(cluster)
        job = self.train(cluster, "silent", 12)
        wait_for(lambda: any(f"job {job}: restart from" in line for line in sluice_lines(cluster)), 60, "the signal")
        cluster.kill("slurmctld")
        self.as_backup("scontrol", "takeover")
        wait_for(lambda: "running as primary controller" in self.backup_log(cluster).lower(), 30, "the takeover")
        # The primary is back before the job's time is up: from then on the backup has no say.
        cluster.restart("slurmctld")
        wait_for(lambda: any(f"job {job}: requeued" in line for line in sluice_lines(cluster)), 60, "the requeue by the primary")
        self.assertEqual([line for line in self.backup_lines(cluster) if "requeued" in line], [])
        wait_for(lambda: self.runs(cluster) == [4, 8], 60, lambda: f"two runs, not {self.runs(cluster)}")
        time.sleep(5)
        fields = cluster.job(job)
        self.assertEqual((fields["JobState"], fields["Restarts"]), ("RUNNING", "1"))
        self.assertIsNone(standby.poll())

    def train(self, cluster, mode, grace):
        folder = cluster.layout.jobs
        (folder / "trainer.py").write_text(TRAINER, encoding="ascii")
        self.log = folder / "train.log"
        self.log.touch()
        self.log.chmod(0o666)
        checkpoint = f"/tmp/sluice-failover-test-{os.getpid()}.json"
        self.addCleanup(subprocess.run, ["rm", "-f", checkpoint], check=False)
        return cluster.sbatch(["-N1", "--gpus-per-node=4", "--cpus-per-gpu=1", "-o", self.log, "--train-gpus=4,8", "--train-resize=restart",
                               f"--train-signal=USR1@{grace}"], f"/usr/bin/python3 {folder}/trainer.py {mode} {checkpoint}",
                              user="nobody", cwd="/tmp")

    def runs(self, cluster):
        lines = self.log.read_text(encoding="utf-8").splitlines()
        return [int(line.split()[2]) for line in lines if line.startswith("run on ")]


class SlowStart(ClusterTest):
    def test_nothing_is_decided_before_the_state_is_read(self):
        """slurmctld waits for a slurmdbd that does not answer, with half of its tables made."""
        build_folder()
        cluster = self.cluster("Nodes=n1 Gpus=8\n", sluice=CONF, dbd=True)
        cluster.kill("slurmctld")
        os.kill(cluster.pid("slurmdbd"), signal.SIGSTOP)
        try:
            cluster.restart("slurmctld")
        except ClusterError:
            pass  # it does not answer yet
        time.sleep(8)
        self.assertTrue(cluster.pid("slurmctld"), cluster.log("slurmctld")[-2000:])
        os.kill(cluster.pid("slurmdbd"), signal.SIGCONT)
        wait_for(lambda: cluster.run(["sinfo"], check=False, timeout=60).returncode == 0, 120, "slurmctld")
        job = cluster.sbatch(["--gpus=1", "--train-gpus=1-2", "-o", "/dev/null"], "true")
        cluster.wait_job(job)


if __name__ == "__main__":
    unittest.main()
