// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <sys/types.h>

#include <string>

namespace sluice {

/// The file that a job makes to say that its checkpoint is written; its path is in the job's
/// environment as SLUICE_CHECKPOINT_DONE. One a run, so that an answer of the run before is none.
inline constexpr const char* answer_variable = "SLUICE_CHECKPOINT_DONE";

/// In a folder of the user's own that nobody else can write to or prepare: /tmp/sluice-UID, or,
/// where somebody else has that name, a new one. Made where it is missing; "" where that cannot be.
std::string answer_path(uid_t user, const std::string& job, const std::string& restarts);

}  // namespace sluice
