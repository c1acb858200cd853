#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The short form of tests/bench/replay.py: some jobs at the same times on stock Slurm and on Sluice."""

import json
import subprocess
import sys
import unittest

from harness import FULL, ROOT, build_folder, say

# Some jobs more or less beside their best sets, for the two clusters never go through the same states.
NOISE = 0.08


class Replay(unittest.TestCase):
    def replay(self, *options):
        build = build_folder()
        if not (build / "tests" / "bench" / "assess_sets").exists():
            self.skipTest("tests/bench/assess_sets is not built: make bench")
        done = subprocess.run([sys.executable, ROOT / "tests" / "bench" / "replay.py", "--json", *options], capture_output=True, text=True,
                              timeout=800, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def assert_not_below_stock(self, results):
        for name, result in results.items():
            with self.subTest(name=name):
                # The books of both clusters, while jobs came and went and at the end.
                self.assertEqual(result["errors"], [])
                for figure in ("1/step, all", "1/step, 2+ GPUs"):
                    stock, sluice = result["figures"][figure]
                    say(f"{name}, {figure}: stock {stock:.2f}, Sluice {sluice:.2f}")
                    self.assertGreater(stock, 0)
                    self.assertGreaterEqual(sluice, stock * (1 - NOISE))

    def test_sizes_that_break_pairs(self):
        """One to five GPUs, in pairs of NVLinks: what stock Slurm gets right on idle nodes alone."""
        self.assert_not_below_stock(self.replay("--jobs", "200" if FULL else "40", "--classes", "pairs", "--mean-seconds", "2", "--sizes", *"12345"))


if __name__ == "__main__":
    unittest.main()
