#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Other builds of the tree: under sanitizers, without Slurm, from the tarball; clang-format and clang-tidy. Long: only with SLUICE_FULL_TESTS=1."""

import concurrent.futures
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
import unittest
from pathlib import Path

from harness import FULL, ROOT, build_folder

JOBS = f"-j{os.cpu_count()}"
# clang 14 takes a macro of Slurm's (a literal followed by a name) for C++11's own suffixes; the tree's code is still checked.
SLURM_HEADER_ERROR = re.compile(r"src/common/slurm_protocol_defs\.h:\d+:\d+: error: invalid suffix on literal")


# Sizes and offsets as data of an object file: nothing needs to be linked.
LAYOUT = """
#include <cstddef>
#include <type_traits>
#include "plugins/slurm/slurm.hpp"
using details = std::remove_pointer_t<decltype(job_record_t::details)>;
#define AT(type, field) sizeof(type), offsetof(type, field)
__attribute__((used, section(".rodata.layout"))) extern const unsigned long layout[] = {
    AT(job_record_t, job_id), AT(job_record_t, details), AT(job_record_t, gres_list_req), AT(job_record_t, job_resrcs),
    AT(job_record_t, spank_job_env), AT(job_record_t, tres_per_task), AT(job_record_t, user_id), AT(details, whole_node),
    AT(details, begin_time), AT(node_record_t, gres_list), AT(node_record_t, node_state), AT(part_record_t, max_share),
    AT(part_record_t, node_bitmap), AT(gres_node_state_t, topo_type_id), AT(gres_node_state_t, gres_bit_alloc),
    AT(gres_job_state_t, gres_bit_select), AT(gres_job_state_t, gres_cnt_node_alloc), AT(job_desc_msg_t, tres_per_node),
    AT(job_desc_msg_t, spank_job_env), AT(slurm_conf_t, state_save_location), AT(slurm_msg_t, data)};
"""


def run(argv, folder, **variables):
    result = subprocess.run([str(word) for word in argv], cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            errors="replace", check=False, env={**os.environ, **variables})
    if result.returncode:
        raise AssertionError(f"{' '.join(map(str, argv))}: exit status {result.returncode}\n{result.stdout[-6000:]}")
    return result.stdout


@unittest.skipUnless(FULL, "long: check --full")
class BuildsTest(unittest.TestCase):
    def setUp(self):
        build_folder()
        self.folder = Path(tempfile.mkdtemp(prefix="sluice-build-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def slurm_source(self):
        return run([ROOT / "contrib" / "slurm-source"], self.folder).splitlines()[-1]

    def check_sanitizer(self, kind, **variables):
        # Not --enable-werror: under -fsanitize g++ 12 takes std::optional's storage for uninitialized.
        run([ROOT / "configure", "--quiet", "--without-plugins", f"--enable-sanitizer={kind}", "CXXFLAGS=-g -O1"], self.folder)
        output = run(["make", "-s", JOBS, "check"], self.folder, **variables)
        self.assertRegex(output, r"# FAIL: +0")
        self.assertRegex(output, r"# PASS: +[1-9]")

    def test_address_sanitizer(self):
        self.check_sanitizer("address", ASAN_OPTIONS="detect_leaks=1")

    def test_undefined_sanitizer(self):
        self.check_sanitizer("undefined", UBSAN_OPTIONS="print_stacktrace=1")

    def test_fuzzers(self):
        """What tests/fuzz/README.md says, for some seconds each."""
        run([ROOT / "configure", "--quiet", "CXX=clang++", "--enable-fuzzers", "--enable-sanitizer=address", "--without-plugins",
             "CXXFLAGS=-O1 -g -fsanitize=fuzzer-no-link"], self.folder)
        output = run(["make", "-s", JOBS, "fuzz", "FUZZ_SECONDS=15"], self.folder)
        targets = run(["git", "ls-files", "tests/fuzz/*_fuzz.cpp"], ROOT).split()
        self.assertEqual(len(re.findall(r"^stat::number_of_executed_units: +[1-9]", output, re.M)), len(targets), output[-3000:])

    def test_distcheck(self):
        """Builds, checks and installs from the tarball, without Slurm and then with it."""
        run([ROOT / "configure", "--quiet", f"--with-slurm-source={self.slurm_source()}"], self.folder)
        self.assertIn("ready for distribution", run(["make", "-s", JOBS, "distcheck"], self.folder))
        with tarfile.open(next(self.folder.glob("sluice-*.tar.*"))) as tarball:
            packed = {name.partition("/")[2] for name in tarball.getnames()}
        self.assertEqual(set(run(["git", "ls-files"], ROOT).split()) - packed, {".gitignore"})

    def test_layout_of_slurms_records(self):
        """The config.h of the tree stands in for the one that Slurm's own configure makes."""
        source = self.slurm_source()
        run([f"{source}/configure", "--quiet"], self.folder)
        program = self.folder / "layout.cpp"
        program.write_text(LAYOUT, encoding="ascii")
        printed = []
        for config in (ROOT / "plugins" / "slurm" / "config", self.folder):
            run(["g++", "-std=c++20", "-w", f"-I{config}", f"-I{ROOT}", "-isystem", source, "-c", program, "-o", "layout.o"], self.folder)
            printed.append(run(["objdump", "-s", "-j", ".rodata.layout", "layout.o"], self.folder))
        self.assertRegex(printed[0], r" [0-9a-f]{8} ")
        self.assertEqual(*printed)

    def test_clang_format(self):
        run(["clang-format", "--dry-run", "-Werror", *run(["git", "ls-files", "*.cpp", "*.hpp"], ROOT).split()], ROOT)

    def test_clang_tidy(self):
        source = self.slurm_source()
        files = run(["git", "ls-files", "common/*.cpp", "plugins/*.cpp", "contrib/*.cpp"], ROOT).split()
        self.assertGreater(len(files), 30)
        flags = ["-std=c++20", "-Iplugins/slurm/config", "-I.", "-isystem", source, '-DSLUICE_AGENT="x"', "-DSLUICE_SLURM_API=0", '-DPACKAGE_NAME="x"', '-DPACKAGE_VERSION="x"']

        def tidy(file):
            result = subprocess.run(["clang-tidy", "--quiet", file, "--", *flags], cwd=ROOT, text=True, stdout=subprocess.PIPE,
                                    stderr=subprocess.DEVNULL, check=False)
            return [line for line in result.stdout.splitlines()
                    if re.search(r": (error|warning): ", line) and not SLURM_HEADER_ERROR.search(line)]

        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            found = sorted({line for lines in pool.map(tidy, files) for line in lines})
        self.assertEqual(found, [])


if __name__ == "__main__":
    unittest.main()
