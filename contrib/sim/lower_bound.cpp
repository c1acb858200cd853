// SPDX-License-Identifier: GPL-2.0-or-later
#include "contrib/sim/lower_bound.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <queue>
#include <utility>

#include "common/base/text.hpp"
#include "contrib/sim/best_rates.hpp"
#include "contrib/sim/priced_job.hpp"

namespace sluice::sim {
namespace {

constexpr double rounding = 1e-9;
constexpr int most_gpus_of_job = 1024;

// of the search
constexpr double half_after = 30;  ///< steps until they are half as long
constexpr double new_share = 0.3;  ///< in the running mean of what is asked for
constexpr double least_price_s = 1e-4;

/// What is the same for all jobs of an application.
struct Work {
    const Application* application = nullptr;
    std::vector<std::size_t> first_rounds;  ///< of its jobs
    double restart_s = 0;
    int most_gpus = 0;
    double least_gpu_s = 0;  ///< the restart with one GPU included
    double alone_s = 0;      ///< on what is fastest in each epoch, the restart included
};

void measure(Work& work, const std::vector<SizeRates>& sizes) {
    work.least_gpu_s = work.restart_s;
    work.alone_s = work.restart_s;
    for (int epoch = 0; epoch < work.application->epochs(); ++epoch) {
        double most_of_one = 0;
        double most = 0;
        for (const SizeRates& size : sizes) {
            const double rate = size.by_epoch[static_cast<std::size_t>(epoch)];
            most = std::max(most, rate);
            most_of_one = std::max(most_of_one, rate / size.gpus);
        }
        const double progress =
            work.application->progress_after(epoch + 1) - work.application->progress_after(epoch);
        work.least_gpu_s += progress / most_of_one;
        work.alone_s += progress / most;
    }
}

/// The first round in which a job can start: simulate() has none at 0.
std::size_t first_round(double arrival_s, double round_s) {
    return static_cast<std::size_t>(std::max(1.0, std::ceil(arrival_s / round_s - rounding)));
}

struct Fluid {
    double completion_s = 0;  ///< sum of points in time
    double end_s = 0;
    std::vector<std::pair<double, int>> there;  ///< from when on so many jobs are there
};

/// Shortest remaining work first on one machine. `jobs`: when each can start, and its seconds.
Fluid fluid(std::vector<std::pair<double, double>> jobs) {
    std::sort(jobs.begin(), jobs.end());
    Fluid fluid;
    std::priority_queue<double, std::vector<double>, std::greater<>> left;
    double now = 0;
    for (std::size_t next = 0; next < jobs.size() || !left.empty();) {
        if (left.empty()) now = std::max(now, jobs[next].first);
        while (next < jobs.size() && jobs[next].first <= now) left.push(jobs[next++].second);
        fluid.there.emplace_back(now, static_cast<int>(left.size()));
        const double until =
            next < jobs.size() ? jobs[next].first : std::numeric_limits<double>::infinity();
        const double shortest = left.top();
        left.pop();
        if (now + shortest <= until) {
            now += shortest;
            fluid.completion_s += now;
        } else {
            left.push(shortest - (until - now));
            now = until;
        }
    }
    fluid.end_s = now;
    fluid.there.emplace_back(now, 0);
    return fluid;
}

/// The dual at given prices.
class Dual {
  public:
    /// below: value() is a bound; else close to what it is at best, and faster.
    Dual(const std::vector<Work>& works, const std::vector<int>& gpus, double round_s, bool below)
        : works_(works), gpus_(gpus), round_s_(round_s), below_(below) {}

    void add(const std::vector<SizeRates>& sizes, std::size_t knots) {
        const Work& work = works_[jobs_.size()];
        PricedJobOptions options;
        options.round_s = round_s_;
        options.restart_s = work.restart_s;
        options.knots = knots;
        options.below = below_;
        jobs_.emplace_back(*work.application, sizes, options);
    }

    /// Sum over jobs of the seconds from their first round on, less what GPUs are worth. `held`:
    /// what jobs ask for, [type][round]; not where value() is a bound.
    double value(const Prices& prices, std::vector<std::vector<double>>* held = nullptr) {
        if (held) held->assign(gpus_.size(), std::vector<double>(prices.rounds()));
        double value = 0;
        for (std::size_t number = 0; number < jobs_.size(); ++number) {
            PricedJob& job = jobs_[number];
            job.solve(prices);
            for (const std::size_t round : works_[number].first_rounds) {
                value += job.cost(round);
                if (held) job.add_held(round, prices, *held);
            }
        }
        for (std::size_t type = 0; type < gpus_.size(); ++type)
            value -= gpus_[type] *
                     std::accumulate(prices.by_type[type].begin(), prices.by_type[type].end(), 0.0);
        return value;
    }

  private:
    const std::vector<Work>& works_;
    const std::vector<int>& gpus_;
    double round_s_;
    bool below_;
    std::vector<PricedJob> jobs_;
};

/// Prices rise where more is asked for than there is, by factors (exponentiated subgradient).
class Search {
  public:
    Search(Prices first, std::vector<int> gpus, const LowerBoundOptions& options)
        : prices_(first), best_(std::move(first)), gpus_(std::move(gpus)), options_(options) {}

    void run(Dual& dual, int steps) {
        std::vector<std::vector<double>> held;
        for (int step = 0; step < steps; ++step) {
            const double value = dual.value(prices_, &held);
            if (value > best_value_) {
                best_value_ = value;
                best_ = prices_;
            }
            follow(held);
        }
    }
    const Prices& best() const { return best_; }

  private:
    void follow(const std::vector<std::vector<double>>& held) {
        const double length = 1 / (1 + taken_ / half_after);
        ++taken_;
        if (mean_.empty()) mean_ = held;
        for (std::size_t type = 0; type < gpus_.size(); ++type) {
            std::vector<double>& price = prices_.by_type[type];
            std::vector<double>& mean = mean_[type];
            for (std::size_t first = 0; first < price.size(); first += options_.period) {
                const std::size_t last = std::min(price.size(), first + options_.period);
                double asked = 0;
                for (std::size_t round = first; round < last; ++round) {
                    mean[round] += new_share * (held[type][round] - mean[round]);
                    asked += mean[round];
                }
                asked /= gpus_[type] * static_cast<double>(last - first);
                const double factor = std::exp(std::clamp(length * (asked - 1), -1.0, 1.0));
                for (std::size_t round = first; round < last; ++round)
                    price[round] = std::max(least_price_s, price[round] * factor);
            }
        }
    }

    Prices prices_;
    Prices best_;
    std::vector<int> gpus_;
    LowerBoundOptions options_;
    double best_value_ = -std::numeric_limits<double>::infinity();
    double taken_ = 0;
    std::vector<std::vector<double>> mean_;
};

}  // namespace

Result<LowerBound> lower_bound(const std::vector<WorkloadJob>& workload,
                               const std::vector<Application>& applications,
                               const std::vector<Nodes>& nodes,
                               const std::map<std::string, int>& most_gpus,
                               const SimulationOptions& simulation,
                               const LowerBoundOptions& options) {
    if (!simulation.may_stop || !simulation.first_start_costs)
        return {ErrorCode::usage,
                "a bound is for jobs that start in rounds, and whose first start costs"};
    const double round_s = simulation.round_s;
    std::vector<int> gpus;
    for (const Nodes& group : nodes) {
        gpus.resize(std::max(gpus.size(), group.type + 1));
        gpus[group.type] += group.count * group.gpus;
    }
    const int all_gpus = std::accumulate(gpus.begin(), gpus.end(), 0);

    std::vector<Work> works;
    for (const Application& application : applications) {
        Work work;
        work.application = &application;
        work.most_gpus = all_gpus;
        for (const std::string& name : {application.name(), std::string()})
            if (const auto most = most_gpus.find(name); most != most_gpus.end()) {
                work.most_gpus = most->second;
                break;
            }
        const double by_batch = application.most_batch() / application.least_local_batch();
        if (std::min({double(work.most_gpus), double(all_gpus), by_batch}) > most_gpus_of_job)
            return {ErrorCode::usage, "a bound is for jobs of at most " +
                                          std::to_string(most_gpus_of_job) +
                                          " GPUs: --most-gpus has to say so for application " +
                                          printable(application.name())};
        const auto restart = simulation.restart_of_s.find(application.name());
        work.restart_s =
            restart == simulation.restart_of_s.end() ? simulation.restart_s : restart->second;
        works.push_back(std::move(work));
    }
    double waits_s = 0;  // before the first rounds
    for (const WorkloadJob& job : workload) {
        const auto work = std::find_if(works.begin(), works.end(), [&](const Work& each) {
            return each.application->name() == job.application;
        });
        if (work == works.end())
            return {ErrorCode::bad_input, "job " + printable(job.name) +
                                              ": there are no tables for application " +
                                              printable(job.application)};
        work->first_rounds.push_back(first_round(job.arrival_s, round_s));
        waits_s += round_s * static_cast<double>(work->first_rounds.back()) - job.arrival_s;
    }
    std::erase_if(works, [](const Work& work) { return work.first_rounds.empty(); });

    Dual dual(works, gpus, round_s, false);
    Dual last_dual(works, gpus, round_s, true);
    std::vector<std::pair<double, double>> machine_jobs;
    double alone_s = 0;
    double longest_s = 0;
    double starts_s = 0;
    for (Work& work : works) {
        const auto rates = [&](double not_less) {
            while (true) {
                auto sizes =
                    best_rates(*work.application, workload, nodes, work.most_gpus, not_less);
                if (sizes.size() <= PricedJob::most_sizes) return sizes;
                not_less *= 2;
            }
        };
        const std::vector<SizeRates> sizes = rates(options.last_not_less);
        measure(work, sizes);
        last_dual.add(sizes, options.last_knots);
        dual.add(rates(options.not_less), options.knots);
        longest_s = std::max(longest_s, work.alone_s);
        for (const std::size_t round : work.first_rounds) {
            const double start_s = round_s * static_cast<double>(round);
            alone_s += work.alone_s;
            starts_s += start_s;
            machine_jobs.emplace_back(start_s, work.least_gpu_s / all_gpus);
        }
    }
    const Fluid machine = fluid(std::move(machine_jobs));
    const double jobs = static_cast<double>(workload.size());
    const auto average = [&](double sum_s) { return (1 - rounding) * (waits_s + sum_s) / jobs; };
    LowerBound bound;
    bound.alone_s = average(alone_s);
    bound.fluid_s = average(machine.completion_s - starts_s);

    // At first as if every GPU-second were worth its share of all jobs that are there then.
    const auto rounds =
        std::min(options.most_rounds,
                 static_cast<std::size_t>((1.5 * machine.end_s + longest_s) / round_s) + 2);
    Prices first(gpus.size(), rounds);
    std::size_t at = 0;
    for (std::size_t round = 0; round < rounds; ++round) {
        while (at + 1 < machine.there.size() &&
               machine.there[at + 1].first <= round_s * static_cast<double>(round))
            ++at;
        const double price = round_s * std::max(1, machine.there[at].second) / all_gpus;
        for (std::vector<double>& of_type : first.by_type) of_type[round] = price;
    }
    Search search(std::move(first), gpus, options);
    search.run(dual, options.steps);
    bound.priced_s = average(last_dual.value(search.best()));
    return bound;
}

}  // namespace sluice::sim
