// SPDX-License-Identifier: GPL-2.0-or-later
//
// The bound is below what anybody reaches, and there where it can be known.
#include "contrib/sim/lower_bound.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "common/allocator/fifo.hpp"
#include "common/allocator/goodput.hpp"
#include "common/allocator/las.hpp"
#include "common/allocator/optimus.hpp"
#include "common/allocator/sluice.hpp"
#include "common/allocator/srtf.hpp"
#include "contrib/sim/knowledge.hpp"
#include "contrib/sim/learned.hpp"
#include "contrib/sim/priced_job.hpp"
#include "contrib/sim/random.hpp"
#include "tests/unit/scratch_dir.hpp"

namespace sluice::sim {
namespace {

constexpr const char* header = "placement,local_bsz,step_time,sync_time\n";
constexpr const char* curve = "progress,grad_sqr,grad_var\n";

class LowerBoundTest : public ::testing::Test {
  protected:
    /// Seconds of a step on one GPU and on two, which are all of a batch of 2; progress of epochs.
    Application small(const std::string& name, double alone, double both, double first,
                      double second) {
        write(name, "placements.csv",
              header + row("1", 2, alone) + row("1", 1, alone) + row("2", 1, both) +
                  row("2", 2, both));
        write(name, "validation-2.csv",
              curve + std::to_string(first) + ",1,1\n" + std::to_string(first + second) + ",1,1\n");
        return read(name, {""});
    }
    /// The same with batches of 2 and 4: `noise` in the two epochs is what makes the second better.
    Application changing(const std::string& name, double both, double first, double second,
                         double noise_first, double noise_second) {
        write(name, "placements.csv",
              header + row("1", 1, 0.6) + row("1", 2, 1.0) + row("1", 4, 1.9) + row("2", 1, both) +
                  row("2", 2, both + 0.1));
        for (const std::string batch : {"2", "4"})
            write(name, "validation-" + batch + ".csv",
                  curve + std::to_string(first) + ",1," + std::to_string(noise_first) + "\n" +
                      std::to_string(first + second) + ",1," + std::to_string(noise_second) + "\n");
        return read(name, {""});
    }
    /// Placements on nodes of two types, batches of 8 and 16.
    Application varied(const std::string& name, double slower, double progress) {
        for (const std::string type : {"", "-fast"}) {
            const double factor = type.empty() ? slower : slower / 3;
            std::string text = header;
            const std::vector<std::pair<std::string, double>> times{
                {"1", 1.0}, {"2", 1.1}, {"11", 1.5}, {"21", 1.6}, {"22", 1.7}};
            for (const auto& [placement, seconds] : times)
                for (const int local : {2, 4, 8, 16})
                    text += row(placement, local, factor * (seconds - 1 + local / 8.0));
            write(name, "placements" + type + ".csv", text);
        }
        for (const int batch : {8, 16}) {
            std::string text = curve;
            for (int epoch = 1; epoch <= 5; ++epoch)
                text += std::to_string(progress * epoch) + ",1," + std::to_string(epoch) + "\n";
            write(name, "validation-" + std::to_string(batch) + ".csv", text);
        }
        return read(name, {"", "fast"});
    }

    static double average(const SimulationResult& result) {
        double sum = 0;
        for (const JobResult& job : result.jobs) sum += job.completion_s();
        return sum / static_cast<double>(result.jobs.size());
    }

  private:
    static std::string row(const std::string& placement, int local, double seconds) {
        return placement + "," + std::to_string(local) + "," + std::to_string(seconds) + "," +
               std::to_string(0.1 * seconds) + "\n";
    }
    void write(const std::string& name, const std::string& file, const std::string& text) {
        std::filesystem::create_directories(folder_.path() + "/" + name);
        folder_.write(name + "/" + file, text);
    }
    Application read(const std::string& name, const std::vector<std::string>& types) {
        auto application = Application::read(name, {folder_.path()}, types);
        EXPECT_TRUE(application) << application.error().message;
        return std::move(*application);
    }

    ScratchDir folder_;
};

WorkloadJob job(std::size_t number, double arrival, const std::string& application, int gpus,
                double batch) {
    WorkloadJob job;
    job.name = "job" + std::to_string(number);
    job.number = number;
    job.arrival_s = arrival;
    job.application = application;
    job.gpus = gpus;
    job.batch = batch;
    return job;
}

double bound_of(const std::vector<WorkloadJob>& workload,
                const std::vector<Application>& applications, const std::vector<Nodes>& nodes) {
    const auto bound = lower_bound(workload, applications, nodes, {});
    EXPECT_TRUE(bound) << bound.error().message;
    return bound ? bound->average_s() : -1;
}

/// The least sum of completion times, over all sizes of all jobs in each round.
double least_sum(const std::vector<WorkloadJob>& workload, std::vector<TrainingJob> jobs,
                 double now, int gpus, double sum, double best) {
    std::vector<std::size_t> left;
    double least = sum;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
        if (jobs[i].complete()) continue;
        left.push_back(i);
        least += std::max(now, workload[i].arrival_s) - workload[i].arrival_s;
    }
    if (left.empty()) return std::min(sum, best);
    if (least >= best) return best;
    std::vector<int> sizes(left.size());
    const auto choose = [&](auto&& self, std::size_t at, int free) -> void {
        if (at < left.size()) {
            for (int size = std::min(free, 2); size >= 0; --size) {
                if (size > 0 && workload[left[at]].arrival_s > now) continue;
                sizes[at] = size;
                self(self, at + 1, free - size);
            }
            return;
        }
        std::vector<TrainingJob> then = jobs;
        double then_sum = sum;
        for (std::size_t i = 0; i < left.size(); ++i) {
            TrainingJob& each = then[left[i]];
            if (sizes[i] != each.gpus())
                each.place(sizes[i] > 0 ? std::vector<int>{sizes[i]} : std::vector<int>(), 0, 30);
            const double lived = each.advance(60);
            if (each.complete()) then_sum += now + lived - workload[left[i]].arrival_s;
        }
        best = std::min(best, least_sum(workload, then, now + 60, gpus, then_sum, best));
    };
    choose(choose, 0, gpus);
    return best;
}

/// The least of seconds and prices together, over what a job can do in each round.
double least_cost(const TrainingJob& training, std::size_t round, double restart_s,
                  const std::vector<double>& prices, double spent, double best) {
    if (training.complete()) return std::min(spent, best);
    if (spent >= best) return best;
    for (const int size : {2, 1, 0}) {
        TrainingJob then = training;
        if (size != then.gpus())
            then.place(size > 0 ? std::vector<int>{size} : std::vector<int>(), 0, restart_s);
        const double lived = then.advance(60);
        const double price = round < prices.size() ? prices[round] : 0;
        best = least_cost(then, round + 1, restart_s, prices,
                          spent + lived + size * price * lived / 60, best);
    }
    return best;
}

TEST_F(LowerBoundTest, APricedJobCostsNoMoreThanItCould) {
    double sum_of_ratios = 0;
    constexpr int cases = 150;
    for (std::uint32_t seed = 1; seed <= cases; ++seed) {
        const auto draw = [&](std::uint32_t stream) { return uniform(seed, 1, stream); };
        const Application application =
            changing("app" + std::to_string(seed), 0.6 + 0.5 * draw(1), 20 + 150 * draw(2),
                     20 + 150 * draw(3), 0.1, 20 * draw(6));
        PricedJobOptions options;
        options.restart_s = seed % 3 == 0 ? 70 : 30 * draw(4);
        options.knots = 40;
        Prices prices(1, 10);
        for (std::size_t round = 0; round < 10; ++round)
            prices.by_type[0][round] = 60 * uniform(seed, round, 5);
        const auto sizes =
            best_rates(application, {job(0, 0, application.name(), 1, 2)}, {{1, 2, 0}}, 2, 0);
        PricedJob priced(application, sizes, options);
        priced.solve(prices);
        const TrainingJob training(application, [](const TrainingJob& at) {
            return best_batch(at.application().limits(0), at.gpus(),
                              [&](const BatchSplit& split) {
                                  return at.rate_on(at.placement(), 0, split);
                              })
                .split;
        });
        const double truth = least_cost(training, 0, options.restart_s, prices.by_type[0], 0,
                                        std::numeric_limits<double>::infinity());
        EXPECT_LE(priced.cost(0), truth * (1 + 1e-9)) << "seed " << seed;
        EXPECT_GE(priced.cost(0), truth * 0.9) << "seed " << seed;
        sum_of_ratios += priced.cost(0) / truth;
    }
    EXPECT_GT(sum_of_ratios / cases, 0.98);
}

TEST_F(LowerBoundTest, OneJobAloneIsWhatItIs) {
    const std::vector<Application> applications{small("app", 1.0, 0.6, 100, 100)};
    // a round at 60, 30 s of restart, 200 steps
    EXPECT_NEAR(bound_of({job(0, 0, "app", 1, 2)}, applications, {{1, 1, 0}}), 290, 1e-4);
    EXPECT_NEAR(bound_of({job(0, 0, "app", 1, 2)}, applications, {{1, 2, 0}}), 210, 1e-4);
    EXPECT_NEAR(bound_of({job(0, 130, "app", 1, 2)}, applications, {{1, 2, 0}}), 200, 1e-4);
}

TEST_F(LowerBoundTest, OfAJobByARule) {
    const std::vector<Application> applications{Application::by_rule("app", 2, 100, 0, 1)};
    EXPECT_NEAR(bound_of({job(0, 0, "app", 2, 4)}, applications, {{1, 2, 0}}), 190, 1e-4);
}

TEST_F(LowerBoundTest, IsForStartsInRoundsThatCost) {
    const std::vector<Application> applications{small("app", 1.0, 0.6, 100, 100)};
    SimulationOptions between;
    between.may_stop = false;
    SimulationOptions free;
    free.first_start_costs = false;
    for (const SimulationOptions& options : {between, free}) {
        const auto bound =
            lower_bound({job(0, 0, "app", 1, 2)}, applications, {{1, 1, 0}}, {}, options);
        ASSERT_FALSE(bound);
        EXPECT_EQ(bound.error().code, ErrorCode::usage);
    }
}

TEST_F(LowerBoundTest, TheShortestGoesFirst) {
    const std::vector<Application> applications{small("long", 1.0, 0.6, 100, 50),
                                                small("short", 1.0, 0.6, 50, 40)};
    // ends at 180 and 360
    const std::vector<WorkloadJob> workload{job(0, 0, "long", 1, 2), job(1, 0, "short", 1, 2)};
    const auto bound = lower_bound(workload, applications, {{1, 1, 0}}, {});
    ASSERT_TRUE(bound);
    EXPECT_NEAR(bound->average_s(), 270, 1e-4);
    EXPECT_LT(bound->alone_s, 240);
    EXPECT_GT(bound->priced_s, bound->alone_s);
}

TEST_F(LowerBoundTest, NeverAboveTheOptimum) {
    double least_ratio = 2;
    double sum_of_ratios = 0;
    constexpr int cases = 40;
    for (std::uint32_t seed = 1; seed <= cases; ++seed) {
        const auto draw = [&](std::uint32_t stream) { return uniform(seed, 1, stream); };
        const double alone = 0.5 + draw(1);
        const std::vector<Application> applications{
            small("a" + std::to_string(seed), alone, alone * (0.45 + draw(2)), 20 + 80 * draw(3),
                  20 + 80 * draw(4)),
            small("b" + std::to_string(seed), 1.0, 0.5 + 0.3 * draw(5), 20 + 60 * draw(6), 30)};
        std::vector<WorkloadJob> workload;
        std::vector<TrainingJob> training;
        const std::size_t jobs = seed % 3 == 0 ? 3 : 2;
        for (std::size_t i = 0; i < jobs; ++i) {
            const Application& application = applications[i % 2];
            workload.push_back(job(i, i == 0 ? 0 : 100 * draw(7), application.name(), 1, 2));
            training.emplace_back(application, [](const TrainingJob& at) {
                return split_batch(at.application().limits(0), at.gpus(), 2);
            });
        }
        const double best =
            least_sum(workload, training, 60, 2, 0, std::numeric_limits<double>::infinity()) /
            static_cast<double>(jobs);
        const double bound = bound_of(workload, applications, {{1, 2, 0}});
        EXPECT_LE(bound, best * (1 + 1e-9)) << "seed " << seed;
        least_ratio = std::min(least_ratio, bound / best);
        sum_of_ratios += bound / best;
    }
    EXPECT_GT(least_ratio, 0.5);
    EXPECT_GT(sum_of_ratios / cases, 0.75);
}

TEST_F(LowerBoundTest, NoPolicyIsBelow) {
    const std::vector<Application> applications{varied("one", 1, 50), varied("two", 3, 60)};
    for (std::uint32_t seed = 1; seed <= 12; ++seed) {
        std::vector<WorkloadJob> workload;
        for (std::size_t i = 0; i < 12; ++i) {
            const auto draw = [&](std::uint32_t stream) { return uniform(seed, i, stream); };
            workload.push_back(job(i, 1200 * draw(1), draw(2) < 0.6 ? "one" : "two",
                                   draw(3) < 0.6 ? 1 : 3, draw(4) < 0.5 ? 8 : 12));
        }
        std::sort(workload.begin(), workload.end(),
                  [](const auto& a, const auto& b) { return a.arrival_s < b.arrival_s; });
        const std::vector<Nodes> nodes = seed % 2 == 0 ? std::vector<Nodes>{{3, 2, 0}}
                                                       : std::vector<Nodes>{{1, 2, 0}, {2, 1, 1}};
        SimulationOptions options;
        options.restart_of_s["two"] = seed % 3 == 0 ? 130 : 20;
        const auto bound = lower_bound(workload, applications, nodes, {}, options);
        ASSERT_TRUE(bound);
        AsAsked as_asked;
        Oracle oracle({{"", 6}});
        LearnedOptions known;
        known.most_gpus = {{"", 4}};
        known.exact_steps = true;
        known.size_error = 0;
        Learned learned(applications, known);
        const FifoPolicy fifo;
        const LasPolicy las;
        const GoodputPolicy goodput;
        const SluicePolicy sluice;
        const SrtfPolicy srtf;
        const OptimusPolicy optimus;
        const std::vector<std::pair<const Policy*, Knowledge*>> runs{
            {&fifo, &as_asked},  {&las, &as_asked}, {&goodput, &learned},
            {&sluice, &learned}, {&srtf, &oracle},  {&optimus, &oracle}};
        for (const auto& [policy, knowledge] : runs) {
            const auto result =
                simulate(workload, applications, nodes, *policy, *knowledge, options);
            ASSERT_TRUE(result) << result.error().message;
            EXPECT_GE(average(*result), bound->average_s()) << policy->name() << ", seed " << seed;
        }
        const auto again = lower_bound(workload, applications, nodes, {}, options);
        EXPECT_EQ(again->average_s(), bound->average_s());
    }
}

TEST_F(LowerBoundTest, AJobWithoutTablesIsNamed) {
    const auto bound = lower_bound({job(0, 0, "other", 1, 2)}, {}, {{1, 1, 0}}, {});
    ASSERT_FALSE(bound);
    EXPECT_EQ(bound.error().code, ErrorCode::bad_input);
    EXPECT_NE(bound.error().message.find("job job0: there are no tables for application other"),
              std::string::npos);
}

}  // namespace
}  // namespace sluice::sim
