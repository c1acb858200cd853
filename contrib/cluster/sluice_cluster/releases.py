# SPDX-License-Identifier: GPL-2.0-or-later
"""Clusters of another release of Slurm than this machine's: the program starts itself again where contrib/with-release has it."""

import json
import os
import subprocess
from pathlib import Path

from . import installation
from .errors import ClusterError
from .layout import Layout

_CONTRIB = Path(__file__).resolve().parents[2]
_WITH_RELEASE = _CONTRIB / "with-release"


def own():
    """"22.05", or "" where no Slurm is installed."""
    try:
        year, month = installation.slurm_release()
    except ClusterError:
        return ""
    return f"{year}.{month:02d}"


def known():
    """Those that can be had, oldest first, as contrib/with-release lists them."""
    return subprocess.run([_WITH_RELEASE, "--releases"], stdout=subprocess.PIPE, text=True, check=True).stdout.split()


def recorded(directory):
    """The release of the cluster in `directory`; "" where there is none, or none is known."""
    try:
        return json.loads(Layout(directory).record.read_text(encoding="utf-8")).get("release", "")
    except (OSError, ValueError):
        return ""


def build(release):
    """Sluice for that release, built where it is not yet. Returns the build folder, as it is called inside."""
    made = subprocess.run([_WITH_RELEASE, release, _CONTRIB / "prepare"], stdout=subprocess.PIPE, text=True, check=False)
    if made.returncode:
        raise ClusterError(f"Sluice could not be built for Slurm {release}: what failed stands above")
    return made.stdout.splitlines()[-1]


def run_again(release, program, argv, folder, **variables):
    """Runs the program with `folder` shared. Does not return."""
    os.execve(_WITH_RELEASE, [str(_WITH_RELEASE), "--bind", folder, release, program, *argv], {**os.environ, **variables})
