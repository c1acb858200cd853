// SPDX-License-Identifier: GPL-2.0-or-later
//
// What a plan of the policy `sluice` costs, and how much more its packings could be worth: no more
// than sum over jobs of max over shapes of (value - price GPUs), + price x GPUs, at any price.
//
//     planning_bench [STEPS]    of the search, where not those of the policy
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "common/allocator/packing_search.hpp"
#include "common/allocator/shape_speeds.hpp"
#include "common/allocator/sluice.hpp"
#include "common/base/text.hpp"

namespace {

using namespace sluice;

constexpr unsigned seed = 20261130;
constexpr int rounds = 10;
// What the deciding thread can afford.
constexpr double most_s = 0.2;

/// A job whose speed is concave in GPUs and lower across nodes.
class Work : public WorkForecast {
  public:
    explicit Work(std::mt19937& dice)
        : alone_s_(std::exp(uniform(dice, 5, 11.7))),
          sharing_(uniform(dice, 0, 0.33)),
          network_(uniform(dice, 0, 0.5)) {}

    double remaining() const override { return alone_s_; }
    std::vector<double> remaining_quantiles() const override {
        return {0.4 * alone_s_, 0.7 * alone_s_, alone_s_, 1.4 * alone_s_, 2.4 * alone_s_};
    }
    double rate(const StepPlacement& placement, std::size_t) const override {
        const double across = placement.nodes > 1 ? 1 + 0.1 * placement.most_on_node : 0;
        return placement.gpus / (1 + sharing_ * std::log2(placement.gpus) + network_ * across);
    }

  private:
    static double uniform(std::mt19937& dice, double least, double most) {
        return std::uniform_real_distribution<double>(least, most)(dice);
    }
    double alone_s_;
    double sharing_;
    double network_;
};

struct Setting {
    int jobs;
    int nodes;
    int gpus_of_node;
    int most;  ///< GPUs of a job
};

JobView arrived(std::uint32_t id, int most, std::mt19937& dice) {
    JobView job;
    job.id = id;
    job.requested = 1 + static_cast<int>(dice() % 8);
    for (int size = 1; size <= most; ++size) job.sizes.push_back(size);
    job.resizable = true;
    job.restart_cost_s = 30;
    job.age_s = static_cast<double>(dice() % 20000);
    job.work = std::make_shared<Work>(dice);
    return job;
}

/// What search_packing() reaches of the bound, where a second is worth the speed by the work left.
double reached(const ClusterView& cluster, int steps) {
    const ShapeSpeeds all(cluster);
    std::vector<PackingJob> jobs;
    for (const ShapeSpeeds::Job& job : all.jobs()) {
        const double weight = std::pow(job.view->work->remaining() + 16000, -0.8);
        jobs.emplace_back();
        for (const ShapeSpeed& each : job.speeds)
            jobs.back().offers.push_back({each.shape, weight * each.speed});
    }
    const std::vector<double> prices = clearing_prices(all.nodes(), all.shapes(), jobs);
    double bound = 0;
    for (const PackingJob& job : jobs) {
        double best = 0;
        for (const PackingOffer& offer : job.offers) {
            const Shape& shape = all.shapes()[offer.shape];
            best = std::max(best, offer.value - prices[shape.type] * shape.placement.gpus);
        }
        bound += best;
    }
    for (const NodeView& node : all.nodes()) bound += prices[node.type] * node.gpus;
    double sum = 0;
    for (const PackingResult& result : search_packing(all.nodes(), all.shapes(), jobs, steps))
        sum += result.value;
    return sum / bound;
}

/// Jobs all wait, then run; a twentieth of them ends and as many come before each further plan.
bool measure(const Setting& setting, const SluiceOptions& options) {
    std::mt19937 dice(seed);
    ClusterView cluster;
    cluster.options.may_stop = true;
    for (int node = 0; node < setting.nodes; ++node)
        cluster.nodes.push_back({"n" + std::to_string(node), setting.gpus_of_node, 0});
    for (int job = 0; job < setting.jobs; ++job)
        cluster.jobs.push_back(arrived(static_cast<std::uint32_t>(job), setting.most, dice));
    const double worth = reached(cluster, options.steps);
    std::vector<double> times;
    std::size_t decisions = 0;
    int used = 0;
    for (int round = 0; round < rounds; ++round) {
        const std::clock_t start = std::clock();
        const Plan plan = SluicePolicy(options).plan(cluster);
        times.push_back(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
        decisions = plan.decisions.size();
        for (const Decision& decision : plan.decisions) {
            JobView& job = cluster.jobs[decision.job];
            job.held = decision.shares;
            job.current = decision.gpus;
            job.running = decision.gpus > 0;
        }
        used = 0;
        for (const JobView& job : cluster.jobs) used += job.running ? job.current : 0;
        for (int i = 0; i < std::max(1, setting.jobs / 20); ++i) {
            JobView& job = cluster.jobs[dice() % cluster.jobs.size()];
            job = arrived(job.id, setting.most, dice);
        }
    }
    const double first = times.front();
    std::sort(times.begin() + 1, times.end());
    const double later = times[static_cast<std::size_t>(1 + rounds) / 2];
    std::printf(
        "%5d jobs of up to %3d GPUs on %4d x %d: all wait %.3f s, then %.3f s (the longest "
        "%.3f), %4zu decisions, %d GPUs used, worth %.2f %% of the bound\n",
        setting.jobs, setting.most, setting.nodes, setting.gpus_of_node, first, later, times.back(),
        decisions, used, 100 * worth);
    return std::max(first, times.back()) <= most_s;
}

}  // namespace

int main(int count, char** arguments) {
    SluiceOptions options;
    if (count > 1) options.steps = static_cast<int>(parse_integer(arguments[1]).value_or(0));
    if (options.steps < 1) {
        std::fputs("usage: planning_bench [STEPS]\n", stderr);
        return 2;
    }
    bool in_time = true;
    for (const Setting& setting : {Setting{64, 16, 4, 64}, Setting{160, 16, 4, 64},
                                   Setting{1000, 512, 8, 16}, Setting{1000, 512, 8, 64}})
        in_time = measure(setting, options) && in_time;
    std::printf("a plan takes %s than %.1f s\n", in_time ? "less" : "MORE", most_s);
    return in_time ? 0 : 1;
}
