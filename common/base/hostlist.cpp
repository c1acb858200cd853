// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/base/config.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "common/base/text.hpp"

namespace sluice {
namespace {

constexpr std::size_t max_names = 65536;
constexpr std::size_t max_name_bytes = 255;
constexpr std::size_t max_digits = 9;

Error broken(std::string_view text, const std::string& what) {
    return {ErrorCode::bad_input, "\"" + printable(text) + "\" is no list of nodes: " + what +
                                      ": write names like n1,n2 or n[01-16,20]"};
}

Error too_many(std::string_view text) {
    return broken(text, "it has more than " + std::to_string(max_names) + " names");
}

bool legal_in_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
}

// "1-3,7" -> 1 2 3 7; "08-10" -> 08 09 10. Nothing where it is malformed; at most max_names + 1.
std::optional<std::vector<std::string>> numbers_of(std::string_view ranges) {
    std::vector<std::string> out;
    for (const std::string_view range : split(ranges, ',')) {
        const std::size_t dash = range.find('-');
        const std::string_view low = range.substr(0, dash);
        const std::string_view high = dash == std::string_view::npos ? low : range.substr(dash + 1);
        const auto first = parse_integer(low);
        const auto last = parse_integer(high);
        if (!first || !last || *first < 0 || *last < *first || low.size() > max_digits ||
            high.size() > max_digits)
            return std::nullopt;
        for (auto number = *first; number <= *last && out.size() <= max_names; ++number) {
            std::string digits = std::to_string(number);
            if (digits.size() < low.size()) digits.insert(0, low.size() - digits.size(), '0');
            out.push_back(std::move(digits));
        }
    }
    return out;
}

// One name with any number of brackets: "r[1-2]n[1-4]".
Status expand_item(std::string_view item, std::string_view text, std::vector<std::string>& out) {
    if (item.empty()) return broken(text, "a name is empty");
    std::vector<std::string> names{""};
    while (!item.empty()) {
        if (item.front() == '[') {
            const std::size_t close = item.find(']');
            if (close == std::string_view::npos) return broken(text, "a [ is never closed");
            const auto numbers = numbers_of(item.substr(1, close - 1));
            if (!numbers) {
                return broken(text, "\"" + printable(item.substr(0, close + 1)) +
                                        "\" holds no rising ranges");
            }
            if (names.size() * numbers->size() > max_names) return too_many(text);
            std::vector<std::string> longer;
            for (const std::string& name : names) {
                for (const std::string& number : *numbers) longer.push_back(name + number);
            }
            names = std::move(longer);
            item.remove_prefix(close + 1);
        } else {
            if (!legal_in_name(item.front())) {
                return broken(text,
                              "\"" + printable(item.substr(0, 1)) + "\" stands in no node name");
            }
            std::size_t length = 1;
            while (length < item.size() && legal_in_name(item[length])) ++length;
            if (length > max_name_bytes) return broken(text, "a name is too long");
            for (std::string& name : names) name += item.substr(0, length);
            item.remove_prefix(length);
        }
        if (names.front().size() > max_name_bytes) return broken(text, "a name is too long");
    }
    if (out.size() + names.size() > max_names) return too_many(text);
    out.insert(out.end(), std::make_move_iterator(names.begin()),
               std::make_move_iterator(names.end()));
    return {};
}

struct Numbered {
    std::int64_t number = 0;
    std::string digits;

    friend bool operator<(const Numbered& a, const Numbered& b) {
        return std::tie(a.number, a.digits) < std::tie(b.number, b.digits);
    }
};

/// "1-3,7" of sorted numbers; a range goes on while its numbers have the digits that it expands to.
std::string ranges_of(const std::vector<Numbered>& numbers) {
    std::string out;
    for (std::size_t i = 0; i < numbers.size();) {
        std::size_t last = i;
        while (last + 1 < numbers.size()) {
            std::string next = std::to_string(numbers[last].number + 1);
            const std::size_t width = numbers[i].digits.size();
            if (next.size() < width) next.insert(0, width - next.size(), '0');
            if (numbers[last + 1].digits != next) break;
            ++last;
        }
        out += (out.empty() ? "" : ",") + numbers[i].digits;
        if (last > i) out += "-" + numbers[last].digits;
        i = last + 1;
    }
    return out;
}

}  // namespace

std::string compress_hostlist(const std::vector<std::string>& names) {
    std::map<std::string, std::vector<Numbered>> by_prefix;
    for (const std::string& name : names) {
        std::size_t digits = 0;
        while (digits < std::min(name.size(), max_digits) &&
               name[name.size() - 1 - digits] >= '0' && name[name.size() - 1 - digits] <= '9')
            ++digits;
        const std::string number = name.substr(name.size() - digits);
        by_prefix[name.substr(0, name.size() - digits)].push_back(
            {parse_integer(number).value_or(-1), number});
    }
    std::string out;
    for (auto& [prefix, numbers] : by_prefix) {
        std::sort(numbers.begin(), numbers.end());
        const auto same = [](const Numbered& a, const Numbered& b) { return a.digits == b.digits; };
        numbers.erase(std::unique(numbers.begin(), numbers.end(), same), numbers.end());
        if (numbers.front().digits.empty()) {  // a name without a number
            out += (out.empty() ? "" : ",") + prefix;
            numbers.erase(numbers.begin());
        }
        if (numbers.empty()) continue;
        const std::string ranges = ranges_of(numbers);
        const bool single = numbers.size() == 1;
        out += (out.empty() ? "" : ",") + prefix + (single ? ranges : "[" + ranges + "]");
    }
    return out;
}

Result<std::vector<std::string>> expand_hostlist(std::string_view text) {
    std::vector<std::string> out;
    std::size_t begin = 0;
    bool in_brackets = false;
    for (std::size_t i = 0; i <= text.size(); ++i) {
        const char c = i < text.size() ? text[i] : ',';
        if (c == '[') in_brackets = true;
        if (c == ']') in_brackets = false;
        if (i < text.size() && (c != ',' || in_brackets)) continue;
        if (const Status status = expand_item(text.substr(begin, i - begin), text, out); !status)
            return status.error();
        begin = i + 1;
    }
    return out;
}

}  // namespace sluice
