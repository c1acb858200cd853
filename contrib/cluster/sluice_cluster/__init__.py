# SPDX-License-Identifier: GPL-2.0-or-later
"""A real private Slurm cluster on one machine; see README.md beside this folder."""

from .cluster import Cluster, wait_for
from .errors import ClusterError, DescriptionError, UsageError

__all__ = ["Cluster", "ClusterError", "DescriptionError", "UsageError", "wait_for"]
