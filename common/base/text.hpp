// SPDX-License-Identifier: GPL-2.0-or-later
//
// Text to numbers and back, independent of the locale (a de_DE process reads "0.5" as one half).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {

/// Without the blanks (space, tab, CR, LF) at both ends.
std::string_view trim(std::string_view text);

/// The pieces between separators; "a,,b" has three, "" has one (empty).
std::vector<std::string_view> split(std::string_view text, char separator);

/// Whole text as a decimal integer; nothing for an empty text, a sign other than '-', a rest, or
/// overflow.
std::optional<std::int64_t> parse_integer(std::string_view text);

/// Whole text as a number in the grammar of C's strtod in the C locale: sign, digits with one
/// point, exponent, and "nan", "inf", "infinity" in any case, each with an optional sign. Nothing
/// for anything else; values too large become inf, too small become 0.
std::optional<double> parse_number(std::string_view text);

/// Shortest text that parse_number() reads back to the same value; "nan", "inf", "-inf" otherwise.
std::string format_number(double value);

/// `value` with `decimals` digits after the point.
std::string format_fixed(double value, int decimals);

bool starts_with_ignoring_case(std::string_view text, std::string_view prefix);
bool equal_ignoring_case(std::string_view a, std::string_view b);

/// For messages: control characters and bytes above 0x7e become '?', and what is longer than
/// `limit` is cut and ends in "...".
std::string printable(std::string_view text, std::size_t limit = 80);

/// "1 GPU", "8 GPUs".
std::string gpus_text(int gpus);

}  // namespace sluice
