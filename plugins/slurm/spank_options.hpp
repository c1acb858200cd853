// SPDX-License-Identifier: GPL-2.0-or-later
//
// How SPANK options travel: as "_SLURM_SPANK_OPTION_<plugin>_<option>=value" in
// job_desc_msg_t::spank_job_env, in the job record, and in the environment of the job (Slurm:
// src/common/plugstack.c).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::slurm {

inline constexpr std::string_view option_prefix = "_SLURM_SPANK_OPTION_sluice_";

/// The (option, value) pairs of ours in an environment of `count` strings; null strings are
/// skipped.
std::vector<std::pair<std::string, std::string>> options_in(char* const* environment,
                                                            std::size_t count);

}  // namespace sluice::slurm
