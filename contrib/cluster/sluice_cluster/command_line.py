# SPDX-License-Identifier: GPL-2.0-or-later
"""The program `cluster`: one subcommand, one method of Cluster."""

import argparse
import os
import shlex
import signal
import sys
import time

from . import processes, releases
from .cluster import Cluster
from .errors import ClusterError, UsageError

# How the caller's shell, which is on the other side of contrib/with-release, calls this program.
_CALLED_AS = "SLUICE_CLUSTER_CALLED_AS"


def main(argv):
    own, dashes, client = _split(argv)
    parser = _parser()
    arguments = parser.parse_args(own)
    if (arguments.command is _run) != bool(dashes and client):
        parser.error("run needs a command after --: cluster run DIR -- CMD..." if arguments.command is _run
                     else "only run takes a command after --")
    arguments.client = client
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        _go_to_release(arguments, argv)
        return arguments.command(arguments)
    except ClusterError as error:
        print(f"cluster: {error}", file=sys.stderr)
        return error.exit_code
    except OSError as error:
        print(f"cluster: {error}", file=sys.stderr)
        return ClusterError.exit_code
    except KeyboardInterrupt:
        print("cluster: interrupted", file=sys.stderr)
        return 128 + signal.SIGINT


def _go_to_release(arguments, argv):
    """Does not return where the cluster is of another release of Slurm than this machine's."""
    starts = arguments.command is _start
    release = arguments.release if starts else releases.recorded(arguments.directory)
    if not release or release == releases.own():
        return
    if arguments.command is _env:
        raise ClusterError(f"the cluster's Slurm is {release}, of which this shell has no programs: "
                           f"{_self()} run {shlex.quote(arguments.directory)} -- bash")
    if starts:
        # What cannot be is said before minutes are spent on bringing the release; and the folder has to be there to be shared.
        _cluster(arguments).make_room()
    variables = {"SLUICE_BUILD": releases.build(release)} if starts and not arguments.plugin_dir else {}
    releases.run_again(release, os.path.realpath(sys.argv[0]), argv, os.path.realpath(arguments.directory),
                       **variables, **{_CALLED_AS: sys.argv[0]})


def _parser():
    parser = argparse.ArgumentParser(
        prog="cluster", description="A real private Slurm cluster on this machine, on loopback, in one scratch folder.",
        epilog="Exit status: 0 done, 1 it could not be done, 2 wrong usage, 3 bad description or topology file.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    start = _command(commands, "start", _start, "start a cluster in the folder DIR")
    start.add_argument("description", nargs="?", metavar="DESCRIPTION", help="text file; without it 4 nodes with 8 GPUs each")
    start.add_argument("--set", action="append", default=[], metavar="Key=Value", type=_key_value,
                       help="change slurm.conf: Key=Value in place of the default, Key= without it, Key+=Value added to it")
    start.add_argument("--conf", action="append", default=[], metavar="LINE", help="add a line to slurm.conf as it is")
    start.add_argument("--sluice", action="append", default=[], metavar="Key=Value", type=_key_value, help="add to sluice.conf")
    start.add_argument("--plugin-dir", action="append", default=[], metavar="FOLDER",
                       help="where Sluice's plugins are, may be given again; default: the build tree $SLUICE_BUILD, else as installed")
    start.add_argument("--stock", action="store_true", help="plain Slurm, without Sluice")
    start.add_argument("--release", metavar="RELEASE", type=_release,
                       help="of Slurm, one of contrib/with-release --releases; default: this machine's. Another one is brought and Sluice built for it")
    start.add_argument("--no-dbd", action="store_true", help="no accounting: neither MariaDB nor slurmdbd")

    _command(commands, "stop", _stop, "end every process of the cluster, jobs included")
    _command(commands, "env", _env, "print the lines that make a shell a client of the cluster")
    run = _command(commands, "run", _run, "run a command as a client of the cluster")
    run.usage = "cluster run DIR -- CMD..."
    kill = _command(commands, "kill", _kill, "send a signal to one daemon")
    kill.add_argument("daemon", metavar="DAEMON", help="munged, mariadbd, slurmdbd, slurmctld, or a node's name for its slurmd")
    kill.add_argument("--signal", type=_signal, default=signal.SIGKILL, metavar="SIGNAL", help="number or name, default 9")
    restart = _command(commands, "restart", _restart, "end one daemon if it runs, and start it")
    restart.add_argument("daemon", metavar="DAEMON", help="as for kill")
    _command(commands, "status", _status, "show what runs; exit status 1 unless all of it does")
    return parser


def _split(argv):
    """At the first --, whose right side argparse is not to touch."""
    if "--" not in argv:
        return argv, False, []
    position = argv.index("--")
    return argv[:position], True, argv[position + 1:]


def _command(commands, name, function, text):
    command = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
    command.set_defaults(command=function)
    command.add_argument("directory", metavar="DIR", help="the cluster's folder")
    return command


def _key_value(text):
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise argparse.ArgumentTypeError(f"'{text}' is not Key=Value")
    return key, value


def _signal(text):
    try:
        return signal.Signals(int(text)) if text.isdigit() else signal.Signals["SIG" + text.upper().removeprefix("SIG")]
    except (KeyError, ValueError):
        raise argparse.ArgumentTypeError(f"'{text}' is not a signal: give a number or a name such as 9 or KILL") from None


def _release(text):
    known = releases.known()
    if text in known:
        return text
    series = next((release for release in known if text.startswith(f"{release}.")), None)
    raise argparse.ArgumentTypeError(f"write {series}: Debian decides which release of that series it has" if series
                                     else f"'{text}' is none of {', '.join(known)}")


def _cluster(arguments):
    """The one to be started."""
    if arguments.stock and (arguments.sluice or arguments.plugin_dir):
        raise UsageError("--stock leaves Sluice out, so --sluice and --plugin-dir make no sense with it")
    return Cluster(arguments.directory, arguments.description, stock=arguments.stock, dbd=not arguments.no_dbd,
                   plugin_dirs=arguments.plugin_dir, sluice=dict(arguments.sluice), settings=dict(arguments.set), conf=arguments.conf)


def _start(arguments):
    began = time.monotonic()
    cluster = _cluster(arguments)
    cluster.start()
    groups = ", ".join(f"{group.host_list} with {group.gpus} fake GPUs each" for group in cluster.description.groups)
    mode = "stock Slurm" if arguments.stock else "Slurm with Sluice"
    for line in cluster.log("slurmctld").splitlines():
        if " error: sluice: " in line:
            print(f"cluster: {line.partition(' error: ')[2]}", file=sys.stderr)
    print(f"{mode} runs in {cluster.directory}: {groups} (started in {time.monotonic() - began:.1f} s)")
    name = shlex.quote(str(cluster.directory))
    # The programs of another release are not to be had by setting variables.
    print(f"use it:  {_self()} run {name} -- bash" if _CALLED_AS in os.environ else f"use it:  eval \"$({_self()} env {name})\"")
    print(f"end it:  {_self()} stop {name}")
    return 0


def _stop(arguments):
    cluster = Cluster(arguments.directory)
    before = len(processes.find(cluster.directory))
    cluster.stop()
    print(f"{before} processes of {cluster.directory} ended, none is left" if before else f"nothing runs in {cluster.directory}")
    return 0


def _env(arguments):
    cluster = Cluster.attach(arguments.directory)
    for key, value in cluster.environment().items():
        print(f"export {key}={shlex.quote(value)}")
    if cluster.programs:
        print(f"export PATH={shlex.quote(cluster.programs)}:\"$PATH\"")
    return 0


def _run(arguments):
    env = Cluster.attach(arguments.directory).client_environment()
    env.pop(_CALLED_AS, None)
    try:
        os.execvpe(arguments.client[0], arguments.client, env)
    except OSError as error:
        print(f"cluster: {arguments.client[0]}: {error.strerror}", file=sys.stderr)
        return 127


def _kill(arguments):
    Cluster.attach(arguments.directory).kill(arguments.daemon, arguments.signal)
    return 0


def _restart(arguments):
    Cluster.attach(arguments.directory).restart(arguments.daemon)
    return 0


def _status(arguments):
    cluster = Cluster.attach(arguments.directory)
    rows = cluster.status()
    for daemon, pid, port in rows:
        print(f"{daemon:<12} {f'pid {pid}' if pid else 'not running':<14} {f'port {port}' if port else ''}".rstrip())
    return 0 if all(pid for _, pid, _ in rows) else 1


def _self():
    return shlex.quote(os.environ.get(_CALLED_AS, sys.argv[0]))
