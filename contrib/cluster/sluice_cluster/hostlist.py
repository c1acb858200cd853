# SPDX-License-Identifier: GPL-2.0-or-later
"""Slurm's short form for lists of names: n[1-3,7],gpu01 is n1 n2 n3 n7 gpu01."""

import re

MAX_NAMES = 4096
_ITEM = re.compile(r"([A-Za-z0-9_.-]*)\[([0-9,-]+)\]$|([A-Za-z0-9_.-]+)$")


def expand(text):
    """The names in order. ValueError with the reason when `text` is not a host list."""
    names = []
    for item in re.split(r",(?![^\[]*\])", text):
        match = _ITEM.match(item)
        if not match:
            raise ValueError(f"'{item}' is not a name or a range such as n[1-4]")
        prefix, ranges, single = match.groups()
        names += [single] if single else [prefix + number for number in _numbers(ranges)]
        if len(names) > MAX_NAMES:
            raise ValueError(f"more than {MAX_NAMES} names")
    return names


def _numbers(ranges):
    for part in ranges.split(","):
        first, dash, last = part.partition("-")
        if not first.isdigit() or (dash and not last.isdigit()):
            raise ValueError(f"'{part}' is not a number or a range such as 1-4")
        if dash and not 0 <= int(last) - int(first) < MAX_NAMES:
            raise ValueError(f"'{part}' does not go up, or is longer than {MAX_NAMES}")
        for number in range(int(first), int(last or first) + 1):
            yield str(number).zfill(len(first))
