#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs every test of the tree against one build, a line a test as it ends, and says "N passed, N failed" at the end.

In order: the unit tests, what else `make check` runs (the replay of the fuzz corpora, the command line), the rules of the tree,
and the tests on real daemons, some of these side by side. SLUICE_FULL_TESTS=1 asks for the long forms. With --release those on real
daemons run a second time where contrib/with-release has that release of Slurm, each name with the release before it; without
--build nothing else runs.
"""

import argparse
import contextlib
import fnmatch
import importlib.util
import json
import os
import queue
import re
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent
sys.path.insert(0, str(ROOT / "contrib" / "cluster"))

from sluice_cluster import Cluster, ClusterError, installation, processes  # noqa: E402  found by the line above

WITH_RELEASE = ROOT / "contrib" / "with-release"
ONCE = {"builds_test", "quickstart_test", "releases_test", "rules_test"}  # about the tree, or about several releases themselves
_PROGRAM_SECONDS = 900
_SILENT_SECONDS = 2700 if os.environ.get("SLUICE_FULL_TESTS") == "1" else 900  # a module in which no test ends for so long is ended
_SKIPPED = 77  # exit status of a program of make check that cannot run here


class Report:
    """Counts and prints; any thread may call it."""

    def __init__(self):
        self._lock = threading.Lock()
        self._counts = {"ok": 0, "FAIL": 0, "skip": 0}
        self._failures = []

    def test(self, name, outcome, seconds, output=""):
        """`outcome` is a key of _counts; `output` is why, for FAIL and skip."""
        with self._lock:
            self._counts[outcome] += 1
            reason = f"  ({output.strip().splitlines()[-1]})" if outcome == "skip" and output.strip() else ""
            print(f"{outcome:4} {seconds:7.2f} s  {name}{reason}", flush=True)
            if outcome == "FAIL":
                self._failures.append((name, output))

    def note(self, name, line):
        """What a test says while it runs."""
        with self._lock:
            print(f"                {name}: {line}", flush=True)

    def end(self, releases=()):
        """The exit status. `releases` of Slurm were tested, "" being this machine's."""
        for name, output in self._failures:
            print(f"\n---- FAIL {name}\n{output.rstrip()}")
        if any(releases):
            print(f"\nThe tests on real daemons ran on {', '.join(release or 'the installed release' for release in releases)} of Slurm.")
        skipped = f", {self._counts['skip']} skipped" if self._counts["skip"] else ""
        print(f"\n{self._counts['ok']} passed, {self._counts['FAIL']} failed{skipped}", flush=True)
        return 1 if self._failures else 0


class Selection:
    """Which tests: all, or those whose name holds one of the patterns (with * and ?)."""

    def __init__(self, patterns):
        self.patterns = patterns

    def __contains__(self, name):
        return not self.patterns or any(fnmatch.fnmatchcase(name, f"*{pattern}*") for pattern in self.patterns)


# make check's programs


def build_programs(build, report):
    began = time.monotonic()
    print("building the test programs", flush=True)
    made = subprocess.run(["make", "-s", "--no-print-directory", f"-j{os.cpu_count()}", "check", "TESTS="], cwd=build, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace", check=False)
    report.test("build of the test programs", "FAIL" if made.returncode else "ok", time.monotonic() - began, made.stdout)
    return made.returncode == 0


def run_programs(build, selection, report):
    listed = subprocess.run(["make", "-s", "--no-print-directory", "list-tests"], cwd=build, capture_output=True, text=True, check=False)
    if listed.returncode:
        report.test("make list-tests", "FAIL", 0, listed.stdout + listed.stderr)
    for name in listed.stdout.split():
        program = next((folder / name for folder in (build, ROOT) if (folder / name).exists()), build / name)
        if name.endswith("unit_tests"):
            run_google_tests(program, build, selection, report)
        elif name in selection:
            began = time.monotonic()
            status, output = run_program([program], build)
            outcome = {0: "ok", _SKIPPED: "skip"}.get(status, "FAIL")
            report.test(name, outcome, time.monotonic() - began, output + f"\nexit status {status}" if outcome == "FAIL" else output)


def run_program(argv, build):
    """(exit status, output) as make check would have it."""
    try:
        result = subprocess.run(argv, cwd=build, env={**os.environ, "srcdir": str(ROOT)}, text=True, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace", timeout=_PROGRAM_SECONDS, check=False)
        return result.returncode, result.stdout
    except subprocess.TimeoutExpired as late:
        return None, f"{late.stdout or ''}\nnot done within {_PROGRAM_SECONDS} s"
    except OSError as error:
        return None, str(error)


def run_google_tests(program, build, selection, report):
    listing = run_program([program, "--gtest_list_tests"], build)[1]
    suite, names = "", []
    for line in listing.splitlines():
        if line and not line.startswith(" ") and line.split()[0].endswith("."):
            suite = line.split()[0]
        elif line.startswith("  ") and suite:
            names.append(suite + line.split()[0])
    chosen = [name for name in names if f"unit {name}" in selection]
    if not chosen:
        if not selection.patterns:
            report.test("unit tests", "FAIL", 0, f"{program} lists no tests\n{listing}")
        return
    argv = [program, "--gtest_color=no"] + ([f"--gtest_filter={':'.join(chosen)}"] if len(chosen) < len(names) else [])
    left = set(chosen)
    output = []
    with subprocess.Popen(argv, cwd=build, text=True, errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as running:
        for line in running.stdout:
            output.append(line)
            if not (ended := re.match(r"\[ +(OK|FAILED|SKIPPED) +\] (\S+?),?(?: where .*)? \((\d+) ms\)", line)):
                continue
            result, name, milliseconds = ended.groups()
            left.discard(name)
            outcome = {"OK": "ok", "FAILED": "FAIL", "SKIPPED": "skip"}[result]
            report.test(f"unit {name}", outcome, int(milliseconds) / 1000, "".join(output[:-1]))
            output.clear()
    for name in sorted(left):
        report.test(f"unit {name}", "FAIL", 0, f"the program ended with status {running.returncode} before it\n" + "".join(output[-50:]))


# Python modules: each runs in a process of its own, which writes one JSON object a test into a pipe.


class PipedResult(unittest.TestResult):
    def __init__(self, pipe):
        super().__init__()
        self._pipe = pipe
        self._began = time.monotonic()
        self._state = ("ok", "")

    def startTest(self, test):
        super().startTest(test)
        self._began = time.monotonic()
        self._state = ("ok", "")

    def stopTest(self, test):
        super().stopTest(test)
        self._send(short_name(test))

    def addError(self, test, err):
        super().addError(test, err)
        self._fail(test, err)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._fail(test, err)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err:
            self._fail(test, err, subtest._subDescription())

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self._state = ("skip", reason)
        self._send_if_no_test(test)

    def _fail(self, test, err, what=""):
        text = f"{what}\n" * bool(what) + "".join(traceback.format_exception(*err))
        self._state = ("FAIL", self._state[1] + text if self._state[0] == "FAIL" else text)
        self._send_if_no_test(test)

    def _send_if_no_test(self, test):
        """A class or module that could not be set up counts as one test."""
        if not isinstance(test, unittest.TestCase):
            self._send(str(test))

    def _send(self, name):
        outcome, output = self._state
        line = {"name": name, "outcome": outcome, "seconds": time.monotonic() - self._began, "output": output}
        self._pipe.write(json.dumps(line) + "\n")
        self._pipe.flush()


def short_name(test):
    return test.id().partition(".")[2]


def run_module_here(path, title, pipe, patterns):
    """The process of one module."""
    sys.path.insert(0, str(path.parent))
    specification = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(specification)
    sys.modules[path.stem] = module
    specification.loader.exec_module(module)
    selection = Selection(patterns)
    suite = unittest.TestSuite()
    for group in unittest.defaultTestLoader.loadTestsFromModule(module):
        suite.addTest(unittest.TestSuite(test for test in group if f"{title} {short_name(test)}" in selection))
    suite.run(PipedResult(pipe))


def run_module(path, build, release, selection, report):
    title = f"{release} {path.stem}" if release else path.stem
    inside = [WITH_RELEASE, release, "/usr/bin/python3"] if release else [sys.executable]
    with tempfile.TemporaryDirectory(prefix="sluice-run-", ignore_cleanup_errors=True) as scratch:
        os.chmod(scratch, 0o1777)  # jobs of other users inherit TMPDIR
        ended, results = os.pipe()
        process = subprocess.Popen([*inside, __file__, "--build", build, "--module", path, "--results", str(results), "--title", title, *selection.patterns],
                                   pass_fds=[results], env={**os.environ, "SLUICE_BUILD": str(build), "TMPDIR": scratch},
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        os.close(results)
        said = []
        listener = threading.Thread(target=listen, args=(process, title, said, report))
        listener.start()
        silence = Silence(process)
        with os.fdopen(ended, encoding="utf-8") as lines:
            for line in lines:
                silence.broken()
                test = json.loads(line)
                report.test(f"{title} {test['name']}", test["outcome"], test["seconds"], test["output"])
        status = process.wait()
        silence.broken()
        left = stop_clusters(scratch)
        listener.join()
        if status or left:
            because = f"no test ended for {_SILENT_SECONDS} s" if silence.too_long else f"the module ended with status {status}"
            report.test(title, "FAIL", 0, "\n".join([*said[-50:], because, *(f"left running: {name}" for name in left)]))


def listen(process, name, said, report):
    for line in process.stdout:
        said.append(line.rstrip())
        report.note(name, line.rstrip())


class Silence:
    """Ends a process from which nothing is heard for too long."""

    def __init__(self, process):
        self._process = process
        self._timer = None
        self.too_long = False
        self.broken()

    def broken(self):
        if self._timer:
            self._timer.cancel()
        if self._process.poll() is None:
            self._timer = threading.Timer(_SILENT_SECONDS, self._end)
            self._timer.daemon = True
            self._timer.start()

    def _end(self):
        self.too_long = True
        self._process.kill()


def stop_clusters(folder):
    """Ends what a module has left running below its folder, and names it."""
    left = []
    for record in Path(folder).glob("**/cluster.json"):
        if pids := processes.find(record.parent):
            left += [processes.command_line(pid) for pid in pids]
            with contextlib.suppress(Exception):
                Cluster.attach(record.parent).stop()
    return left


def build_for_release(release, build, report):
    """What the tests on real daemons load beside the plugins, in the build of another release."""
    began = time.monotonic()
    made = subprocess.run([WITH_RELEASE, release, "make", "-s", "--no-print-directory", f"-j{os.cpu_count()}", "-C", build, "test-plugins"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
    report.test(f"{release} build of the test plugins", "FAIL" if made.returncode else "ok", time.monotonic() - began, made.stdout)
    return made.returncode == 0


def run_modules(build, releases, selection, report, side_by_side):
    modules = queue.SimpleQueue()
    integration = sorted((TESTS / "integration").glob("*_test.py"), key=lambda path: (path.stem != "rules_test", path.stem))
    integration += sorted((TESTS / "issues").glob("*_test.py"))
    for path in integration if build else ():
        modules.put((path, build, ""))
    for release, other_build in releases.items():
        for path in integration:
            if path.stem not in ONCE:
                modules.put((path, other_build, release))

    def work():
        with contextlib.suppress(queue.Empty):
            while True:
                run_module(*modules.get_nowait(), selection, report)

    workers = [threading.Thread(target=work) for _ in range(side_by_side)]
    for worker in workers:
        worker.start()
    try:
        for worker in workers:
            worker.join()
    except KeyboardInterrupt:
        # The modules that run have heard it, too; their clusters are stopped as they end.
        with contextlib.suppress(queue.Empty):
            while True:
                modules.get_nowait()
        for worker in workers:
            worker.join()
        raise


def release_and_rest(text):
    release, equals, rest = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"'{text}' is not RELEASE=...")
    return release, rest


def release_and_build(text):
    release, build = release_and_rest(text)
    return release, str(Path(build).resolve())


def built_for(build):
    """The release of Slurm that `build` was configured for, as "24.11.5"; None where it has no plugins or cannot be read from here."""
    try:
        told = re.search(r'^S\["SLURM_RELEASE"\]="(\d\S*)"$', (build / "config.status").read_text(encoding="utf-8", errors="replace"), re.MULTILINE)
    except OSError:
        return None
    return told and told[1]


def wrong_release(options):
    """What is wrong with the builds, or None. Else make would begin to build one again under another release, and spoil it."""
    if options.build and (release := built_for(options.build)):
        try:
            own = "{}.{:02d}".format(*installation.slurm_release())
        except ClusterError:
            own = ""
        if own and not release.startswith(f"{own}."):
            series = ".".join(release.split(".")[:2])
            return (f"{options.build} is for Slurm {release}, installed is {own}: "
                    f"tests/run.py --release {series}={options.build} {' '.join(options.patterns)}".rstrip())
    for series, build in options.release:
        release = built_for(Path(build))
        if release and not release.startswith(f"{series}."):
            return f"--release {series}={build}: that build is for Slurm {release}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, metavar="DIR", help="the build folder for the installed Slurm")
    parser.add_argument("--release", action="append", default=[], metavar="RELEASE=BUILD", type=release_and_build,
                        help="also (without --build: only) test on this release of Slurm, with this build for it")
    parser.add_argument("--no-release", action="append", default=[], metavar="RELEASE=WHY", type=release_and_rest, help=argparse.SUPPRESS)
    parser.add_argument("--side-by-side", type=int, default=2, metavar="N", help="modules of tests on real daemons at a time (2)")
    parser.add_argument("patterns", nargs="*", metavar="PATTERN", help="only tests whose name holds one of these (with * and ?)")
    parser.add_argument("--module", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--title", default="", help=argparse.SUPPRESS)
    parser.add_argument("--results", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.module:
        with os.fdopen(options.results, "w", encoding="utf-8") as pipe:
            run_module_here(options.module, options.title, pipe, options.patterns)
        return 0

    if not options.build and not options.release:
        parser.error("name a build: --build DIR, --release RELEASE=DIR, or both")
    if problem := wrong_release(options):
        parser.error(problem)
    build = options.build.resolve() if options.build else None
    selection = Selection(options.patterns)
    report = Report()
    for release, why in options.no_release:
        # Without the right to mount it cannot be tried; whatever else keeps it away is a failure.
        report.test(f"{release} all tests", "skip" if "mounts are not permitted" in why else "FAIL", 0, why)
    releases = {}
    os.environ["SLUICE_OTHER_BUILDS"] = " ".join(f"{release}={folder}" for release, folder in options.release)
    try:
        if not build or build_programs(build, report):
            releases = {release: folder for release, folder in options.release if build_for_release(release, folder, report)}
            if build:
                run_programs(build, selection, report)
            run_modules(build, releases, selection, report, max(1, options.side_by_side))
    except KeyboardInterrupt:
        report.end()
        return 130
    return report.end([*[""] * bool(build), *releases])


if __name__ == "__main__":
    sys.exit(main())
