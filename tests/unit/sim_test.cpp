// SPDX-License-Identifier: GPL-2.0-or-later
//
// The simulator: tables read and interpolated, one job in virtual time, whole clusters.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "common/allocator/fifo.hpp"
#include "common/allocator/las.hpp"
#include "common/allocator/optimus.hpp"
#include "contrib/sim/csv_table.hpp"
#include "contrib/sim/figures.hpp"
#include "contrib/sim/knowledge.hpp"
#include "contrib/sim/plots.hpp"
#include "contrib/sim/sacct_workload.hpp"
#include "contrib/sim/simulation.hpp"
#include "contrib/sim/stock_starts.hpp"
#include "tests/unit/scratch_dir.hpp"

namespace sluice::sim {
namespace {

constexpr const char* placements =
    "placement,local_bsz,step_time,sync_time\n"
    "1,8,1.0,0.0\n"
    "1,16,2.0,0.0\n"
    "2,8,1.2,0.2\n"
    "2,16,2.2,0.2\n"
    "11,8,1.6,0.6\n"
    "11,16,2.6,0.6\n"
    "21,8,1.7,0.7\n";
constexpr const char* scalability =
    "num_nodes,num_replicas,local_bsz,step_time,sync_time\n"
    "4,4,8,2.0,1.0\n"
    "4,8,8,3.0,2.0\n";
// batches of 8 and 16; a step at 16 is worth 1.5 of those at 8
constexpr const char* epochs_of_8 =
    "progress,iteration,metric,grad_sqr,grad_var\n100,100,1,1.0,1.0\n200,200,1,1.0,1.0\n";
constexpr const char* epochs_of_16 =
    "progress,iteration,metric,grad_sqr,grad_var\n110,80,1,1.0,1.0\n220,160,1,1.0,1.0\n";

class SimTest : public ::testing::Test {
  protected:
    SimTest() {
        write("placements.csv", placements);
        write("scalability.csv", scalability);
        write("validation-8.csv", epochs_of_8);
        write("validation-16.csv", epochs_of_16);
    }
    void write(const std::string& name, const std::string& text) {
        std::filesystem::create_directories(folder_.path() + "/app");
        folder_.write("app/" + name, text);
    }
    Result<Application> read() { return Application::read("app", {folder_.path()}, {""}); }
    std::string message_of_reading() {
        const auto read_one = read();
        return read_one ? "" : read_one.error().message.substr(folder_.path().size());
    }
    static WorkloadJob job(const std::string& name, double arrival, int gpus, double batch = 8) {
        return {name, 0, arrival, "app", gpus, batch};
    }

    ScratchDir folder_;
};

TEST_F(SimTest, StepTimesAreThoseOfTheTableAndLinearBetween) {
    const auto application = read();
    ASSERT_TRUE(application) << application.error().message;
    const auto seconds = [&](std::vector<int> gpus, double local) {
        return application->step(0, gpus, local).step;
    };
    EXPECT_DOUBLE_EQ(seconds({1}, 8), 1.0);
    EXPECT_DOUBLE_EQ(seconds({1}, 12), 1.5);
    EXPECT_DOUBLE_EQ(seconds({0, 2, 0}, 10), 1.45);
    EXPECT_DOUBLE_EQ(seconds({1, 1}, 8), 1.6);
    EXPECT_DOUBLE_EQ(seconds({1, 2}, 8), 1.7) << "a rotation of 21";
    EXPECT_DOUBLE_EQ(seconds({1}, 2), 1.0) << "below what was measured: the nearest";
    EXPECT_DOUBLE_EQ(seconds({1}, 99), 2.0);
    EXPECT_DOUBLE_EQ(seconds({1, 1, 1, 1}, 8), 2.0);
    EXPECT_DOUBLE_EQ(seconds({2, 2, 1, 1}, 8), 2.5) << "halfway between 4 and 8 GPUs of 4 nodes";
    // 3 nodes with 4 GPUs are halfway between 2 with 8/3 (3 is the most there) and 4 with 16/3
    EXPECT_NEAR(seconds({2, 1, 1}, 8), (1.6 + 2.0 / 3 * 0.1 + 2.0 + 1.0 / 3) / 2, 1e-12);
    EXPECT_DOUBLE_EQ(application->step(0, std::vector<int>{2}, 8).sync, 0.2);
}

TEST_F(SimTest, GainFollowsTheNoise) {
    const auto application = read();
    ASSERT_TRUE(application);
    EXPECT_EQ(application->epochs(), 2);
    EXPECT_DOUBLE_EQ(application->first_batch(), 8);
    EXPECT_DOUBLE_EQ(application->most_batch(), 16);
    EXPECT_DOUBLE_EQ(application->progress_after(1), 100) << "the least of the batches";
    EXPECT_DOUBLE_EQ(application->total_progress(), 200);
    EXPECT_DOUBLE_EQ(application->gain(8, 0), 1);
    EXPECT_DOUBLE_EQ(application->gain(16, 0), 2 / 1.5);
}

TEST_F(SimTest, AJobGoesThroughItsEpochs) {
    const auto application = read();
    ASSERT_TRUE(application);
    TrainingJob training(*application, [](const TrainingJob& at) {
        return split_batch(at.application().limits(0), at.gpus(), at.epoch() == 0 ? 8 : 16);
    });
    EXPECT_DOUBLE_EQ(training.advance(60), 60) << "it waits";
    EXPECT_EQ(training.progress(), 0);
    training.place({1}, 0, 30);
    training.advance(60);
    EXPECT_DOUBLE_EQ(training.progress(), 30) << "30 s of restart, then a step a second";
    training.advance(80);
    // 70 s to the end of the epoch; then 16 in two batches of 8, 2 s for 4/3
    EXPECT_EQ(training.epoch(), 1);
    EXPECT_DOUBLE_EQ(training.progress(), 100 + 10 * 2 / 3.0);
    training.place({2}, 0, 0);
    EXPECT_EQ(training.split().local, 8);
    // 93 1/3 are left, at 4/3 in 1.2 s
    EXPECT_NEAR(training.advance(1000), 84, 1e-9);
    EXPECT_TRUE(training.complete());
    EXPECT_NEAR(training.attained_gpu_s(), 140 + 2 * 84, 1e-9);
    EXPECT_EQ(training.starts(), 2);
    training.place({}, 0, 30);
    EXPECT_FALSE(training.running());
}

TEST_F(SimTest, ASlowdownTakesItsShare) {
    const auto application = read();
    ASSERT_TRUE(application);
    TrainingJob training(*application, [](const TrainingJob& at) {
        return split_batch(at.application().limits(0), at.gpus(), 8);
    });
    training.place({1}, 0, 0);
    training.advance(60, 0.25);
    EXPECT_DOUBLE_EQ(training.progress(), 45);
}

TEST_F(SimTest, TablesThatAreWrongSayWhere) {
    write("placements.csv", "placement,local_bsz,step_time,sync_time\n1,8,1.0,0.0\n1,16,x,0.0\n");
    EXPECT_EQ(message_of_reading(),
              "/app/placements.csv, line 3: step_time is \"x\": a number is needed");
    write("placements.csv", "placement,local_bsz,step_time,sync_time\n1,8,1.0,2.0\n");
    EXPECT_NE(message_of_reading().find("line 2: a local batch from 1 to 1e9"), std::string::npos);
    write("placements.csv", "placement,local_bsz,step_time,sync_time\n1a,8,1.0,0.0\n");
    EXPECT_NE(message_of_reading().find("line 2: placement \"1a\""), std::string::npos);
    write("placements.csv", "placement,local_bsz,step_time\n1,8,1.0\n");
    EXPECT_NE(message_of_reading().find("no column \"sync_time\""), std::string::npos);
    write("placements.csv", "placement,local_bsz,step_time,sync_time\n1,8,1.0\n");
    EXPECT_NE(message_of_reading().find("line 2: 3 cells where the header has 4"),
              std::string::npos);
    write("placements.csv", "");
    EXPECT_NE(message_of_reading().find("is empty"), std::string::npos);
    write("placements.csv", placements);
    write("validation-8.csv", "progress,grad_sqr,grad_var\n100,1,1\n90,1,1\n");
    EXPECT_NE(message_of_reading().find("line 3: progress has to rise"), std::string::npos);
    write("validation-8.csv", epochs_of_8);
    write("validation-08.csv", epochs_of_8);
    EXPECT_NE(message_of_reading().find("/app/validation-8.csv: a second file of batch 8"),
              std::string::npos);
    std::filesystem::remove(folder_.path() + "/app/validation-08.csv");
    write("validation-99999999999.csv", epochs_of_8);
    EXPECT_NE(message_of_reading().find("a batch from 1 to 1e9"), std::string::npos);
    std::filesystem::remove(folder_.path() + "/app/validation-99999999999.csv");
    write("validation-many.csv", epochs_of_8);
    EXPECT_NE(message_of_reading().find("validation-BATCH.csv"), std::string::npos);
}

TEST_F(SimTest, WhatNoMeasurementCanBeIsRefused) {
    const std::string header = "placement,local_bsz,step_time,sync_time\n";
    for (const char* wrong : {"1,0.5,1,0\n", "1,8,1e308,0\n", "1,8,1e-320,0\n"}) {
        write("placements.csv", header + wrong);
        EXPECT_NE(message_of_reading().find("line 2: a local batch from 1 to 1e9, a step time"),
                  std::string::npos)
            << wrong;
    }
    write("placements.csv", header + std::string(65, '1') + ",8,1,0\n");
    EXPECT_NE(message_of_reading().find("\": 1 to 64 digits are needed"), std::string::npos);
    write("placements.csv", placements);
    for (const char* wrong : {"0,1,1\n", "1e16,1,1\n"}) {
        write("validation-8.csv", std::string("progress,grad_sqr,grad_var\n") + wrong);
        EXPECT_NE(message_of_reading().find("line 2: progress has to rise, from above 0"),
                  std::string::npos)
            << wrong;
    }
    for (const char* wrong : {"1,0,0\n", "1,-1,2\n", "1,1e308,1e308\n", "1,0,5e-324\n"}) {
        write("validation-8.csv", std::string("progress,grad_sqr,grad_var\n") + wrong);
        EXPECT_NE(message_of_reading().find("line 2: grad_sqr and grad_var from 0 to 1e100"),
                  std::string::npos)
            << wrong;
    }
    std::string many = "progress,grad_sqr,grad_var\n";
    for (int i = 1; i <= 10001; ++i) many += std::to_string(i) + ",1,1\n";
    write("validation-8.csv", many);
    EXPECT_NE(message_of_reading().find("line 10002: a row for each epoch, at most 10000"),
              std::string::npos);
    write("validation-8.csv", epochs_of_8);
    std::filesystem::remove(folder_.path() + "/app/scalability.csv");
    EXPECT_EQ(message_of_reading(), "") << "it may be missing";
    std::filesystem::create_symlink("nowhere", folder_.path() + "/app/scalability.csv");
    EXPECT_NE(message_of_reading().find("/app/scalability.csv: No such file"), std::string::npos)
        << "a link is there";
}

TEST_F(SimTest, LocalBatchesOfLargePlacementsAlone) {
    // None of four nodes or fewer: these tell how a batch is split all the same.
    write("placements.csv",
          "placement,local_bsz,step_time,sync_time\n111111,4,1,0\n111111,16,2,0\n");
    std::filesystem::remove(folder_.path() + "/app/scalability.csv");
    const auto application = read();
    ASSERT_TRUE(application) << application.error().message;
    EXPECT_EQ(application->limits(0).least_local, 4);
    EXPECT_EQ(application->limits(0).most_local, 16);
    const auto limited = Application::read("app", {folder_.path()}, {""}, {1000, 1});
    ASSERT_TRUE(limited);
    EXPECT_EQ(limited->limits(0).most_local, 16) << "no more than was measured";
}

TEST_F(SimTest, AJobOnThousandsOfNodesIsLookedUpAtOnce) {
    const auto application = read();
    ASSERT_TRUE(application);
    // Were all rotations compared, it would be minutes.
    const std::vector<int> gpus(65536, 1);
    for (int i = 0; i < 100; ++i) {
        EXPECT_DOUBLE_EQ(application->step(0, gpus, 8).step, 2.0);
    }
}

TEST_F(SimTest, TablesAreText) {
    const auto read_text = [&](const std::string& text) {
        const auto table = CsvTable::read(folder_.write("t.csv", text), {"b", "a"});
        if (!table) return table.error().message.substr(folder_.path().size());
        std::string out;
        for (std::size_t row = 0; row < table->rows(); ++row)
            out += std::string(table->text(row, 0)) + "|" + std::string(table->text(row, 1)) + ";";
        return out;
    };
    EXPECT_EQ(read_text("\xef\xbb\xbf"
                        "a,x,b\r\n1,2, 3 \r\n\r\n4,,6"),
              "3|1;6|4;")
        << "a byte order mark, CRLF, blank lines, no line end";
    EXPECT_EQ(read_text("a,b,a\n1,2,3\n"),
              "/t.csv, line 1: the header has two columns \"a\": a,b,a");
    EXPECT_EQ(read_text("a,b,x,x\n1,2,3,4\n"), "2|1;") << "what is not asked for may be twice";
    EXPECT_EQ(read_text(std::string("a,b\n1,2\0\n", 9)),
              "/t.csv, line 2: a zero byte, text is needed: 1,2?");
    EXPECT_EQ(read_text("a,b\n" + std::string(65537, ',') + "\n"),
              "/t.csv, line 2: longer than 65536 bytes");
    EXPECT_EQ(read_text("\xef\xbb\xbf\n"), "/t.csv: is empty, a header is needed");
}

TEST_F(SimTest, LossesAreTheMetricOrWhatItIsBelowItsBest) {
    const auto losses_of = [&](const std::string& rows) {
        write("validation-8.csv", "progress,grad_sqr,grad_var,metric\n" + rows);
        return read()->losses();
    };
    const auto falls = losses_of("100,1,1,2.5\n200,1,1,1.5\n");
    ASSERT_EQ(falls.size(), 2u);
    EXPECT_EQ(falls[1].step, 200);
    EXPECT_EQ(falls[1].loss, 1.5);
    const auto rises = losses_of("100,1,1,10\n200,1,1,80\n300,1,1,60\n");
    EXPECT_EQ(rises[0].loss, 70);
    EXPECT_EQ(rises[1].loss, 0);
    EXPECT_EQ(rises[2].loss, 20);
    write("validation-8.csv", "progress,grad_sqr,grad_var\n100,1,1\n");
    EXPECT_TRUE(std::isnan(read()->losses()[0].loss)) << "no metric";
}

TEST_F(SimTest, WorkloadsAreSortedByArrivalAndChecked) {
    const auto read_text = [&](const std::string& rows) {
        return read_workload(
            folder_.write("jobs.csv", "name,time,application,num_replicas,batch_size\n" + rows));
    };
    const auto jobs = read_text("late,90,app,2,16\r\nsoon,10,app,1,8\n");
    ASSERT_TRUE(jobs) << jobs.error().message;
    ASSERT_EQ(jobs->size(), 2u);
    EXPECT_EQ((*jobs)[0].name, "soon");
    EXPECT_EQ((*jobs)[1].gpus, 2);
    EXPECT_DOUBLE_EQ((*jobs)[1].batch, 16);
    EXPECT_EQ((*jobs)[1].line, 2u);
    for (const char* wrong :
         {"a,-1,app,1,8\n", "a,1,app,0,8\n", "a,1,app,1.5,8\n", "a,1,,1,8\n", "a,nan,app,1,8\n",
          "a,1,app,1,-8\n", "a,1,app,1,1e300\n", "a,1e300,app,1,8\n", ""}) {
        const auto refused = read_text(wrong);
        ASSERT_FALSE(refused) << wrong;
        EXPECT_EQ(refused.error().code, ErrorCode::bad_input);
    }
    EXPECT_EQ(read_text("a,1700000000,app,1,8\n").error().message.substr(folder_.path().size()),
              "/jobs.csv, line 2: \"1700000000\" is no time: seconds from 0 to 1e9 are needed, "
              "counted from the beginning");
    EXPECT_NE(read_text("a,1,app,1.5,8\n").error().message.find("\"1.5\" is no num_replicas"),
              std::string::npos);
}

TEST(StockStartsTest, LaterJobsStartWhereTheyDelayNobody) {
    const std::vector<NodeView> nodes{{"a", 4}, {"b", 4}};
    // 3 GPUs of a run until 100; the next wants 8, then: a short one, a long one, a long one of 2
    std::vector<StockJob> jobs{{true, 3, 100, 0, {{0, 3}}},
                               {false, 8, 0, 1000, {}},
                               {false, 1, 0, 50, {}},
                               {false, 1, 0, 200, {}}};
    auto starts = stock_starts(nodes, jobs, 0);
    ASSERT_EQ(starts.size(), 1u);
    EXPECT_EQ(starts[0].job, 2u);
    ASSERT_EQ(starts[0].shares.size(), 1u);
    EXPECT_EQ(starts[0].shares[0].node, 0u) << "where it leaves b whole";

    jobs[1].gpus = 6;  // leaves two: the long one fits beside
    starts = stock_starts(nodes, jobs, 0);
    ASSERT_EQ(starts.size(), 2u);
    EXPECT_EQ(starts[1].job, 3u);

    jobs[1].gpus = 5;  // fits now, over both nodes
    starts = stock_starts(nodes, jobs, 0);
    ASSERT_EQ(starts.size(), 1u);
    EXPECT_EQ(starts[0].job, 1u);
    EXPECT_EQ(starts[0].shares.size(), 2u);
}

TEST_F(SimTest, FifoRunsJobsInOrder) {
    const auto application = read();
    ASSERT_TRUE(application);
    AsAsked knowledge;
    const auto result = simulate({job("first", 0, 2), job("second", 10, 2), job("third", 20, 1)},
                                 {*application}, {{1, 2, 0}}, FifoPolicy(), knowledge);
    ASSERT_TRUE(result) << result.error().message;
    ASSERT_EQ(result->jobs.size(), 3u);
    // local batches of 4 take as long as 8; 200 steps of 1.2 s behind 30 s, from the round at 60 on
    EXPECT_NEAR(result->jobs[0].end_s, 60 + 30 + 240, 1e-9);
    EXPECT_NEAR(result->jobs[1].end_s, 360 + 30 + 240, 1e-9);
    EXPECT_DOUBLE_EQ(result->jobs[2].first_start_s, 660);
    EXPECT_NEAR(result->jobs[2].end_s, 660 + 30 + 200, 1e-9);
    EXPECT_NEAR(result->makespan_s, 890, 1e-9);
    EXPECT_NEAR(result->jobs[0].gpu_s, 540, 1e-9);
    EXPECT_EQ(result->jobs[0].restarts, 0);
    EXPECT_NEAR(result->jobs[0].useful_gpu_s, 480, 1e-9);
    EXPECT_DOUBLE_EQ(result->jobs[1].longest_wait_s, 350);
    ASSERT_EQ(result->jobs[1].alone.size(), 2u);
    EXPECT_NEAR(result->jobs[1].alone[0].seconds, 230, 1e-9) << "on one GPU";
    EXPECT_NEAR(result->jobs[1].alone[1].seconds, 270, 1e-9) << "on the two that it asked for";
    EXPECT_EQ(result->gpus, 2);
    std::vector<std::pair<double, int>> held;
    for (const GpusHeld& each : result->held) held.push_back({std::round(each.since_s), each.gpus});
    EXPECT_EQ(held, (std::vector<std::pair<double, int>>{
                        {60, 2}, {330, 0}, {360, 2}, {630, 0}, {660, 1}, {890, 0}}));
}

TEST_F(SimTest, SlurmStartsJobsBetweenTwoRounds) {
    const auto application = read();
    ASSERT_TRUE(application);
    AsAsked knowledge;
    SimulationOptions options;
    options.may_stop = false;
    const auto result = simulate({job("first", 10, 2), job("second", 20, 1)}, {*application},
                                 {{1, 2, 0}}, FifoPolicy(), knowledge, options);
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_DOUBLE_EQ(result->jobs[0].first_start_s, 10);
    // 200 steps of 8 samples, 4 on a GPU as the 8 that were measured, behind 30 s
    EXPECT_NEAR(result->jobs[0].end_s, 10 + 30 + 200 * 1.2, 1e-3);
    EXPECT_NEAR(result->jobs[1].first_start_s, result->jobs[0].end_s, 1e-3);
}

TEST_F(SimTest, ALongPauseTakesNoTime) {
    const auto application = read();
    ASSERT_TRUE(application);
    AsAsked knowledge;
    SimulationOptions options;
    options.round_s = 1;
    const auto result = simulate({job("first", 0, 1), job("late", 9e8, 1)}, {*application},
                                 {{1, 2, 0}}, FifoPolicy(), knowledge, options);
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_DOUBLE_EQ(result->jobs[0].end_s, 1 + 30 + 200);
    EXPECT_DOUBLE_EQ(result->jobs[1].end_s, 9e8 + 30 + 200);
}

TEST_F(SimTest, LasLetsTheNewcomerRun) {
    const auto application = read();
    ASSERT_TRUE(application);
    AsAsked knowledge;
    const std::vector<WorkloadJob> jobs{job("old", 0, 2), job("new", 180, 2)};
    // 120 s on 2 GPUs are above the threshold when the other comes
    const auto result = simulate(jobs, {*application}, {{1, 2, 0}}, LasPolicy(200), knowledge);
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_EQ(result->jobs[0].restarts, 1);
    EXPECT_EQ(result->jobs[0].resizes, 0);
    EXPECT_GT(result->jobs[0].longest_wait_s, 60) << "while the other runs";
    EXPECT_DOUBLE_EQ(result->jobs[1].first_start_s, 180);
    const auto patient = simulate(jobs, {*application}, {{1, 2, 0}}, LasPolicy(1e9), knowledge);
    ASSERT_TRUE(patient);
    EXPECT_EQ(patient->jobs[0].restarts, 0);
    EXPECT_GT(patient->jobs[1].first_start_s, 180);
}

TEST_F(SimTest, OptimusIsToldTheTruth) {
    const auto application = read();
    ASSERT_TRUE(application);
    Oracle knowledge({{"", 2}});
    const auto result = simulate({job("a", 0, 1, 16), job("b", 0, 1, 16)}, {*application},
                                 {{1, 4, 0}}, OptimusPolicy(), knowledge);
    ASSERT_TRUE(result) << result.error().message;
    for (const JobResult& each : result->jobs) {
        // 200 at 4/3 in 1.2 s
        EXPECT_NEAR(each.end_s, 60 + 30 + 180, 1e-9) << "two GPUs each";
        EXPECT_EQ(each.restarts, 0);
    }
}

TEST_F(SimTest, ResizesAreCounted) {
    const auto application = read();
    ASSERT_TRUE(application);
    Oracle knowledge({{"", 2}});
    const auto result = simulate({job("a", 0, 1, 16), job("b", 90, 1, 16)}, {*application},
                                 {{1, 2, 0}}, OptimusPolicy(), knowledge);
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_EQ(result->jobs[0].resizes, 1) << "from two to one when the other comes";
    EXPECT_EQ(result->jobs[0].restarts, 1);
}

TEST_F(SimTest, ABusyClusterIsSharedByTypesOfNodes) {
    write("placements-fast.csv",
          "placement,local_bsz,step_time,sync_time\n1,8,0.5,0.0\n1,16,1.0,0.0\n");
    const auto application = Application::read("app", {folder_.path()}, {"", "fast"});
    ASSERT_TRUE(application) << application.error().message;
    AsAsked knowledge;
    const auto result =
        simulate({job("a", 0, 1)}, {*application}, {{1, 1, 0}, {1, 3, 1}}, FifoPolicy(), knowledge);
    ASSERT_TRUE(result) << result.error().message;
    // a step a second on a quarter of the GPUs, two on the others
    EXPECT_NEAR(result->jobs[0].alone[0].seconds, 30 + 200 / 1.75, 1e-9);
}

TEST(FiguresTest, FinishTimeFairnessIsByTheShareOfThoseThatWereThere) {
    SimulationResult result;
    result.gpus = 4;
    result.makespan_s = 150;
    result.jobs = {{.name = "a",
                    .gpus = 2,
                    .arrival_s = 0,
                    .end_s = 100,
                    .gpu_s = 160,
                    .useful_gpu_s = 120,
                    .longest_wait_s = 20,
                    .restarts = 3,
                    .resizes = 1,
                    .alone = {{2, 50}}},
                   {.name = "b",
                    .gpus = 4,
                    .arrival_s = 50,
                    .end_s = 150,
                    .gpu_s = 80,
                    .useful_gpu_s = 60,
                    .longest_wait_s = 30,
                    .alone = {{1, 400}, {2, 90}, {4, 80}}}};
    // one is there, then both, then one: each has seen 1.5, a share of 8/3 GPUs
    const std::vector<double> rho = finish_time_fairness(result);
    EXPECT_NEAR(rho[0], 100.0 / 50, 1e-12);
    EXPECT_NEAR(rho[1], 100.0 / 90, 1e-12) << "on two of them: taking turns on four takes 120 s";
    const Figures figures = figures_of(result);
    EXPECT_DOUBLE_EQ(figures.average_s, 100);
    EXPECT_DOUBLE_EQ(figures.utilisation, 0.4);
    EXPECT_DOUBLE_EQ(figures.useful, 0.75);
    EXPECT_DOUBLE_EQ(figures.gpu_hours, 240.0 / 3600);
    EXPECT_DOUBLE_EQ(figures.longest_wait_s, 30);
    EXPECT_DOUBLE_EQ(figures.restarts, 1.5);
    EXPECT_DOUBLE_EQ(figures.resizes, 0.5);
    EXPECT_NEAR(figures.rho_worst, 2, 1e-12);
    EXPECT_NEAR(figures.rho_median, (2 + 10.0 / 9) / 2, 1e-12);
    EXPECT_DOUBLE_EQ(figures.rho_above_1, 1);
}

TEST(Figures, AJobThatWasAloneIsNotBelowItsShare) {
    SimulationResult result;
    result.gpus = 2;
    result.jobs = {{.name = "a", .gpus = 2, .arrival_s = 0.1, .end_s = 0.4, .alone = {{2, 0.3}}}};
    EXPECT_GT(finish_time_fairness(result)[0], 1) << "0.4 - 0.1 is above 0.3";
    EXPECT_DOUBLE_EQ(figures_of(result).rho_above_1, 0);
}

SimulationResult many_jobs(int jobs) {
    SimulationResult result;
    result.gpus = 8;
    for (int i = 0; i < jobs; ++i) {
        const double end = 100 + 40.0 * i;
        result.jobs.push_back({.arrival_s = 10.0 * i, .end_s = end, .alone = {{1, 50}}});
        result.makespan_s = end;
    }
    result.held = {{0, 8}, {result.makespan_s / 2, 4}, {result.makespan_s, 0}};
    return result;
}

TEST(PlotsTest, TheSameResultsAreTheSameBytesAndTextIsEscaped) {
    const SimulationResult result = many_jobs(20);
    const auto draw = [&] { return to_svg({{"a<b>&\"c\"", &result}, {"fifo", &result}}); };
    const std::string svg = draw();
    EXPECT_EQ(svg, draw());
    EXPECT_NE(svg.find(">a&lt;b&gt;&amp;&quot;c&quot;</text>"), std::string::npos);
    EXPECT_EQ(svg.find("a<b>"), std::string::npos);
    EXPECT_NE(svg.find("prefers-color-scheme:dark"), std::string::npos);
    EXPECT_EQ(svg.find("nan"), std::string::npos);
    EXPECT_EQ(svg.find("inf"), std::string::npos);
    // each element is closed
    EXPECT_EQ(svg.substr(0, 5), "<svg ");
    EXPECT_TRUE(svg.ends_with("</svg>\n"));
}

TEST(PlotsTest, GpusThatAreHeldAllTheTimeAreDrawnSo) {
    SimulationResult result = many_jobs(1);
    for (const double end : {1.0, 61.7, 78488.25, 3e7}) {
        result.makespan_s = end;
        result.held = {{0, 4}, {end / 3, 8}, {end / 3, 4}, {end, 0}};
        const std::string svg = to_svg({{"fifo", &result}});
        const std::size_t begin = svg.find("d=\"M130.0 ", svg.find("GPUs held"));
        const std::string area = svg.substr(begin, svg.find('Z', begin) - begin);
        std::vector<std::string> levels;
        for (std::size_t at = area.find('V'); at != area.npos; at = area.find('V', at + 1))
            levels.push_back(area.substr(at, area.find('H', at) - at));
        ASSERT_GT(levels.size(), 100u);
        EXPECT_EQ(std::count(levels.begin(), levels.end(), levels[0]),
                  static_cast<std::ptrdiff_t>(levels.size()) - 1)
            << "all but the way back, for " << end;
    }
}

TEST(PlotsTest, SizeDoesNotGrowWithTheJobs) {
    const SimulationResult few = many_jobs(1000);
    const SimulationResult many = many_jobs(20000);
    const std::size_t size = to_svg({{"fifo", &many}}).size();
    EXPECT_LT(size, to_svg({{"fifo", &few}}).size() * 11 / 10);
    const SimulationResult one = many_jobs(1);
    EXPECT_LT(to_svg({{"fifo", &one}}).size(), size);
}

constexpr const char* sacct_header =
    "JobIDRaw|JobName|User|Submit|Start|End|ElapsedRaw|State|AllocTRES|ReqTRES|TimelimitRaw\n";

TEST(SacctWorkloadTest, RecordsBecomeJobs) {
    const std::string text =
        std::string(sacct_header) +
        "11|train|ann|1000|1100|1400|300|COMPLETED|billing=4,gres/gpu:a100=2,gres/gpu=2|gres/gpu=2|"
        "60\n"
        "11.batch|batch||1100|1100|1400|300|COMPLETED|cpu=4||\n"
        // requeued: 100 s on four GPUs, then 400 s on two
        "12|again|bob|1050|1200|1300|100|REQUEUED|gres/gpu=4|gres/gpu=4|UNLIMITED\n"
        "12|again|bob|1300|1500|1900|400|CANCELLED by 1000|gres/gpu=2|gres/gpu=2|UNLIMITED\n"
        "13|a|b|ann|940|1000|1010|10|RUNNING|gres/gpu=1||\n"
        "14|cpu|ann|900|1000|1010|10|COMPLETED|cpu=4|cpu=4|60\n"
        "15|never|ann|900|Unknown|Unknown|0|PENDING||gres/gpu=8|60\n"
        "16|gone|ann|900|None|Unknown|0|CANCELLED by 0||gres/gpu=8|60\n";
    const auto read = read_sacct_workload(text, "jobs");
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_TRUE(read->warnings.empty());
    EXPECT_EQ(read->unreadable, 0u);
    EXPECT_EQ(read->requeued, 1u);
    EXPECT_EQ(read->cut_short, 1u);
    EXPECT_EQ(read->still_running, 1u);
    EXPECT_EQ(read->without_gpus, 1u);
    EXPECT_EQ(read->never_started, 2u);
    ASSERT_EQ(read->jobs.size(), 3u);
    EXPECT_EQ(read->jobs[0].name, "13") << "a name with a | in it";
    EXPECT_EQ(read->jobs[0].arrival_s, 0);
    EXPECT_EQ(read->jobs[0].runs_s, 10);
    EXPECT_EQ(read->jobs[1].arrival_s, 60);
    EXPECT_EQ(read->jobs[1].gpus, 2);
    EXPECT_EQ(read->jobs[1].runs_s, 300);
    EXPECT_EQ(read->jobs[1].limit_s, 3600);
    EXPECT_EQ(read->jobs[2].arrival_s, 110);
    EXPECT_EQ(read->jobs[2].gpus, 4);
    EXPECT_EQ(read->jobs[2].runs_s, 300) << "1200 GPU-seconds";
    EXPECT_EQ(read->jobs[2].limit_s, 0);
    EXPECT_EQ(read->jobs[2].number, 2u);
    EXPECT_EQ(read->jobs[2].line, 4u);
}

TEST(SacctWorkloadTest, TheHeaderSaysWhereColumnsAre) {
    const auto read = read_sacct_workload(
        "State|ElapsedRaw|JobIDRaw|AllocTRES|Submit\nCOMPLETED|60|7|gres/gpu:h100=3|"
        "2026-11-01T00:00:00\n\nCOMPLETED|60|8|gres/gpu=1|2026-11-01T01:00:00\n",
        "jobs");
    ASSERT_TRUE(read) << read.error().message;
    ASSERT_EQ(read->jobs.size(), 2u);
    EXPECT_EQ(read->jobs[0].gpus, 3);
    EXPECT_EQ(read->jobs[1].arrival_s, 3600);
    const auto lacking = read_sacct_workload("JobIDRaw|State|Submit|AllocTRES\n", "jobs");
    ASSERT_FALSE(lacking);
    EXPECT_EQ(lacking.error().code, ErrorCode::bad_input);
    EXPECT_NE(lacking.error().message.find("jobs, line 1: the header has no column \"ElapsedRaw\""),
              std::string::npos);
    EXPECT_FALSE(read_sacct_workload("", "jobs"));
    EXPECT_FALSE(read_sacct_workload(sacct_header, "jobs")) << "no jobs";
}

TEST(SacctWorkloadTest, LinesThatCannotBeReadAreNamed) {
    const std::string good = "1|n|u|1000|1100|1400|300|COMPLETED|gres/gpu=2|gres/gpu=2|60\n";
    const struct {
        const char* line;
        const char* what;
    } cases[] = {
        {"x|n|u|1000|1100|1400|300|COMPLETED|gres/gpu=2||", "JobIDRaw is \"x\""},
        {"2|n|u|soon|1100|1400|300|COMPLETED|gres/gpu=2||", "Submit is \"soon\""},
        {"2|n|u|1000|now|1400|300|COMPLETED|gres/gpu=2||", "Start is \"now\""},
        {"2|n|u|1000|1100|1400|-1|COMPLETED|gres/gpu=2||", "ElapsedRaw is \"-1\""},
        {"2|n|u|1000|1100|1400|9999999999999|COMPLETED|gres/gpu=2||", "ElapsedRaw is"},
        {"2|n|u|1000|1100|1400|300||gres/gpu=2||", "State is \"\""},
        {"2|n|u|1000|1100|1400|300|COMPLETED|gres/gpu=two||", "AllocTRES is \"gres/gpu=two\""},
        {"2|n|u|1000|1100|1400|300|COMPLETED|gres/gpu=99999||", "AllocTRES is"},
        {"2|n|u|1000", "4 cells where the header has 11: 2|n|u|1000"},
    };
    for (const auto& each : cases) {
        const auto read = read_sacct_workload(sacct_header + good + each.line + "\n", "jobs");
        ASSERT_TRUE(read) << each.line;
        EXPECT_EQ(read->jobs.size(), 1u) << each.line;
        EXPECT_EQ(read->unreadable, 1u) << each.line;
        ASSERT_EQ(read->warnings.size(), 1u) << each.line;
        EXPECT_EQ(read->warnings[0].find("jobs, line 3: " + std::string(each.what)), 0u)
            << read->warnings[0];
    }
    std::string many = sacct_header + good;
    for (int i = 0; i < 30; ++i) many += "bad\n";
    const auto read = read_sacct_workload(many, "jobs");
    ASSERT_TRUE(read);
    EXPECT_EQ(read->unreadable, 30u);
    EXPECT_EQ(read->warnings.size(), 10u);
}

TEST(SacctWorkloadTest, JobsRunAsLongAsTheyRan) {
    const Application alone = Application::by_rule("7", 4, 600, 0, 1);
    const Application scales = Application::by_rule("7", 4, 600, 0.5, 1);
    AsAsked knowledge;
    SimulationOptions options;
    options.first_start_costs = false;
    std::vector<WorkloadJob> jobs{{"7", 0, 0, "7", 4, 0, 0, 600, 7200}};
    const auto rigid = simulate(jobs, {alone}, {{2, 2, 0}}, FifoPolicy(), knowledge, options);
    ASSERT_TRUE(rigid) << rigid.error().message;
    EXPECT_DOUBLE_EQ(rigid->jobs[0].end_s, 660);
    // the rule: four times the GPUs, twice the speed; and to twice what was asked
    TrainingJob one(scales, [](const TrainingJob& at) {
        return split_batch(at.application().limits(0), at.gpus(), at.application().most_batch());
    });
    one.place({1}, 0, 0);
    EXPECT_NEAR(one.advance(1e6), 1200, 1e-6);
    EXPECT_EQ(sizes_up_to(scales.most_batch(), scales, {}).size(), 8u);
}

TEST(NodeFailuresTest, EachNodeGoesAndComes) {
    const FailureOptions options{.mtbf_s = 1000, .repair_s = 10, .seed = 3};
    NodeFailures failures(1000, options);
    std::vector<double> back(1000, 0.0);
    std::vector<bool> up(1000, true);
    double last_s = 0;
    int fallen = 0;
    for (const double until : {500.0, 500.0, 1e5})
        for (const NodeFailures::Event& event : failures.next(until)) {
            EXPECT_GE(event.at_s, last_s);
            EXPECT_LE(event.at_s, until);
            last_s = event.at_s;
            EXPECT_EQ(event.fails, up[event.node]);
            up[event.node] = !event.fails;
            fallen += event.fails;
            if (event.fails)
                back[event.node] = event.at_s + 10;
            else
                EXPECT_EQ(event.at_s, back[event.node]);
        }
    EXPECT_NEAR(fallen, 1000 * 1e5 / 1010, 1000);
    EXPECT_TRUE(NodeFailures(5, {}).next(1e12).empty()) << "none fails";
}

TEST(NodeFailuresTest, AJobGoesOnFromItsLastCheckpoint) {
    SimulationOptions options;
    options.failures = {.mtbf_s = 1e6, .repair_s = 100, .checkpoint_every_s = 250, .seed = 1};
    const auto events = NodeFailures(1, options.failures).next(1e9);
    const double fails_s = events[0].at_s;
    const double starts_again_s = std::ceil((fails_s + 100) / 60) * 60;
    // it runs from 60 on, and needs 100 s more when the node fails
    const double work_s = fails_s - 60 - 30 + 100;
    ASSERT_GT(events[2].at_s, fails_s + 1000) << "another seed is needed";
    const double saved_s = std::floor((fails_s - 60) / 250) * 250 - 30;
    AsAsked knowledge;
    const auto result = simulate({{"a", 0, 0, "a", 2, 0, 0, work_s, 0}},
                                 {Application::by_rule("a", 2, work_s, 0, 1)}, {{1, 2, 0}},
                                 FifoPolicy(), knowledge, options);
    ASSERT_TRUE(result) << result.error().message;
    const JobResult& job = result->jobs[0];
    EXPECT_NEAR(job.end_s, starts_again_s + 30 + work_s - saved_s, 1e-4);
    EXPECT_EQ(job.failures, 1);
    EXPECT_EQ(job.restarts, 1);
    EXPECT_EQ(job.resizes, 0);
    EXPECT_NEAR(job.useful_gpu_s, 2 * work_s, 1e-3) << "what was lost is no use";
    EXPECT_NEAR(job.longest_wait_s, starts_again_s - fails_s, 1e-6);
    EXPECT_EQ(result->held.back().gpus, 0);
}

/// Starts job 0 on the first two nodes, job 1 where it is told.
class TwoSpread : public Policy {
  public:
    explicit TwoSpread(std::vector<NodeShare> second) : second_(std::move(second)) {}
    std::string_view name() const override { return "two"; }
    Plan plan(const ClusterView& cluster) const override {
        Plan plan;
        for (const JobView& job : cluster.jobs)
            if (!job.running)
                plan.decisions.push_back({job.id, 2, "", job.id == 0 ? first_ : second_});
        return plan;
    }

  private:
    std::vector<NodeShare> first_{{0, 1}, {1, 1}};
    std::vector<NodeShare> second_;
};

TEST(InterferenceTest, OnlyJobsThatShareANetworkAreSlowed) {
    const Application application = Application::by_rule("a", 2, 1000, 0, 1);
    AsAsked knowledge;
    SimulationOptions options;
    options.interference = 0.5;
    const auto ends = [&](const std::vector<NodeShare>& second) {
        const auto result = simulate({{"a", 0, 0, "a", 2}, {"b", 1, 0, "a", 2}}, {application},
                                     {{4, 2, 0}}, TwoSpread(second), knowledge, options);
        EXPECT_TRUE(result);
        return std::pair(result->jobs[0].end_s, result->jobs[1].end_s);
    };
    const double alone = 60 + 30 + 1000;
    EXPECT_EQ(ends({{2, 1}, {3, 1}}), std::pair(alone, alone)) << "apart";
    EXPECT_EQ(ends({{2, 2}}), std::pair(alone, alone)) << "on a node of its own";
    // half the speed, for both
    EXPECT_EQ(ends({{1, 1}, {2, 1}}), std::pair(alone + 1000, alone + 1000));
}

TEST_F(SimTest, WhatCannotBeSimulatedIsSaid) {
    const auto application = read();
    ASSERT_TRUE(application);
    AsAsked knowledge;
    WorkloadJob other = job("a", 0, 1);
    other.application = "none";
    const auto unknown = simulate({other}, {*application}, {{1, 2, 0}}, FifoPolicy(), knowledge);
    ASSERT_FALSE(unknown);
    EXPECT_EQ(unknown.error().code, ErrorCode::bad_input);
    SimulationOptions options;
    options.longest_s = 100;
    const auto endless =
        simulate({job("a", 0, 1)}, {*application}, {{1, 2, 0}}, FifoPolicy(), knowledge, options);
    ASSERT_FALSE(endless);
    EXPECT_EQ(endless.error().code, ErrorCode::not_found);
    EXPECT_EQ(endless.error().message, "1 job is not over 100 s after the last has come");
    // 200 s, said at once and not after the years until the next one comes
    options.longest_job_s = 150;
    const auto too_long = simulate({job("a", 0, 1), job("b", 9e8, 1)}, {*application}, {{1, 2, 0}},
                                   FifoPolicy(), knowledge, options);
    ASSERT_FALSE(too_long);
    EXPECT_EQ(too_long.error().message,
              "job a would take 200 s as it was asked for, 150 s are the most that is simulated");
}

}  // namespace
}  // namespace sluice::sim
