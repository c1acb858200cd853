// SPDX-License-Identifier: GPL-2.0-or-later
//
// What the agent of a job tells the controller (doc/formats/record-v1.txt): numbers only, at most
// max_bytes, one line
//
//     sluice1:{"r":0,"k":1200,"l":2.31,"n":87,"g":4,"v":3.9,"b":[...],"c":[...],"s":0.01,...}
//
// carried in the comment field of a job update. The controller trusts nothing in it: every number
// is checked for range, and a user can lie only about the user's own job.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/result.hpp"
#include "common/model/loss_curve.hpp"

namespace sluice {

struct Record {
    static constexpr std::string_view prefix = "sluice1:";
    static constexpr std::size_t max_bytes = 1024;

    int restarts = 0;                        ///< SLURM_RESTART_COUNT the numbers belong to
    std::optional<std::int64_t> step;        ///< last step seen
    std::optional<double> loss;              ///< last loss seen; may be nan or infinite
    std::int64_t points = 0;                 ///< 0: no loss found
    std::optional<LossCurve> curve;          ///< nothing: cannot say yet
    std::optional<double> steps_per_second;  ///< measured in this run at `gpus`
    int gpus = 0;                            ///< GPUs that the job holds
    bool checkpointed = false;  ///< the job says its checkpoint is written: it may be requeued now
    bool ended = false;         ///< the run has ended: the last of its records
    std::string no_loss;  ///< where points is 0: the file and the keys seen, bounded, printable
};

/// Least time between the records of a run when `sent` of them were sent: 5 s after the first, then
/// twice as long each time up to `interval`, so that of a job that has just begun more is known
/// soon. The last record of a run waits for nothing.
constexpr std::chrono::seconds record_pause(std::chrono::seconds interval, int sent) {
    constexpr int most_doublings = 16;  // 5 s * 2^16 are days
    const int doublings = sent < 1 ? 0 : sent - 1 < most_doublings ? sent - 1 : most_doublings;
    const std::chrono::seconds pause = std::chrono::seconds(5) * (1 << doublings);
    return pause < interval ? pause : interval;
}

/// no_loss is written only where points is 0, the curve only where it is not: that keeps any record
/// within max_bytes.
std::string to_text(const Record& record);

/// bad_input that names the member, its value and the legal range. Unknown members are ignored (a
/// newer agent).
Result<Record> parse_record(std::string_view text);

}  // namespace sluice
