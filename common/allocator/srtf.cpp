// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/allocator/srtf.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "common/allocator/in_order.hpp"

namespace sluice {

Plan SrtfPolicy::plan(const ClusterView& cluster) const {
    std::vector<double> remaining_s(cluster.jobs.size(), std::numeric_limits<double>::infinity());
    const int gpus_of_node = gpus_of_largest(cluster.nodes);
    for (std::size_t i = 0; i < cluster.jobs.size(); ++i) {
        const JobView& job = cluster.jobs[i];
        if (!job.work) continue;
        const double rate = job.work->rate(packed_placement(gpus_of_node, job.requested), 0);
        if (rate > 0) remaining_s[i] = job.work->remaining() / rate;
    }
    std::vector<std::size_t> order(cluster.jobs.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return remaining_s[a] < remaining_s[b]; });
    return run_in_order(cluster, order, "is over soon", "others are over sooner");
}

}  // namespace sluice
