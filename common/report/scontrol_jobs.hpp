// SPDX-License-Identifier: GPL-2.0-or-later
//
// Jobs as `scontrol -o show job` prints them: one line a job, "Name=value" separated by blanks,
// with nothing quoted. What users write (JobName, Command, WorkDir, Comment, the paths of the
// output) may hold blanks, line ends and text that looks like other fields. So:
//   - a line that does not begin with "JobId=" belongs to the job before;
//   - fields that Slurm writes are looked for before the last WorkDir= and from behind, past
//     whatever JobName holds;
//   - AdminComment is the one that stands after a WorkDir= and holds a summary. Where several
//     different ones do, the job's texts imitate one, and none is believed.
// A line end within such a text can make a user's job look like several. Whoever prints more than
// one job has to ask again for each id that comes twice.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.hpp"
#include "common/report/summary.hpp"

namespace sluice {

struct ControlJob {
    std::string id;     ///< "42"; for a task of an array its own number, too
    std::string array;  ///< "40_3" or "40_[5-9]" for tasks of an array, else empty
    std::string state;  ///< "RUNNING"
    int restarts = 0;
    int gpus = 0;                         ///< held; of a waiting job what it asks for
    std::string nodes;                    ///< "n[1-2]", empty while it waits
    Result<Summary> summary = Summary();  ///< not_found where it is no job of Sluice
};

/// In the order of the text; what stands before the first job is skipped.
std::vector<ControlJob> read_scontrol(std::string_view text);

}  // namespace sluice
