// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/samples/log_follower.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace sluice {

LogFollower::~LogFollower() {
    close_file();
}

void LogFollower::close_file() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
}

std::string LogFollower::open_file() {
    fd_ = ::open(path_.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd_ < 0) {
        if (errno == ELOOP) return "it is a symbolic link, which is not followed";
        return std::strerror(errno);
    }
    struct stat status {};
    if (::fstat(fd_, &status) != 0 || !S_ISREG(status.st_mode)) {
        close_file();
        return "it is no regular file";
    }
    device_ = status.st_dev;
    inode_ = status.st_ino;
    offset_ = 0;
    return {};
}

LogFollower::Read LogFollower::read() {
    Read result;
    struct stat status {};
    if (fd_ >= 0) {
        const bool replaced = ::lstat(path_.c_str(), &status) != 0 || status.st_dev != device_ ||
                              status.st_ino != inode_;
        struct stat open_status {};
        const bool truncated = ::fstat(fd_, &open_status) == 0 && open_status.st_size < offset_;
        // What was still written to a file that has been moved away is read before the new one.
        const bool drained = ::fstat(fd_, &open_status) != 0 || open_status.st_size <= offset_;
        if (truncated || (replaced && drained)) close_file();
    }
    if (fd_ < 0) {
        result.problem = open_file();
        if (fd_ < 0) return result;
        result.restarted = opened_before_;
        opened_before_ = true;
    }
    result.bytes.resize(max_read);
    const ssize_t count = ::pread(fd_, result.bytes.data(), result.bytes.size(), offset_);
    if (count < 0) {
        result.bytes.clear();
        if (errno != EINTR && errno != EAGAIN) {
            result.problem = std::strerror(errno);
            close_file();
        }
        return result;
    }
    result.bytes.resize(static_cast<std::size_t>(count));
    offset_ += count;
    return result;
}

}  // namespace sluice
