// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/allocator/sluice.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "common/allocator/shape_speeds.hpp"
#include "common/allocator/size_plan.hpp"
#include "common/base/text.hpp"

namespace sluice {
namespace {

constexpr double least_own_value = 0.02;  ///< of w
constexpr double least_service_s = 120;   ///< GPU-seconds expected of a job of unknown size
constexpr double usual_restart_s = 30;
constexpr double restarts_kept = 20;  ///< that who has waited too long stays

/// GPUs of the slowest type that one of each type does the work of: over jobs, of the speed of the
/// fewest GPUs, the geometric mean.
std::vector<double> capabilities(const ShapeSpeeds& all) {
    std::vector<double> sums;
    std::vector<int> jobs;
    for (const ShapeSpeeds::Job& job : all.jobs()) {
        for (const ShapeSpeed& each : job.speeds) {
            const std::size_t type = all.shapes()[each.shape].type;
            if (type >= sums.size()) {
                sums.resize(type + 1);
                jobs.resize(type + 1);
            }
            if (all.gpus_of(each) != job.view->sizes.front()) continue;
            sums[type] += std::log(each.speed / all.gpus_of(each));
            ++jobs[type];
        }
    }
    for (std::size_t type = 0; type < sums.size(); ++type)
        sums[type] = jobs[type] == 0 ? 1 : std::exp(sums[type] / jobs[type]);
    return sums;
}

/// w
double weight(const ShapeSpeeds& all, const ShapeSpeeds::Job& job,
              const std::vector<double>& capability, const SluiceOptions& options) {
    double cost = 0;  // of a unit of work where a GPU-second costs as much as one of the job's
    double speed = 1;
    for (const ShapeSpeed& each : job.speeds) {
        const double here =
            (1 + capability[all.shapes()[each.shape].type] * all.gpus_of(each)) / each.speed;
        if (cost > 0 && here >= cost) continue;
        cost = here;
        speed = std::max(1.0, each.speed);
    }
    std::vector<double> left{std::max(least_service_s, job.view->attained_gpu_s)};
    if (job.view->work) {
        left = job.view->work->remaining_quantiles();
        for (double& each : left) each /= job.alone_rate;
    }
    const double faster = std::pow(speed, options.speed_power);
    double sum = 0;
    for (const double seconds : left)
        sum += std::pow(seconds / faster + options.size_floor_s, -options.size_power);
    return cost / 2 * sum / static_cast<double>(left.size()) *
           std::pow(1 + job.view->age_s / options.age_scale_s, options.age_power);
}

/// A second on a size is worth w S, on the shape of that size that is fastest.
class WeightedSpeeds : public SizeValues {
  public:
    WeightedSpeeds(const ClusterView& cluster, const SluiceOptions& options) : all_(cluster) {
        const std::vector<double> capability = capabilities(all_);
        for (const ShapeSpeeds::Job& job : all_.jobs())
            if (job.view->work && job.alone_rate > 0)
                known_[job.view->id] = {&job, weight(all_, job, capability, options)};
    }

    std::optional<double> value(const JobView& job, int size, double seconds) const override {
        const auto found = known_.find(job.id);
        if (found == known_.end()) return std::nullopt;
        return found->second.weight * speed(*found->second.job, size) * std::max(0.0, seconds);
    }
    std::string amount(const JobView& job, double value, double seconds) const override {
        return format_fixed(value / known_.at(job.id).weight / seconds, 2);
    }
    std::string unit(double) const override { return " times the speed of one GPU"; }

  private:
    struct Known {
        const ShapeSpeeds::Job* job = nullptr;
        double weight = 0;
    };

    double speed(const ShapeSpeeds::Job& job, int size) const {
        if (job.view->running && size == job.view->current) return job.held_speed;
        double best = 0;
        for (const ShapeSpeed& each : job.speeds)
            if (all_.gpus_of(each) <= size) best = std::max(best, each.speed);
        return best;
    }

    ShapeSpeeds all_;
    std::map<std::uint32_t, Known> known_;
};

}  // namespace

Plan SluicePolicy::plan(const ClusterView& cluster) const {
    if (cluster.jobs.empty()) return {};
    if (!cluster.options.may_stop) return plan_sizes(cluster, WeightedSpeeds(cluster, options_));
    const ShapeSpeeds all(cluster);
    std::vector<PackingJob> jobs(all.jobs().size());
    std::vector<double> weights(jobs.size());
    const std::vector<double> capability = capabilities(all);

    // what a second on each shape is worth, to find what a second of a GPU costs
    for (std::size_t i = 0; i < jobs.size(); ++i) {
        const ShapeSpeeds::Job& job = all.jobs()[i];
        weights[i] = weight(all, job, capability, options_);
        for (const ShapeSpeed& each : job.speeds)
            jobs[i].offers.push_back({each.shape, weights[i] * each.speed});
    }
    const std::vector<double> price = clearing_prices(all.nodes(), all.shapes(), jobs);

    for (std::size_t i = 0; i < jobs.size(); ++i) {
        const ShapeSpeeds::Job& job = all.jobs()[i];
        const JobView& view = *job.view;
        const auto cost = [&](const PackingOffer& offer) {
            const Shape& shape = all.shapes()[offer.shape];
            return price[shape.type] * shape.placement.gpus;
        };
        // seconds that are lost in each until the next change, at about sqrt(restart) between them
        const double restart =
            std::sqrt(view.restart_cost_s * usual_restart_s) / options_.horizon_s / 2;
        double own_value = least_own_value * weights[i];
        for (const PackingOffer& offer : jobs[i].offers)
            own_value = std::max(own_value, offer.value - cost(offer));
        for (PackingOffer& offer : jobs[i].offers)
            offer.value -= restart * (own_value + cost(offer));
        if (!view.held.empty()) {
            jobs[i].held = view.held;
            jobs[i].stay_value = weights[i] * job.held_speed +
                                 restart * (own_value + price[all.held_type(job)] * view.current);
        }
        jobs[i].urgent =
            view.waited_s > options_.longest_wait_s &&
            (!view.running || view.since_resize_s < restarts_kept * view.restart_cost_s);
    }
    std::vector<PackingResult> results =
        search_packing(all.nodes(), all.shapes(), jobs, options_.steps);
    bool somebody_waits = false;
    for (std::size_t i = 0; i < jobs.size(); ++i)
        somebody_waits =
            somebody_waits || (jobs[i].urgent && results[i].shares.empty() &&
                               all.jobs()[i].view->waited_s > 2 * options_.longest_wait_s);
    if (somebody_waits) {
        // who cannot be stopped again would keep the GPUs from it
        for (std::size_t i = 0; i < jobs.size(); ++i)
            if (!jobs[i].urgent && !all.jobs()[i].view->resizable) jobs[i].offers.clear();
        results = search_packing(all.nodes(), all.shapes(), jobs, options_.steps);
    }
    return all.plan_of(results);
}

}  // namespace sluice
