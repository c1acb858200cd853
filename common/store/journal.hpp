// SPDX-License-Identifier: GPL-2.0-or-later
//
// What the controller must still know after kill -9: one small JSON value per key, in an
// append-only file that is rewritten by rename when most of it is outdated. Each line carries a
// checksum; a torn or damaged line is skipped and counted. Lines of a newer version are kept as
// they are.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "common/base/result.hpp"

namespace sluice {

/// Not thread-safe: one thread owns it. No call is made under Slurm's locks.
class Journal {
  public:
    /// Opens or creates DIRECTORY/name (mode 0600; the directory 0700). Errors name the path and
    /// errno.
    static Result<std::unique_ptr<Journal>> open(const std::string& directory,
                                                 const std::string& name);
    ~Journal();
    Journal(const Journal&) = delete;
    Journal& operator=(const Journal&) = delete;

    /// Key -> JSON text, the latest of each.
    const std::map<std::string, std::string>& values() const;
    std::size_t damaged_lines() const;

    /// Remembers the value in memory and on disk. On a disk error the memory has it all the same,
    /// the error says so, and the next put() tries the disk again.
    Status put(const std::string& key, std::string_view json);
    Status erase(const std::string& key);

  private:
    class Impl;
    explicit Journal(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace sluice
