// SPDX-License-Identifier: GPL-2.0-or-later
#include "plugins/slurm/part.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

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

/// True for a file that ends before what it says is to be mapped, as one does that is still being
/// copied or met a full disk: dlopen() would map it all the same, and kill this process by SIGBUS.
/// Whatever else is wrong with a file, dlopen() says itself.
bool is_cut_off(const char* path) {
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) return false;
    struct stat status {};
    ElfW(Ehdr) header{};
    bool cut = false;
    if (fstat(file, &status) == 0 &&
        pread(file, &header, sizeof header, 0) == static_cast<ssize_t>(sizeof header) &&
        std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0) {
        for (unsigned i = 0; i < header.e_phnum && !cut; ++i) {
            ElfW(Phdr) segment{};
            const auto place = static_cast<off_t>(header.e_phoff + i * sizeof segment);
            if (pread(file, &segment, sizeof segment, place) !=
                static_cast<ssize_t>(sizeof segment))
                break;
            cut = segment.p_type == PT_LOAD &&
                  segment.p_offset + segment.p_filesz > static_cast<ElfW(Off)>(status.st_size);
        }
    }
    close(file);
    return cut;
}

}  // namespace

Part load_part(const char* file, const char* symbol) noexcept {
    Part part;
    char path[PATH_MAX];
    if (!path_beside(file, path)) {
        slurm_error("sluice: %s: where this plugin itself lies cannot be told", file);
        return part;
    }
    if (is_cut_off(path)) {
        slurm_error("sluice: %s is cut off: install Sluice again", path);
        return part;
    }
    // All symbols now: with a libsluice of another build one that is missing would otherwise end
    // this process when it is called.
    part.handle = dlopen(path, RTLD_NOW);
    if (!part.handle) {
        slurm_error("sluice: %s cannot be loaded: %s: install Sluice again", file, dlerror());
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
