# SPDX-License-Identifier: GPL-2.0-or-later
"""Starts the daemons of a cluster so that each of them, and everything that they start, can be found again.

Every daemon gets a UTS namespace of its own with the cluster's label as its NIS domain name, which nothing else uses.
Children stay in it whatever they do: a job's process that has left its parent, session and environment still carries the
label, and no record of pids is needed, so a cluster is found after any of it, or the program that started it, was killed.

Where making namespaces is forbidden (a container without CAP_SYS_ADMIN), what is found is: daemons and jobs by their
environment, slurmstepd, which wipes its own, by its folder and files, and the descendants of those. Then only a job's process that
has left both its environment and its parents escapes.
"""

import contextlib
import ctypes
import hashlib
import os
import signal
import subprocess
import time
from pathlib import Path

_MARKER = "SLUICE_CLUSTER"
_CLONE_NEWUTS = 0x04000000
_libc = ctypes.CDLL(None)


def client_environment(directory):
    """The caller's environment for a client of the cluster, free of the variables of any other Slurm."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("SLURM_") and key != _MARKER}
    return {**env, "SLURM_CONF": f"{directory}/etc/slurm.conf"}


def spawn(argv, directory, output, extra_env=None, stdin=subprocess.DEVNULL):
    """Starts a daemon in a session of its own, with stdout and stderr appended to the file `output`."""
    env = {**client_environment(directory), _MARKER: str(directory), **(extra_env or {})}
    with open(output, "ab") as log, _labelled(directory):
        return subprocess.Popen(argv, cwd=f"{directory}/log", env=env, stdin=stdin, stdout=log, stderr=log, start_new_session=True)


def is_alive(pid):
    """False for a process that has ended, all of its threads with it, and only waits for its parent to ask."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
        return stat[stat.rindex(b")") + 2:][:1] not in (b"Z", b"X") or len(os.listdir(f"/proc/{pid}/task")) > 1
    except OSError:
        return False


def send(pid, number):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def find(directory):
    """All living processes of the cluster, as sorted pids. Never this process or one that it was started by."""
    parents = {int(entry): _parent(entry) for entry in os.listdir("/proc") if entry.isdigit()}
    found = set(_in_labelled_namespaces(parents, directory))
    found.update(pid for pid in parents if _is_marked(pid, directory))
    children = {}
    for pid, parent in parents.items():
        children.setdefault(parent, []).append(pid)
    pending = list(found)
    while pending:
        for child in children.get(pending.pop(), []):
            if child not in found:
                found.add(child)
                pending.append(child)
    pid = os.getpid()
    while pid:
        found.discard(pid)
        pid = parents.get(pid, 0)
    return sorted(pid for pid in found if is_alive(pid))


def kill_all(directory, spare=(), seconds=20.0):
    """SIGKILL until no process is found, `spare` excepted. Returns what is left at the deadline."""
    deadline = time.monotonic() + seconds
    while left := [pid for pid in find(directory) if pid not in spare]:
        for pid in left:
            send(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            break
        time.sleep(0.02)
    return left


def command_line(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""


def _label(directory):
    return b"sluice-" + hashlib.sha256(os.fsencode(str(directory))).hexdigest()[:40].encode()


@contextlib.contextmanager
def _own_namespace():
    """Brings the calling thread, and no other, back to the UTS namespace that it is in now."""
    own = os.open("/proc/thread-self/ns/uts", os.O_RDONLY)
    try:
        yield
    finally:
        _libc.setns(own, _CLONE_NEWUTS)
        os.close(own)


@contextlib.contextmanager
def _labelled(directory):
    """Children that the calling thread starts meanwhile are in a namespace with the cluster's label, if that is allowed."""
    with _own_namespace():
        if _libc.unshare(_CLONE_NEWUTS) == 0:
            label = _label(directory)
            _libc.setdomainname(label, len(label))
        yield


def _in_labelled_namespaces(pids, directory):
    """Visits each foreign UTS namespace once and reads its domain name there."""
    members = {}
    for pid in pids:
        with contextlib.suppress(OSError):
            members.setdefault(os.readlink(f"/proc/{pid}/ns/uts"), []).append(pid)
    members.pop(os.readlink("/proc/self/ns/uts"), None)
    with _own_namespace():
        for group in members.values():
            if _domain_name_at(group) == _label(directory):
                yield from group


def _domain_name_at(pids):
    for pid in pids:
        with contextlib.suppress(OSError):
            namespace = os.open(f"/proc/{pid}/ns/uts", os.O_RDONLY)
            entered = _libc.setns(namespace, _CLONE_NEWUTS) == 0
            os.close(namespace)
            if entered:
                return Path("/proc/sys/kernel/domainname").read_bytes().strip()
    return b""


def _parent(pid):
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return 0
    return int(stat[stat.rindex(b")") + 2:].split()[1])


def _is_marked(pid, directory):
    try:
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        path = os.fsencode(str(directory))
        if _MARKER.encode() + b"=" + path in variables:
            return True
        if b"SLURM_CONF=" + path + b"/etc/slurm.conf" in variables:
            if any(variable.startswith(b"SLURMD_NODENAME=") for variable in variables):
                return True
        # Debian's is slurmstepd-wlm.
        return os.path.basename(os.readlink(f"/proc/{pid}/exe")).startswith(("slurmctld", "slurmstepd")) and _uses(pid, directory)
    except OSError:
        return False


def _uses(pid, directory):
    """Works in the folder, or has a file below it open."""
    for link in (Path(f"/proc/{pid}/cwd"), *Path(f"/proc/{pid}/fd").iterdir()):
        with contextlib.suppress(OSError):
            if os.readlink(link).startswith(f"{directory}/"):
                return True
    return False
