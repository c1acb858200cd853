// SPDX-License-Identifier: GPL-2.0-or-later
#include "contrib/sluice/write_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <system_error>

#include "common/base/descriptor.hpp"

namespace sluice::cli {
namespace {

bool write_all(int file, const std::string& text) {
    for (std::size_t done = 0; done < text.size();) {
        const ssize_t count = ::write(file, text.data() + done, text.size() - done);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return false;
        done += static_cast<std::size_t>(count);
    }
    return ::fsync(file) == 0;
}

}  // namespace

Status write_file(const std::string& path, const std::string& text) {
    const std::string fresh = path + ".new-" + std::to_string(::getpid());
    const auto failed = [&] {
        Error error{ErrorCode::unreachable, path + ": " + std::generic_category().message(errno)};
        ::unlink(fresh.c_str());
        return error;
    };
    ::unlink(fresh.c_str());  // of a process of this number that was killed
    {
        const Descriptor file(
            ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644));
        if (!file.is_open() || !write_all(file.get(), text)) return failed();
    }
    if (::rename(fresh.c_str(), path.c_str()) != 0) return failed();
    const std::size_t slash = path.rfind('/');
    const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
    const Descriptor directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (directory.is_open()) ::fsync(directory.get());
    return {};
}

}  // namespace sluice::cli
