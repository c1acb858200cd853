// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>

namespace sluice::cli {

/// Prints what became of the placements of this cluster's controller. `state_dir`: its StateDir, or
/// empty to ask Slurm. Returns the exit code.
int status_of_controller(const std::string& state_dir, bool json);

}  // namespace sluice::cli
