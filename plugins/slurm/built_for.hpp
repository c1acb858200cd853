// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <slurm/slurm_version.h>

#include <cstdint>

namespace sluice::slurm {

/// The release that this build is for; slurmctld loads a plugin only when it is the very same.
inline constexpr std::uint32_t built_for = SLURM_VERSION_NUMBER;

}  // namespace sluice::slurm
