# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads the text of `nvidia-smi topo -m`: which GPU has how many NVLinks to which, and which CPUs are near it."""

import re
from dataclasses import dataclass

from .errors import DescriptionError

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_CELL = re.compile(r"X$|SYS$|NODE$|PHB$|PXB$|PIX$|NV([0-9]{1,2})$")
_CPU_LIST = re.compile(r"[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*$")
_LEGAL_CELLS = "X, SYS, NODE, PHB, PXB, PIX or NV with a number"


@dataclass(frozen=True)
class GpuTopology:
    """links[a][b] is the number of NVLinks between GPU a and GPU b, more is better, -1 on the diagonal (as gres.conf
    wants it). cpus[a] is the set of the system's CPU numbers near GPU a, numa[a] its NUMA node; empty and None when
    the text does not say."""

    links: tuple
    cpus: tuple
    numa: tuple

    @property
    def gpus(self):
        return len(self.links)


def read(path):
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise DescriptionError(path, 0, error.strerror) from None
    return parse(text, path)


def parse(text, path):
    """`path` is only for messages. Columns that are not GPUs (network cards) are passed over."""
    lines = [(number, _COLOURS.sub("", line)) for number, line in enumerate(text.splitlines(), 1)]
    header = next(((number, line) for number, line in lines if re.match(r"\s*GPU0\b", line)), None)
    if not header:
        raise DescriptionError(path, 0, "no line begins with the column GPU0: give the text that `nvidia-smi topo -m` prints")
    columns = [column for column in _cells(header[1]) if column not in ("CPU", "NUMA", "GPU", "Affinity", "ID")]
    columns = [column for column in columns if not re.search(r"Affinity|NUMA ID", column)]
    gpus = sum(bool(re.match(r"GPU[0-9]+$", column)) for column in columns)
    if columns[:gpus] != [f"GPU{index}" for index in range(gpus)]:
        raise DescriptionError(path, header[0], "the columns have to begin with GPU0, GPU1, ... without a gap")

    links, cpus, numa = [], [], []
    for number, line in lines:
        if number <= header[0] or not re.match(r"\s*GPU[0-9]", line):
            continue
        name, *cells = _cells(line)
        index = len(links)
        if name != f"GPU{index}" or index >= gpus:
            raise DescriptionError(path, number, f"row {name}: expected the rows GPU0 to GPU{gpus - 1} in order")
        links.append(_link_row(cells[:gpus], index, gpus, path, number))
        near = [cell for cell in cells[len(columns):] if cell and cell != "N/A"]
        cpus.append(_cpu_set(near[0], path, number) if near else frozenset())
        numa.append(int(near[1]) if len(near) > 1 and near[1].isdigit() else None)
    if len(links) != gpus:
        raise DescriptionError(path, header[0], f"{gpus} GPU columns but {len(links)} GPU rows")
    for a in range(gpus):
        for b in range(a):
            if links[a][b] != links[b][a]:
                raise DescriptionError(path, 0, f"GPU{a} and GPU{b}: {links[a][b]} links one way, {links[b][a]} the other")
    return GpuTopology(tuple(links), tuple(cpus), tuple(numa))


def _cells(line):
    """The text is tab separated, but loses its tabs when people paste it."""
    if "\t" in line:
        return [cell.strip() for cell in line.strip("\t \r").split("\t")]
    return line.split()


def _link_row(cells, index, gpus, path, number):
    if len(cells) < gpus:
        raise DescriptionError(path, number, f"row GPU{index} has {len(cells)} cells, expected {gpus}")
    row = []
    for column, cell in enumerate(cells):
        match = _CELL.match(cell)
        if not match or (cell == "X") != (column == index):
            raise DescriptionError(path, number, f"row GPU{index}, column GPU{column}: '{cell}': "
                                                 f"expected {_LEGAL_CELLS}, and X only on the diagonal")
        row.append(-1 if cell == "X" else int(match.group(1) or 0))
    return tuple(row)


def _cpu_set(text, path, number):
    if not _CPU_LIST.match(text):
        raise DescriptionError(path, number, f"CPU Affinity '{text}': expected a list of CPUs such as 0-19,40-59")
    numbers = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        if int(last or first) > 65535:
            raise DescriptionError(path, number, f"CPU Affinity '{text}': a CPU number over 65535")
        numbers.update(range(int(first), int(last or first) + 1))
    return frozenset(numbers)
