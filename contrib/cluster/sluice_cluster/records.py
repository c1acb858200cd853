# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads what `scontrol -o -d show job|node` prints."""

import re

from . import hostlist

_FIELD = re.compile(r"(?:^| )([A-Z][A-Za-z0-9_/:]*)=")
_JOB_NODES = re.compile(r" Nodes=(\S+) CPU_IDs=\S* Mem=\S* GRES=(\S*)")
_GPUS = re.compile(r"gpu(?::(?:\(null\)|[^:(,]+))?:\d+\(IDX:([0-9,-]+)\)")


def parse_line(line):
    """One record as a dict of strings. A key that comes twice (Nodes= of a job's details) keeps its first value."""
    fields = {}
    matches = list(_FIELD.finditer(line))
    for match, following in zip(matches, matches[1:] + [None]):
        value = line[match.end():following.start() if following else len(line)]
        fields.setdefault(match.group(1), value.strip())
    return fields


def gpu_indexes(gres):
    """gpu:v100:3(IDX:0-1,5),shard:... -> {0, 1, 5}. Nodes write gpu:(null):3(IDX:...) for GPUs without a type."""
    indexes = set()
    for ranges in _GPUS.findall(gres):
        for part in ranges.split(","):
            first, _, last = part.partition("-")
            indexes.update(range(int(first), int(last or first) + 1))
    return indexes


def job_gpus(line):
    """The GPUs that one job holds: {node: set of indexes}."""
    held = {}
    for nodes, gres in _JOB_NODES.findall(line):
        if indexes := gpu_indexes(gres):
            for node in hostlist.expand(nodes):
                held.setdefault(node, set()).update(indexes)
    return held
