// SPDX-License-Identifier: GPL-2.0-or-later
//
// The files by which a job speaks to its agent. Their paths are in the job's environment.
#pragma once

#include <sys/types.h>

#include <string>

namespace sluice {

/// The file that a job makes to say that its checkpoint is written. One a run, so that an answer of
/// the run before is none.
inline constexpr const char* answer_variable = "SLUICE_CHECKPOINT_DONE";
/// The file to which a job appends losses, one JSON object a line: {"step":100,"loss":2.31}. One a
/// job, so that a run that is started anew on the same node goes on with the curve.
inline constexpr const char* emit_variable = "SLUICE_EMIT";

/// A folder of the user's own that nobody else can write to or prepare: /tmp/sluice-UID, or, where
/// somebody else has that name, a new one. Made where it is missing; "" where that cannot be.
std::string job_files_folder(uid_t user);

/// What the files of a job are called by: "42-1f3a9c07". Its id alone is no name: a machine may be
/// a node of several clusters, told apart by ClusterName and the place of slurm.conf.
std::string job_name_for_files(const std::string& job, const std::string& cluster,
                               const std::string& conf);

std::string answer_path(const std::string& folder, const std::string& job,
                        const std::string& restarts);

/// Makes the file in the folder; "" where that cannot be. With `anew`, in a job's first run, what
/// is there is an earlier job's of the same id and goes. Removes those of other jobs that nobody
/// has written to for `other_days`.
std::string make_emit_file(const std::string& folder, const std::string& job, bool anew,
                           int other_days = 7);

}  // namespace sluice
