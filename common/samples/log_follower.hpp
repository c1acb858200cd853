// SPDX-License-Identifier: GPL-2.0-or-later
//
// Follows a log file that somebody else writes: appended to, truncated (copytruncate), rewritten,
// replaced (rename), or not there yet. Opened with O_NOFOLLOW | O_NONBLOCK, and only a regular file
// is read, so that neither a link, a FIFO nor a device can lead the reader anywhere or hold it up.
//
// A poll of a file that has not grown is two calls of stat and no memory. Where a file shrinks, or
// the last bytes that were read are no longer those in the file, it is a new one. A file that has
// been moved away is read to its end, and for as long as nothing takes its place.
//
// A job that appends to a log of other jobs begins behind a mark that was made before it could
// write. Where the file does not hold what it held up to there, it is a new one as well.
//
// Bytes that are 0 where the file has grown are waited for: over NFS a file can grow before its
// data arrive. If they stay 0 (a hole, as copytruncate leaves one) they are passed over; a hole of
// any size costs one call.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <utility>

#include "common/base/descriptor.hpp"

namespace sluice {

/// How far a file had come at some moment.
struct LogMark {
    dev_t device = 0;
    ino_t inode = 0;
    off_t size = 0;
    std::string tail;  ///< its last bytes, by which it is known again; empty where it was not read
};

class LogFollower {
  public:
    /// Bytes that one read() returns at most; the rest comes with the next call.
    static constexpr std::size_t max_read = std::size_t{256} * 1024;
    /// Polls for which bytes that are 0 are waited for.
    static constexpr int patience = 5;
    /// Bytes that Read::before has of the beginning of the file, and at most as many of its end.
    static constexpr std::size_t max_before = std::size_t{64} * 1024;
    /// Bytes of a mark's tail.
    static constexpr std::size_t tail_bytes = 64;

    /// Of the file as it is now; of one that is not there or cannot be read, the beginning.
    static LogMark mark(const std::string& path);

    /// Begins behind `begin` where that is of the file that is found first, else at the beginning.
    /// A job that appends to a log of other jobs begins behind what they have left there; one that
    /// was requeued goes on with its own curve and begins at the beginning.
    explicit LogFollower(std::string path, LogMark begin = {})
        : path_(std::move(path)), begin_(begin) {}

    struct Read {
        std::string bytes;       ///< new ones, maybe none
        std::string before;      ///< once, where a mark was passed: what stands before it, the
                                 ///< middle of much left out, in whole lines
        bool restarted = false;  ///< the file was truncated or replaced: these are its first bytes
        bool more = false;       ///< the file holds more, to be read without waiting
        std::string problem;  ///< why there is nothing to read, in words; empty where all is well
    };
    Read read();

    const std::string& path() const { return path_; }

  private:
    std::string open_file();
    /// Goes to the mark.
    void pass_mark(Read& result);
    std::string bytes_at(off_t begin, std::size_t count) const;
    void start_again(Read& result);
    /// The bytes from offset_ on into `result`, or its problem.
    void read_new(off_t size, Read& result);
    /// Leaves out of the new bytes those that are 0, and waits for them or passes over them.
    void leave_zeros(Read& result);
    off_t next_data() const;
    void remember(const std::string& bytes);

    std::string path_;
    LogMark begin_;
    Descriptor file_;
    dev_t device_ = 0;
    ino_t inode_ = 0;
    off_t offset_ = 0;
    std::string tail_;  ///< the last bytes before offset_, by which the file is known again
    int waited_ = 0;    ///< for bytes that are 0
    bool opened_before_ = false;
};

}  // namespace sluice
