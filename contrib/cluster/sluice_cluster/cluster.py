# SPDX-License-Identifier: GPL-2.0-or-later
"""A private Slurm cluster: its start, its end, and what tests ask of it in between."""

import contextlib
import fcntl
import json
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

from . import config_files, description as descriptions, installation, ports, processes, records, releases
from .errors import ClusterError, UsageError
from .layout import Layout

_READY_SECONDS = 60
_STOP_SECONDS = 20
_TAIL_LINES = 15
_CONTROLLER_AWAY = ("Unable to contact slurm controller", "Connection refused", "Connection reset", "Socket timed out",
                    "Zero Bytes were transmitted", "Slurm backup controller in standby mode")
_ENDED = {"BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "TIMEOUT"}
# They outlive the others: slurmdbd takes slurmctld's last records, MariaDB slurmdbd's.
_LAST_TO_STOP = ("slurmdbd", "mariadbd", "munged")


def wait_for(condition, seconds, what):
    """Polls until condition() is true and returns its value. ClusterError after `seconds`, with the text `what` or what() in it."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise ClusterError(f"not within {seconds} s: {what() if callable(what) else what}")
        time.sleep(0.03)
    return value


class Cluster:
    """One cluster in the folder `directory`. As a context manager it is started on entry and stopped on exit.

    description   path of a description, its text (anything with a line end), a Description, or None for 4 nodes x 8 GPUs
    stock         True: plain Slurm. False: with Sluice's plugins, from plugin_dirs, $SLUICE_BUILD, or as installed
    dbd           False: no MariaDB and no slurmdbd, thus no accounting
    sluice        {key: value} for sluice.conf
    settings      {key: value} for slurm.conf in place of the defaults; the key "Key+" adds to a comma list, the value "" takes out
    conf          lines for slurm.conf as they are
    """

    def __init__(self, directory, description=None, *, stock=False, dbd=True, plugin_dirs=(), sluice=None, settings=None, conf=()):
        self.layout = Layout(directory)
        self.description = _description(description)
        self.stock = stock
        self.dbd = dbd
        self.plugin_dirs = plugin_dirs
        self.sluice = dict(sluice or {})
        self.settings = dict(settings or {})
        self.conf = conf
        self.nodes = self.description.node_names
        self.ports = {}
        self.programs = _built_programs()
        self._children = {}

    @classmethod
    def attach(cls, directory):
        """The cluster that somebody else has started in `directory`."""
        layout = Layout(directory)
        try:
            record = json.loads(layout.record.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise ClusterError(f"there is no cluster in {layout.root}") from None
        if not record:
            raise ClusterError(f"the start of the cluster in {layout.root} was cut off: stop it, and start it again")
        cluster = cls(directory, stock=record["stock"], dbd=record["dbd"])
        cluster.nodes = record["nodes"]
        cluster.ports = record["ports"]
        cluster.programs = record.get("programs") or cluster.programs
        return cluster

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()

    @property
    def directory(self):
        return self.layout.root

    @property
    def daemons(self):
        """Names in the order of starting."""
        database = ["mariadbd", "slurmdbd"] if self.dbd else []
        return ["munged", *database, "slurmctld", *self.nodes]

    # Start and end

    def start(self):
        """Returns when every node is idle. On failure nothing is left running, and the ClusterError says which daemon it was."""
        self.make_room()
        with self._lock(wait=False):
            self._refuse_a_second()
            try:
                self._write_files()
                self._start_daemons()
            except BaseException:
                processes.kill_all(self.directory)  # there is nothing that they would have to save
                ports.release(self.directory)
                raise

    def make_room(self):
        """Makes the folder, or raises because a cluster cannot be started in it."""
        _require_root()
        self.layout.make_root()
        self._refuse_a_second()

    def stop(self):
        """Ends every daemon and job, whatever state they are in. ClusterError if anything survives. May be called twice."""
        _require_root()
        with self._lock(wait=True):
            left = self._end_processes()
            ports.release(self.directory)
        if left:
            listing = "\n".join(f"  {pid} {processes.command_line(pid)}" for pid in left)
            raise ClusterError(f"these processes of {self.directory} do not end:\n{listing}")

    def kill(self, daemon, number=signal.SIGKILL):
        """Sends a signal to one daemon and nothing else; slurmstepds and jobs stay. After SIGKILL it is gone on return."""
        pid = self.pid(daemon)
        if not pid:
            raise ClusterError(f"{daemon} is not running")
        processes.send(pid, number)
        if number == signal.SIGKILL:
            wait_for(lambda: not self._is_alive(pid), _STOP_SECONDS, f"the end of {daemon}, pid {pid}")

    def restart(self, daemon):
        """Ends the daemon if it runs, starts it, and returns when it is ready."""
        _require_root()
        with self._lock(wait=True):
            if pid := self.pid(daemon):
                self._end_gracefully([pid])
            self._launch(daemon)
            if daemon in self.nodes and self.pid("slurmctld"):
                self._wait_nodes([daemon])

    # Questions

    def pid(self, daemon):
        """None when the daemon does not run."""
        self._check_name(daemon)
        return self._recorded_pids().get(daemon)

    def status(self):
        """[(daemon, pid or None, port or None)] in the order of starting."""
        pids = self._recorded_pids()
        return [(daemon, pids.get(daemon), self.ports.get(daemon)) for daemon in self.daemons]

    def log(self, daemon):
        """The daemon's log so far, as text."""
        self._check_name(daemon)
        return _text(self.layout.log_file(daemon)) or _text(self.layout.output_file(daemon))

    def environment(self):
        """What a client needs beyond its own environment."""
        return {"SLURM_CONF": str(self.layout.slurm_conf)}

    def client_environment(self):
        """The whole environment of a client: the caller's, without another Slurm's variables, with environment() and the build's programs."""
        environment = processes.client_environment(self.directory)
        if self.programs:
            environment["PATH"] = os.pathsep.join(filter(None, (self.programs, environment.get("PATH"))))
        return environment

    def run(self, argv, *, user=None, check=True, timeout=120, input=None, env=None, cwd=None):
        """Runs a command as a client of the cluster, as `user` if given, in the folder jobs/ unless `cwd` says otherwise.

        Returns subprocess.CompletedProcess with text. With check, an exit status other than 0 is a ClusterError.
        """
        account = {}
        environment = {**self.client_environment(), **(env or {})}
        if user:
            entry = pwd.getpwnam(user)
            account = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": os.getgrouplist(user, entry.pw_gid)}
            environment.update(HOME=entry.pw_dir, USER=user, LOGNAME=user)
        words = [str(word) for word in argv]
        try:
            result = subprocess.run(words, env=environment, cwd=cwd or self.layout.jobs, timeout=timeout,
                                    input=input, stdin=subprocess.DEVNULL if input is None else None,
                                    capture_output=True, text=True, errors="replace", check=False, **account)
        except subprocess.TimeoutExpired:
            raise ClusterError(f"{' '.join(words)}: not done within {timeout} s") from None
        if check and result.returncode:
            raise _failed(result)
        return result

    def query(self, argv, *, seconds=60, **arguments):
        """As run(), but a controller that does not answer is asked again until `seconds` have passed."""
        deadline = time.monotonic() + seconds
        while True:
            result = self.run(argv, check=False, **arguments)
            if result.returncode == 0:
                return result
            text = result.stdout + result.stderr
            if time.monotonic() > deadline or not any(reason in text for reason in _CONTROLLER_AWAY):
                raise _failed(result)
            time.sleep(0.1)

    def sbatch(self, args, script, *, user=None, env=None, cwd=None):
        """Submits the text `script` (a first line #! is added when it lacks one) and returns the job id."""
        if not script.startswith("#!"):
            script = "#!/bin/sh\n" + script
        result = self.query(["sbatch", "--parsable", *args], input=script, user=user, env=env, cwd=cwd)
        return int(result.stdout.split(";")[0])

    def jobs(self):
        """{job id: fields of `scontrol -d show job`}, ended jobs included."""
        return {int(fields["JobId"]): fields for fields in map(records.parse_line, self._records("job"))}

    def job(self, job_id):
        try:
            return self.jobs()[job_id]
        except KeyError:
            raise ClusterError(f"slurmctld knows no job {job_id}") from None

    def node_records(self, seconds=60):
        """{node: fields of `scontrol -d show node`}; `seconds` as for query()."""
        return {fields["NodeName"]: fields for fields in map(records.parse_line, self._records("node", seconds))}

    def node_gres(self):
        """{node: set of the GPU indexes in use}, as the nodes' records say."""
        return {name: records.gpu_indexes(fields.get("GresUsed", "")) for name, fields in self.node_records().items()}

    def job_gres(self):
        """{job id: {node: set of GPU indexes}} of the jobs that hold GPUs, as the jobs' records say."""
        held = {}
        for line in self._records("job"):
            if gpus := records.job_gpus(line):
                held[int(records.parse_line(line)["JobId"])] = gpus
        return held

    def wait_job(self, job_id, states="COMPLETED", timeout=60):
        """The job's fields once it is in one of `states`. ClusterError at the deadline, or when it has ended in another state."""
        wanted = {states} if isinstance(states, str) else set(states)
        deadline = time.monotonic() + timeout
        while True:
            fields = self.job(job_id)
            state = fields["JobState"]
            if state in wanted:
                return fields
            if state in _ENDED or time.monotonic() > deadline:
                raise ClusterError(f"job {job_id} is {state} (Reason={fields['Reason']}, ExitCode={fields['ExitCode']}), "
                                   f"expected {' or '.join(sorted(wanted))}")
            time.sleep(0.1)

    # How it is done

    def _records(self, kind, seconds=60):
        lines = self.query(["scontrol", "-o", "-d", "show", kind], seconds=seconds).stdout.splitlines()
        return [line for line in lines if line.startswith(("JobId=", "NodeName="))]

    def _refuse_a_second(self):
        if processes.find(self.directory):
            raise ClusterError(f"a cluster is running in {self.directory}: stop it first")

    def _check_name(self, daemon):
        if daemon not in self.daemons:
            raise UsageError(f"no daemon '{daemon}' in {self.directory}: there are {', '.join(self.daemons)}")

    @contextlib.contextmanager
    def _lock(self, wait):
        """One start, stop or restart at a time. A program that is killed loses the lock."""
        if not self.directory.is_dir():
            yield
            return
        with open(self.layout.lock, "w", encoding="ascii") as lock:
            deadline = time.monotonic() + (_READY_SECONDS if wait else 0)
            while True:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > deadline:
                        raise ClusterError(f"another start, stop or restart is at work in {self.directory}") from None
                    time.sleep(0.05)
            yield

    def _write_files(self):
        layout = self.layout
        sluice = None if self.stock else installation.sluice_files(self.plugin_dirs)
        slurm_plugins = installation.slurm_plugin_dir()
        given = [Path(folder).resolve() for folder in self.plugin_dirs]
        plugin_dirs = dict.fromkeys([*given, *(sluice.plugin_dirs if sluice else ()), slurm_plugins])
        host, loopback = _host()
        _write(layout.record, "{}")
        layout.prepare(self.description.most_gpus)
        with_port = [daemon for daemon in self.daemons if daemon not in ("munged", "mariadbd")]
        self.ports = dict(zip(with_port, ports.claim(len(with_port), self.directory)))

        settings = config_files.slurm_conf(layout, self.description, self.ports, host, loopback, plugin_dirs, sluice, self.dbd)
        for line in self.description.slurm_lines:
            settings.merge(line)
        for key, value in self.settings.items():
            settings.change(f"{key}={value}")
        for line in self.conf:
            settings.add_line(line)
        _write(layout.slurm_conf, settings.text())
        _write(layout.etc / "gres.conf", config_files.gres_conf(layout, self.description))
        _write(layout.etc / "plugstack.conf", config_files.plugstack_conf(sluice, self.sluice))
        if self.dbd:
            _write(layout.etc / "slurmdbd.conf",
                   config_files.slurmdbd_conf(layout, self.ports["slurmdbd"], host, loopback, slurm_plugins), 0o600)
            _write(layout.secret / "accounts", config_files.accounts(_login_users()))
        if sluice:
            _write(layout.etc / "sluice.conf", config_files.sluice_conf(layout, self._copy_topologies(), self.sluice))
        (layout.secret / "munge.key").write_bytes(secrets.token_bytes(128))
        (layout.secret / "munge.key").chmod(0o600)
        _write(layout.record, json.dumps({"release": releases.own(), "stock": self.stock, "dbd": self.dbd, "nodes": self.nodes,
                                          "ports": self.ports, "programs": self.programs}, indent=1))

    def _copy_topologies(self):
        """Puts each topology file where Sluice looks for it. Returns (file name, host list) of every group that has one."""
        copied = []
        for number, group in enumerate(self.description.groups, 1):
            if group.topology_file:
                kind = ".xml" if group.topology_file.suffix == ".xml" else ".topo.txt"
                name = f"class{number}-{group.topology_file.name.split('.')[0]}{kind}"
                shutil.copyfile(group.topology_file, self.layout.topology / name)
                copied.append((name, group.host_list))
        return copied

    def _start_daemons(self):
        self._spawn("munged")
        if self.dbd:
            self._make_database()
            self._launch("mariadbd")
        self._wait_ready("munged")
        if self.dbd:
            self._launch("slurmdbd")
            self.run(["sacctmgr", "-i", "load", self.layout.secret / "accounts"])
        self._launch("slurmctld")
        for node in self.nodes:
            self._spawn(node)
        self._wait_nodes(self.nodes)

    def _make_database(self):
        """MariaDB's system tables, and root as the only account, known by its user id and not by a password."""
        sql = ("CREATE DATABASE mysql;\nUSE mysql;\nSET @auth_root_socket=NULL;\n"
               + installation.mariadb_system_tables().read_text(encoding="utf-8")
               + "INSERT INTO global_priv VALUES ('localhost', 'root', "
                 "'{\"access\":18446744073709551615,\"plugin\":\"unix_socket\"}');\n"
               # slurmdbd would make it, but with libmariadb 11.8.9 cannot go on in the connection that missed it.
               + f"CREATE DATABASE {config_files.DATABASE};\n")
        script = self.layout.secret / "system_tables.sql"
        _write(script, sql)
        with open(script, encoding="utf-8") as tables:
            child = self._spawn("mariadbd", ["--bootstrap"], tables)
        wait_for(lambda: child.poll() is not None, _READY_SECONDS, "the end of mariadbd --bootstrap")
        if child.returncode:
            raise ClusterError(f"mariadbd --bootstrap ended with status {child.returncode}; {self._tail('mariadbd')}")

    def _mariadbd(self):
        """Small and with few writes: a killed daemon loses nothing, a killed machine may. With a tmpdir of its own, because at
        start a mariadbd removes every other one's temporary tables from there."""
        return [installation.program("mariadbd"), "--no-defaults", "--user=root", "--skip-networking",
                f"--datadir={self.layout.database}", f"--tmpdir={self.layout.database_tmp}", f"--socket={self.layout.database_socket}",
                f"--pid-file={self.layout.run}/mariadbd.own.pid", "--skip-log-bin", "--performance-schema=off",
                "--innodb-buffer-pool-size=64M", "--innodb-log-file-size=16M", "--innodb-flush-log-at-trx-commit=2",
                "--innodb-temp-data-file-path=ibtmp1:1M:autoextend", "--innodb-lock-wait-timeout=900", "--aria-log-file-size=8M"]

    def _command(self, daemon):
        """(argv, variables to add) that run the daemon in the foreground."""
        layout = self.layout
        if daemon == "munged":
            return [installation.program("munged"), "--foreground", f"--socket={layout.munge_socket}",
                    f"--key-file={layout.secret}/munge.key", f"--seed-file={layout.secret}/munge.seed",
                    f"--pid-file={layout.run}/munged.own.pid", f"--log-file={layout.log_file('munged')}", "--force"], {}
        if daemon == "mariadbd":
            return self._mariadbd(), {}
        if daemon == "slurmdbd":
            return [installation.program("slurmdbd"), "-D"], {"MYSQL_UNIX_PORT": str(layout.database_socket)}
        if daemon == "slurmctld":
            return [installation.program("slurmctld"), "-D"], {}
        return [installation.program("slurmd"), "-D", "-N", daemon], {}

    def _launch(self, daemon):
        self._spawn(daemon)
        self._wait_ready(daemon)

    def _spawn(self, daemon, options=(), stdin=subprocess.DEVNULL):
        if daemon in self._children:
            self._children[daemon].wait(_STOP_SECONDS)
        argv, variables = self._command(daemon)
        child = processes.spawn([*argv, *options], self.directory, self.layout.output_file(daemon), variables, stdin)
        self._children[daemon] = child
        _write(self.layout.pid_file(daemon), f"{child.pid}\n")
        return child

    def _wait_ready(self, daemon):
        child = self._children[daemon]

        def ready():
            if child.poll() is not None:
                raise ClusterError(f"{daemon} ended with status {child.returncode}; {self._tail(daemon)}")
            if daemon in self.ports:
                return ports.is_listening(self.ports[daemon])
            return _accepts(self.layout.munge_socket if daemon == "munged" else self.layout.database_socket)

        wait_for(ready, _READY_SECONDS, lambda: f"{daemon} does not answer; {self._tail(daemon)}")

    def _wait_nodes(self, names):
        """Until the nodes have registered and can take jobs."""
        problem = ""

        def ready():
            nonlocal problem
            pids = self._recorded_pids()
            for daemon in [*names, "slurmctld"]:
                child = self._children.get(daemon)
                # A process that is just replacing its program has no environment to be known by.
                if daemon not in pids and (child is None or child.poll() is not None):
                    status = f" with status {child.returncode}" if child else ""
                    raise ClusterError(f"{daemon} has ended{status}; {self._tail(daemon)}")
            try:
                nodes = self.node_records(seconds=0)
            except ClusterError as error:
                problem = str(error)
                return False
            down = next((nodes[name] for name in names if not _is_up(nodes[name])), None)
            if down:
                name, state, reason = down["NodeName"], down["State"], down.get("Reason", "none")
                problem = f"{name} is {state}, Reason={reason}; {self._tail(name)}"
            return not down

        wait_for(ready, _READY_SECONDS, lambda: f"nodes do not come up: {problem}")

    def _tail(self, daemon):
        """Of what it printed, which has what comes before the log is opened and after a crash too."""
        path = self.layout.output_file(daemon)
        lines = _text(path).splitlines()[-_TAIL_LINES:]
        return f"the end of its log ({path}):\n" + "\n".join(f"  {line}" for line in lines)

    def _is_alive(self, pid):
        """Reaps what this very process has started, or it would look alive for ever."""
        for child in self._children.values():
            child.poll()
        return processes.is_alive(pid)

    def _recorded_pids(self):
        """{daemon: pid} of those that live. A pid that meanwhile belongs to another program does not count."""
        _require_root()
        pids = {}
        for path in self.layout.run.glob("*.pid"):
            if path.name.endswith(".own.pid"):
                continue
            text = path.read_text(encoding="ascii").strip()
            if text.isdigit() and self._is_alive(int(text)):
                pids[path.stem] = int(text)
        ours = set(processes.find(self.directory)) if pids else ()
        return {daemon: pid for daemon, pid in pids.items() if pid in ours}

    def _end_gracefully(self, pids):
        for number in (signal.SIGTERM, signal.SIGKILL):
            pids = [pid for pid in pids if self._is_alive(pid)]
            for pid in pids:
                processes.send(pid, number)
                processes.send(pid, signal.SIGCONT)
            deadline = time.monotonic() + _STOP_SECONDS
            while any(self._is_alive(pid) for pid in pids) and time.monotonic() < deadline:
                time.sleep(0.02)

    def _end_processes(self):
        """Daemons get the chance to save their state; jobs do not. Returns the pids that are left."""
        pids = self._recorded_pids()
        last = {daemon: pids.pop(daemon) for daemon in _LAST_TO_STOP if daemon in pids}
        self._end_gracefully(pids.values())
        processes.kill_all(self.directory, spare=last.values())
        if "slurmdbd" in last:
            self._end_gracefully([last["slurmdbd"]])
        # The other two have nothing to save, and a MariaDB that is not yet ready does not end by SIGTERM.
        left = processes.kill_all(self.directory)
        for child in self._children.values():
            child.poll()
        return left


def _built_programs():
    """The folder of the build tree's `sluice`; None without one."""
    tool = installation.built_tool()
    return str(tool.parent) if tool else None


def _require_root():
    if os.geteuid() != 0:
        raise ClusterError("this takes root: a cluster has device nodes, and processes of several users")


def _description(source):
    if source is None:
        return descriptions.parse(descriptions.DEFAULT_TEXT)
    if isinstance(source, descriptions.Description):
        return source
    if isinstance(source, str) and "\n" in source:
        return descriptions.parse(source)
    return descriptions.read(source)


def _failed(result):
    return ClusterError(f"{' '.join(result.args)}: exit status {result.returncode}\n{result.stdout}{result.stderr}".rstrip())


def _host():
    """The short name of this host, and whether it stands for 127.0.0.1, where alone daemons then listen."""
    name = socket.gethostname()
    try:
        loopback = socket.gethostbyname(name) == "127.0.0.1"
    except OSError:
        loopback = False
    return name.split(".")[0], loopback


def _login_users():
    """Everyone who may want an account beside root: nobody, and who can log in."""
    return ["nobody", *(entry.pw_name for entry in pwd.getpwall() if 1000 <= entry.pw_uid < 60000 and entry.pw_name != "nobody")]


def _accepts(path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return False
    return True


def _is_up(fields):
    """IDLE, MIXED or ALLOCATED, with a daemon that answers."""
    state = fields["State"]
    return state.split("+")[0] in ("IDLE", "MIXED", "ALLOCATED") and not any(flag in state for flag in "*#!$@^-") and "INVAL" not in state


def _text(path):
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""


def _write(path, text, mode=0o644):
    """Whole or not at all."""
    new = path.with_name(path.name + ".new")
    with open(new, "w", encoding="utf-8", opener=lambda name, flags: os.open(name, flags, mode)) as file:
        os.fchmod(file.fileno(), mode)
        file.write(text)
    new.rename(path)
