#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The rules of the tree, as CONTRIBUTING.md and the folders' READMEs state them, and what the built objects export and need.

    rules_test.py --update     writes common/libsluice.symbols anew, from the build in $SLUICE_BUILD
"""

import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

from harness import RELEASE, ROOT, build_folder

FOLDERS = ("common", "plugins", "contrib", "tests", "doc", "m4")
CODE = {".cpp", ".hpp", ".py"}
BUILD = {".mk", ".map", ".1", ".5", ".7", ".8"}
SYMBOLS = ROOT / "common" / "libsluice.symbols"
# Folders of common/, innermost first: each may include those on the lines before its own.
LAYERS = (("base",), ("jobspec", "topology", "samples", "store"), ("model", "remote"), ("placement", "sharing"), ("allocator", "staging"),
          ("report",))
# What a folder may include beside itself.
MAY_INCLUDE = {
    "plugins/slurm": ("common/",),
    "plugins/select": ("common/", "plugins/slurm/"),
    "plugins/job_submit": ("common/", "plugins/slurm/"),
    "plugins/spank": ("common/", "plugins/slurm/guard.hpp", "plugins/slurm/log.hpp", "plugins/slurm/built_for.hpp", "plugins/slurm/part.hpp"),
    "plugins/spank/agent": ("common/", "plugins/spank/job_files.hpp", "plugins/spank/loss_begin.hpp"),
    "contrib/sim": ("common/",),
    "contrib/sluice": ("common/", "contrib/sim/"),
    "tests/bench": ("common/", "tests/unit/"),
    "tests/fuzz": ("common/", "contrib/sim/"),
    "tests/unit": ("common/", "contrib/sim/", "plugins/"),
}
# The only files that see Slurm.
DOORS = ("plugins/slurm/", "plugins/spank/spank.hpp", "plugins/spank/agent/")
PLUGINS = {"select": "select_cons_tres_sluice", "job_submit": "job_submit_sluice", "spank": "spank_sluice"}
PARTS = {"select": "sluice_select", "spank": "sluice_spank"}


def files():
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                yield path


def sources(*suffixes):
    return [path for path in files() if path.suffix in suffixes]


def name_of(path):
    return str(path.relative_to(ROOT))


def includes(path):
    """What the file includes, in order, without the quotes or brackets."""
    return re.findall(r'^\s*#\s*include\s+[<"]([^>"]+)[>"]', path.read_text(encoding="utf-8"), re.MULTILINE)


def printed(*argv):
    return subprocess.run([str(word) for word in argv], capture_output=True, text=True, check=True).stdout


class Includes(unittest.TestCase):
    def test_the_core_points_inwards(self):
        layer = {folder: number for number, folders in enumerate(LAYERS) for folder in folders}
        for path in sources(".cpp", ".hpp"):
            if path.parts[len(ROOT.parts)] != "common":
                continue
            own = path.parent.name
            for name in includes(path):
                if "/" not in name or name.startswith(("sys/", "re2/")) or (own, name) == ("remote", "curl/curl.h"):
                    continue
                folder, _, rest = name.partition("/")
                other = rest.partition("/")[0]
                allowed = folder == "common" and (other == own or layer[other] < layer[own])
                self.assertTrue(allowed, f"{name_of(path)} includes {name}")

    def test_folders_include_what_their_readmes_allow(self):
        for path in sources(".cpp", ".hpp"):
            folder = name_of(path.parent)
            if folder.startswith("common"):
                continue
            own = (*MAY_INCLUDE[folder], f"{folder}/")
            for name in includes(path):
                if name.startswith(("common/", "plugins/", "contrib/", "tests/")):
                    self.assertTrue(name.startswith(own), f"{name_of(path)} includes {name}")

    def test_slurm_is_seen_through_its_doors(self):
        for path in sources(".cpp", ".hpp"):
            for name in includes(path):
                if name.startswith(("slurm/", "src/")) or name == "config.h":
                    self.assertTrue(name_of(path).startswith(DOORS), f"{name_of(path)} includes {name}")

    def test_releases_differ_in_one_folder(self):
        for path in sources(".cpp", ".hpp", ".mk"):
            if not name_of(path).startswith("plugins/slurm/"):
                self.assertNotIn("SLURM_VERSION_NUM", path.read_text(encoding="utf-8"), name_of(path))

    def test_includes_are_rooted_at_the_repository(self):
        for path in sources(".cpp", ".hpp"):
            for name in re.findall(r'^#include "([^"]+)"', path.read_text(encoding="utf-8"), re.MULTILINE):
                if not name_of(path).startswith("plugins/slurm/"):
                    self.assertTrue((ROOT / name).is_file(), f"{name_of(path)} includes {name}")

    def test_own_header_first(self):
        for path in sources(".cpp"):
            own = path.with_suffix(".hpp")
            if own.exists():
                self.assertEqual(includes(path)[0], name_of(own), name_of(path))

    def test_headers_guard_themselves(self):
        for path in sources(".hpp"):
            self.assertIn("#pragma once", path.read_text(encoding="utf-8"), name_of(path))


class Texts(unittest.TestCase):
    def test_licence_line(self):
        for path in files():
            text = path.read_bytes()[:200]
            if path.suffix in CODE | BUILD or text.startswith(b"#!"):
                self.assertIn(b"SPDX-License-Identifier: GPL-2.0-or-later", text, name_of(path))

    def test_scripts_can_be_started(self):
        for path in files():
            if path.read_bytes().startswith(b"#!/") and path.suffix != ".sbatch":
                self.assertTrue(os.access(path, os.X_OK), name_of(path))

    def test_no_path_of_somebodys_machine(self):
        for path in files():
            if "data" in path.parts or "corpus" in path.parts:
                continue
            found = re.search(r"(?<![\w./-])/(?:root|work)/\S*", path.read_text(encoding="utf-8"))
            self.assertIsNone(found, f"{name_of(path)}: {found and found.group()}")

    def test_readmes_say_what_goes_in_and_what_comes_out(self):
        for folder in sorted({path.parent for path in sources(*CODE)}):
            readme = next((parent / "README.md" for parent in (folder, *folder.parents)
                           if parent != ROOT and (parent / "README.md").exists()), None)
            self.assertIsNotNone(readme, f"no README.md for {name_of(folder)}")
            first = readme.read_text(encoding="utf-8").partition("\n")[0]
            self.assertRegex(first, "→|↔", f"{name_of(readme)}: input → output; called by; may not include")

    def test_names(self):
        for path in sources(*CODE):
            self.assertRegex(path.stem, r"^[a-z0-9_]+$", name_of(path))


class Manuals(unittest.TestCase):
    """The subcommands' options are compared by tests/cli/man_test."""

    def test_options_of_jobs(self):
        known = set(re.findall(r'"train-([a-z-]+)"', (ROOT / "common/jobspec/option_infos.hpp").read_text(encoding="utf-8")))
        page = (ROOT / "doc/man7/sluice-train.7").read_text(encoding="utf-8").replace("\\-", "-")
        self.assertEqual(set(re.findall(r"--train-([a-z-]+)", page)), known)

    def test_keys_of_sluice_conf(self):
        page = (ROOT / "doc/man5/sluice.conf.5").read_text(encoding="utf-8")
        documented = set(re.findall(r"^\.B[IR]?\s+\"?([A-Z][A-Za-z]+)", page, re.MULTILINE))
        table = (ROOT / "common/base/config.cpp").read_text(encoding="utf-8")
        known = set(re.findall(r'\{"([A-Z][A-Za-z]+)",', table))
        self.assertGreater(len(known), 10)
        self.assertLessEqual(known, documented)


class Objects(unittest.TestCase):
    """What was built. A build with a sanitizer needs and exports more, and is passed over."""

    @classmethod
    def setUpClass(cls):
        cls.build = build_folder()
        cls.core = cls.build / "common/.libs/libsluice.so"
        if "__asan_init" in printed("nm", "-D", cls.core) or "__ubsan" in printed("nm", "-D", cls.core):
            raise unittest.SkipTest("a build with a sanitizer")

    def plugin(self, folder, names=PLUGINS):  # not changed here
        return self.build / "plugins" / folder / ".libs" / f"{names[folder]}.so"

    def objects(self):
        return (self.core, *map(self.plugin, PLUGINS), *(self.plugin(folder, PARTS) for folder in PARTS))

    def test_fronts_need_the_c_library_alone(self):
        """plugins/slurm/part.hpp says why."""
        for folder in PARTS:
            needed = re.findall(r"\(NEEDED\).*\[(.*)\]", printed("readelf", "-d", self.plugin(folder)))
            self.assertEqual(needed, ["libc.so.6"], folder)

    def test_the_core_needs_nothing_of_slurm(self):
        self.assertNotIn("slurm", printed("readelf", "-d", self.core).lower().replace("sluice", ""))
        resolved = subprocess.run(["ldd", "-r", self.core], capture_output=True, text=True, check=True)
        self.assertNotIn("undefined symbol", resolved.stdout + resolved.stderr)

    def test_no_process_of_slurm_loads_libre2(self):
        """Only programs that read logs do (common/samples/key_pattern.hpp)."""
        for path in self.objects():
            self.assertNotRegex(printed("readelf", "-d", path), "libre2|absl", path.name)
        including = [name_of(path) for path in sources(".cpp", ".hpp") if any(name.startswith("re2/") for name in includes(path))]
        self.assertEqual(including, ["common/samples/key_pattern.cpp"])

    def test_the_core_exports_what_is_written_down(self):
        self.assertEqual(core_symbols(self.core), SYMBOLS.read_text(encoding="utf-8").splitlines(),
                         "after a change of the interface: tests/integration/rules_test.py --update")

    def test_plugins_export_what_their_maps_say(self):
        own_table = ROOT / f"plugins/slurm/select_{RELEASE[0]}_{RELEASE[1]:02d}.hpp"
        tables = [own_table, *(ROOT / name for name in includes(own_table)), ROOT / "plugins/slurm/select_entry_points.hpp"]
        table = "".join(path.read_text(encoding="utf-8") for path in tables)
        entry_points = {f"select_p_{name}" for name in re.findall(r"X\([^,()]+,\s*(\w+),", table)}
        self.assertGreater(len(entry_points), 10)
        for folder in PLUGINS:
            with self.subTest(folder):
                text = (ROOT / f"plugins/{folder}/{folder}.map").read_text(encoding="utf-8")
                named = set(re.findall(r"[\w*]+(?=;)", text.partition("global:")[2].partition("local:")[0]))
                exported = {line.split()[-1] for line in printed("nm", "-D", "--defined-only", self.plugin(folder)).splitlines()}
                wanted = {name for name in named if "*" not in name}
                if folder == "select":
                    wanted |= entry_points
                    self.assertEqual(exported, wanted)
                self.assertLessEqual(wanted, exported)
                rest = exported - wanted
                self.assertTrue(all(any(name.startswith(pattern[:-1]) for pattern in named if pattern.endswith("*")) for name in rest), rest)

    def test_nothing_runs_at_load_or_at_exit(self):
        """Only the compiler's own entry stands in the arrays of functions that the dynamic linker calls, and release_check.cpp."""
        for path in self.objects():
            with self.subTest(path.name):
                checks = path.stem in PLUGINS.values()
                for section, entries in (("init_array", 2 if checks else 1), ("fini_array", 1)):
                    size, = re.findall(rf"\.{section}\s+\S+\s+\S+\s+\S+\s+([0-9a-f]+)", printed("readelf", "-SW", path))
                    self.assertEqual(int(size, 16), 8 * entries, section)
                names = printed("nm", path)
                self.assertNotIn("_GLOBAL__sub_I", names)
                self.assertNotRegex(names, "__cxa_(thread_)?atexit")


def core_symbols(library):
    """Functions and data by name; not what the compiler may or may not put out of line."""
    lines = printed("nm", "-DC", "--defined-only", library).splitlines()
    return sorted(match.group(1) for line in lines if (match := re.match(r"[0-9a-f]+ [TDRB] (.*)", line)))


if __name__ == "__main__":
    if sys.argv[1:] == ["--update"]:
        SYMBOLS.write_text("\n".join(core_symbols(build_folder() / "common/.libs/libsluice.so")) + "\n", encoding="utf-8")
    else:
        unittest.main()
