// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>

namespace sluice::slurm {

/// One line in the log of the process that loaded the plugin, with the prefix "sluice: ".
void log_info(const std::string& message);
void log_verbose(const std::string& message);
void log_error(const std::string& message);

}  // namespace sluice::slurm
