// SPDX-License-Identifier: GPL-2.0-or-later
//
// Opening what a user names: regular files and folders, nothing that could lead elsewhere or keep
// the reader waiting.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <string>
#include <vector>

#include "common/base/descriptor.hpp"

namespace sluice {

struct PlainFile {
    Descriptor descriptor;
    struct stat status {};
    bool folder = false;
    bool missing = false;  ///< nothing has this name
    std::string problem;   ///< why it is not open, in words; empty where it is
};
/// A regular file, or, where `folders` are welcome, a folder. `name` is looked up in `folder`.
PlainFile open_plain(const std::string& name, bool folders = false, int folder = AT_FDCWD);

/// The names in an open folder, in no order, without "." and "..", at most `limit`.
std::vector<std::string> names_in(const Descriptor& folder, std::size_t limit);

}  // namespace sluice
