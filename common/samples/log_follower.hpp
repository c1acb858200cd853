// SPDX-License-Identifier: GPL-2.0-or-later
//
// Follows a log file that somebody else writes: appended to, truncated, replaced, or not there yet.
// Opened with O_NOFOLLOW | O_NONBLOCK, and only a regular file is read, so that neither a link, a
// FIFO nor a device can lead the reader anywhere or hold it up.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace sluice {

class LogFollower {
  public:
    /// Bytes that one read() returns at most; the rest comes with the next call.
    static constexpr std::size_t max_read = 1 << 20;

    explicit LogFollower(std::string path) : path_(std::move(path)) {}
    ~LogFollower();
    LogFollower(const LogFollower&) = delete;
    LogFollower& operator=(const LogFollower&) = delete;

    struct Read {
        std::string bytes;       ///< new ones, maybe none
        bool restarted = false;  ///< the file was truncated or replaced: these are its first bytes
        std::string problem;  ///< why there is nothing to read, in words; empty where all is well
    };
    Read read();

    const std::string& path() const { return path_; }

  private:
    std::string open_file();
    void close_file();

    std::string path_;
    int fd_ = -1;
    dev_t device_ = 0;
    ino_t inode_ = 0;
    off_t offset_ = 0;
    bool opened_before_ = false;
};

}  // namespace sluice
