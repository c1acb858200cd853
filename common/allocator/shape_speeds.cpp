// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/allocator/shape_speeds.hpp"

#include <algorithm>
#include <set>

namespace sluice {
namespace {

constexpr std::size_t few_sizes = 16;
constexpr double not_less = 0.01;  ///< of a speed, within which fewer GPUs do as well

bool legal(const JobView& job, const StepPlacement& placement) {
    if (!std::binary_search(job.sizes.begin(), job.sizes.end(), placement.gpus)) return false;
    // who trains at an unknown speed gets no more than was asked for
    if (!job.work && placement.gpus > std::max(job.requested, job.sizes.front())) return false;
    return job.node_count == 0 || (placement.nodes == job.node_count &&
                                   placement.most_on_node * placement.nodes == placement.gpus);
}

std::string reason(const JobView& job, int gpus) {
    if (!job.running) return "gains most from these GPUs";
    if (gpus > job.current) return "gains more than others";
    return gpus < job.current ? "others gain more" : "is faster there";
}

/// Without those that fewer GPUs on no more nodes match. O(S (G + N)) at worst: they are kept by
/// what they have to beat.
std::vector<ShapeSpeed> useful(const std::vector<ShapeSpeed>& speeds,
                               const std::vector<Shape>& shapes) {
    std::vector<ShapeSpeed> kept;
    for (const ShapeSpeed& each : speeds) {
        const Shape& shape = shapes[each.shape];
        const auto matches = [&](const ShapeSpeed& other) {
            const Shape& than = shapes[other.shape];
            if (other.shape == each.shape || than.type != shape.type ||
                than.placement.gpus > shape.placement.gpus ||
                than.placement.nodes > shape.placement.nodes ||
                other.speed * (1 + not_less) < each.speed)
                return false;
            // of two that match each other the faster stays, then the first
            return other.speed > each.speed || other.shape < each.shape ||
                   than.placement.gpus < shape.placement.gpus ||
                   than.placement.nodes < shape.placement.nodes;
        };
        if (shape.placement.nodes == 1 || std::none_of(speeds.begin(), speeds.end(), matches))
            kept.push_back(each);
    }
    return kept;
}

}  // namespace

ShapeSpeeds::ShapeSpeeds(const ClusterView& cluster) : nodes_(cluster.nodes) {
    int most = 1;
    std::set<int> few;  // sizes of jobs that have no others nearby
    for (const JobView& job : cluster.jobs) {
        most = std::max(most, job.sizes.back());
        if (job.sizes.size() <= few_sizes) few.insert(job.sizes.begin(), job.sizes.end());
        if (!job.running || job.resizable) continue;
        for (const NodeShare& share : job.held) nodes_[share.node].gpus -= share.gpus;
    }
    shapes_ = shapes_of(nodes_, most, few);
    for (const JobView& job : cluster.jobs)
        if (!job.running || job.resizable) jobs_.push_back(speeds_of(job));
}

ShapeSpeeds::Job ShapeSpeeds::speeds_of(const JobView& view) const {
    Job job;
    job.view = &view;
    const auto rate = [&](const StepPlacement& placement, std::size_t type) {
        return view.work ? view.work->rate(placement, type) : placement.gpus;
    };
    std::vector<ShapeSpeed> speeds;
    for (std::size_t shape = 0; shape < shapes_.size(); ++shape) {
        const StepPlacement& placement = shapes_[shape].placement;
        if (!legal(view, placement)) continue;
        const double found = rate(placement, shapes_[shape].type);
        if (found > 0) speeds.push_back({shape, found});
    }
    // one GPU, or the fewest it takes, where these are slowest
    for (const ShapeSpeed& each : speeds) {
        const double of_one = each.speed / gpus_of(each);
        if (job.alone_rate == 0 || (gpus_of(each) == view.sizes.front() && of_one < job.alone_rate))
            job.alone_rate = of_one;
    }
    if (!view.held.empty()) {
        std::vector<int> gpus;
        for (const NodeShare& share : view.held) gpus.push_back(share.gpus);
        job.held_speed = rate(step_placement(gpus, 1), held_type(job));
        if (job.alone_rate == 0) job.alone_rate = job.held_speed / view.current;
        if (job.alone_rate > 0) job.held_speed /= job.alone_rate;
    }
    job.speeds = useful(speeds, shapes_);
    for (ShapeSpeed& each : job.speeds) each.speed /= job.alone_rate;
    return job;
}

Plan ShapeSpeeds::plan_of(const std::vector<PackingResult>& results) const {
    Plan plan;
    std::vector<Decision> takes;
    for (std::size_t i = 0; i < results.size(); ++i) {
        const JobView& job = *jobs_[i].view;
        const PackingResult& result = results[i];
        if (result.stays) continue;
        const int gpus = sluice::gpus_of(result.shares);
        if (gpus == 0 && !job.running) continue;
        Decision decision{job.id, gpus, gpus == 0 ? "others gain more" : reason(job, gpus),
                          result.shares};
        // who gives up GPUs comes first
        (job.running && gpus < job.current ? plan.decisions : takes).push_back(std::move(decision));
    }
    plan.decisions.insert(plan.decisions.end(), std::make_move_iterator(takes.begin()),
                          std::make_move_iterator(takes.end()));
    return plan;
}

}  // namespace sluice
