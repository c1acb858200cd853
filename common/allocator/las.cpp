// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/allocator/las.hpp"

#include <algorithm>
#include <numeric>

#include "common/allocator/worst_fit.hpp"

namespace sluice {

Plan LasPolicy::plan(const ClusterView& cluster) const {
    const std::vector<JobView>& jobs = cluster.jobs;
    std::vector<std::size_t> order(jobs.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return (jobs[a].attained_gpu_s >= threshold_gpu_s_) <
               (jobs[b].attained_gpu_s >= threshold_gpu_s_);
    });
    int left = 0;
    for (const NodeView& node : cluster.nodes) left += node.gpus;
    std::vector<bool> runs(jobs.size());
    for (const std::size_t job : order) {
        runs[job] = jobs[job].requested <= left;
        if (runs[job]) left -= jobs[job].requested;
    }

    Plan plan;
    WorstFit nodes(cluster.nodes);
    for (std::size_t job = 0; job < jobs.size(); ++job) {
        if (!jobs[job].running) continue;
        if (runs[job])
            nodes.take(jobs[job].held);
        else
            plan.decisions.push_back({jobs[job].id, 0, "others have had less", {}});
    }
    for (const std::size_t job : order) {
        if (!runs[job] || jobs[job].running) continue;
        std::vector<NodeShare> shares = nodes.place(jobs[job].requested);
        if (shares.empty()) continue;
        plan.decisions.push_back(
            {jobs[job].id, jobs[job].requested, "has had less than others", std::move(shares)});
    }
    return plan;
}

}  // namespace sluice
