# SPDX-License-Identifier: GPL-2.0-or-later
"""A real slurmctld with nodes that no slurmd stands behind.

They are nodes of a cloud that are being powered up, for ever: slurmctld reads gres.conf for them itself, takes them for available
and gives them to jobs, which then wait for their nodes (CONFIGURING) and are never launched. So what slurmctld does is schedule.
"""

import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "contrib" / "cluster"))

from sluice_cluster import Cluster, config_files, description as descriptions, wait_for  # noqa: E402  found by the line above

# One real node, which the start of a cluster waits for; no job goes there.
_REAL = "Nodes=t1 Gpus=8 Sockets=1 CoresPerSocket=2\nPartition=real Nodes=t1\n"
_SETTINGS = {
    "ResumeProgram": "/bin/true", "SuspendProgram": "/bin/true", "SuspendTime": 10**6, "ResumeTimeout": 65535, "ResumeRate": 0,
    "SlurmdTimeout": 0,
}


class EmulatedNodes(Cluster):
    """As Cluster, but the nodes of the description are emulated, and each of `partitions` has all of them. They begin as down."""

    def __init__(self, directory, description, partitions, **options):
        self._emulated = descriptions.parse(description)
        settings = {**_SETTINGS, **options.pop("settings", {})}
        lines = [self._node_line(group) for group in self._emulated.groups]
        lines += [f"PartitionName={name} Nodes={self._host_list} MaxTime=INFINITE State=DOWN" for name in partitions]
        super().__init__(directory, _REAL, settings=settings, conf=lines, **options)

    def power_up(self):
        """After each start of slurmctld, for the nodes to count as available."""
        self.run(["scontrol", "update", f"NodeName={self._host_list}", "State=POWER_UP"])
        count = len(self._emulated.node_names)
        wait_for(lambda: self._powering_up() == count, 60, f"{count} nodes that are being powered up")

    @property
    def _host_list(self):
        return ",".join(group.host_list for group in self._emulated.groups)

    def _powering_up(self):
        return sum("POWERING_UP" in fields["State"] for fields in self.node_records().values())

    @staticmethod
    def _node_line(group):
        gpu_type = f"{group.gpu_type}:" if group.gpu_type else ""
        return (f"NodeName={group.host_list} NodeAddr=127.0.0.1 State=CLOUD Sockets={group.sockets} CoresPerSocket={group.cores_per_socket} "
                f"ThreadsPerCore={group.threads_per_core} RealMemory={group.memory_mb} Gres=gpu:{gpu_type}{group.gpus}")

    def _write_files(self):
        super()._write_files()
        with open(self.layout.etc / "gres.conf", "a", encoding="utf-8") as gres:
            gres.write(config_files.gres_conf(self.layout, self._emulated))
        if self.stock:
            return
        with open(self.layout.etc / "sluice.conf", "a", encoding="utf-8") as conf:
            for number, group in enumerate(self._emulated.groups, 1):
                name = f"emulated{number}.topo.txt"
                shutil.copyfile(group.topology_file, self.layout.topology / name)
                conf.write(f"Topology={name} Nodes={group.host_list}\n")
