// SPDX-License-Identifier: GPL-2.0-or-later
//
// Says what is wrong when a process of another release of Slurm loads this plugin. Slurm refuses it
// by itself, before any entry point is called, but names one of the two releases and no remedy.
#include <dlfcn.h>

#include <array>
#include <string>

#include "plugins/slurm/built_for.hpp"

// Of libslurm, whose interface to these is the same in all releases.
extern "C" {
[[gnu::weak]] long slurm_api_version();
[[gnu::weak]] int slurm_error(const char* format, ...);
}

namespace sluice::slurm {
namespace {

// libslurm's version number counts the releases (META, API_CURRENT).
std::string release_of(long api) {
    constexpr long first = 36;
    constexpr std::array names{"20.11", "21.08", "22.05", "23.02", "23.11",
                               "24.05", "24.11", "25.05", "25.11", "26.05"};
    const long index = api - first;
    if (index < 0 || index >= static_cast<long>(names.size()))
        return "with libslurm.so." + std::to_string(api);
    return names[static_cast<std::size_t>(index)];
}

[[gnu::constructor]] void check_release() noexcept {
    if (!slurm_api_version || !slurm_error) return;
    const long running = slurm_api_version() >> 16;
    if (running == SLUICE_SLURM_API) return;
    Dl_info self{};
    if (dladdr(reinterpret_cast<void*>(&check_release), &self) == 0) return;
    // To stay is to say it once: a plugin is loaded and dropped several times on the way.
    dlopen(self.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
    try {
        slurm_error(
            "sluice: %s is built for Slurm %u.%02u.%u and cannot be used here, where Slurm is %s: "
            "install the Sluice that is built for it, or configure and make it on a machine that "
            "has it",
            self.dli_fname, built_for >> 16, built_for >> 8 & 0xff, built_for & 0xff,
            release_of(running).c_str());
    } catch (...) {
    }
}

}  // namespace
}  // namespace sluice::slurm
