// SPDX-License-Identifier: GPL-2.0-or-later
//
// slurmctld's facts and what is tracked, as the views that a policy reads.
#pragma once

#include <ctime>
#include <vector>

#include "common/allocator/policy.hpp"
#include "common/base/config.hpp"
#include "plugins/job_submit/tracker.hpp"
#include "plugins/slurm/controller.hpp"

namespace sluice::slurm {

/// The view of one partition: its nodes, its jobs in order of service (running by start, then
/// pending by priority), and whatever jobs of other partitions hold on its nodes, as jobs that
/// cannot be changed.
ClusterView partition_view(const ClusterFacts& facts, const PartitionFacts& partition,
                           const std::map<std::uint32_t, TrackedJob>& tracked, const Config& config,
                           std::time_t now);

}  // namespace sluice::slurm
