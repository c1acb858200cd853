// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>
#include <vector>

#include "common/allocator/policy.hpp"

namespace sluice {

/// Jobs of fixed size in this order of `cluster.jobs`: each whose request fits what is left runs,
/// running ones that come too late give way, and nobody waits for a large job to fit. Who runs
/// stays where it is; new GPUs come from the nodes that have most free.
Plan run_in_order(const ClusterView& cluster, const std::vector<std::size_t>& order,
                  const std::string& why_start, const std::string& why_stop);

}  // namespace sluice
