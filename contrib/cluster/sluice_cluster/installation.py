# SPDX-License-Identifier: GPL-2.0-or-later
"""Where Slurm, MariaDB and Sluice's own plugins are on this machine."""

import os
import re
import shutil
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from .errors import ClusterError

_SEARCH_PATH = os.pathsep.join((os.environ.get("PATH", ""), "/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/local/bin", "/usr/bin"))
_PACKAGES = {
    "slurmctld": "slurmctld", "slurmd": "slurmd", "scontrol": "slurm-client", "sacctmgr": "slurm-client",
    "slurmdbd": "slurmdbd", "munged": "munge", "mariadbd": "mariadb-server",
}
# what Slurm loads, and the parts that lie beside it -> where it is in a build tree
_PLUGINS = {
    "select_cons_tres_sluice.so": "plugins/select/.libs",
    "sluice_select.so": "plugins/select/.libs",
    "job_submit_sluice.so": "plugins/job_submit/.libs",
    "spank_sluice.so": "plugins/spank/.libs",
    "sluice_spank.so": "plugins/spank/.libs",
}


@dataclass(frozen=True)
class SluiceFiles:
    """agent is None where the plugin knows the place by itself, which is everywhere but in a build tree."""

    plugin_dirs: tuple
    spank: Path
    agent: Optional[Path]


def program(name):
    found = shutil.which(name, path=_SEARCH_PATH)
    if not found:
        raise ClusterError(f"{name} is not installed: on Debian, apt-get install {_PACKAGES.get(name, name)}")
    return found


def slurm_release():
    """(24, 11) for Slurm 24.11.5."""
    version = subprocess.run([program("slurmctld"), "-V"], capture_output=True, text=True, check=False).stdout
    release = re.search(r"slurm\S* (\d+)\.(\d+)\.", version)
    if not release:
        raise ClusterError(f"slurmctld -V says {version!r}, which names no release")
    return int(release[1]), int(release[2])


def built_tool():
    """The program `sluice` of the build tree $SLUICE_BUILD, or None."""
    build = os.environ.get("SLUICE_BUILD")
    path = Path(build, "contrib/sluice/sluice").resolve() if build else None
    return path if path and os.path.exists(path) else None  # not that of pathlib, which raises where one may not look


def mariadb_system_tables():
    """The SQL that makes MariaDB's own tables."""
    for folder in ("/usr/share/mysql", "/usr/share/mariadb"):
        for name in ("mysql_system_tables.sql", "mariadb_system_tables.sql"):
            if (path := Path(folder, name)).exists():
                return path
    raise ClusterError("MariaDB's mysql_system_tables.sql is in neither /usr/share/mysql nor /usr/share/mariadb")


def slurm_plugin_dir():
    """Slurm tells its plugin folder only with a configuration at hand, but keeps libslurmfull.so there."""
    listing = subprocess.run(["ldd", program("slurmctld")], capture_output=True, text=True, check=False).stdout
    for line in listing.splitlines():
        name, _, target = line.partition(" => ")
        if name.strip() == "libslurmfull.so" and target.startswith("/"):
            return Path(target.split(" (")[0]).parent
    raise ClusterError("cannot tell Slurm's plugin folder: slurmctld is not linked with libslurmfull.so")


def sluice_files(plugin_dirs):
    """Sluice's plugins: in `plugin_dirs`, else in the build tree $SLUICE_BUILD, else where they are installed."""
    build = os.environ.get("SLUICE_BUILD")
    if plugin_dirs:
        folders = [Path(folder).resolve() for folder in plugin_dirs]
    elif build:
        folders = [Path(build).resolve() / folder for folder in _PLUGINS.values()]
    else:
        folders = [slurm_plugin_dir()]
    found = {name: next((folder for folder in folders if (folder / name).exists()), None) for name in _PLUGINS}
    missing = [name for name, folder in found.items() if not folder]
    if missing:
        raise ClusterError(f"no {', '.join(missing)} in {', '.join(map(str, folders))}: build Sluice and set SLUICE_BUILD to the "
                           "build folder, name the folders with --plugin-dir, or leave Sluice out with --stock")
    for name, folder in found.items():
        check_users_can_enter(folder, f"their sbatch could not load {folder / name}")
    spank = found["spank_sluice.so"] / "spank_sluice.so"
    # In a build tree the program lies beside .libs (a script of libtool's, which sets the library path).
    agent = spank.parent.parent / "sluice-agent"
    return SluiceFiles(tuple(dict.fromkeys(found.values())), spank, agent if spank.parent.name == ".libs" and agent.exists() else None)


def check_users_can_enter(folder, otherwise):
    for place in (folder, *folder.parents):
        if not place.stat().st_mode & stat.S_IXOTH:
            raise ClusterError(f"users cannot enter {place}, so {otherwise}: chmod o+x {place}, or take another folder")
