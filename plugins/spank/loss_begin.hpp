// SPDX-License-Identifier: GPL-2.0-or-later
//
// Where a job's losses come from, and from which point on they are its own. Both are settled before
// the job's script runs, for it may write its first losses, leave its folder or redirect its output
// with its first line. The agent is told by its environment.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "common/jobspec/jobspec.hpp"
#include "common/samples/log_follower.hpp"
#include "common/samples/loss_feed.hpp"

namespace sluice::spank {

/// The agent's variables: the file that the script's output goes to, the folder that it begins in,
/// and the mark of loss_begin(), as text.
inline constexpr const char* output_variable = "SLUICE_JOB_OUTPUT";
inline constexpr const char* folder_variable = "SLUICE_JOB_FOLDER";
inline constexpr const char* begin_variable = "SLUICE_LOSS_BEGIN";

/// The value of a variable of the job; empty where it has none.
using Environment = std::function<std::string(const char* name)>;

/// --train-loss with its patterns, relative to `folder`, or `output` where there is none.
LossSource loss_source(const JobSpec& spec, const Environment& environment,
                       const std::string& output, const std::string& folder);

/// As the file is now. What a log holds before the job's first line is of other jobs; after a
/// requeue the curve is this job's own, and all of it is read, as other sources always are.
LogMark loss_begin(const LossSource& source, const Environment& environment);

/// "DEVICE:INODE:SIZE:TAIL", the tail in hexadecimal digits.
std::string to_text(const LogMark& mark);
/// The beginning of the file where the text is none of these.
LogMark parse_log_mark(std::string_view text);

}  // namespace sluice::spank
