// SPDX-License-Identifier: GPL-2.0-or-later
//
// GPU accounting from sacct. Input is the text of ONE call (never one call a job):
//     sacct -D -P --noconvert --format=<sacct_format()>
// all records of a job (requeued, resized, completed) are read and summed: GPU-seconds = sum of
// GPUs x elapsed over its records. GPUs come from AllocTRES: gres/gpu=N when it is there, else the
// sum of the typed gres/gpu:TYPE=N; never both.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.hpp"
#include "common/report/summary.hpp"

namespace sluice {

/// The --format list that read_sacct() expects.
std::string sacct_format();

struct JobReport {
    std::string id;  ///< "42", "42_3"
    std::string user;
    std::string name;
    std::string state;        ///< of the last record
    std::int64_t submit = 0;  ///< Unix seconds, 0 unknown
    std::int64_t wait_s = 0;  ///< eligible to first start
    std::int64_t gpu_seconds = 0;
    std::int64_t elapsed_s = 0;
    int records = 0;
    int max_gpus = 0;
    std::optional<Summary> summary;           ///< from AdminComment
    std::optional<double> loss_per_gpu_hour;  ///< (first - last loss of the curve) / GPU-hours
};

struct Report {
    std::vector<JobReport> jobs;  ///< by id
    std::int64_t gpu_seconds = 0;
    bool tres_has_gpus = false;  ///< false: AccountingStorageTRES lacks gres/gpu; the table says so
    std::size_t skipped_lines = 0;  ///< malformed, each named in `warnings` (at most 10)
    std::vector<std::string> warnings;
};

/// `now`: the end of records that still run ("Unknown").
Result<Report> read_sacct(std::string_view text, std::int64_t now);

std::string to_table(const Report& report);
std::string to_json(const Report& report);
std::string to_csv(const Report& report);

}  // namespace sluice
