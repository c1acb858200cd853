// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/samples/plain_file.hpp"

#include <dirent.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>

namespace sluice {
namespace {

/// Why a file of this kind is not opened; empty: it is.
const char* unwelcome(mode_t mode, bool folders) {
    if (S_ISREG(mode) || (folders && S_ISDIR(mode))) return "";
    if (S_ISDIR(mode)) return "it is a folder";
    if (S_ISFIFO(mode)) return "it is a FIFO, which is not read";
    if (S_ISCHR(mode) || S_ISBLK(mode)) return "it is a device, which is not read";
    return "it is no regular file";
}

}  // namespace

PlainFile open_plain(const std::string& name, bool folders, int folder) {
    PlainFile file;
    // To open a FIFO would let its writer go on, and to close it again would kill him.
    if (::fstatat(folder, name.c_str(), &file.status, AT_SYMLINK_NOFOLLOW) == 0 &&
        !S_ISLNK(file.status.st_mode)) {
        file.problem = unwelcome(file.status.st_mode, folders);
        if (!file.problem.empty()) return file;
    }
    file.descriptor.reset(
        ::openat(folder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    if (!file.descriptor.is_open() || ::fstat(file.descriptor.get(), &file.status) != 0) {
        file.missing = errno == ENOENT;
        file.problem =
            errno == ELOOP ? "it is a symbolic link, which is not followed" : std::strerror(errno);
        file.descriptor.reset();
        return file;
    }
    file.problem = unwelcome(file.status.st_mode, folders);
    if (!file.problem.empty()) file.descriptor.reset();
    file.folder = file.descriptor.is_open() && S_ISDIR(file.status.st_mode);
    return file;
}

std::vector<std::string> names_in(const Descriptor& folder, std::size_t limit) {
    struct CloseFolder {
        void operator()(DIR* open) const { ::closedir(open); }
    };
    std::vector<std::string> names;
    // fdopendir() would take the descriptor itself.
    const int own = ::openat(folder.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const std::unique_ptr<DIR, CloseFolder> open(own >= 0 ? ::fdopendir(own) : nullptr);
    if (!open) {
        if (own >= 0) ::close(own);
        return names;
    }
    while (names.size() < limit) {
        const dirent* entry = ::readdir(open.get());
        if (!entry) break;
        const std::string_view name = entry->d_name;
        if (name != "." && name != "..") names.emplace_back(name);
    }
    return names;
}

}  // namespace sluice
