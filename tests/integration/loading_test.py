#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Every process of Slurm that loads one of the plugins finds all symbols that the plugin needs.

LD_BIND_NOW=1 would show it, if Slurm itself could run so: its own select/cons_tres lacks slurmctld's symbols in every other
process. So copies of our plugins are marked instead, as `ld -z now` would, and the dynamic linker binds all of their symbols
when it loads them, and nobody else's. What only slurmctld has is weak in them; for slurmctld it is made strong, too.
"""

import re
import shutil
import struct
import unittest
from pathlib import Path

from harness import RELEASE, ClusterError, ClusterTest, build_folder, processes, wait_for

PLUGINS = {"select_cons_tres_sluice.so": "select", "job_submit_sluice.so": "job_submit", "spank_sluice.so": "spank"}
PARTS = {"sluice_select.so": "select", "sluice_spank.so": "spank"}
CLIENTS = {
    "sinfo": ["sinfo"],
    "squeue": ["squeue", "-O", "All"],
    "scontrol": ["scontrol", "show", "node"],
    "srun": ["srun", "-N1", "--gpus=1", "true"],
    "sbatch": ["sbatch", "--gpus=1", "-o", "/dev/null", "--wrap", "true"],
    "salloc": ["salloc", "--gpus=1", "true"],
}
# elf(5)
_PT_LOAD, _PT_DYNAMIC, _SHT_DYNSYM = 1, 2, 11
_DT_NULL, _DT_BIND_NOW, _DT_FLAGS = 0, 24, 30
_DF_BIND_NOW = 8
_STB_GLOBAL, _STB_WEAK = 1, 2


class SharedObject:
    """A file to be changed (ELF, 64 bit, little endian)."""

    def __init__(self, path):
        self.path = path
        self.data = bytearray(path.read_bytes())
        assert self.data[:6] == b"\x7fELF\x02\x01", f"{path} is no 64-bit little-endian ELF file"

    def read(self, layout, offset):
        return struct.unpack_from(f"<{layout}", self.data, offset)

    def save(self):
        """As an installation does it: by rename, for a file that is mapped must not change."""
        new = self.path.with_suffix(".new")
        new.write_bytes(self.data)
        new.rename(self.path)

    def segments(self, kind):
        """(offset, length) in the file of each."""
        headers, = self.read("Q", 32)
        size, count = self.read("HH", 54)
        return [(self.read("Q", header + 8)[0], self.read("Q", header + 32)[0])
                for header in range(headers, headers + size * count, size) if self.read("I", header)[0] == kind]

    def bind_now(self):
        """One of the spare entries that ld leaves becomes DT_BIND_NOW."""
        for offset, length in self.segments(_PT_DYNAMIC):
            tags = [self.read("q", entry)[0] for entry in range(offset, offset + length, 16)]
            end = tags.index(_DT_NULL)
            assert tags[end + 1] == _DT_NULL, f"{self.path} has no spare dynamic entry"
            struct.pack_into("<qQ", self.data, offset + 16 * end, _DT_BIND_NOW, 0)
        return self

    def is_linked_now(self):
        """By `ld -z now`."""
        entries = [self.read("qQ", entry) for offset, length in self.segments(_PT_DYNAMIC) for entry in range(offset, offset + length, 16)]
        return any(tag == _DT_FLAGS and value & _DF_BIND_NOW for tag, value in entries)

    def cut_off(self):
        """It ends before what is mapped does, as a file that is still being copied."""
        offset, length = self.segments(_PT_LOAD)[-1]
        del self.data[offset + length - 1:]

    def strengthen(self):
        """Undefined weak symbols become strong, but for those of the compiler's start-up code. Returns how many."""
        sections, = self.read("Q", 40)
        size, count = self.read("HH", 58)
        changed = 0
        for section in range(sections, sections + size * count, size):
            if self.read("I", section + 4)[0] != _SHT_DYNSYM:
                continue
            offset, length = self.read("QQ", section + 24)
            names, = self.read("Q", sections + size * self.read("I", section + 40)[0] + 24)
            for symbol in range(offset, offset + length, 24):
                name, info, _, defined_in = self.read("IBBH", symbol)
                text = bytes(self.data[names + name:self.data.index(0, names + name)])
                if info >> 4 == _STB_WEAK and defined_in == 0 and not text.startswith((b"_ITM", b"__")):
                    self.data[symbol + 4] = _STB_GLOBAL << 4 | info & 15
                    changed += 1
        return changed

    def rename_build(self):
        """The build that a part is of (plugins/slurm/part.hpp) becomes another one."""
        text, count = re.subn(rb"\0\d+(?=[.\d]* for Slurm )", lambda found: b"\0" + b"9" * (len(found[0]) - 1), bytes(self.data))
        assert count == 1, f"{self.path} names its build {count} times"
        self.data = bytearray(text)

    def rename(self, old, new):
        """A function that is needed becomes one that nobody has."""
        assert len(old) == len(new) and b"\0%s\0" % old in self.data
        self.data = self.data.replace(b"\0%s\0" % old, b"\0%s\0" % new)


class Loading(ClusterTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.folder = cls.copy_plugins("bound", mark=True)
        cls.slurm = cls.cluster("Nodes=n[1-2] Gpus=4\n", "sluice", plugin_dirs=[cls.folder])
        cls.stock = cls.cluster("Nodes=n[1-2] Gpus=4\n", "stock", stock=True)

    @classmethod
    def copy_plugins(cls, name, mark):
        folder = cls.scratch / name
        folder.mkdir()
        for file, part in (PLUGINS | PARTS).items():
            shutil.copy(build_folder() / "plugins" / part / ".libs" / file, folder)
            if mark:
                SharedObject(folder / file).bind_now().save()
        (folder / "sluice-agent").symlink_to(build_folder() / "plugins" / "spank" / "sluice-agent")
        return folder

    def loaded(self, text):
        return {name for name in PLUGINS | PARTS if f"{self.folder}/{name}" in text}

    def test_clients(self):
        for name, argv in CLIENTS.items():
            with self.subTest(client=name):
                result = self.slurm.run(argv, env={"LD_DEBUG": "files"})
                self.assertEqual(re.findall(r"dlopen\(.*undefined symbol.*", result.stderr), [])
                submits = name in ("srun", "sbatch", "salloc")
                # squeue needs no select plugin, and in newer releases neither does who submits.
                selects = name != "squeue" and not (submits and RELEASE >= (23, 2))
                expected = {"select_cons_tres_sluice.so"} if selects else set()
                if submits:
                    expected.add("spank_sluice.so")
                self.assertLessEqual(expected, self.loaded(result.stderr))
                self.assertNotRegex(result.stderr, r"calling init: .*/(libsluice|libstdc\+\+|sluice_\w+)\.so", "the fronts alone")

    def test_daemons_and_a_job(self):
        job = self.slurm.sbatch(["-N2", "--gpus-per-node=2", "--train-model=m", "-o", "/dev/null"], "srun sleep 1000", user="nobody")
        self.slurm.wait_job(job, "RUNNING")
        wait_for(lambda: len(self.of("slurmstepd")) >= 3, 30, "the steps of a job")
        self.assertEqual(self.of("slurmctld"), [{"select_cons_tres_sluice.so", "sluice_select.so", "job_submit_sluice.so"}])
        self.assertEqual(self.of("slurmd"), [{"select_cons_tres_sluice.so", "spank_sluice.so"}] * 2)
        for loaded in self.of("slurmstepd"):
            self.assertEqual(loaded, {"select_cons_tres_sluice.so", "spank_sluice.so", "sluice_spank.so"})
        self.slurm.run(["scancel", str(job)])
        self.slurm.wait_job(job, "CANCELLED")
        for daemon in self.slurm.daemons:
            self.assertNotIn("undefined symbol", self.slurm.log(daemon), daemon)
            self.assertTrue(self.slurm.pid(daemon), daemon)

    def of(self, program):
        """What each process of a program has loaded of ours. slurmscriptd, a child of slurmctld, loads nothing."""
        found = []
        for pid in processes.find(self.slurm.directory):
            try:
                executable = Path(f"/proc/{pid}/exe").resolve().name.removesuffix("-wlm")  # as Debian has them
                mapped = Path(f"/proc/{pid}/maps").read_text(encoding="utf-8")
            except OSError:
                continue
            if executable == program and "slurmscriptd" not in processes.command_line(pid):
                found.append(self.loaded(mapped))
        return found

    def test_slurmctld_has_what_is_weak(self):
        weak = SharedObject(self.folder / "select_cons_tres_sluice.so")
        self.addCleanup(weak.save)
        strong = SharedObject(weak.path)
        self.assertGreater(strong.strengthen(), 0)
        strong.save()
        self.slurm.restart("slurmctld")
        weak.save()
        self.slurm.wait_job(self.slurm.sbatch(["--gpus=2", "-o", "/dev/null"], "true"))

    def test_slurmctld_without_its_part_is_stock_slurm(self):
        for what, change, says in (
                ("lacks a symbol", lambda part: part.rename(b"list_iterator_destroy", b"list_iterator_no_such"), "sluice_select.so cannot be loaded: .*undefined symbol: list_iterator_no_such.*: install"),
                ("is cut off", lambda part: part.cut_off(), "sluice_select.so is cut off: install Sluice again"),
                ("is of another build", lambda part: part.rename_build(), r"sluice_select.so is of \S+ for Slurm \S+ build, the plugin beside it of")):
            with self.subTest(what):
                whole = SharedObject(self.folder / "sluice_select.so")
                self.addCleanup(whole.save)
                broken = SharedObject(whole.path)
                change(broken)
                broken.save()
                self.slurm.restart("slurmctld")
                self.assertRegex(self.slurm.log("slurmctld"), says)
                self.slurm.wait_job(self.slurm.sbatch(["--gpus=2", "-o", "/dev/null"], "true"))
                whole.save()
        self.slurm.restart("slurmctld")

    def test_sbatch_without_its_part_refuses_the_options_alone(self):
        def remove(part):
            part.path.unlink()

        def cut_off(part):
            part.cut_off()
            part.save()

        for change, says in ((remove, r"cannot be loaded: .*sluice_spank.so: cannot open shared object file.*"), (cut_off, "is cut off")):
            with self.subTest(change.__name__):
                part = SharedObject(self.folder / "sluice_spank.so")
                self.addCleanup(part.save)
                change(SharedObject(part.path))
                refused = self.slurm.run(["sbatch", "--train-model=m", "-o", "/dev/null", "--wrap", "true"], check=False)
                self.assertGreater(refused.returncode, 0, "no signal")
                self.assertRegex(refused.stderr, f"sluice_spank.so {says}: install Sluice again")
                self.slurm.wait_job(self.slurm.sbatch(["-o", "/dev/null"], "srun true"))
                part.save()

    def test_a_job_whose_node_lost_the_part_runs_without_an_agent(self):
        part = SharedObject(self.folder / "sluice_spank.so")
        self.addCleanup(part.save)
        output = self.slurm.layout.jobs / "without"
        job = self.slurm.sbatch(["--hold", "--train-model=m", "--train-gpus=1-2", "-o", str(output)], "srun echo a step")
        part.path.unlink()
        self.slurm.run(["scontrol", "release", str(job)])
        self.slurm.wait_job(job)
        said = "sluice_spank.so cannot be loaded"
        self.assertEqual([line for line in output.read_text(encoding="utf-8").splitlines() if said not in line], ["a step"])
        for log in (output.read_text(encoding="utf-8"), "\n".join(re.findall(rf".*\[{job}.batch\].*", self.slurm.log("n1")))):
            self.assertEqual(log.count(said), 1, "once a process")

    def test_a_libsluice_of_another_build_is_refused(self):
        """Where a function is missing, the linker would end the process at the call."""
        libsluice = SharedObject(next((build_folder() / "common" / ".libs").glob("libsluice-*.so.0")))
        name = re.search(rb"\0(_ZN6sluice13parse_options\w+)\0", bytes(libsluice.data))[1]
        libsluice.rename(name, name.replace(b"options", b"nosuchs"))
        libsluice.path = self.scratch / libsluice.path.name
        libsluice.save()
        part = SharedObject(self.folder / "sluice_spank.so")
        self.addCleanup(part.save)
        as_built = SharedObject(build_folder() / "plugins" / "spank" / ".libs" / "sluice_spank.so")
        as_built.path = part.path
        as_built.save()
        refused = self.slurm.run(["sbatch", "--train-model=m", "-o", "/dev/null", "--wrap", "true"], env={"LD_LIBRARY_PATH": str(self.scratch)},
                                 check=False)
        self.assertRegex(refused.stderr, rf"error: sluice: sluice_spank.so cannot be loaded: .*undefined symbol: {name.decode()}: install Sluice again")
        job_submit = SharedObject(build_folder() / "plugins" / "job_submit" / ".libs" / "job_submit_sluice.so")
        self.assertTrue(job_submit.is_linked_now(), "Slurm itself loads it lazily")

    def test_a_missing_symbol_would_be_found(self):
        """The same client with a plugin that needs a function which nobody has: fine as it is, refused when it is marked."""
        for name, mark in (("lazy", False), ("strict", True)):
            with self.subTest(name):
                folder = self.copy_plugins(name, mark)
                plugin = SharedObject(folder / "select_cons_tres_sluice.so")
                plugin.rename(b"plugin_context_destroy", b"plugin_context_no_such")
                plugin.save()
                conf = self.slurm.layout.etc / f"{name}.conf"
                conf.write_text(self.slurm.layout.slurm_conf.read_text(encoding="utf-8").replace(str(self.folder), str(folder)),
                                encoding="utf-8")
                result = self.slurm.run(["sinfo"], env={"SLURM_CONF": str(conf)}, check=False)
                if mark:
                    self.assertNotEqual(result.returncode, 0)
                    self.assertRegex(result.stderr, f"{plugin.path}: undefined symbol: plugin_context_no_such")
                else:
                    self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_bound_as_a_whole_only_slurms_own_plugins_lack_symbols(self):
        for cluster in (self.slurm, self.stock):
            cluster.sbatch(["--hold", "-o", "/dev/null"], "true")  # squeue loads a select plugin where there are jobs
        for name, argv in CLIENTS.items():
            with self.subTest(client=name):
                lacking = [{file for file in re.findall(r"(\S+): undefined symbol", cluster.run(argv, env={"LD_BIND_NOW": "1"}, check=False).stderr)}
                           for cluster in (self.slurm, self.stock)]
                self.assertFalse({file for file in lacking[0] if "sluice" in file})
                self.assertEqual(bool(lacking[0]), bool(lacking[1]), "stock Slurm fails in the same clients")


if __name__ == "__main__":
    unittest.main()
