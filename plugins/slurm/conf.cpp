// SPDX-License-Identifier: GPL-2.0-or-later
#include "plugins/slurm/conf.hpp"

#include <sys/stat.h>
#include <algorithm>

#include "common/base/text.hpp"
#include "plugins/slurm/slurm.hpp"

namespace sluice::slurm {

std::string sluice_conf_path() {
    char* path = get_extra_conf_path(const_cast<char*>("sluice.conf"));
    std::string out = path ? path : "";
    xfree(path);
    return out;
}

std::string file_version(const std::string& path) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) return {};
    return std::to_string(status.st_mtim.tv_sec) + ' ' + std::to_string(status.st_mtim.tv_nsec) +
           ' ' + std::to_string(status.st_size) + ' ' + std::to_string(status.st_ino);
}

std::string state_dir(const Config& config) {
    if (!config.state_dir.empty()) return config.state_dir;
    return std::string(slurm_conf.state_save_location ? slurm_conf.state_save_location : "") +
           "/sluice";
}

bool has_job_submit_plugin() {
    const auto names =
        split(slurm_conf.job_submit_plugins ? slurm_conf.job_submit_plugins : "", ',');
    return std::any_of(names.begin(), names.end(), [](std::string_view name) {
        return trim(name) == "sluice" || trim(name) == "job_submit/sluice";
    });
}

}  // namespace sluice::slurm
