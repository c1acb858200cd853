// SPDX-License-Identifier: GPL-2.0-or-later
//
// slurmctld's facts and what is tracked, as the views that a policy reads.
#pragma once

#include <cstdint>
#include <ctime>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "common/allocator/policy.hpp"
#include "common/base/config.hpp"
#include "common/model/run_history.hpp"
#include "common/model/step_time.hpp"
#include "plugins/job_submit/tracker.hpp"
#include "plugins/slurm/controller.hpp"

namespace sluice::slurm {

/// What earlier jobs have left.
struct Experience {
    const RunHistory& runs;
    /// Step times of a user's model on a type of GPU; null: none measured.
    std::function<const StepTimeModel*(std::uint32_t user, const std::string& model,
                                       const std::string& gpu_type)>
        steps;
};

/// The view of one partition: its nodes, its jobs in order of service (running by start, then
/// pending by priority), and whatever jobs of other partitions hold on its nodes, as jobs that
/// cannot be changed. A job that has not shown its curve or its speed yet is taken to do as the
/// nearest earlier run of its model did.
ClusterView partition_view(const ClusterFacts& facts, const PartitionFacts& partition,
                           const std::map<std::uint32_t, TrackedJob>& tracked,
                           const Experience& experience, const Config& config, std::time_t now);

}  // namespace sluice::slurm
