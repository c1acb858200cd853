# SPDX-License-Identifier: GPL-2.0-or-later
"""The text of every configuration file of a cluster. Nothing here touches the machine."""

import re

from .description import gpu_cores
from .errors import UsageError

CLUSTER_NAME = "sluice"
DATABASE = "slurm_acct_db"


class Settings:
    """Slurm's Key=Value lines, in order, keys compared without case. Lines of other kinds are kept behind them."""

    def __init__(self, defaults):
        self._values = dict(defaults)
        self._lines = []

    def change(self, text):
        """`Key=Value` sets, `Key=` takes the key out, `Key+=Value` adds to a comma list."""
        match = re.match(r"([A-Za-z_][A-Za-z0-9_]*)(\+?)=(.*)$", text, re.DOTALL)
        if not match or "\n" in text:
            raise UsageError(f"'{text}': expected Key=Value, Key= or Key+=Value")
        key, plus, value = match.groups()
        known = next((name for name in self._values if name.lower() == key.lower()), key)
        if plus and self._values.get(known, "") != "":
            value = f"{self._values[known]},{value}"
        self._values[known] = value

    def add_line(self, line):
        self._lines.append(line)

    def merge(self, line):
        """change() for a lone Key=Value, add_line() for a line of several (NodeSet=... Nodes=...)."""
        if re.match(r"[A-Za-z0-9_]+\+?=\S*$", line):
            self.change(line)
        else:
            self.add_line(line)

    def text(self):
        values = [f"{key}={value}" for key, value in self._values.items() if str(value)]
        return "\n".join(values + self._lines) + "\n"


def slurm_conf(layout, description, ports, host, listen_on_loopback, plugin_dirs, sluice, dbd):
    """`ports` maps daemon names to numbers; `sluice` says whether Sluice's plugins are on."""
    settings = Settings({
        "ClusterName": CLUSTER_NAME,
        "SlurmctldHost": f"{host}(127.0.0.1)",
        "SlurmctldPort": ports["slurmctld"],
        # With these, daemons bind to the address of the host's name instead of to every address.
        "CommunicationParameters": "NoInAddrAny,NoCtldInAddrAny" if listen_on_loopback else "",
        "SlurmUser": "root",
        "SlurmdUser": "root",
        # A requeued job may start again only when its old credential has expired: now + cred_expire + 1 s. 5 is the least.
        "AuthType": "auth/munge",
        "AuthInfo": f"socket={layout.munge_socket},cred_expire=5",
        "PluginDir": ":".join(map(str, plugin_dirs)),
        "PlugStackConfig": layout.etc / "plugstack.conf",
        "StateSaveLocation": layout.state / "slurmctld",
        "SlurmctldPidFile": layout.run / "slurmctld.own.pid",
        "SlurmdPidFile": layout.run / "slurmd.%n.own.pid",
        "SlurmdSpoolDir": layout.spool / "%n",
        "SlurmctldLogFile": layout.log / "slurmctld.log",
        "SlurmdLogFile": layout.log / "%n.log",
        "SlurmctldDebug": "verbose",
        "SlurmdDebug": "verbose",
        "SlurmctldSyslogDebug": "quiet",
        "SlurmdSyslogDebug": "quiet",
        "LogTimeFormat": "iso8601_ms",
        "MailProg": "/bin/true",
        "SelectType": "select/cons_tres_sluice" if sluice else "select/cons_tres",
        "SelectTypeParameters": "CR_Core",
        "JobSubmitPlugins": "sluice" if sluice else "",
        "GresTypes": "gpu",
        "SlurmdParameters": "config_overrides",
        "ProctrackType": "proctrack/linuxproc",
        "TaskPlugin": "task/none",
        "MpiDefault": "none",
        "JobAcctGatherType": "jobacct_gather/none",
        "PropagateResourceLimits": "NONE",
        "ReturnToService": 2,
        "JobRequeue": 1,
        "MinJobAge": 86400,
        "SchedulerType": "sched/backfill",
        # The main scheduler comes first: what backfill starts, slurmctld does not save for up to five minutes, and a slurmctld
        # that is killed before takes the job for pending, kills it, and starts it again or fails it.
        "SchedulerParameters": "sched_interval=1,sched_min_interval=10000,batch_sched_delay=0,bf_interval=5",
        # Quick for tests, yet not so quick that a busy machine looks like a dead node.
        "SlurmctldTimeout": 30,
        "SlurmdTimeout": 30,
        "InactiveLimit": 30,
        "KillWait": 2,
        "CompleteWait": 0,
        "TCPTimeout": 5,
    })
    if dbd:
        settings.change("AccountingStorageType=accounting_storage/slurmdbd")
        settings.change("AccountingStorageHost=127.0.0.1")
        settings.change(f"AccountingStoragePort={ports['slurmdbd']}")
        # With munge this "password" is the socket of the munged that slurmdbd trusts.
        settings.change(f"AccountingStoragePass={layout.munge_socket}")
        settings.change("AccountingStorageTRES=gres/gpu")
        settings.change("AccountingStoreFlags=job_comment")
    for group in description.groups:
        for name in group.names:
            gres = f" Gres={_gres(group)}" if group.gpus else ""
            settings.add_line(
                f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[name]} "
                f"Sockets={group.sockets} CoresPerSocket={group.cores_per_socket} "
                f"ThreadsPerCore={group.threads_per_core} RealMemory={group.memory_mb}{gres}")
    for partition in description.partitions or ("main Nodes=ALL Default=YES MaxTime=INFINITE State=UP",):
        settings.add_line(f"PartitionName={partition}")
    return settings


def gres_conf(layout, description):
    """GPU i of every node is the fake device gpu<i>: jobs see the digits of its name."""
    lines = []
    for group in description.groups:
        gpu_type = f" Type={group.gpu_type}" if group.gpu_type else ""
        for gpu, cores in enumerate(gpu_cores(group)):
            line = f"NodeName={group.host_list} Name=gpu{gpu_type} File={layout.device(gpu)} Cores={_ranges(cores)}"
            if group.topology:
                line += f" Links={','.join(map(str, group.topology.links[gpu]))}"
            lines.append(line)
    return "\n".join(lines) + "\n"


def slurmdbd_conf(layout, port, host, listen_on_loopback, plugin_dir):
    """StorageHost=localhost means MariaDB's socket, which slurmdbd finds in its environment (MYSQL_UNIX_PORT)."""
    loopback = "CommunicationParameters=NoInAddrAny\n" if listen_on_loopback else ""
    return f"""\
AuthType=auth/munge
AuthInfo=socket={layout.munge_socket}
DbdHost={host}
DbdAddr=127.0.0.1
DbdPort={port}
{loopback}SlurmUser=root
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=root
StorageLoc={DATABASE}
PluginDir={plugin_dir}
LogFile={layout.log}/slurmdbd.log
PidFile={layout.run}/slurmdbd.own.pid
DebugLevel=verbose
DebugLevelSyslog=quiet
LogTimeFormat=iso8601_ms
"""


def accounts(users):
    """For `sacctmgr load`: root administers; every other user has the account `default`."""
    lines = [f"Cluster - '{CLUSTER_NAME}':Fairshare=1:QOS='normal'",
             "Parent - 'root'",
             "User - 'root':DefaultAccount='root':AdminLevel='Administrator':Fairshare=1",
             "Account - 'default':Description='default':Organization='sluice':Fairshare=1",
             "Parent - 'default'"]
    lines += [f"User - '{user}':DefaultAccount='default':Fairshare=1" for user in users]
    return "\n".join(lines) + "\n"


def plugstack_conf(sluice, options):
    """`sluice` is installation.SluiceFiles or None. sluice.conf is for the controller: the agents' pace is told to the SPANK plugin."""
    if not sluice:
        return ""
    words = ["optional", str(sluice.spank)]
    if sluice.agent:
        words.append(f"agent={sluice.agent}")
    words += [f"min_interval={value}" for key, value in options.items() if key.lower() == "minsampleinterval"]
    return " ".join(words) + "\n"


def sluice_conf(layout, topologies, options):
    """`topologies`: pairs of (file name in the topology folder, host list); `options`: {key: value}."""
    settings = Settings({"TopologyDir": layout.topology})
    for key, value in options.items():
        settings.change(f"{key}={value}")
    for name, host_list in topologies:
        settings.add_line(f"Topology={name} Nodes={host_list}")
    return settings.text()


def _gres(group):
    return f"gpu:{group.gpu_type}:{group.gpus}" if group.gpu_type else f"gpu:{group.gpus}"


def _ranges(numbers):
    """[0,1,2,5] -> 0-2,5"""
    parts = []
    for number in numbers:
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in parts)
