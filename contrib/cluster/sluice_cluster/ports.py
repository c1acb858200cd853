# SPDX-License-Identifier: GPL-2.0-or-later
"""Free TCP ports for clusters that start at the same time on one machine."""

import fcntl
import random
import socket
from pathlib import Path

from .errors import ClusterError

# Which port belongs to which cluster folder, one `PORT FOLDER` a line. A port is looked for here as well as in the
# kernel, because a daemon that was killed has to find its port free when it is started again.
_REGISTRY = Path("/run/sluice-cluster-ports")
# Below the ports that Linux hands to outgoing connections.
_RANGE = range(20000, 32000)


def claim(count, directory):
    """`count` ports that nothing listens on and no other cluster has claimed."""
    with _Registry() as registry:
        registry.release(directory)
        chosen = []
        # From anywhere on: what cannot see this registry (a container in the same network) is seldom in the way.
        start = random.choice(_RANGE)
        for port in (*range(start, _RANGE.stop), *range(_RANGE.start, start)):
            if len(chosen) == count:
                break
            if port not in registry.owners and _is_free(port):
                chosen.append(port)
        if len(chosen) < count:
            raise ClusterError(f"only {len(chosen)} of {count} ports are free in {_RANGE.start}-{_RANGE.stop - 1}")
        registry.owners.update((port, str(directory)) for port in chosen)
        return chosen


def release(directory):
    with _Registry() as registry:
        registry.release(directory)


def is_listening(port):
    """Asks the kernel's table instead of connecting, so that no daemon logs a broken connection."""
    suffix = f":{port:04X}"
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            lines = Path(table).read_text(encoding="ascii").splitlines()[1:]
        except FileNotFoundError:
            continue
        if any(fields[1].endswith(suffix) and fields[3] == "0A" for fields in map(str.split, lines)):
            return True
    return False


def _is_free(port):
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True


class _Registry:
    """The file under its lock. Claims of folders that are gone are dropped on reading."""

    def __enter__(self):
        self._file = open(_REGISTRY, "a+", encoding="utf-8")
        fcntl.flock(self._file, fcntl.LOCK_EX)
        self._file.seek(0)
        self.owners = {}
        for line in self._file.read().splitlines():
            port, _, directory = line.partition(" ")
            if port.isdigit() and (Path(directory) / "cluster.json").exists():
                self.owners[int(port)] = directory
        return self

    def release(self, directory):
        self.owners = {port: owner for port, owner in self.owners.items() if owner != str(directory)}

    def __exit__(self, *_):
        self._file.truncate(0)
        self._file.write("".join(f"{port} {owner}\n" for port, owner in sorted(self.owners.items())))
        self._file.close()
