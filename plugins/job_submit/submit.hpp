// SPDX-License-Identifier: GPL-2.0-or-later
//
// A job as it is submitted: its --train-* options are checked again (they may have come past the
// SPANK plugin), and what they need is filled in.
#pragma once

#include <string>

#include "common/base/result.hpp"
#include "plugins/slurm/slurm.hpp"

namespace sluice::slurm {

/// Changes nothing for a job without --train-* options. bad_input names option, value and legal
/// form. `mark` is false where sluice.conf says SummaryField=none. `hint`, lines on what will have
/// no effect, is for the user of a job that is accepted.
Status check_submission(job_desc_msg_t* request, bool mark, std::string& hint);

}  // namespace sluice::slurm
