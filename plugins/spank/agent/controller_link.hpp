// SPDX-License-Identifier: GPL-2.0-or-later
//
// The agent's way to slurmctld, through Slurm's public API and as the job's user.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/result.hpp"

namespace sluice::agent {

/// Once a process.
void connect();

struct JobInfo {
    bool announced = false;  ///< the controller runs Sluice for this very job: records may be sent
    int gpus = 0;            ///< held in all
};
/// unreachable where slurmctld does not answer, not_found where it does not know the job.
Result<JobInfo> load_job(std::uint32_t id);

/// Sends a record in the comment field of a job update; only to a controller that has announced
/// itself.
///
/// slurmctld takes no update of a job that was cancelled or has run out of time. The `last` record
/// of a run then goes with the question whether the job could run: under a controller that knows
/// nothing of records that is a question and no more.
Status send_record(std::uint32_t id, const std::string& record, bool last);

}  // namespace sluice::agent
