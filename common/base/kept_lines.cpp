// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/base/kept_lines.hpp"

#include "common/base/text.hpp"

namespace sluice {

Result<std::size_t> take_kept_lines(std::string_view text, std::string_view header,
                                    const std::function<bool(std::string_view)>& take) {
    const auto lines = split(text, '\n');
    if (lines.front() != header) {
        return {ErrorCode::bad_input,
                "\"" + printable(lines.front(), 40) + "\" is not \"" + std::string(header) + '"'};
    }
    std::size_t damaged = 0;
    for (std::size_t i = 1; i < lines.size(); ++i) {
        if (!lines[i].empty() && !take(lines[i])) ++damaged;
    }
    return damaged;
}

}  // namespace sluice
