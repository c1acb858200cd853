// SPDX-License-Identifier: GPL-2.0-or-later
//
// The jobs of a real site, from its accounting. Input is what
//
//     SLURM_TIME_FORMAT=%s sacct -a -X -D --parsable2 --noconvert
//     --format=<sacct_workload_format()>
//
// prints; the header says where the columns are, and others are not read. All records of a job
// (requeued, resized) are one: it comes when it was first submitted, has the GPUs of its first
// start, and runs so long there that it holds as many GPU-seconds as the records together.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.hpp"
#include "contrib/sim/workload.hpp"

namespace sluice::sim {

std::string sacct_workload_format();

constexpr std::size_t max_sacct_bytes = std::size_t{256} << 20;

struct SacctWorkload {
    /// With GPUs, that have run. By arrival, the first at 0; `application` is the number of the
    /// job.
    std::vector<WorkloadJob> jobs;
    // of these
    std::size_t requeued = 0;       ///< or resized: of several records
    std::size_t cut_short = 0;      ///< cancelled, failed or out of time: they end as they ended
    std::size_t still_running = 0;  ///< they end where they are
    // left out
    std::size_t without_gpus = 0;
    std::size_t never_started = 0;      ///< or for less than a second
    std::size_t unreadable = 0;         ///< lines
    std::vector<std::string> warnings;  ///< NAME, line, what was wrong; of ten lines at most
};

/// `name` stands in messages. bad_input where the header lacks a column, and where no job is left.
Result<SacctWorkload> read_sacct_workload(std::string_view text, const std::string& name);

}  // namespace sluice::sim
