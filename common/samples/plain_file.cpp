// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/samples/plain_file.hpp"

#include <dirent.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>

namespace sluice {

PlainFile open_plain(const std::string& name, bool folders, int folder) {
    PlainFile file;
    // To open a FIFO would let its writer go on, and to close it again would kill him.
    const bool fifo = ::fstatat(folder, name.c_str(), &file.status, AT_SYMLINK_NOFOLLOW) == 0 &&
                      S_ISFIFO(file.status.st_mode);
    if (fifo) {
        file.problem = "it is a FIFO, which is not read";
        return file;
    }
    file.descriptor.reset(
        ::openat(folder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    if (!file.descriptor.is_open()) {
        file.problem =
            errno == ELOOP ? "it is a symbolic link, which is not followed" : std::strerror(errno);
        return file;
    }
    const bool known = ::fstat(file.descriptor.get(), &file.status) == 0;
    file.folder = known && S_ISDIR(file.status.st_mode);
    if (file.folder ? folders : known && S_ISREG(file.status.st_mode)) return file;
    file.descriptor.reset();
    file.problem = folders ? "it is no regular file and no folder" : "it is no regular file";
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
