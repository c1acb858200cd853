// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/allocator/size_plan.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>
#include <span>

#include "common/allocator/node_packing.hpp"
#include "common/base/text.hpp"

namespace sluice {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr std::size_t no_job = std::numeric_limits<std::size_t>::max();

// A legal size and what it is worth to a job that has to be restarted for it, or that waits.
struct Option {
    int size = 0;
    double value = 0;
};

// What the plan makes of a job so far.
struct Job {
    const JobView* view = nullptr;
    std::span<const Option> options;  // ascending; those that the nodes could hold when empty
    bool known = false;               // curve, step and speed
    double stay_value = 0;            // running: of the size that it has
    bool movable = false;             // running, and may be resized now
    bool placed = false;              // waiting, and fits
    int size = 0;                     // GPUs in the plan; 0 for a waiting job that does not fit
    int largest = std::numeric_limits<int>::max();  // no larger size is tried again
    bool grown = false;
    std::size_t gives_to = no_job;  // index of the job for which it shrank
    bool for_minimum = false;       // which needed it to start at all
    double give_rate = infinity;    // the least value that it loses per GPU, from where it is

    bool moved() const { return view->running && size != view->current; }
    int least() const { return options.front().size; }
};

struct Shrink {
    std::size_t job = 0;
    int to = 0;
    int freed = 0;
    double harm = 0;
};

// Makes one plan.
class Planner {
  public:
    Planner(const ClusterView& cluster, const SizeValues& values)
        : cluster_(cluster),
          values_(values),
          horizon_s_(std::max(cluster.options.interval_s, cluster.options.cooldown_s)),
          nodes_(cluster.nodes) {
        for (const JobView& view : cluster.jobs) options_.push_back(options_of(view));
        for (std::size_t i = 0; i < cluster.jobs.size(); ++i) jobs_.push_back(seen(i));
        first_blocked_ = jobs_.size();
    }

    Plan plan() {
        serve_minimums();
        if (!frozen_) {
            serve_requests();
            grow();
        }
        return decisions();
    }

  private:
    // --- the jobs as they are

    std::vector<Option> options_of(const JobView& view) const {
        const double lost_s = view.running ? view.restart_cost_s : 0;
        const bool fixed_size = !view.running && !view.resizable;
        std::vector<Option> out;
        for (const int size : fixed_size ? std::vector<int>{view.current} : view.sizes) {
            if (nodes_.could_hold(size, view.node_count))
                out.push_back({size, values_.value(view, size, horizon_s_ - lost_s).value_or(0)});
        }
        return out;
    }

    Job seen(std::size_t index) {
        const JobView& view = cluster_.jobs[index];
        if (view.running) nodes_.pin_as_is(held(view));
        const auto stay_value = values_.value(view, std::max(1, view.current), horizon_s_);
        Job job;
        job.view = &view;
        job.options = options_[index];
        job.known = stay_value.has_value();
        job.stay_value = stay_value.value_or(0);
        job.movable = resizable(job) && view.since_resize_s >= cluster_.options.cooldown_s &&
                      view.resizes_last_hour < cluster_.options.max_resizes_per_hour;
        if (view.running) set_size(job, view.current);
        return job;
    }

    static bool resizable(const Job& job) {
        return job.view->running && job.view->resizable && !job.options.empty() &&
               gpus_of(job.view->held) == job.view->current;
    }

    std::vector<NodeShare> held(const JobView& view) const {
        std::vector<NodeShare> out;
        for (const NodeShare& share : view.held) {
            if (share.node < cluster_.nodes.size()) out.push_back(share);
        }
        return out;
    }

    // --- sizes and the nodes

    static double value(const Job& job, int size) {
        if (job.view->running && size == job.view->current) return job.stay_value;
        const auto at =
            std::lower_bound(job.options.begin(), job.options.end(), size,
                             [](const Option& option, int wanted) { return option.size < wanted; });
        return at != job.options.end() && at->size == size ? at->value : 0;
    }

    static void set_size(Job& job, int size) {
        job.size = size;
        job.give_rate = infinity;
        if (!(job.movable || job.placed) || !job.known || job.grown) return;
        const double here = value(job, size);
        for (const Option& option : job.options) {
            if (option.size >= size) break;
            job.give_rate = std::min(job.give_rate, loss(here, option) / (size - option.size));
        }
    }

    // What a job loses that goes from a size of value `here` to a smaller one.
    static double loss(double here, const Option& option) {
        return std::max(0.0, here - option.value);
    }

    // Gives the job this size. False, and nothing has changed, where the nodes have no room.
    bool resize(std::size_t index, int size) {
        Job& job = jobs_[index];
        const bool stays = job.view->running && !job.moved();
        if (stays) nodes_.unpin(held(*job.view));
        if (!nodes_.place(index, size, job.view->node_count)) {
            if (stays) nodes_.pin_as_is(held(*job.view));
            return false;
        }
        job.placed = !job.view->running;
        job.grown = job.grown || (job.view->running && size > job.size);
        set_size(job, size);
        return true;
    }

    // What is said of a job is for whom it shrank first.
    static void give(Job& job, std::size_t to, bool for_minimum) {
        if (job.gives_to != no_job) return;
        job.gives_to = to;
        job.for_minimum = for_minimum;
    }

    // A running job stays as it is after all. False, and nothing has changed, where it cannot.
    bool restore(std::size_t index) {
        Job& job = jobs_[index];
        const NodePacking before = nodes_;
        nodes_.remove(index);
        if (!nodes_.pin(held(*job.view))) {
            nodes_.roll_back(before);
            return false;
        }
        job.gives_to = no_job;
        job.for_minimum = false;
        set_size(job, job.view->current);
        return true;
    }

    // --- 1. minimums

    void serve_minimums() {
        for (std::size_t i = 0; i < jobs_.size(); ++i) {
            Job& job = jobs_[i];
            if (job.view->running || job.options.empty()) continue;
            if (!resize(i, job.least()) && !shrink_others_for(i)) {
                first_blocked_ = i;
                frozen_ = waits_for_cooldowns(i);
                return;
            }
        }
    }

    bool shrink_others_for(std::size_t index) {
        const int needed = jobs_[index].least();
        int possible = nodes_.free_gpus();
        for (const Job& job : jobs_) {
            if (job.movable && job.size > job.least()) possible += job.size - job.least();
        }
        if (possible < needed) return false;

        const std::vector<Job> jobs_before = jobs_;
        const NodePacking nodes_before = nodes_;
        std::vector<std::size_t> shrunk;
        do {
            const auto step = cheapest_step();
            if (!step || !resize(step->job, step->to)) {
                jobs_ = jobs_before;
                nodes_.roll_back(nodes_before);
                return false;
            }
            Job& job = jobs_[step->job];
            if (job.gives_to == no_job) shrunk.push_back(step->job);
            give(job, index, true);
        } while (nodes_.free_gpus() < needed || !resize(index, needed));

        // On the way, jobs may have shrunk that turn out not to matter. The dearest is spared
        // first.
        for (auto job = shrunk.rbegin(); job != shrunk.rend(); ++job) restore(*job);
        return true;
    }

    // The next smaller size of the job that loses least per GPU; of jobs that are not known, the
    // last.
    std::optional<Shrink> cheapest_step() const {
        std::optional<Shrink> best;
        double best_rate = infinity;
        for (std::size_t i = 0; i < jobs_.size(); ++i) {
            const Job& job = jobs_[i];
            if (!job.movable || job.size <= job.least()) continue;
            const auto larger =
                std::find_if(job.options.begin(), job.options.end(),
                             [&](const Option& each) { return each.size >= job.size; });
            const Option& option = *std::prev(larger);
            const int freed = job.size - option.size;
            const double harm = job.known ? loss(value(job, job.size), option) : infinity;
            if (best && harm / freed > best_rate) continue;
            best = Shrink{i, option.size, freed, harm};
            best_rate = harm / freed;
        }
        return best;
    }

    // Whether the job would fit if every running job that can be resized at all were at its least
    // size.
    bool waits_for_cooldowns(std::size_t index) const {
        NodePacking nodes = nodes_;
        for (std::size_t i = 0; i < jobs_.size(); ++i) {
            const Job& job = jobs_[i];
            if (!resizable(job) || job.size <= job.least()) continue;
            if (!job.moved()) nodes.unpin(held(*job.view));
            if (!nodes.place(i, job.least(), job.view->node_count)) return false;
        }
        return nodes.place(index, jobs_[index].least(), jobs_[index].view->node_count);
    }

    // --- 2. requests

    void serve_requests() {
        for (std::size_t i = 0; i < first_blocked_; ++i) {
            Job& job = jobs_[i];
            if (job.known || (!job.placed && !job.movable)) continue;
            for (auto option = job.options.rbegin(); option != job.options.rend(); ++option) {
                if (option->size <= job.size) break;
                if (option->size > job.view->requested || !pays_unknown(job, option->size))
                    continue;
                if (option->size - job.size <= nodes_.free_gpus() && resize(i, option->size)) break;
            }
        }
    }

    // Without a model, progress counts as proportional to the GPUs.
    bool pays_unknown(const Job& job, int size) const {
        if (!job.view->running) return true;
        if (size == job.view->current) return false;
        const double share_left = std::max(0.0, 1 - job.view->restart_cost_s / horizon_s_);
        return job.moved() ||
               size * share_left >= job.view->current * (1 + cluster_.options.min_gain);
    }

    // --- 3. growth

    struct Step {
        double rate = 0;  // value per GPU
        std::size_t job = 0;
        int to = 0;
        // The priority queue's top is the best step; among equal ones the earlier job.
        bool operator<(const Step& other) const {
            return rate != other.rate ? rate < other.rate : job > other.job;
        }
    };

    void grow() {
        std::priority_queue<Step> steps;
        const auto offer = [&](std::size_t i) {
            if (const auto step = best_step(i)) steps.push(*step);
        };
        for (std::size_t i = 0; i < first_blocked_; ++i) offer(i);
        while (!steps.empty()) {
            const Step step = steps.top();
            steps.pop();
            Job& job = jobs_[step.job];
            // What is offered is out of date where the job gave up GPUs since.
            if (step.to <= job.size || step.rate != rate(job, step.to)) {
                offer(step.job);
                continue;
            }
            const int missing = step.to - job.size - nodes_.free_gpus();
            if (missing > 0) {
                if (!grow_with_others(step.job)) job.largest = job.size + nodes_.free_gpus();
            } else if (!resize(step.job, step.to)) {
                job.largest = step.to - 1;
            }
            offer(step.job);
        }
    }

    double rate(const Job& job, int size) const {
        return (value(job, size) - value(job, job.size)) / (size - job.size);
    }

    // Whether the job may be at this size: nobody is restarted in place, and a restart has to pay.
    // `harm` is what others lose for it.
    bool pays(const Job& job, int size, double harm) const {
        if (job.view->running && size == job.view->current) return false;
        const double gain = value(job, size) - value(job, job.size) - harm;
        if (gain <= 0) return false;
        // The restart of a job that is moved already is paid for.
        const bool asks = (job.view->running && !job.moved()) || harm > 0;
        return !asks || gain >= cluster_.options.min_gain * value(job, job.size);
    }

    std::optional<Step> best_step(std::size_t index) const {
        const Job& job = jobs_[index];
        if (!job.known || (!job.placed && !job.movable)) return std::nullopt;
        std::optional<Step> best;
        for (const Option& option : job.options) {
            if (option.size <= job.size || option.size > job.largest || !pays(job, option.size, 0))
                continue;
            const double per_gpu = rate(job, option.size);
            if (!best || per_gpu > best->rate) best = Step{per_gpu, index, option.size};
        }
        return best;
    }

    // The best growth of the job for which other running jobs give up what is not free.
    bool grow_with_others(std::size_t index) {
        if (jobs_[index].gives_to != no_job) return false;  // no GPUs in a circle
        int best_size = 0;
        double best_gain = 0;
        std::vector<Shrink> best_shrinks;
        for (const Option& option : jobs_[index].options) {
            const Job& job = jobs_[index];
            const int missing = option.size - job.size - nodes_.free_gpus();
            if (missing <= 0 || option.size > job.largest) continue;
            const double limit = value(job, option.size) - value(job, job.size) - best_gain;
            const auto shrinks = cheapest_shrinks(index, missing, limit);
            if (shrinks.empty()) continue;
            double harm = 0;
            for (const Shrink& shrink : shrinks) harm += shrink.harm;
            if (harm >= limit || !pays(job, option.size, harm)) continue;
            best_size = option.size;
            best_gain += limit - harm;
            best_shrinks = shrinks;
        }
        if (best_size == 0) return false;

        const std::vector<Job> jobs_before = jobs_;
        const NodePacking nodes_before = nodes_;
        bool fits = true;
        for (const Shrink& shrink : best_shrinks) {
            fits = fits && resize(shrink.job, shrink.to);
            give(jobs_[shrink.job], index, false);
        }
        if (!fits || !resize(index, best_size)) {
            jobs_ = jobs_before;
            nodes_.roll_back(nodes_before);
            return false;
        }
        return true;
    }

    // Shrinks of others that free `missing` GPUs together, each the one that costs least per GPU
    // needed; empty where they would cost `limit` or more.
    std::vector<Shrink> cheapest_shrinks(std::size_t index, int missing, double limit) const {
        std::vector<Shrink> out;
        while (missing > 0) {
            std::optional<Shrink> best;
            double best_rate = limit / missing;  // dearer ones cannot stay below the limit
            for (std::size_t i = 0; i < jobs_.size(); ++i) {
                const Job& job = jobs_[i];
                if (i == index || job.give_rate > best_rate) continue;
                if (std::any_of(out.begin(), out.end(),
                                [i](const Shrink& each) { return each.job == i; }))
                    continue;
                const double here = value(job, job.size);
                for (const Option& option : job.options) {
                    if (option.size >= job.size) break;
                    const int freed = job.size - option.size;
                    const double harm = loss(here, option);
                    const double per_gpu = harm / std::min(freed, missing);
                    if (per_gpu > best_rate || (best && per_gpu == best_rate && i == best->job))
                        continue;
                    best = Shrink{i, option.size, freed, harm};
                    best_rate = per_gpu;
                }
            }
            if (!best) return {};
            missing -= best->freed;
            limit -= best->harm;
            out.push_back(*best);
        }
        return out;
    }

    // --- 4. the plan

    Plan decisions() const {
        Plan plan;
        for (const bool giving : {true, false}) {
            for (const Job& job : jobs_) {
                if (job.options.empty()) continue;
                const int gpus = job.view->running || job.placed ? job.size : job.least();
                const bool gives = job.view->running && gpus < job.view->current;
                if (gpus == job.view->current || gives != giving) continue;
                plan.decisions.push_back({job.view->id, gpus, reason(job, gpus)});
            }
        }
        return plan;
    }

    // Why, without the sizes themselves, which whoever shows it knows.
    std::string reason(const Job& job, int gpus) const {
        const auto amount = [&](double value) {
            return values_.amount(*job.view, value, horizon_s_);
        };
        const std::string unit = values_.unit(horizon_s_);
        if (job.view->running && gpus < job.view->current && job.gives_to != no_job) {
            const Job& other = jobs_[job.gives_to];
            const std::string to = "job " + std::to_string(other.view->id);
            if (job.for_minimum) return to + " waits for its least, " + gpus_text(other.least());
            return to + " gains more with them, here it costs " +
                   amount(job.stay_value - value(job, gpus)) + unit;
        }
        if (!job.view->running && !job.placed)
            return "its least, to start as soon as that many are free";
        if (!job.known) {
            return "up to the " + std::to_string(job.view->requested) +
                   " requested, its progress is not known yet";
        }
        const std::string instead =
            job.view->running ? " instead of " + amount(job.stay_value) : "";
        return amount(value(job, gpus)) + unit + instead;
    }

    const ClusterView& cluster_;
    const SizeValues& values_;
    double horizon_s_;
    NodePacking nodes_;
    std::vector<std::vector<Option>> options_;  // as in cluster_.jobs
    std::vector<Job> jobs_;                     // as in cluster_.jobs
    std::size_t first_blocked_ = 0;             // the first waiting job that does not fit
    bool frozen_ = false;                       // and that waits only for cooldowns
};

}  // namespace

Plan plan_sizes(const ClusterView& cluster, const SizeValues& values) {
    return Planner(cluster, values).plan();
}

}  // namespace sluice
