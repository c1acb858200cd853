# SPDX-License-Identifier: GPL-2.0-or-later
"""What lies where in a cluster's folder."""

import os
import shutil
import stat
from pathlib import Path

from .errors import ClusterError, UsageError
from .installation import check_users_can_enter

_SOCKET_PATH_LIMIT = 107


class Layout:
    """
    cluster.json   what was started: nodes, ports, mode     lock      held while a start, stop, kill or restart is at work
    etc/           configuration, topology/ in it           log/      one log a daemon, NAME.out what it printed
    run/           NAME.pid, munge's socket                 secret/   keys, MariaDB; root only
    state/ spool/  slurmctld's and the slurmds' own         dev/      fake GPUs
    jobs/          a folder in which every user may write
    """

    def __init__(self, directory):
        self.root = Path(os.path.realpath(directory))
        self.record = self.root / "cluster.json"
        self.lock = self.root / "lock"
        self.etc = self.root / "etc"
        self.slurm_conf = self.etc / "slurm.conf"
        self.topology = self.etc / "topology"
        self.log = self.root / "log"
        self.run = self.root / "run"
        self.munge_socket = self.run / "munge.socket"
        self.secret = self.root / "secret"
        self.database = self.secret / "database"
        self.database_tmp = self.secret / "tmp"
        self.database_socket = self.secret / "mariadb.socket"
        self.state = self.root / "state"
        self.spool = self.root / "spool"
        self.devices = self.root / "dev"
        self.jobs = self.root / "jobs"

    def pid_file(self, daemon):
        return self.run / f"{daemon}.pid"

    def log_file(self, daemon):
        return self.log / f"{daemon}.log"

    def output_file(self, daemon):
        return self.log / f"{daemon}.out"

    def device(self, gpu):
        return self.devices / f"gpu{gpu}"

    def prepare(self, gpus):
        """Makes an empty cluster folder, on top of a stopped cluster's if there is one (whose jobs/ stays)."""
        for name in ("etc", "log", "run", "secret", "state", "spool", "dev"):
            shutil.rmtree(self.root / name, ignore_errors=True)
        for path, mode in ((self.etc, 0o755), (self.topology, 0o755), (self.log, 0o755), (self.run, 0o755),
                           (self.secret, 0o700), (self.database, 0o700), (self.database_tmp, 0o700),
                           (self.state, 0o700), (self.state / "slurmctld", 0o700), (self.spool, 0o755),
                           (self.devices, 0o755), (self.jobs, 0o1777)):
            path.mkdir(exist_ok=True)
            path.chmod(mode)
        for gpu in range(gpus):
            # A second /dev/null. Slurm hands out only character devices.
            try:
                os.mknod(self.device(gpu), 0o666 | stat.S_IFCHR, os.makedev(1, 3))
            except PermissionError:
                raise ClusterError(f"cannot make the device node {self.device(gpu)}: this takes root with CAP_MKNOD") from None
            self.device(gpu).chmod(0o666)

    def make_root(self):
        """Refuses a folder that holds something else, or that other users' jobs could not enter."""
        if self.root.exists() and not self.root.is_dir():
            raise UsageError(f"{self.root} is not a folder")
        if self.root.is_dir() and not self.record.exists() and any(path != self.lock for path in self.root.iterdir()):
            raise UsageError(f"{self.root} holds files that are not a cluster's: name a new or empty folder")
        if len(str(self.database_socket)) > _SOCKET_PATH_LIMIT:
            raise UsageError(f"{self.root} is too long a name: {self.database_socket} has over {_SOCKET_PATH_LIMIT} characters, "
                             "which no Unix socket can have")
        if any(character.isspace() or character in "#:,=%\"'\\" for character in str(self.root)):
            raise UsageError(f"{self.root}: a name with blanks or one of #:,=%\"'\\ cannot be written in Slurm's configuration files")
        check_users_can_enter(next(parent for parent in self.root.parents if parent.exists()), f"jobs could not run in {self.root}")
        self.root.mkdir(parents=True, exist_ok=True)
        self.root.chmod(0o755)
