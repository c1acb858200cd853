// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/allocator/optimus.hpp"

#include <algorithm>
#include <limits>
#include <queue>

#include "common/allocator/worst_fit.hpp"

namespace sluice {

Plan OptimusPolicy::plan(const ClusterView& cluster) const {
    const std::vector<JobView>& jobs = cluster.jobs;
    WorstFit nodes(cluster.nodes);
    int left = nodes.free_gpus();
    const int gpus_of_node = gpus_of_largest(cluster.nodes);
    const auto remaining_s = [&](const JobView& job, int gpus) {
        const double rate = job.work->rate(packed_placement(gpus_of_node, gpus), 0);
        return rate > 0 ? job.work->remaining() / rate : std::numeric_limits<double>::infinity();
    };

    std::vector<int> gpus(jobs.size());
    struct Step {
        double gain;
        std::size_t job;
        int size;  ///< that it would have
        bool operator<(const Step& other) const {
            return gain != other.gain ? gain < other.gain : job > other.job;
        }
    };
    std::priority_queue<Step> steps;
    const auto offer = [&](std::size_t job) {
        const std::vector<int>& sizes = jobs[job].sizes;
        const auto next = std::upper_bound(sizes.begin(), sizes.end(), gpus[job]);
        if (next == sizes.end()) return;
        const double gain = (remaining_s(jobs[job], gpus[job]) - remaining_s(jobs[job], *next)) /
                            (*next - gpus[job]);
        if (gain > 0) steps.push({gain, job, *next});
    };
    for (std::size_t job = 0; job < jobs.size(); ++job) {
        const int least = jobs[job].work ? jobs[job].sizes.front() : jobs[job].current;
        if (least > left) continue;
        gpus[job] = least;
        left -= least;
    }
    for (std::size_t job = 0; job < jobs.size(); ++job)
        if (jobs[job].work && gpus[job] > 0) offer(job);
    while (left > 0 && !steps.empty()) {
        const auto [gain, job, size] = steps.top();
        steps.pop();
        if (size - gpus[job] > left) continue;
        left -= size - gpus[job];
        gpus[job] = size;
        offer(job);
    }

    Plan plan;
    std::vector<std::size_t> anew;
    for (std::size_t job = 0; job < jobs.size(); ++job) {
        const int now = jobs[job].running ? jobs[job].current : 0;
        if (gpus[job] == now) {
            if (now > 0) nodes.take(jobs[job].held);
            continue;
        }
        if (gpus[job] == 0)
            plan.decisions.push_back({jobs[job].id, 0, "too few GPUs for all", {}});
        else
            anew.push_back(job);
    }
    std::stable_sort(anew.begin(), anew.end(),
                     [&](std::size_t a, std::size_t b) { return gpus[a] < gpus[b]; });
    for (const std::size_t job : anew) {
        std::vector<NodeShare> shares = nodes.place(gpus[job]);
        if (shares.empty()) continue;
        plan.decisions.push_back(
            {jobs[job].id, gpus[job], "shortens the remaining times most", std::move(shares)});
    }
    return plan;
}

}  // namespace sluice
