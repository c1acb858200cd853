// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/topology/words.hpp"

#include <algorithm>

#include "common/base/text.hpp"

namespace sluice {
namespace {

constexpr std::int64_t most_cpus = 65536;

bool is_hexadecimal(std::string_view text, std::size_t low, std::size_t high) {
    return text.size() >= low && text.size() <= high &&
           text.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
}

}  // namespace

std::optional<PciPath> path_of_name(std::string_view name) {
    for (const PciPath path : {PciPath::unknown, PciPath::sys, PciPath::node, PciPath::phb,
                               PciPath::pxb, PciPath::pix}) {
        if (name == path_name(path)) return path;
    }
    return std::nullopt;
}

bool is_cpu_list(std::string_view text) {
    std::int64_t least = 0;
    for (const std::string_view word : split(text, ',')) {
        const std::size_t dash = word.find('-');
        const auto first = parse_integer(word.substr(0, dash));
        const auto last =
            dash == std::string_view::npos ? first : parse_integer(word.substr(dash + 1));
        if (!first || !last || *first < least || *last < *first || *last >= most_cpus) return false;
        least = *last + 1;
    }
    return true;
}

bool is_pci_bus_id(std::string_view text) {
    const auto parts = split(text, ':');
    if (parts.size() != 3) return false;
    const std::size_t point = parts[2].find('.');
    return is_hexadecimal(parts[0], 4, 8) && is_hexadecimal(parts[1], 2, 2) &&
           point != std::string_view::npos && is_hexadecimal(parts[2].substr(0, point), 2, 2) &&
           is_hexadecimal(parts[2].substr(point + 1), 1, 1);
}

}  // namespace sluice
