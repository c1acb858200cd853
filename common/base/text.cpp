// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/base/text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

namespace sluice {
namespace {

char lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

/// Digits with an optional sign; what is too large becomes the largest that can be added to a
/// length.
std::int64_t exponent_of(std::string_view text) {
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max() / 2;
    const bool negative = text.starts_with('-');
    if (negative || text.starts_with('+')) text.remove_prefix(1);
    const std::int64_t size = std::min(parse_integer(text).value_or(most), most);
    return negative ? -size : size;
}

// from_chars leaves the value untouched when it is out of range: decide by hand which end it is.
// `number` has no sign, and is 0.d... * 10^n for a digit d that is not 0 and an n far from 0.
double out_of_range(std::string_view number) {
    const std::size_t end = std::min(number.find_first_of("eE"), number.size());
    const std::size_t point = std::min(number.find('.'), end);
    const std::size_t first = number.find_first_of("123456789");
    std::int64_t n = first < point ? static_cast<std::int64_t>(point - first)
                                   : -static_cast<std::int64_t>(first - point - 1);
    if (end < number.size()) n += exponent_of(number.substr(end + 1));
    return n > 0 ? std::numeric_limits<double>::infinity() : 0.0;
}

}  // namespace

std::string_view trim(std::string_view text) {
    const std::size_t first = text.find_first_not_of(" \t\r\n");
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
    std::vector<std::string_view> pieces;
    for (;;) {
        const std::size_t end = text.find(separator);
        pieces.push_back(text.substr(0, end));
        if (end == std::string_view::npos) return pieces;
        text.remove_prefix(end + 1);
    }
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
    std::int64_t value = 0;
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc() || rest != end) return std::nullopt;
    return value;
}

std::optional<double> parse_number(std::string_view text) {
    bool negative = false;
    if (!text.empty() && (text.front() == '+' || text.front() == '-')) {
        negative = text.front() == '-';
        text.remove_prefix(1);
    }
    // from_chars would take a second minus.
    if (text.empty() || text.front() == '-') return std::nullopt;
    double value = 0;
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, value);
    if (rest != end || error == std::errc::invalid_argument) return std::nullopt;
    // "nan(...)" is C's too, but nobody prints it; a bracket in a log is something else.
    if (text.back() == ')') return std::nullopt;
    if (error == std::errc::result_out_of_range) value = out_of_range(text);
    return negative ? -value : value;
}

std::string format_number(double value) {
    if (std::isnan(value)) return "nan";
    if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
    std::array<char, 32> buffer{};
    const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
    return {buffer.data(), result.ptr};
}

std::string format_fixed(double value, int decimals) {
    if (!std::isfinite(value)) return format_number(value);
    std::array<char, 400> buffer{};  // the largest double has 309 digits before the point
    const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                      std::chars_format::fixed, decimals);
    return {buffer.data(), result.ptr};
}

bool starts_with_ignoring_case(std::string_view text, std::string_view prefix) {
    return text.size() >= prefix.size() &&
           equal_ignoring_case(text.substr(0, prefix.size()), prefix);
}

bool equal_ignoring_case(std::string_view a, std::string_view b) {
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (lower(a[i]) != lower(b[i])) return false;
    }
    return true;
}

std::string printable(std::string_view text, std::size_t limit) {
    const bool cut = text.size() > limit;
    std::string out(text.substr(0, limit));
    for (char& c : out) {
        if (c < 0x20 || c > 0x7e) c = '?';
    }
    return cut ? out + "..." : out;
}

std::string gpus_text(int gpus) {
    return std::to_string(gpus) + (gpus == 1 ? " GPU" : " GPUs");
}

}  // namespace sluice
