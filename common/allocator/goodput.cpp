// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/allocator/goodput.hpp"

#include <algorithm>
#include <cmath>

#include "common/allocator/shape_speeds.hpp"

namespace sluice {
namespace {

constexpr double of_nothing = 1e-3;  ///< the speed-up of a job that has no GPU, as Pollux sets it

/// On the fewest nodes that so many GPUs take: the best speed with no more than these.
double fair_speed(const ShapeSpeeds& all, const ShapeSpeeds::Job& job, int gpus) {
    double best = 0;
    for (const ShapeSpeed& each : job.speeds)
        if (all.gpus_of(each) <= gpus || best == 0) best = std::max(best, each.speed);
    return best;
}

}  // namespace

Plan GoodputPolicy::plan(const ClusterView& cluster) const {
    if (cluster.jobs.empty()) return {};
    const ShapeSpeeds all(cluster);
    int gpus = 0;
    for (const NodeView& node : all.nodes()) gpus += std::max(0, node.gpus);
    const int share = std::max(1, gpus / std::max(1, static_cast<int>(all.jobs().size())));
    std::vector<PackingJob> jobs;
    for (const ShapeSpeeds::Job& job : all.jobs()) {
        const JobView& view = *job.view;
        const double fair = fair_speed(all, job, share);
        const double moved = view.running || view.resizes > 0
                                 ? std::max(0.0, view.age_s - view.resizes * view.restart_cost_s) /
                                       (view.age_s + view.restart_cost_s)
                                 : 1;
        const auto value = [&](double speed) {
            return 1 / of_nothing - 1 / (speed / fair + of_nothing);
        };
        PackingJob one;
        for (const ShapeSpeed& each : job.speeds)
            one.offers.push_back({each.shape, value(each.speed * moved)});
        if (!view.held.empty()) {
            one.held = view.held;
            one.stay_value = value(job.held_speed);
        }
        jobs.push_back(std::move(one));
    }
    return all.plan_of(search_packing(all.nodes(), all.shapes(), jobs, steps_));
}

}  // namespace sluice
