# SPDX-License-Identifier: GPL-2.0-or-later
"""What can go wrong, each with the exit code of the command line."""


class ClusterError(Exception):
    """The cluster could not do what was asked: a daemon failed, a job or a name does not exist."""

    exit_code = 1


class UsageError(ClusterError):
    """The request itself is wrong."""

    exit_code = 2


class DescriptionError(ClusterError):
    """A description or topology file is wrong; the message names file, line, key and the legal form."""

    exit_code = 3

    def __init__(self, path, line, message):
        super().__init__(f"{path}:{line}: {message}" if line else f"{path}: {message}")
