#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The --train-* options in every way in which they can be given, well and badly, and whatever else a user can send to slurmctld."""

import concurrent.futures
import json
import re
import subprocess
import unittest

from harness import FULL, RELEASE, ClusterTest, end_job, gpu_errors, gpu_request, say, sluice_lines, wait_for

SUBMITS = 3000 if FULL else 300
FORGERIES = 10000 if FULL else 200

# option -> (a good value, bad ones)
VALUES = {
    "model": ("gpt2-medium", ["", "a b", "x" * 65, "a;b", "mod\u00e8le"]),
    "batch": ("512", ["", "0", "-1", "1e3", "1000000001", "many"]),
    "gpus": ("1-4", ["", "0", "1-x", "4-1", "65537", "1,,2", "1-4:x1", "-1", "1-", "2:", "99999999999999999999", "0x4", "1e2",
                     ",".join(map(str, range(1, 600, 2)))]),
    "loss": ("csv:logs/%j.csv", ["", "a\x01b", "x" * 513, "csv:", "jsonl:", "tfevents:", "mlflow:a@ftp://h", "mlflow:@https://me:secret@h"]),
    "loss-key": ("train/loss", ["", "k" * 65, "a\tb", "/(a/"]),
    "target": ("steps:5000", ["", "abc", "nan", "inf", "steps:0", "steps:-1", "steps:x"]),
    "resize": ("restart", ["", "live", "sometimes"]),
    "signal": ("B:USR2@30", ["", "KILL", "STOP", "9", "FOO", "0", "99", "USR1@86401", "USR1@-1", "USR1@", "@60", "URG"]),
    "advise": ("yes", ["", "maybe", "1"]),
}
GOOD = [f"--train-{name}={good}" for name, (good, _) in VALUES.items()]

# Submits past the SPANK plugin, as another program that talks to slurmctld would: argv is job_desc_msg_t::spank_job_env, the
# script comes from the environment.
PAST_SPANK = r"""
#include <errno.h>
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int count, char **words)
{
    char *environment[] = {"PATH=/usr/bin:/bin", NULL};
    job_desc_msg_t job;
    submit_response_msg_t *answer = NULL;
    slurm_init(NULL);
    slurm_init_job_desc_msg(&job);
    job.name = "past-spank";
    job.script = getenv("SCRIPT");
    job.environment = environment;
    job.env_size = 1;
    job.user_id = getuid();
    job.group_id = getgid();
    job.work_dir = "/tmp";
    job.std_out = "/dev/null";
    job.min_nodes = 1;
    job.spank_job_env = words + 1;
    job.spank_job_env_size = count - 1;
    int rc = slurm_submit_batch_job(&job, &answer);
    int code = rc ? errno : (int)answer->error_code;
    if (answer && answer->job_submit_user_msg)
        printf("%s\n", answer->job_submit_user_msg);
    if (code)
        printf("error: %s\n", slurm_strerror(code));
    else
        printf("%u\n", answer->job_id);
    return code != 0;
}
"""


class OptionsTest(ClusterTest):
    CONF = {"Policy": "fifo"}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.slurm = cls.cluster("Nodes=n[1-2] Gpus=8 Sockets=2 CoresPerSocket=64\n", sluice=cls.CONF)
        cls.controller = cls.slurm.pid("slurmctld")

    def setUp(self):
        self.assertEqual(self.slurm.pid("slurmctld"), self.controller)

    def tearDown(self):
        self.assertEqual(self.slurm.pid("slurmctld"), self.controller, "slurmctld died")
        for user in ("root", "nobody", "daemon"):
            self.slurm.run(["scancel", f"--user={user}"])
        wait_for(lambda: not self.slurm.run(["squeue", "-ha"]).stdout, 60, "an empty queue")
        self.assertEqual(gpu_errors(self.slurm), [])

    def next_job(self):
        return int(re.search(r"NEXT_JOB_ID\s*=\s*(\d+)", self.slurm.run(["scontrol", "show", "config"]).stdout).group(1))

    def legal_forms(self):
        """{option: its legal form}, as sbatch --help shows them, without blanks."""
        text = self.slurm.run(["sbatch", "--help"]).stdout.partition("Options provided by plugins:\n")[2]
        text = re.match(r"(?: +.*\n|\n(?= ))*", text).group()
        return {name: re.sub(r"\s", "", legal) for name, legal in re.findall(r"--train-([a-z-]+)=\S+\s+((?:(?! --)(?:.|\n))*)", text)}

    def assert_refused(self, result, name, value):
        self.assertNotEqual(result.returncode, 0)
        text = result.stdout + result.stderr
        self.assertIn(f"--train-{name}: ", text)
        if value.isascii() and value.isprintable():
            self.assertIn(f'"{value[:60]}', text)
        self.assertIn(self.legal[name], re.sub(r"\s", "", text))

    def is_marked(self, job):
        """The controller has taken the job's options and says so in the job record."""
        return "sluice" in json.loads(self.slurm.job(job).get("AdminComment") or "{}")


class Bad(OptionsTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.legal = cls.legal_forms(cls)
        assert set(cls.legal) == set(VALUES), cls.legal
        source = cls.scratch / "past_spank.c"
        cls.past_spank = cls.scratch / "past_spank"
        source.write_text(PAST_SPANK, encoding="ascii")
        subprocess.run(["cc", "-o", cls.past_spank, source, "-lslurm"], check=True)
        cls.past_spank.chmod(0o755)

    def each_bad_value(self, name_of):
        before = self.next_job()
        for name, (_, bad) in VALUES.items():
            for value in bad:
                with self.subTest(option=name, value=value[:70]):
                    name_of(name, value)
        self.assertEqual(self.next_job(), before, "no job was created")

    def test_sbatch(self):
        self.each_bad_value(lambda name, value: self.assert_refused(
            self.slurm.run(["sbatch", f"--train-{name}={value}", "--wrap", "true"], check=False, user="nobody"), name, value))

    def test_salloc(self):
        self.each_bad_value(lambda name, value: self.assert_refused(
            self.slurm.run(["salloc", f"--train-{name}={value}", "true"], check=False), name, value))

    def test_srun(self):
        self.each_bad_value(lambda name, value: self.assert_refused(
            self.slurm.run(["srun", f"--train-{name}={value}", "true"], check=False), name, value))

    def test_lines_of_the_script(self):
        def submit(name, value):
            if "\x01" in value or not value:
                return  # the shell words of a script cannot say it
            script = f'#!/bin/sh\n#SBATCH --train-{name}="{value}"\ntrue\n'
            self.assert_refused(self.slurm.run(["sbatch"], input=script, check=False), name, value)

        self.each_bad_value(submit)

    def test_environment(self):
        def submit(name, value):
            variable = f"SLURM_SPANK__SLURM_SPANK_OPTION_sluice_train_{name[0:].replace('-', '_')}"
            self.assert_refused(self.slurm.run(["sbatch", "--wrap", "true"], env={variable: value}, check=False), name, value)

        self.each_bad_value(submit)

    def test_past_the_spank_plugin(self):
        """What slurmctld itself says of the same values."""
        def submit(name, value):
            entry = f"_SLURM_SPANK_OPTION_sluice_train_{name.replace('-', '_')}={value}"
            self.assert_refused(self.slurm.run([self.past_spank, entry], env={"SCRIPT": "#!/bin/sh\ntrue\n"}, check=False, user="nobody"),
                                name, value)

        self.each_bad_value(submit)
        good = [f"_SLURM_SPANK_OPTION_sluice_train_{name.replace('-', '_')}={good}" for name, (good, _) in VALUES.items()]
        job = int(self.slurm.run([self.past_spank, *good], env={"SCRIPT": "#!/bin/sh\ntrue\n"}).stdout)
        self.assertTrue(self.is_marked(job))

    def test_together(self):
        before = self.next_job()
        for words, said in ((["--train-gpus=2,4", "--gpus=3"], "asks for 3 GPUs, which is none of --train-gpus=2,4"),
                            (["--train-gpus=2", "--gpus-per-node=2", "-N2"], "asks for 4 GPUs, which is none of --train-gpus=2"),
                            (["--train-gpus=2", "--train-resize=restart", "--no-requeue"], "may be requeued: drop --no-requeue"),
                            (["--train-gpus=1-4", "--train-gpus=x"], '--train-gpus: "x"')):
            with self.subTest(words=words):
                result = self.slurm.run(["sbatch", *words, "--wrap", "true"], check=False)
                self.assertNotEqual(result.returncode, 0)
                self.assertIn(said, result.stderr)
        self.assertEqual(self.next_job(), before, "no job was created")

    def test_nonsense_past_the_spank_plugin(self):
        for entries in (["_SLURM_SPANK_OPTION_sluice_"], ["_SLURM_SPANK_OPTION_sluice_=1"], ["_SLURM_SPANK_OPTION_sluice_train_none=1"],
                        ["_SLURM_SPANK_OPTION_sluice_train_gpus"], ["="], [""], ["_SLURM_SPANK_OPTION_sluice_train_gpus=1-4"] * 500,
                        ["_SLURM_SPANK_OPTION_sluice_train_model=" + "x" * 100000], ["SPANK_" * 1000]):
            for script in ("#!/bin/sh\ntrue\n", "", "#!/bin/sh\n" + "# x\n" * 200000):
                with self.subTest(entry=entries[0][:60], script=len(script)):
                    if len(script) < 100000:
                        self.slurm.run([self.past_spank, *entries], env={"SCRIPT": script}, check=False)
                    self.assertEqual(self.slurm.pid("slurmctld"), self.controller)


class Good(OptionsTest):
    def test_sbatch(self):
        job = self.slurm.sbatch([*GOOD, "--gpus=2", "-o", "/dev/null"], "true", user="nobody")
        self.assertTrue(self.is_marked(job))
        self.slurm.wait_job(job)

    def test_salloc(self):
        result = self.slurm.run(["salloc", "--no-shell", *GOOD, "--gpus=2"], user="nobody")
        self.assertTrue(self.is_marked(int(re.search(r"allocation (\d+)", result.stderr).group(1))))

    def test_srun(self):
        result = self.slurm.run(["srun", *GOOD, "--gpus=2", "sh", "-c", "echo $SLURM_JOB_ID"], user="nobody")
        self.assertTrue(self.is_marked(int(result.stdout)))

    def test_lines_of_the_script(self):
        lines = "\n".join(f"#SBATCH {word}" for word in [*GOOD, "--gpus=2", "--output=/dev/null"])
        job = self.slurm.sbatch([], f"#!/bin/sh\n{lines}\ntrue\n")
        self.assertTrue(self.is_marked(job))
        self.slurm.wait_job(job)

    def test_environment(self):
        variables = {f"SLURM_SPANK__SLURM_SPANK_OPTION_sluice_train_{name.replace('-', '_')}": good for name, (good, _) in VALUES.items()}
        job = self.slurm.sbatch(["--gpus=2", "-o", "/dev/null"], "true", env=variables)
        self.assertTrue(self.is_marked(job))

    def test_sizes_that_fit_the_nodes(self):
        job = self.slurm.sbatch(["-N2", "--train-gpus=1-8", "-o", "/dev/null"], "sleep 100")
        self.assertEqual(self.slurm.wait_job(job, "RUNNING")["TresPerJob"], gpu_request(2))
        refused = self.slurm.run(["sbatch", "-N2", "--train-gpus=1,3,5", "--wrap", "true"], check=False)
        self.assertIn("none of --train-gpus=1,3,5 can be spread over 2 nodes evenly", refused.stderr)

    def test_scripts_that_wait_for_all_their_children_end(self):
        for name, script in (("python3", "import os\ntry:\n    while True: os.wait()\nexcept ChildProcessError:\n    pass\n"),
                             ("perl", "1 while wait() > 0;\n")):
            job = self.slurm.sbatch(["--gpus=1", "--train-gpus=1-2", "-o", "/dev/null"], f"#!/usr/bin/{name}\n{script}")
            self.slurm.wait_job(job)

    def test_resize_without_sizes_is_a_hint(self):
        for words, hint in ((["--train-resize=restart"], True), (["--train-resize=restart", "--train-gpus=1-2"], False),
                            (["--train-resize=off"], False), (["--train-resize=OFF"], False), (["--train-model=m"], False)):
            told = self.slurm.run(["sbatch", *words, "-o", "/dev/null", "--wrap", "true"]).stderr
            self.assertEqual("--train-resize has no effect without --train-gpus" in told, hint, f"{words}: {told}")

    def test_sizes_that_will_not_change_are_a_hint(self):
        hint = "--train-gpus: the job keeps the number of GPUs that it starts with: it "
        sbatch, srun = ["sbatch", "-o", "/dev/null", "--wrap", "true"], ["srun", "true"]
        for words, why in ((srun, "is submitted by srun"), (["salloc", "true"], "is submitted by srun or salloc"), (sbatch + ["--array=1-2"], "is part of an array"),
                           (sbatch + ["--exclusive"], "has its nodes alone"), (sbatch + ["-n2", "--gpus-per-task=1"], "asks for GPUs per socket or per task"),
                           (sbatch, None), (sbatch + ["--train-resize=off", "--array=1-2"], None)):
            told = self.slurm.run([words[0], "--train-gpus=1-4", *words[1:]]).stderr
            self.assertEqual(hint in told, why is not None, f"{words}: {told}")
            self.assertIn(why or "", told, words)

    def test_an_mlflow_source_without_a_server_is_a_hint(self):
        for value, env, hints in (("mlflow:abc", {}, ["names no server, and MLFLOW_TRACKING_URI is not set: write mlflow:abc@https://SERVER"]),
                                  ("mlflow:", {"MLFLOW_TRACKING_URI": "http://h"}, ["names no run, and MLFLOW_RUN_ID is not set: write mlflow:RUN"]),
                                  ("mlflow:abc@http://h", {}, []), ("mlflow:", {"MLFLOW_TRACKING_URI": "http://h", "MLFLOW_RUN_ID": "a"}, [])):
            told = self.slurm.run(["sbatch", f"--train-loss={value}", "-o", "/dev/null", "--wrap", "true"], env=env).stderr
            self.assertEqual("names no " in told, bool(hints), f"{value}: {told}")
            for hint in hints:
                self.assertIn(hint, told)

    def test_components_of_a_heterogeneous_job_keep_their_requests(self):
        for words, gpus in ((["--gpus=2", "--train-gpus=2-4", ":", "-N1", "-n1"], [2, 0]), (["--gpus=2", "--train-gpus=2-4", ":", "-N1", "--gpus=1"], [2, 1])):
            told = self.slurm.run(["salloc", "--no-shell", "-N1", *words]).stderr
            job = int(re.search(r"Granted job allocation (\d+)", told).group(1))
            held = [sum(map(len, self.slurm.job_gres().get(job + offset, {}).values())) for offset in (0, 1)]
            self.assertEqual(held, gpus, words)
            self.slurm.run(["scancel", str(job)])

    def test_sizes_alone_ask_for_the_smallest(self):
        job = self.slurm.sbatch(["--train-gpus=2-8", "-o", "/dev/null"], "sleep 100")
        fields = self.slurm.wait_job(job, "RUNNING")
        self.assertEqual(fields["TresPerJob"], gpu_request(2))

    def test_restart_keeps_the_log(self):
        job = self.slurm.sbatch(["--gpus=2", "--train-gpus=1-4", "--train-resize=restart", "-o", "log"], "echo begun; sleep 100",
                                user="nobody")
        self.slurm.wait_job(job, "RUNNING")
        log = self.slurm.layout.jobs / "log"
        for runs in (1, 2):
            wait_for(lambda: log.exists() and log.read_text(encoding="utf-8").count("begun") == runs, 30, f"run {runs}")
            if runs == 1:
                self.slurm.run(["scontrol", "requeue", str(job)], user="nobody")

    def test_without_options_nothing_is_touched(self):
        job = self.slurm.sbatch(["--gpus=2", "-o", "/dev/null"], "true")
        self.assertEqual(self.slurm.job(job).get("AdminComment", ""), "")


class Interactive(OptionsTest):
    """Under a policy that changes sizes."""

    CONF = {"Interval": 1}

    def test_srun_gets_what_its_step_will_ask_for(self):
        holder = self.slurm.sbatch(["-N1", "-w", "n1", "--gpus=6", "-o", "/dev/null"], "sleep 3")
        other = self.slurm.sbatch(["-N1", "-w", "n2", "--gpus=8", "-o", "/dev/null"], "sleep 1000")
        for job in (holder, other):
            self.slurm.wait_job(job, "RUNNING")
        for words in (["srun", "--gpus=4", "--train-gpus=1-8", "true"], ["salloc", "--gpus=4", "--train-gpus=1-8", "srun", "true"]):
            self.slurm.run(words, timeout=60)


class Unusual(OptionsTest):
    def test_array(self):
        job = self.slurm.sbatch([*GOOD, "--array=0-4", "--gpus=2", "-o", "/dev/null"], "sleep 0.2")
        wait_for(lambda: self.slurm.run(["squeue", "-ha", "-j", str(job)]).stdout == "", 60, "end of the array")
        tasks = [fields for fields in self.slurm.jobs().values() if fields.get("ArrayJobId") == str(job)]
        self.assertEqual([fields["JobState"] for fields in tasks], ["COMPLETED"] * 5)
        self.assertTrue(all("sluice" in fields["AdminComment"] for fields in tasks))

    def test_heterogeneous_job(self):
        submitted = self.slurm.run(["sbatch", "--parsable", "-o", "/dev/null", "--gpus=1", *GOOD, ":", "--gpus=2", "--train-gpus=1-2", "--wrap",
                                    "srun true"])
        self.slurm.wait_job(int(submitted.stdout.split(";")[0]))

    def test_empty_script(self):
        self.assertNotEqual(self.slurm.run(["sbatch", *GOOD], input="", check=False).returncode, 0)

    def test_large_environment(self):
        job = self.slurm.sbatch([*GOOD, "--gpus=2", "-o", "/dev/null"], 'test "${#LARGE_2}" = 100000',
                                env={f"LARGE_{i}": "x" * 100000 for i in range(3)})
        self.slurm.wait_job(job)

    def test_forged_in_the_environment(self):
        """slurmstepd takes options from the environment of a job; it may write no line of the user's into the node's log."""
        job = self.slurm.sbatch(["-w", "n1", "-o", "/dev/null"], "true", env={"_SLURM_SPANK_OPTION_sluice_train_model": "m\n[2026-01-01] error: FORGED"})
        self.slurm.wait_job(job)
        log = self.slurm.log("n1")
        self.assertRegex(log, rf'\[{job}\.batch\] error: sluice: --train-model: "m\?\[2026-01-01\] error: FORGED" is no model name')
        self.assertNotRegex(log, r"(?m)^\[2026-01-01\]")

    def test_updates(self):
        job = self.slurm.sbatch([*GOOD, "--gpus=2", "-o", "/dev/null", "-H"], "true", user="nobody")
        mark = self.slurm.job(job)["AdminComment"]
        for change in ("comment=mine", f"TresPerJob={gpu_request(4)}", f"TresPerNode={gpu_request(1)}", "TimeLimit=10", "NumNodes=2", "Name=other",
                       "Features=none", "AdminComment=theirs", "Requeue=0", "Dependency=afterany:1", "StartTime=now+1hour", "NumTasks=4",
                       "Partition=main", "Nice=5", "WorkDir=/tmp"):
            with self.subTest(change=change):
                self.slurm.run(["scontrol", "update", f"jobid={job}", change], user="nobody", check=False)
        fields = self.slurm.job(job)
        self.assertEqual((fields["Comment"], fields["AdminComment"]), ("mine", mark))
        self.slurm.run(["scontrol", "update", "jobid=999999", "comment=sluice1:{}"], check=False)

    def test_reservation_of_cores(self):
        """22.05's scontrol refuses it by itself; sluice-admin(8) tells how it is made all the same."""
        words = ["scontrol", "create", "reservation", "ReservationName=cores", "StartTime=now", "Duration=10", "Users=root", "Partition=main",
                 "Nodes=n1", "CoreCnt=4"]
        if RELEASE >= (23, 2):
            self.slurm.run(words)
        else:
            self.reserve_with_a_copy_of_slurm_conf(words)
        job = self.slurm.sbatch(["--reservation=cores", "-n4", "-o", "/dev/null"], "sleep 100")
        self.assertEqual(self.slurm.wait_job(job, "RUNNING")["NodeList"], "n1")
        end_job(self.slurm, job)
        self.slurm.run(["scontrol", "delete", "ReservationName=cores"])

    def reserve_with_a_copy_of_slurm_conf(self, words):
        self.assertIn("CoreCnt", self.slurm.run(words, check=False).stderr)
        copy = self.scratch / "reserve.conf"
        copy.write_text(self.slurm.layout.slurm_conf.read_text(encoding="utf-8").replace("cons_tres_sluice", "cons_tres"), encoding="utf-8")
        self.slurm.run(["env", f"SLURM_CONF={copy}", *words])

    def test_many_at_once(self):
        def submit(number):
            words = [GOOD, ["--train-gpus=x"], [], ["--train-gpus=1-2", "--gpus=1"]][number % 4]
            return number % 4, self.slurm.run(["sbatch", "-H", *words, "-o", "/dev/null", "--wrap", "true"], check=False,
                                              user=("nobody", "daemon", None)[number % 3]).returncode

        before = self.next_job()
        with concurrent.futures.ThreadPoolExecutor(32) as pool:
            results = list(pool.map(submit, range(SUBMITS)))
        self.assertEqual({(kind, bool(code)) for kind, code in results}, {(0, False), (1, True), (2, False), (3, False)})
        self.assertEqual(self.next_job() - before, SUBMITS * 3 // 4)
        say(f"{SUBMITS} submissions, 32 at a time")


class ForgedRecords(OptionsTest):
    """A user may write what looks like a record of an agent."""

    CONF = {"Policy": "fifo", "Interval": 1}
    TEXTS = ["sluice1:", "sluice1:{}", "sluice1:x", "sluice1:" + "x" * 100000, 'sluice1:{"r":-1}', 'sluice1:{"r":0,"k":1e400,"n":1}',
             'sluice1:{"r":0,"n":0,"x":"' + "y" * 5000 + '"}', "sluice1:[1,2]", 'sluice1:{"r":0,"n":18446744073709551616,"g":1}',
             "sluice1:" + "[" * 10000, 'sluice1:{"r":0,"n":1,"g":1,"b":[1,2]}', 'sluice1:{"r":0,"r":1}', "sluice1:\t\t", 'sluice1:{"r":null}']

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.record = 'sluice1:{"r":0,"k":7,"l":2.5,"n":3,"g":2}'

    def new_job(self, *words):
        job = self.slurm.sbatch([*words, "--gpus=1", "-o", "/dev/null"], "sleep 1000", user="nobody")
        self.slurm.wait_job(job, "RUNNING")
        self.slurm.run(["scontrol", "update", f"jobid={job}", "comment=mine"], user="nobody")
        return job

    def send(self, job, text, user):
        return self.slurm.run(["scontrol", "update", f"jobid={job}", f"comment={text}"], user=user, check=False)

    def test_malformed(self):
        job = self.new_job("--train-gpus=1-2")
        before = self.slurm.job(job)["AdminComment"]
        for text in self.TEXTS:
            with self.subTest(text=text[:40]):
                self.send(job, text, "nobody")
                fields = self.slurm.job(job)
                self.assertEqual((fields["Comment"], fields["AdminComment"]), ("mine", before))
        end_job(self.slurm, job)
        told = wait_for(lambda: [line for line in sluice_lines(self.slurm) if "records of training jobs" in line], 20, "word of what was left out")
        self.assertEqual(len(told), 1, "seldom")
        left_out = re.search(r"left out: (\d+) malformed, (\d+) not from the job's owner, (\d+) beyond", told[0])
        self.assertGreater(sum(map(int, left_out.groups())), 0)

    def test_from_another_user(self):
        job = self.new_job("--train-gpus=1-2")
        before = self.slurm.job(job)["AdminComment"]
        for text in (self.record, *self.TEXTS[:3]):
            self.assertNotEqual(self.send(job, text, "daemon").returncode, 0)
        fields = self.slurm.job(job)
        self.assertEqual((fields["Comment"], fields["AdminComment"]), ("mine", before))

    def test_for_a_job_without_options(self):
        job = self.new_job()
        self.send(job, self.record, "nobody")
        fields = self.slurm.job(job)
        self.assertEqual((fields["Comment"], fields.get("AdminComment", "")), ("mine", ""))

    def test_a_good_one(self):
        job = self.new_job("--train-gpus=1-2")
        self.assertEqual(self.send(job, self.record, "nobody").returncode, 0)
        fields = self.slurm.job(job)
        self.assertEqual(fields["Comment"], "mine")
        self.assertEqual(json.loads(fields["AdminComment"])["sluice"]["record"]["k"], 7)

    def test_very_many(self):
        jobs = [self.new_job("--train-gpus=1-2") for _ in range(4)]

        def send(number):
            text = self.TEXTS[number % len(self.TEXTS)] if number % 2 else self.record.replace('"k":7', f'"k":{number}')
            self.send(jobs[number % 4], text, ("nobody", "daemon")[number % 5 == 0])

        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            list(pool.map(send, range(FORGERIES)))
        for job in jobs:
            fields = self.slurm.job(job)
            self.assertEqual(fields["Comment"], "mine")
            self.assertLess(len(fields["AdminComment"]), 4097)
        say(f"{FORGERIES} forged records, 16 at a time")


if __name__ == "__main__":
    unittest.main()
