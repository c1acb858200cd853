// SPDX-License-Identifier: GPL-2.0-or-later
#include "plugins/slurm/part.hpp"

#include <dlfcn.h>

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

extern "C" {
#include <slurm/spank.h>
}

namespace sluice::slurm {
namespace {

/// The path of `file` beside this plugin, links followed; false where it does not fit.
bool path_beside(const char* file, char (&path)[PATH_MAX]) {
    Dl_info self{};
    if (dladdr(reinterpret_cast<void*>(&load_part), &self) == 0 || !self.dli_fname) return false;
    char plugin[PATH_MAX];
    if (!realpath(self.dli_fname, plugin)) return false;
    char* const slash = std::strrchr(plugin, '/');
    if (!slash) return false;
    *slash = '\0';
    const int length = std::snprintf(path, sizeof path, "%s/%s", plugin, file);
    return length > 0 && static_cast<std::size_t>(length) < sizeof path;
}

}  // namespace

Part load_part(const char* file, const char* symbol) noexcept {
    Part part;
    char path[PATH_MAX];
    if (!path_beside(file, path)) {
        slurm_error("sluice: %s: where this plugin itself lies cannot be told", file);
        return part;
    }
    part.handle = dlopen(path, RTLD_LAZY);
    if (!part.handle) {
        slurm_error("sluice: %s; it belongs beside the plugin: install Sluice again", dlerror());
        return part;
    }
    const void* const entries = dlsym(part.handle, symbol);
    const char* const build = entries ? *static_cast<const char* const*>(entries) : "another";
    if (std::strcmp(build, part_build) == 0) {
        part.entries = entries;
        return part;
    }
    slurm_error("sluice: %s is of %s build, the plugin beside it of %s: install Sluice again", path,
                build, part_build);
    unload(part);
    return part;
}

void unload(Part& part) noexcept {
    if (part.handle) dlclose(part.handle);
    part = {};
}

}  // namespace sluice::slurm
