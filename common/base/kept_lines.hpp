// SPDX-License-Identifier: GPL-2.0-or-later
//
// Files that the controller keeps for itself: a header that names what it is and its version, then
// a line an entry. A damaged line costs itself alone.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "common/base/file.hpp"
#include "common/base/result.hpp"

namespace sluice {

constexpr std::size_t most_kept_bytes = std::size_t{16} << 20;

/// Hands each line after the header to `take`, which says whether it could use it; how many it
/// could not. Empty lines are passed over. bad_input where the first line is not `header`.
Result<std::size_t> take_kept_lines(std::string_view text, std::string_view header,
                                    const std::function<bool(std::string_view)>& take);

/// What `parse` makes of the file, which has at most most_kept_bytes. not_found where there is
/// none; errors begin with the path.
template <typename T>
Result<T> read_kept_file(const std::string& path, Result<T> (*parse)(std::string_view)) {
    const auto text = read_file(path, most_kept_bytes);
    if (!text) return text.error();
    auto read = parse(*text);
    if (!read) return {read.error().code, path + ": " + read.error().message};
    return read;
}

}  // namespace sluice
