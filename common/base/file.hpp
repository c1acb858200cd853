// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstddef>
#include <string>

#include "common/base/result.hpp"

namespace sluice {

enum class FileKind {
    ordinary,  ///< for daemons: a FIFO or a device, which could keep them waiting, is an error
    any,       ///< for tools: pipes, too
};

/// The whole file, an error where it is longer than `max_bytes`. not_found where there is none,
/// else unreachable; the message begins with the path.
Result<std::string> read_file(const std::string& path, std::size_t max_bytes,
                              FileKind kind = FileKind::ordinary);

enum class FileReaders {
    all,
    owner,  ///< for what tells of users' jobs
};

/// Makes or replaces a file at once: whoever opens it sees the old or the new, whole. unreachable
/// with path and reason where that fails; then nothing has changed.
Status write_file(const std::string& path, const std::string& text,
                  FileReaders readers = FileReaders::all);

/// For tools: write_file(), but what is there and no ordinary file (a pipe, a device, a link) stays
/// what it is, and the text goes there.
Status write_output(const std::string& path, const std::string& text);

/// Renames a file that cannot be used, so that writing it anew loses nothing; its new path, in
/// place of any of that name. unreachable with path and reason where that fails.
Result<std::string> set_aside(const std::string& path);

}  // namespace sluice
