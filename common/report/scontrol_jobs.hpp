// SPDX-License-Identifier: GPL-2.0-or-later
//
// Jobs as `scontrol -o show job` prints them: one line a job, "Name=value" separated by blanks,
// with nothing quoted. What users write (JobName, Command, WorkDir, Comment, the paths of the
// output) may hold blanks, line ends and text that looks like other fields. So:
//   - a line begins a job only if it begins with the JobId= of a job that is known to be there (the
//     column JobID of squeue, which no user can write into), and no line before did;
//   - fields that Slurm writes are looked for before the last WorkDir= and from behind, past
//     whatever JobName holds;
//   - AdminComment is the one that stands after a WorkDir= and holds a summary. Where several
//     different ones do, the job's texts imitate one, and none is believed.
// What is left: among several jobs, a line end in the name of one can pose as another. Ids for
// which that is possible are named; asked for alone, a job has nobody else's text around it.
#pragma once

#include <set>
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

struct ControlJobs {
    std::vector<ControlJob> jobs;    ///< in the order of the text, each id once
    std::set<std::string> doubtful;  ///< ids that begin more than one line, and those before them
};
ControlJobs read_scontrol(std::string_view text, const std::set<std::string>& ids);

}  // namespace sluice
