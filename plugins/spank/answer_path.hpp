// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <sys/types.h>

#include <string>

namespace sluice {

/// The file that a job makes to say that its checkpoint is written; its path is in the job's
/// environment as SLUICE_CHECKPOINT_DONE. One a run, so that an answer of the run before is none.
inline constexpr const char* answer_variable = "SLUICE_CHECKPOINT_DONE";
inline std::string answer_path(const std::string& directory, uid_t user, const std::string& job,
                               const std::string& restarts) {
    return directory + "/sluice-checkpoint-done." + std::to_string(user) + "." + job + "." +
           restarts;
}

}  // namespace sluice
