// SPDX-License-Identifier: GPL-2.0-or-later
//
// GPU accounting from sacct. Input is the text of ONE call (never one call a job):
//     SLURM_TIME_FORMAT=%s sacct -X -D -P --noconvert --delimiter=D --format=<sacct_format()>
// all records of a job (requeued, resized, completed) are read and summed: GPU-seconds = sum of
// GPUs x elapsed over its records. GPUs come from AllocTRES: gres/gpu=N when it is there, else the
// sum of the typed gres/gpu:TYPE=N; never both.
//
// What users wrote cannot shift columns: JobName is the last one and takes the rest of its line,
// and the line ends in it are recognised, because no user knows D when it is made of random
// characters (as `sluice report` does). D is read from the header line, so a file made with any
// other D, also the usual "|", is read too; there a name with a line end can pose as a record.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
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
    std::string state;        ///< of the last record, without " by UID"
    std::int64_t submit = 0;  ///< Unix seconds, 0 unknown
    std::int64_t wait_s = 0;  ///< eligible to first start; to `now` for a job that waits
    std::int64_t gpu_seconds = 0;
    std::int64_t elapsed_s = 0;
    int records = 0;
    int max_gpus = 0;
    std::optional<Summary> summary;           ///< from AdminComment, of the last record with one
    std::optional<double> loss_per_gpu_hour;  ///< (first - last loss of the curve) / GPU-hours
};

struct Report {
    std::vector<JobReport> jobs;  ///< by id
    std::int64_t gpu_seconds = 0;
    /// Whether any record names gres/gpu. If not, AccountingStorageTRES may lack it: the table says
    /// so.
    bool tres_has_gpus = false;
    bool has_tres = false;          ///< whether any record says what was allocated: it has started
    std::size_t skipped_lines = 0;  ///< malformed, each named in `warnings` (at most 10)
    std::vector<std::string> warnings;
};

/// `now` in Unix seconds: the end of records that still run ("Unknown") and have no ElapsedRaw.
/// Times are Unix seconds or YYYY-MM-DDTHH:MM:SS, read as UTC: only differences count. bad_input
/// where the header line is not that of sacct_format().
Result<Report> read_sacct(std::string_view text, std::int64_t now);

/// Sorts ids of jobs as people count: "9", "19", "19_2", "19_10".
std::pair<std::vector<std::int64_t>, std::string> natural_order(const std::string& id);

/// A time as sacct prints it: Unix seconds, or YYYY-MM-DDTHH:MM:SS, read as UTC; 0 for "Unknown",
/// "None" and "". Nothing for what is no time.
std::optional<std::int64_t> parse_sacct_time(std::string_view text);

/// Mean over the listed nodes of the bandwidth of the chosen set to that of stock Slurm's; nothing
/// where stock was not asked.
std::optional<double> placement_ratio(const Summary& summary);

/// For people: aligned columns, times as H:MM:SS, a line of totals, notes.
std::string to_table(const Report& report);
std::string to_json(const Report& report);
/// Comma-separated with a header line; texts are quoted as in RFC 4180, and a text that a
/// spreadsheet would take for a formula gets a "'" before it.
std::string to_csv(const Report& report);

}  // namespace sluice
