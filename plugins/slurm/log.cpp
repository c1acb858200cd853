// SPDX-License-Identifier: GPL-2.0-or-later
#include "plugins/slurm/log.hpp"

extern "C" {
#include <slurm/spank.h>
}

namespace sluice::slurm {

void log_info(const std::string& message) {
    slurm_info("sluice: %s", message.c_str());
}
void log_verbose(const std::string& message) {
    slurm_verbose("sluice: %s", message.c_str());
}
void log_error(const std::string& message) {
    slurm_error("sluice: %s", message.c_str());
}

}  // namespace sluice::slurm
