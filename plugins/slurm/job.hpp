// SPDX-License-Identifier: GPL-2.0-or-later
//
// What Sluice reads from a job record and writes to it, under the job lock.
#pragma once

#include <optional>
#include <string>

#include "common/base/result.hpp"
#include "common/jobspec/jobspec.hpp"
#include "common/report/summary.hpp"
#include "plugins/slurm/slurm.hpp"

namespace sluice::slurm {

/// Nothing where the job has no --train-* option (or, in a record written by an older controller, a
/// broken one).
std::optional<JobSpec> job_spec(const job_record_t* job);

/// The job's summary; an empty one where the field is ours to write and holds none yet, nothing
/// where another tool owns it.
std::optional<Summary> job_summary(const job_record_t* job);
/// Writes it back, where may_write_summary() says so.
void set_job_summary(job_record_t* job, const Summary& summary);

}  // namespace sluice::slurm
