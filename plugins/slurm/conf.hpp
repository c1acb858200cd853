// SPDX-License-Identifier: GPL-2.0-or-later
//
// Where things are, as slurm.conf says; never a path of ours.
#pragma once

#include <string>

#include "common/base/config.hpp"

namespace sluice::slurm {

/// sluice.conf beside slurm.conf.
std::string sluice_conf_path();
/// Text that changes whenever the file is written or replaced; empty where it is not there.
std::string file_version(const std::string& path);
/// StateDir: that of sluice.conf, else "sluice" below StateSaveLocation.
std::string state_dir(const Config& config);
/// True where JobSubmitPlugins names ours.
bool has_job_submit_plugin();

}  // namespace sluice::slurm
