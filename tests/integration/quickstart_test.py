#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The play of contrib/quickstart: three PyTorch jobs, one of them shrunk and one grown, each from its own checkpoint."""

import subprocess
import unittest

from harness import ROOT, ClusterTest, build_folder, say

PYTHON = "/usr/bin/python3"


class Quickstart(ClusterTest):
    def test_three_jobs(self):
        tool = build_folder() / "contrib" / "sluice" / "sluice"
        if subprocess.run([PYTHON, "-c", "import torch"], capture_output=True, check=False).returncode:
            self.skipTest("python3-torch is not installed")
        played = subprocess.run([PYTHON, ROOT / "contrib" / "examples" / "three_jobs.py", "--directory", self.scratch / "play", "--sluice", tool],
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600, check=False)
        self.assertEqual(played.returncode, 0, played.stdout[-4000:])
        self.assertRegex(played.stdout, r"[1-9]\d* grown, [1-9]\d* shrunk, each from its checkpoint")
        say(played.stdout.strip().splitlines()[-2])

    def test_which_python(self):
        """Of the example: the one that has PyTorch, or a line that says how to get it."""
        def job(**variables):
            return subprocess.run(["bash", ROOT / "contrib" / "examples" / "train.sbatch"], text=True, check=False, capture_output=True,
                                  env={"PATH": f"{self.scratch}:/usr/bin:/bin", "SLURM_SUBMIT_DIR": str(self.scratch), "SLURM_JOB_ID": "1", **variables})

        (self.scratch / "train.py").write_text("import sys\nprint(sys.executable)\n", encoding="ascii")
        (self.scratch / "python3").symlink_to("/bin/false")
        missing = job(PYTHON="/bin/false", SLUICE_RELEASE="24.11")
        self.assertEqual((missing.returncode, missing.stderr.count("\n")), (1, 1))
        self.assertIn("/bin/false has no PyTorch: contrib/with-release 24.11 apt-get install python3-torch,", missing.stderr)
        if subprocess.run([PYTHON, "-c", "import torch"], capture_output=True, check=False).returncode:
            self.skipTest("python3-torch is not installed")
        self.assertEqual(job().stdout, f"{PYTHON}\n")


if __name__ == "__main__":
    unittest.main()
