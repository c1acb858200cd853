# SPDX-License-Identifier: GPL-2.0-or-later
"""The small text that says which nodes a cluster has.

    # comment
    Nodes=n[1-4] Gpus=8 GpuType= Sockets=2 CoresPerSocket=8 ThreadsPerCore=1 Memory=64000 Topology=dgx1-v100.topo-m.txt
    Partition=main Nodes=n[1-4] Default=YES
    Slurm=PriorityType=priority/multifactor

A line of `Nodes=` is a group of equal nodes; only Nodes is required. Topology names what `nvidia-smi topo -m` prints on
such a node, or an hwloc XML file, relative to the description. `Partition=` lines go to slurm.conf as `PartitionName=`
lines, `Slurm=` lines without the word in front.
"""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from . import gpu_topology, hostlist
from .errors import DescriptionError

DEFAULT_TEXT = "Nodes=n[1-4] Gpus=8 Sockets=2\n"
DAEMONS = ("munged", "mariadbd", "slurmdbd", "slurmctld")

# key -> (smallest, largest, default, example) of the keys that are counts
_COUNTS = {
    "Gpus": (0, 64, 8, "8"),
    "Sockets": (1, 16, 2, "2"),
    "CoresPerSocket": (1, 256, 8, "8"),
    "ThreadsPerCore": (1, 8, 1, "1"),
    "Memory": (1, 10**9, 64000, "64000 (in MB)"),
}
_KEYS = {key.lower(): key for key in ("Nodes", *_COUNTS, "GpuType", "Topology")}


@dataclass(frozen=True)
class NodeGroup:
    """Equal nodes. memory_mb as in RealMemory; topology is None when there is no file or when it is hwloc XML."""

    names: tuple
    host_list: str
    gpus: int
    gpu_type: str
    sockets: int
    cores_per_socket: int
    threads_per_core: int
    memory_mb: int
    topology_file: Optional[Path] = None
    topology: Optional[gpu_topology.GpuTopology] = None

    @property
    def cores(self):
        return self.sockets * self.cores_per_socket


@dataclass(frozen=True)
class Description:
    groups: tuple
    partitions: tuple = ()
    slurm_lines: tuple = ()

    @property
    def node_names(self):
        return [name for group in self.groups for name in group.names]

    @property
    def most_gpus(self):
        return max(group.gpus for group in self.groups)


def read(path):
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise DescriptionError(path, 0, error.strerror) from None
    except UnicodeDecodeError:
        raise DescriptionError(path, 0, "not a text file in UTF-8") from None
    return parse(text, path)


def parse(text, path="description"):
    """`path` is for messages, and its folder is where Topology= files are looked for."""
    groups, partitions, slurm_lines, seen = [], [], [], set(DAEMONS)
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        key, equals, rest = line.partition("=")
        kind = key.lower() if equals else ""
        if kind == "nodes":
            group = _node_group(line, Path(path), number)
            for name in group.names:
                if name in seen:
                    raise DescriptionError(path, number, f"Nodes={group.host_list}: the name {name} is already taken")
                seen.add(name)
            groups.append(group)
        elif kind == "partition" and rest:
            partitions.append(rest)
        elif kind == "slurm" and "=" in rest:
            slurm_lines.append(rest)
        else:
            raise DescriptionError(path, number, f"'{line}': a line begins with Nodes=LIST, Partition=NAME or Slurm=Key=Value")
    if not groups:
        raise DescriptionError(path, 0, "no nodes: write at least one line such as " + DEFAULT_TEXT.strip())
    return Description(tuple(groups), tuple(partitions), tuple(slurm_lines))


def _node_group(line, path, number):
    values = _key_values(line, path, number)
    counts = {key: _count(key, values, path, number) for key in _COUNTS}
    try:
        names = tuple(hostlist.expand(values["Nodes"]))
    except ValueError as error:
        raise DescriptionError(path, number, f"Nodes={values['Nodes']}: {error}; e.g. Nodes=n[1-4]") from None
    gpu_type = values.get("GpuType", "")
    if not re.match(r"[A-Za-z0-9_.-]*$", gpu_type):
        raise DescriptionError(path, number, f"GpuType={gpu_type}: one word of letters, digits, '_', '.', '-', e.g. GpuType=v100")

    topology_file = path.parent / values["Topology"] if values.get("Topology") else None
    topology = None
    if topology_file and topology_file.suffix != ".xml":
        topology = gpu_topology.read(topology_file)
        if "Gpus" in values and counts["Gpus"] != topology.gpus:
            raise DescriptionError(path, number, f"Gpus={counts['Gpus']}: but {topology_file} describes {topology.gpus} GPUs")
        counts["Gpus"] = topology.gpus
    elif topology_file and not topology_file.is_file():
        raise DescriptionError(path, number, f"Topology={values['Topology']}: there is no file {topology_file}")
    return NodeGroup(names, values["Nodes"], counts["Gpus"], gpu_type, counts["Sockets"], counts["CoresPerSocket"],
                     counts["ThreadsPerCore"], counts["Memory"], topology_file, topology)


def _key_values(line, path, number):
    try:
        words = shlex.split(line, comments=True)
    except ValueError as error:
        raise DescriptionError(path, number, f"{error}") from None
    values = {}
    for word in words:
        key, equals, value = word.partition("=")
        name = _KEYS.get(key.lower())
        if not equals or not name:
            raise DescriptionError(path, number, f"'{word}': expected Key=Value with one of the keys {', '.join(_KEYS.values())}")
        if name in values:
            raise DescriptionError(path, number, f"{name} is given twice")
        values[name] = value
    return values


def _count(key, values, path, number):
    smallest, largest, default, example = _COUNTS[key]
    text = values.get(key, str(default))
    if not re.match(r"[0-9]{1,9}$", text) or not smallest <= int(text) <= largest:
        raise DescriptionError(path, number, f"{key}={text}: expected a whole number from {smallest} to {largest}, "
                                             f"e.g. {key}={example}")
    return int(text)


def gpu_cores(group):
    """For each GPU of the group the cores near it, as gres.conf counts them: 0 .. cores-1, socket by socket.

    The CPU lists of the topology file are taken when they belong to a machine of this shape; else its NUMA nodes (or
    lists) are spread over the sockets in order; with no topology the GPUs are split evenly over the sockets.
    """
    topology = group.topology
    if topology and all(topology.cpus):
        # Linux numbers the first thread of every core before the second thread of any.
        cores = [sorted({cpu % group.cores for cpu in cpus}) for cpus in topology.cpus]
        highest = max(max(cpus) for cpus in topology.cpus)
        sockets = [{core // group.cores_per_socket for core in near} for near in cores]
        distinct = min(len(set(topology.cpus)), group.sockets)
        if (highest < group.cores * group.threads_per_core and all(len(socket) == 1 for socket in sockets)
                and len(set.union(*sockets)) >= distinct):
            return cores
    if topology and None not in topology.numa:
        places = topology.numa
    elif topology and all(topology.cpus):
        places = [min(cpus) for cpus in topology.cpus]
    else:
        places = range(group.gpus)
    rank = {place: order for order, place in enumerate(sorted(set(places)))}
    sockets = [rank[place] * group.sockets // len(rank) for place in places]
    return [list(range(socket * group.cores_per_socket, (socket + 1) * group.cores_per_socket)) for socket in sockets]
