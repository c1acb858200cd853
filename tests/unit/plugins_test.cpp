// SPDX-License-Identifier: GPL-2.0-or-later
//
// The parts of plugins/ that need no Slurm: requests as text, options in an environment, the budget
// of records, what is kept of a job, and the views that policies read.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "plugins/job_submit/inbox.hpp"
#include "plugins/job_submit/tracker.hpp"
#include "plugins/job_submit/views.hpp"
#include "plugins/slurm/gpu_request.hpp"
#include "plugins/slurm/spank_options.hpp"
#include "plugins/spank/agent/checkpoint.hpp"
#include "plugins/spank/job_files.hpp"
#include "plugins/spank/loss_begin.hpp"
#include "tests/unit/scratch_dir.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace sluice::slurm {
namespace {

using Form = GpuRequest::Form;

TEST(GpuRequest, ReadsTheFormsOfBothReleases) {
    const auto read = [](const char* per_job, const char* per_node) {
        return parse_gpu_request(per_job, per_node, nullptr, nullptr);
    };
    EXPECT_EQ(read(nullptr, nullptr).form, Form::none);
    EXPECT_EQ(read("license:a:2", nullptr).form, Form::none);
    for (const char* text :
         {"gres:gpu:4", "gres/gpu:4", "gpu:4", "gres:gpu:v100:4", "gres/gpu=4"}) {
        EXPECT_EQ(read(text, nullptr).form, Form::per_job) << text;
        EXPECT_EQ(read(text, nullptr).count, 4) << text;
        EXPECT_EQ(read(nullptr, text).form, Form::per_node) << text;
    }
    EXPECT_EQ(read("gres:gpu", nullptr).count, 1);
    EXPECT_EQ(read("gres:gpu:v100", nullptr).count, 1);
    EXPECT_EQ(read("gres:gpus:4", nullptr).form, Form::none);
}

TEST(GpuRequest, LeavesAloneWhatItCannotChange) {
    EXPECT_EQ(parse_gpu_request("gres:gpu:a:1,gres:gpu:b:1", nullptr, nullptr, nullptr).form,
              Form::other);
    EXPECT_EQ(parse_gpu_request("gres:gpu:4", "gres:gpu:2", nullptr, nullptr).form, Form::other);
    EXPECT_EQ(parse_gpu_request(nullptr, nullptr, "gres:gpu:2", nullptr).form, Form::other);
    EXPECT_EQ(parse_gpu_request(nullptr, nullptr, nullptr, "gres:gpu:2").form, Form::other);
    for (const char* text : {"gres:gpu:4k", "gres:gpu:0", "gres:gpu:99999999999999999999"})
        EXPECT_EQ(parse_gpu_request(text, nullptr, nullptr, nullptr).form, Form::other) << text;
}

TEST(GpuRequest, ReplacesTheCountAndNothingElse) {
    EXPECT_EQ(with_gpu_count("gres:gpu:4", 8), "gres:gpu:8");
    EXPECT_EQ(with_gpu_count("gres/gpu:v100:4,license:a:2", 1), "gres/gpu:v100:1,license:a:2");
    EXPECT_EQ(with_gpu_count("gres:gpu", 2), "gres:gpu:2");
    EXPECT_EQ(with_gpu_count("gres:gpu:v100", 2), "gres:gpu:v100:2");
}

TEST(SpankOptions, FindsOursAmongOthers) {
    std::string ours = "_SLURM_SPANK_OPTION_sluice_train_gpus=1-8";
    std::string prefixed = "SPANK__SLURM_SPANK_OPTION_sluice_train_model=a=b";
    std::string other = "_SLURM_SPANK_OPTION_pyxis_container=x";
    std::string no_value = "_SLURM_SPANK_OPTION_sluice_train_loss";
    char* environment[] = {ours.data(), nullptr, other.data(), prefixed.data(), no_value.data()};
    const auto options = options_in(environment, 5);
    ASSERT_EQ(options.size(), 2u);
    EXPECT_EQ(options[0], (std::pair<std::string, std::string>("train_gpus", "1-8")));
    EXPECT_EQ(options[1], (std::pair<std::string, std::string>("train_model", "a=b")));
    EXPECT_TRUE(options_in(nullptr, 3).empty());
}

TEST(Inbox, KeepsTheBudget) {
    Config config;
    config.min_sample_interval = std::chrono::seconds(10);
    config.max_records_per_second = 2;
    Inbox inbox;
    const auto start = Inbox::Clock::time_point(std::chrono::hours(1));
    Record record;
    EXPECT_TRUE(inbox.admit(1, record, config, start));
    EXPECT_FALSE(inbox.admit(1, record, config, start + std::chrono::seconds(4)));
    EXPECT_TRUE(inbox.admit(1, record, config, start + std::chrono::seconds(10)));
    EXPECT_TRUE(inbox.admit(2, record, config, start + std::chrono::seconds(10)));
    EXPECT_FALSE(inbox.admit(3, record, config, start + std::chrono::seconds(10)));
    EXPECT_TRUE(inbox.admit(3, record, config, start + std::chrono::seconds(11)));
    EXPECT_EQ(inbox.take().size(), 4u);
    EXPECT_TRUE(inbox.take().empty());
    EXPECT_EQ(inbox.counters().accepted, 4u);
    EXPECT_EQ(inbox.counters().over_budget, 2u);
}

TEST(Inbox, TheFirstRecordsOfARunMayComeSoon) {
    const Config config;  // a record a minute
    Inbox inbox;
    Record record;
    const auto taken_in_an_hour = [&](std::chrono::hours start) {
        std::vector<int> taken;
        for (int second = 0; second < 3600; ++second) {
            if (inbox.admit(1, record, config,
                            Inbox::Clock::time_point(start) + std::chrono::seconds(second)))
                taken.push_back(second);
        }
        EXPECT_EQ(taken.size(), 63u) << "of one an hour more than one a minute are three";
        taken.resize(7);
        return taken;
    };
    const std::vector<int> growing = {0, 5, 15, 35, 75, 135, 195};
    EXPECT_EQ(taken_in_an_hour(std::chrono::hours(1)), growing);
    record.restarts = 1;
    EXPECT_EQ(taken_in_an_hour(std::chrono::hours(2)), growing);
    // never more often than the administrator says
    for (int sent = 0; sent < 100; ++sent) {
        EXPECT_EQ(record_pause(std::chrono::seconds(3), sent), std::chrono::seconds(3));
        EXPECT_LE(record_pause(std::chrono::seconds(86400), sent), std::chrono::seconds(86400));
    }
}

TEST(Inbox, TheLastRecordOfARunIsNeverTooSoonButOnlyOne) {
    Config config;
    config.max_records_per_second = 1;
    Inbox inbox;
    const auto now = Inbox::Clock::time_point(std::chrono::hours(1));
    Record record;
    EXPECT_TRUE(inbox.admit(1, record, config, now));
    record.ended = true;
    EXPECT_TRUE(inbox.admit(1, record, config, now));
    EXPECT_FALSE(inbox.admit(1, record, config, now));
    EXPECT_TRUE(inbox.admit(2, record, config, now));
    EXPECT_FALSE(inbox.admit(2, record, config, now));
    record.checkpointed = true;
    EXPECT_TRUE(inbox.admit(2, record, config, now)) << "its last word is an answer, too";
    EXPECT_FALSE(inbox.admit(2, record, config, now));
    record = Record();
    record.restarts = 1;
    EXPECT_TRUE(inbox.admit(1, record, config, now + std::chrono::seconds(1)));
    record.ended = true;
    EXPECT_TRUE(inbox.admit(1, record, config, now + std::chrono::seconds(1)));
}

TEST(Inbox, AnAnswerToACheckpointIsNeverTooSoonButOnlyOnce) {
    Config config;
    Inbox inbox;
    const auto now = Inbox::Clock::time_point(std::chrono::hours(1));
    Record record;
    EXPECT_TRUE(inbox.admit(1, record, config, now));
    record.checkpointed = true;
    EXPECT_TRUE(inbox.admit(1, record, config, now));
    EXPECT_FALSE(inbox.admit(1, record, config, now));
    record.restarts = 1;
    EXPECT_TRUE(inbox.admit(1, record, config, now));
}

TEST(TrackedJob, SurvivesTheJournal) {
    TrackedJob job;
    Record record;
    record.restarts = 2;
    record.step = 120;
    record.loss = 1.5;
    record.points = 20;
    record.gpus = 4;
    record.steps_per_second = 3.5;
    job.resize = Resize{Resize::Phase::requeued, 4, 8, 2, 1795993535, false, "more \"to\" gain"};
    job.learn(record);
    job.resize_times = {1795990000};
    job.last_resize = 1795990000;
    const auto back = parse_tracked_job(to_text(job));
    ASSERT_TRUE(back) << back.error().message;
    ASSERT_TRUE(back->record);
    EXPECT_EQ(back->record->step, 120);
    EXPECT_EQ(back->speeds.at(4).steps_per_second, 3.5);
    ASSERT_TRUE(back->resize);
    EXPECT_EQ(back->resize->phase, Resize::Phase::requeued);
    EXPECT_EQ(back->resize->to, 8);
    EXPECT_EQ(back->resize->reason, "more \"to\" gain");
    EXPECT_EQ(back->resize_times, job.resize_times);
    EXPECT_EQ(to_text(*back), to_text(job));
}

TEST(TrackedJob, OnlyAnAnswerOfTheSignalledRunCounts) {
    TrackedJob job;
    job.resize = Resize{Resize::Phase::signalled, 4, 8, 1, 0, false, ""};
    Record record;
    record.checkpointed = true;
    record.restarts = 0;
    job.learn(record);
    EXPECT_FALSE(job.resize->checkpointed);
    record.restarts = 1;
    job.learn(record);
    EXPECT_TRUE(job.resize->checkpointed);
}

TEST(TrackedJob, RefusesWhatIsNoState) {
    for (const char* text : {"", "[]", "{", "{\"record\":\"sluice1:broken\"}"})
        EXPECT_FALSE(parse_tracked_job(text)) << text;
}

TEST(JobFiles, WhatAnEarlierJobOfThatIdSaidIsNone) {
    const ScratchDir scratch;
    const std::string& folder = scratch.path();
    const auto text = [](const std::string& path) {
        std::ifstream file(path);
        return std::string(std::istreambuf_iterator<char>(file), {});
    };
    const std::string path = make_emit_file(folder, "7-a", true);
    ASSERT_NE(path, "");
    std::ofstream(path) << "{}\n";
    // A run that is started anew goes on with it, another job does not.
    EXPECT_EQ(make_emit_file(folder, "7-a", false), path);
    EXPECT_EQ(text(path), "{}\n");
    EXPECT_EQ(make_emit_file(folder, "7-a", true), path);
    EXPECT_EQ(text(path), "");
    // Somebody's link is not followed, but taken away with what was there before.
    std::ofstream(folder + "/target") << "kept";
    unlink(path.c_str());
    ASSERT_EQ(symlink((folder + "/target").c_str(), path.c_str()), 0);
    EXPECT_EQ(make_emit_file(folder, "7-a", false), "");
    EXPECT_EQ(make_emit_file(folder, "7-a", true), path);
    EXPECT_EQ(text(folder + "/target"), "kept");
}

TEST(JobFiles, EachClusterHasItsOwn) {
    const std::string name = job_name_for_files("42", "a", "/etc/slurm/slurm.conf");
    EXPECT_EQ(name, job_name_for_files("42", "a", "/etc/slurm/slurm.conf"));
    EXPECT_EQ(name.rfind("42-", 0), 0u);
    EXPECT_NE(name, job_name_for_files("42", "b", "/etc/slurm/slurm.conf"));
    EXPECT_NE(name, job_name_for_files("42", "a", "/srv/slurm.conf"));
}

class Views : public ::testing::Test {
  protected:
    Views() {
        facts.nodes = {{"n1", 8, true}, {"n2", 8, false}, {"n3", 4, true}};
        facts.partitions = {{"main", {0, 1}}, {"other", {0, 2}}};
    }

    JobFacts& add(std::uint32_t id, JobState state, int gpus, const char* partition) {
        JobFacts job;
        job.id = id;
        job.state = state;
        job.gpus = gpus;
        job.partition = partition;
        job.priority = 100 - id;
        job.start = 1000 + id;
        job.node_count = 1;
        facts.jobs.push_back(job);
        return facts.jobs.back();
    }
    void make_malleable(JobFacts& job) {
        JobSpec spec;
        spec.sizes = {1, 2, 4, 8};
        spec.resize = ResizeMode::restart;
        job.spec = spec;
        job.request_resizable = job.batch = job.requeueable = true;
    }
    ClusterView view(std::size_t partition) {
        return partition_view(facts, facts.partitions[partition], tracked,
                              {history, [this](auto&&...) { return steps ? &*steps : nullptr; }},
                              config, 5000);
    }

    ClusterFacts facts;
    std::map<std::uint32_t, TrackedJob> tracked;
    RunHistory history;
    std::optional<StepTimeModel> steps;
    Config config;
};

TEST(TrackedJobs, WhatWasReadOnceIsNotUnread) {
    TrackedJob job;
    Record record;
    record.points = 87;
    job.learn(record);
    record.points = 0;
    job.learn(record);
    EXPECT_EQ(job.record->points, 87);
    record.restarts = 1;
    job.learn(record);
    EXPECT_EQ(job.record->points, 0) << "another run";
}

TEST_F(Views, ANewJobIsTakenToDoAsEarlierOnesOfItsModelDid) {
    PastRun past;
    past.job = 7;
    past.user = 1000;
    past.account = "physics";
    past.model = "gpt2";
    past.record.points = 50;
    past.record.gpus = 2;
    past.record.steps_per_second = 4;
    past.record.curve = LossCurve();
    past.record.curve->b1 = 0.5;
    ASSERT_TRUE(history.add(past));
    JobFacts& job = add(1, JobState::pending, 2, "main");
    make_malleable(job);
    job.owner = 1000;
    job.spec->model = "gpt2";
    const auto view_of = [&] { return view(0).jobs.at(0); };
    ASSERT_TRUE(view_of().curve);
    EXPECT_EQ(view_of().curve->b1, 0.5);
    EXPECT_EQ(view_of().step, 0);
    ASSERT_TRUE(view_of().speed);
    EXPECT_NEAR(view_of().speed->steps_per_second(2), 4, 1e-9);
    // Another batch is another curve.
    job.spec->batch = 64;
    EXPECT_FALSE(view_of().curve);
    job.spec->batch.reset();
    // Another user's runs are that user's, unless the site shares them within an account.
    job.owner = 1001;
    job.account = "physics";
    EXPECT_FALSE(view_of().curve);
    config.share_runs_in_account = true;
    EXPECT_TRUE(view_of().curve);
    // What it has shown itself counts for more.
    Record own;
    own.points = 9;
    own.step = 30;
    own.curve = LossCurve();
    own.curve->b1 = 0.25;
    tracked[1].learn(own);
    EXPECT_EQ(view_of().curve->b1, 0.25);
    EXPECT_EQ(view_of().step, 30);
    EXPECT_TRUE(view_of().speed);
}

TEST_F(Views, WhatIsLeftIsKnownFromATargetOrFromEarlierRuns) {
    PastRun past;
    past.job = 7;
    past.user = 1000;
    past.model = "gpt2";
    past.completed = true;
    past.record.points = 50;
    past.record.step = 600;
    past.record.gpus = 2;
    past.record.steps_per_second = 4;
    ASSERT_TRUE(history.add(past));
    JobFacts& job = add(1, JobState::pending, 2, "main");
    make_malleable(job);
    job.owner = 1000;
    job.submitted = 4000;
    EXPECT_FALSE(view(0).jobs[0].work);
    EXPECT_EQ(view(0).jobs[0].age_s, 1000);
    job.spec->model = "gpt2";
    const auto work = view(0).jobs[0].work;
    ASSERT_TRUE(work);
    EXPECT_NEAR(work->remaining_quantiles()[2], 600, 1);
    EXPECT_NEAR(work->rate(step_placement(std::vector<int>{2}, 1), 0), 4, 1e-9);
    job.spec->target = Target{Target::Kind::steps, 0, 50};
    EXPECT_EQ(view(0).jobs[0].work->remaining(), 50);
    steps = StepTimeModel();  // a second a step
    EXPECT_NEAR(view(0).jobs[0].work->rate(step_placement(std::vector<int>{2}, 1), 0), 1, 1e-9);
}

TEST_F(Views, OrderIsRunningByStartThenPendingByPriority) {
    add(5, JobState::pending, 1, "main").priority = 7;
    add(4, JobState::pending, 1, "main").priority = 9;
    add(3, JobState::running, 2, "main").held = {{0, 2}};
    add(2, JobState::running, 2, "main").held = {{0, 2}};
    facts.jobs.back().start = 2000;
    const ClusterView seen = view(0);
    std::vector<std::uint32_t> ids;
    for (const JobView& job : seen.jobs) ids.push_back(job.id);
    EXPECT_EQ(ids, (std::vector<std::uint32_t>{3, 2, 4, 5}));
}

TEST_F(Views, ANodeThatTakesNoJobsHasRoomForThoseItHas) {
    add(1, JobState::running, 3, "main").held = {{1, 3}};
    EXPECT_EQ(view(0).nodes[1].gpus, 3);
    EXPECT_EQ(view(0).nodes[0].gpus, 8);
}

TEST_F(Views, WhatOtherPartitionsHoldHereCannotBeChanged) {
    JobFacts& job = add(1, JobState::running, 6, "other");
    job.held = {{0, 4}, {2, 2}};
    make_malleable(job);
    tracked[1].record = Record();
    const ClusterView seen = view(0);
    ASSERT_EQ(seen.jobs.size(), 1u);
    EXPECT_EQ(seen.jobs[0].current, 4);
    EXPECT_FALSE(seen.jobs[0].resizable);
    EXPECT_EQ(seen.jobs[0].sizes, std::vector<int>{4});
}

TEST_F(Views, AGuestFromAnotherPartitionCanMakeRoomAndNoMore) {
    JobFacts& job = add(1, JobState::running, 4, "other");
    job.held = {{0, 4}};
    make_malleable(job);
    tracked[1].record = Record();
    const ClusterView seen = view(0);
    ASSERT_EQ(seen.jobs.size(), 1u);
    EXPECT_TRUE(seen.jobs[0].resizable);
    EXPECT_EQ(seen.jobs[0].sizes, (std::vector<int>{1, 2, 4}));
    EXPECT_EQ(view(1).jobs[0].sizes, (std::vector<int>{1, 2, 4, 8}));
}

TEST_F(Views, WhatSrunAndSallocAskForStays) {
    JobFacts& job = add(1, JobState::pending, 4, "main");
    make_malleable(job);
    EXPECT_TRUE(view(0).jobs[0].resizable);
    facts.jobs[0].batch = false;
    EXPECT_FALSE(view(0).jobs[0].resizable);
    EXPECT_EQ(view(0).jobs[0].sizes, std::vector<int>{4});
}

TEST_F(Views, ARunningJobIsResizableOnceItsAgentHasSpokenInThisRun) {
    JobFacts& job = add(1, JobState::running, 4, "main");
    job.held = {{0, 4}};
    job.restarts = 1;
    make_malleable(job);
    EXPECT_FALSE(view(0).jobs[0].resizable);
    tracked[1].record = Record();
    EXPECT_FALSE(view(0).jobs[0].resizable);
    tracked[1].record->restarts = 1;
    EXPECT_TRUE(view(0).jobs[0].resizable);
    EXPECT_EQ(view(0).jobs[0].sizes, (std::vector<int>{1, 2, 4, 8}));
    tracked[1].resize = Resize{};
    EXPECT_FALSE(view(0).jobs[0].resizable);
    tracked[1].resize.reset();
    facts.jobs[0].state = JobState::completing;
    EXPECT_FALSE(view(0).jobs[0].resizable);
}

TEST(TrackedJob, KnowsTheUsersRequestFromItsOwn) {
    TrackedJob job;
    EXPECT_TRUE(job.see_request(4));
    job.asked = 2;
    EXPECT_FALSE(job.see_request(2));
    EXPECT_EQ(job.requested, 4);
    EXPECT_TRUE(job.see_request(6));
    EXPECT_EQ(job.requested, 6);
    EXPECT_EQ(parse_tracked_job(to_text(job))->requested, 6);
    EXPECT_EQ(parse_tracked_job(to_text(job))->asked, 2);
}

TEST_F(Views, ASizeWithWhichAJobDidNotStartIsLeftOutForAWhile) {
    JobFacts& job = add(1, JobState::pending, 4, "main");
    make_malleable(job);
    tracked[1].requested = 8;
    EXPECT_EQ(view(0).jobs[0].sizes, (std::vector<int>{1, 2, 4, 8}));
    EXPECT_EQ(view(0).jobs[0].requested, 8);
    tracked[1].too_large = 4;
    tracked[1].too_large_until = 5001;
    EXPECT_EQ(view(0).jobs[0].sizes, (std::vector<int>{1, 2}));
    tracked[1].too_large_until = 5000;
    EXPECT_EQ(view(0).jobs[0].sizes, (std::vector<int>{1, 2, 4, 8}));
}

TEST_F(Views, SizesFitTheNumberOfNodes) {
    JobFacts& job = add(1, JobState::pending, 4, "main");
    make_malleable(job);
    job.spec->sizes = {1, 2, 3, 4, 6};
    job.node_count = 2;
    EXPECT_EQ(view(0).jobs[0].sizes, (std::vector<int>{2, 4, 6}));
}

TEST_F(Views, AJobOnItsWayBackAsksForWhatItWasPromised) {
    JobFacts& job = add(1, JobState::pending, 4, "main");
    make_malleable(job);
    job.eligible = false;
    EXPECT_TRUE(view(0).jobs.empty());
    tracked[1].resize = Resize{Resize::Phase::requeued, 4, 8, 0, 0, true, ""};
    ASSERT_EQ(view(0).jobs.size(), 1u);
    EXPECT_EQ(view(0).jobs[0].sizes, std::vector<int>{8});
}

TEST(Checkpoint, OnlyProcessesThatCatchTheSignalAreFound) {
    int ready[2];
    ASSERT_EQ(pipe(ready), 0);
    const pid_t parent = fork();
    if (parent == 0) {
        const pid_t catcher = fork();
        if (catcher == 0) {
            std::signal(SIGUSR2, [](int) {});
            [[maybe_unused]] const auto said = write(ready[1], "x", 1);
            for (;;) pause();
        }
        [[maybe_unused]] const auto said = write(ready[1], &catcher, sizeof(catcher));
        for (;;) pause();
    }
    char bytes[1 + sizeof(pid_t)];
    std::size_t have = 0;
    while (have < sizeof(bytes)) {
        const ssize_t got = read(ready[0], bytes + have, sizeof(bytes) - have);
        ASSERT_GT(got, 0);
        have += static_cast<std::size_t>(got);
    }
    const auto found = agent::catchers_below(parent, getpid(), SIGUSR2);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_NE(found[0], parent);
    EXPECT_TRUE(agent::catchers_below(parent, getpid(), SIGUSR1).empty());
    EXPECT_TRUE(agent::catchers_below(parent, found[0], SIGUSR2).empty());
    kill(found[0], SIGKILL);
    kill(parent, SIGKILL);
    waitpid(parent, nullptr, 0);
}

TEST(LossBegin, SourcesAreNamedAsForSlurm) {
    std::map<std::string, std::string> job = {{"SLURM_JOB_ID", "42"},
                                              {"SLURM_ARRAY_JOB_ID", "40"},
                                              {"SLURM_ARRAY_TASK_ID", "3"},
                                              {"SLURM_JOB_NAME", "train"},
                                              {"SLURM_JOB_USER", "ann"}};
    const spank::Environment of_job = [&job](const char* name) { return job[name]; };
    JobSpec spec;
    const auto path = [&](const char* loss) {
        spec.loss = loss;
        return spank::loss_source(spec, of_job, "/out/42.out", "/home/ann").path;
    };
    EXPECT_EQ(path(""), "/out/42.out");
    EXPECT_EQ(path("%A_%a-%x.%j.%u.log"), "/home/ann/40_3-train.42.ann.log");
    EXPECT_EQ(path("/scratch/%j.csv"), "/scratch/42.csv");
    EXPECT_EQ(path("csv:logs/c"), "/home/ann/logs/c");
    EXPECT_EQ(path("mlflow:abc@http://h"), "");
}

TEST(LossBegin, OnlyLogsOfAFirstRunBeginBehindWhatTheyHold) {
    const ScratchDir scratch;
    std::string restarts;
    const spank::Environment of_job = [&restarts](const char*) { return restarts; };
    LossSource source;
    source.path = scratch.write("log", "step 1 loss 2\n");
    EXPECT_EQ(spank::loss_begin(source, of_job).size, 14);
    restarts = "0";
    EXPECT_EQ(spank::loss_begin(source, of_job).size, 14);
    restarts = "1";
    EXPECT_EQ(spank::loss_begin(source, of_job).size, 0) << "what it holds is of the job itself";
    restarts = "0";
    source.kind = LossSource::Kind::trainer_state;
    EXPECT_EQ(spank::loss_begin(source, of_job).size, 0);
}

TEST(LossBegin, AMarkGetsToTheAgentAsItIs) {
    using spank::parse_log_mark;
    using spank::to_text;
    LogMark mark{~dev_t{0}, ~ino_t{0} - 1, 1234567890123, std::string("a\0\xff:\n", 5)};
    EXPECT_EQ(to_text(mark), "-1:-2:1234567890123:6100ff3a0a");
    const LogMark back = parse_log_mark(to_text(mark));
    EXPECT_EQ(back.device, mark.device);
    EXPECT_EQ(back.inode, mark.inode);
    EXPECT_EQ(back.size, mark.size);
    EXPECT_EQ(back.tail, mark.tail);
    EXPECT_EQ(to_text(parse_log_mark(to_text(LogMark()))), "0:0:0:");
    for (const char* text : {"", "1:2:3", "1:2:3:6", "1:2:3:6g", "1:2:-3:", "x:2:3:", "1:2:3::"})
        EXPECT_EQ(to_text(parse_log_mark(text)), "0:0:0:") << text;
}

}  // namespace
}  // namespace sluice::slurm
