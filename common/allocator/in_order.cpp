// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/allocator/in_order.hpp"

#include "common/allocator/worst_fit.hpp"

namespace sluice {

Plan run_in_order(const ClusterView& cluster, const std::vector<std::size_t>& order,
                  const std::string& why_start, const std::string& why_stop) {
    const std::vector<JobView>& jobs = cluster.jobs;
    WorstFit nodes(cluster.nodes);
    int left = nodes.free_gpus();
    std::vector<bool> runs(jobs.size());
    for (const std::size_t job : order) {
        runs[job] = jobs[job].requested <= left;
        if (runs[job]) left -= jobs[job].requested;
    }

    Plan plan;
    for (std::size_t job = 0; job < jobs.size(); ++job) {
        if (!jobs[job].running) continue;
        if (runs[job])
            nodes.take(jobs[job].held);
        else
            plan.decisions.push_back({jobs[job].id, 0, why_stop});
    }
    for (const std::size_t job : order) {
        if (!runs[job] || jobs[job].running) continue;
        std::vector<NodeShare> shares = nodes.place(jobs[job].requested);
        if (shares.empty()) continue;
        plan.decisions.push_back({jobs[job].id, jobs[job].requested, why_start, std::move(shares)});
    }
    return plan;
}

}  // namespace sluice
