#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The short form of tests/bench/fidelity.py: the same jobs in `sluice sim` and on a private cluster.

What is known to differ is in README.md, with figures.
"""

import json
import subprocess
import sys
import unittest

from harness import FULL, RELEASE, ROOT, build_folder, say

# Of the average completion time; a job may come out further off when a decision falls the other way.
TOLERANCE = 0.2
RESTART_SECONDS = 10


@unittest.skipUnless(FULL or RELEASE == (22, 5), "two minutes of waiting: on other releases with check --full")
class Fidelity(unittest.TestCase):
    def test_predicted_and_measured(self):
        build_folder()
        done = subprocess.run([sys.executable, ROOT / "tests" / "bench" / "fidelity.py", "--json", "--restart", str(RESTART_SECONDS)], capture_output=True,
                              text=True, timeout=300, check=False)
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout[-2000:])
        result = json.loads(done.stdout)
        # That two runs of the simulator give the same bytes is among these, and the books about GPUs.
        self.assertEqual(result["errors"], [])
        measured = {}
        for policy, figures in result["policies"].items():
            predicted, measured[policy] = figures["completion_s"]
            say(f"{policy}: {predicted:.1f} s predicted, {measured[policy]:.1f} s measured; {figures['resizes'][0]} resizes predicted, {figures['resizes'][1]} done")
            self.assertLess(abs(measured[policy] / predicted - 1), TOLERANCE, json.dumps(figures))
        self.assertEqual(set(measured), {"fifo", "sluice"})
        self.assertEqual(result["policies"]["fifo"]["resizes"], [0, 0])
        self.assertLess(result["policies"]["sluice"]["completion_s"][0], result["policies"]["fifo"]["completion_s"][0])
        self.assertLess(measured["sluice"], measured["fifo"])
        # Two seconds decide here whether a job is resized at all; the long form has enough of them, resize_test.py looks at each.
        for seconds in result["policies"]["sluice"]["restarts_s"]:
            self.assertLess(abs(seconds - RESTART_SECONDS), 15, "some 8.5 s of it are Slurm's; more on a machine with other work")


if __name__ == "__main__":
    unittest.main()
