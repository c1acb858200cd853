// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/allocator/las.hpp"

#include <algorithm>
#include <numeric>

#include "common/allocator/in_order.hpp"

namespace sluice {

Plan LasPolicy::plan(const ClusterView& cluster) const {
    std::vector<std::size_t> order(cluster.jobs.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_partition(order.begin(), order.end(), [&](std::size_t job) {
        return cluster.jobs[job].attained_gpu_s < threshold_gpu_s_;
    });
    return run_in_order(cluster, order, "has had less than others", "others have had less");
}

}  // namespace sluice
