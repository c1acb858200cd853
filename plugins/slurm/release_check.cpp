// SPDX-License-Identifier: GPL-2.0-or-later
//
// Says what is wrong when a process of another release of Slurm loads this plugin. Slurm refuses it
// by itself, before any entry point is called, but names one of the two releases and no remedy.
#include <dlfcn.h>

#include <cstdio>
#include <iterator>

#include "plugins/slurm/built_for.hpp"

// Of libslurm, whose interface to these is the same in all releases.
extern "C" {
[[gnu::weak]] long slurm_api_version();
[[gnu::weak]] int slurm_error(const char* format, ...);
}

namespace sluice::slurm {
namespace {

// libslurm's version number counts the releases (META, API_CURRENT).
constexpr long first_api = 36;
constexpr const char* releases[] = {"20.11", "21.08", "22.05", "23.02", "23.11",
                                    "24.05", "24.11", "25.05", "25.11", "26.05"};

[[gnu::constructor]] void check_release() noexcept {
    if (!slurm_api_version || !slurm_error) return;
    const long running = slurm_api_version() >> 16;
    if (running == SLUICE_SLURM_API) return;
    Dl_info self{};
    if (dladdr(reinterpret_cast<void*>(&check_release), &self) == 0) return;
    // To stay is to say it once: a plugin is loaded and dropped several times on the way.
    dlopen(self.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
    const long index = running - first_api;
    char unnamed[48];
    std::snprintf(unnamed, sizeof unnamed, "with libslurm.so.%ld", running);
    slurm_error(
        "sluice: %s is built for Slurm %u.%02u.%u and cannot be used here, where Slurm is %s: "
        "install the Sluice that is built for it, or configure and make it on a machine that "
        "has it",
        self.dli_fname, built_for >> 16, built_for >> 8 & 0xff, built_for & 0xff,
        index >= 0 && index < static_cast<long>(std::size(releases)) ? releases[index] : unnamed);
}

}  // namespace
}  // namespace sluice::slurm
