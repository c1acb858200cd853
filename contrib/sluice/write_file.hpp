// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>

#include "common/base/result.hpp"

namespace sluice::cli {

/// Makes or replaces a file, readable by all, at once: whoever opens it sees the old or the new,
/// whole. unreachable with path and reason where that fails; then nothing has changed.
Status write_file(const std::string& path, const std::string& text);

}  // namespace sluice::cli
