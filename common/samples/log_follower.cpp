// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/samples/log_follower.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "common/samples/plain_file.hpp"

namespace sluice {
namespace {

/// Single bytes that are 0 are somebody's output; so many, or those at the end, are none.
constexpr std::size_t least_zeros = 16;

struct Zeros {
    std::size_t begin = 0;
    std::size_t end = 0;
};

/// The first run of zeros that is no output; at the end of the bytes where there is none.
Zeros find_zeros(const std::string& bytes) {
    for (std::size_t begin = bytes.find('\0'); begin != std::string::npos;) {
        const std::size_t end = std::min(bytes.find_first_not_of('\0', begin), bytes.size());
        if (end == bytes.size() || end - begin >= least_zeros) return {begin, end};
        begin = bytes.find('\0', end);
    }
    return {bytes.size(), bytes.size()};
}

}  // namespace

LogMark LogFollower::mark(const std::string& path) {
    struct stat status {};
    if (::lstat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
    LogMark mark{status.st_dev, status.st_ino, status.st_size, {}};
    // Opened, so that a file server is asked how far it has come.
    const PlainFile file = open_plain(path);
    if (!file.descriptor.is_open()) return mark;
    mark = {file.status.st_dev, file.status.st_ino, file.status.st_size, {}};
    const auto count = std::min<off_t>(mark.size, tail_bytes);
    mark.tail.resize(static_cast<std::size_t>(count));
    const ssize_t read =
        ::pread(file.descriptor.get(), mark.tail.data(), mark.tail.size(), mark.size - count);
    if (read != count) mark.tail.clear();
    return mark;
}

std::string LogFollower::bytes_at(off_t begin, std::size_t count) const {
    std::string bytes(count, '\0');
    const ssize_t read = ::pread(file_.get(), bytes.data(), bytes.size(), begin);
    bytes.resize(read < 0 ? 0 : static_cast<std::size_t>(read));
    return bytes;
}

void LogFollower::pass_mark(Read& result) {
    offset_ = begin_.size;
    tail_ = begin_.tail;
    const auto size = static_cast<std::size_t>(begin_.size);
    result.before = bytes_at(0, std::min(size, 2 * max_before));
    if (size <= 2 * max_before) return;
    result.before.resize(std::min(result.before.size(), max_before));
    result.before.resize(result.before.find_last_of('\n') + 1);  // npos + 1 is 0
    const std::string end = bytes_at(begin_.size - static_cast<off_t>(max_before), max_before);
    const std::size_t line = end.find('\n');
    if (line != std::string::npos) result.before += end.substr(line + 1);
}

void LogFollower::start_again(Read& result) {
    result.restarted = true;
    result.before.clear();
    offset_ = 0;
    tail_.clear();
    waited_ = 0;
}

std::string LogFollower::open_file() {
    PlainFile file = open_plain(path_);
    file_ = std::move(file.descriptor);
    if (file_.is_open()) {
        device_ = file.status.st_dev;
        inode_ = file.status.st_ino;
    }
    return std::move(file.problem);
}

LogFollower::Read LogFollower::read() {
    Read result;
    struct stat named {};
    struct stat opened {};
    if (file_.is_open()) {
        const bool replaced = ::lstat(path_.c_str(), &named) == 0 &&
                              (named.st_dev != device_ || named.st_ino != inode_);
        if (::fstat(file_.get(), &opened) != 0) {  // a server forgot the file, or is away
            result.problem = std::strerror(errno);
            file_.reset();
            return result;
        }
        // What was still written to a file that has been moved away is read before the new one.
        if (replaced && opened.st_size <= offset_) {
            file_.reset();
            device_ = 0;  // numbers of files are used again
            inode_ = 0;
        }
    }
    if (!file_.is_open()) {
        const dev_t device = device_;
        const ino_t inode = inode_;
        result.problem = open_file();
        if (!file_.is_open()) return result;
        if (::fstat(file_.get(), &opened) != 0) return result;
        const auto is = [this](dev_t of_device, ino_t of_inode) {
            return device_ == of_device && inode_ == of_inode;
        };
        if (!opened_before_) {
            if (is(begin_.device, begin_.inode) && opened.st_size >= begin_.size) pass_mark(result);
            opened_before_ = true;
        } else if (!is(device, inode)) {
            start_again(result);
        }
    }
    if (opened.st_size < offset_) start_again(result);
    if (opened.st_size > offset_) read_new(opened.st_size, result);
    return result;
}

void LogFollower::read_new(off_t size, Read& result) {
    const auto fill = [this, size](std::string& bytes) {
        const auto known = static_cast<off_t>(tail_.size());
        const auto there = static_cast<std::size_t>(size - offset_);
        bytes.resize(tail_.size() + std::min(there, max_read));
        const ssize_t count = ::pread(file_.get(), bytes.data(), bytes.size(), offset_ - known);
        bytes.resize(count < 0 ? 0 : static_cast<std::size_t>(count));
        return count >= 0;
    };
    bool read = fill(result.bytes);
    if (read && result.bytes.compare(0, tail_.size(), tail_) != 0) {
        start_again(result);
        read = fill(result.bytes);
    }
    if (!read) {
        if (errno == EINTR || errno == EAGAIN) return;
        result.problem = std::strerror(errno);
        file_.reset();
        return;
    }
    result.bytes.erase(0, tail_.size());
    leave_zeros(result);
    remember(result.bytes);
    result.more = offset_ < size && (waited_ == 0 || waited_ >= patience);
}

void LogFollower::leave_zeros(Read& result) {
    const Zeros zeros = find_zeros(result.bytes);
    const std::size_t new_bytes = zeros.begin;
    if (new_bytes > 0) {
        offset_ += static_cast<off_t>(new_bytes);
        waited_ = zeros.begin < zeros.end ? 1 : 0;
    } else if (zeros.begin < zeros.end && waited_ < patience) {
        ++waited_;
    } else if (zeros.begin < zeros.end) {
        tail_.clear();
        offset_ = std::max(offset_ + static_cast<off_t>(zeros.end), next_data());
    }
    result.bytes.resize(new_bytes);
}

// The hole that offset_ lies in ends there.
off_t LogFollower::next_data() const {
    const off_t data = ::lseek(file_.get(), offset_, SEEK_DATA);
    if (data >= 0) return data;
    struct stat status {};
    // ENXIO: there is none up to the end
    return errno == ENXIO && ::fstat(file_.get(), &status) == 0 ? status.st_size : offset_;
}

void LogFollower::remember(const std::string& bytes) {
    tail_ += bytes.substr(bytes.size() - std::min(bytes.size(), tail_bytes));
    tail_.erase(0, tail_.size() - std::min(tail_.size(), tail_bytes));
}

}  // namespace sluice
