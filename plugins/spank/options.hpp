// SPDX-License-Identifier: GPL-2.0-or-later
//
// The --train-* options in sbatch, salloc, srun and, as they arrive there, in slurmstepd.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "common/base/result.hpp"
#include "common/jobspec/jobspec.hpp"
#include "plugins/spank/spank.hpp"

namespace sluice::spank {

/// What the user has given so far, as (name, value).
using Given = std::vector<std::pair<std::string, std::string>>;

/// Registers every option of option_infos(); each value is checked as it is given and collected in
/// `given`, which lives as long as the process.
bool register_options(spank_t context, Given* given);

/// All options together.
Result<JobSpec> spec_of(const Given& given);

}  // namespace sluice::spank
