// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/samples/line_hints.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "common/base/text.hpp"

namespace sluice::log {
namespace {

constexpr char escape = '\33';

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}
bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_alnum(char c) {
    return is_digit(c) || is_letter(c);
}
bool is_blank(char c) {
    return c == ' ' || c == '\t';
}
bool ends_line(char c) {
    return c == '\n' || c == '\r';
}

char at(std::string_view bytes, std::size_t place) {
    return place < bytes.size() ? bytes[place] : '\n';
}

char small(char c) {
    return static_cast<char>(c | 0x20);
}

/// Whether the word, in small letters, stands at the place.
bool stands_at(std::string_view bytes, std::size_t place, std::string_view word) {
    if (place > bytes.size() || bytes.size() - place < word.size()) return false;
    for (std::size_t i = 0; i < word.size(); ++i) {
        if (small(bytes[place + i]) != word[i]) return false;
    }
    return true;
}

bool stands_before(std::string_view bytes, std::size_t place, std::string_view word) {
    return place >= word.size() && stands_at(bytes, place - word.size(), word);
}

/// "\n" written out, which parts words as blanks do (log_tokens.cpp).
bool is_escape(std::string_view bytes, std::size_t place) {
    return at(bytes, place) == '\\' && is_letter(at(bytes, place + 1));
}

/// Whether the next thing on the line is a number, be it behind marks, "is" or "tensor(".
bool number_follows(std::string_view bytes, std::size_t place) {
    for (int words = 0; words < 2; ++words) {
        while (!is_alnum(at(bytes, place)) && !ends_line(at(bytes, place)))
            place += is_escape(bytes, place) ? 2 : 1;
        if (is_digit(at(bytes, place))) return true;
        if (!is_letter(at(bytes, place))) return false;
        const std::size_t begin = place;
        const auto in_word = [](char c) {
            return is_alnum(c) || (c >= '-' && c <= '/') || c == '_' || c == '@' || c == '#';
        };
        while (in_word(at(bytes, place))) {
            // no end in sight: reading the line costs less than asking again for each of its words
            if (++place - begin > 64) return true;
        }
        if (at(bytes, place) == '(') return true;
        if (bytes.substr(begin, place - begin) != "is") return false;
    }
    return false;
}

/// Whether the two letters at the place are a word, and a number follows.
bool is_word_before_number(std::string_view bytes, std::size_t begin, std::size_t end) {
    const bool inside =
        begin > 0 && is_alnum(bytes[begin - 1]) && (begin == 1 || !is_escape(bytes, begin - 2));
    return !inside && !is_alnum(at(bytes, end)) && number_follows(bytes, end);
}

/// "27/5000", "5 / 356", "32/Unknown"; not a date. `slash`: where the "/" is.
bool is_count(std::string_view bytes, std::size_t slash) {
    std::size_t end = slash;
    while (end > 0 && is_blank(bytes[end - 1])) --end;
    std::size_t begin = end;
    while (begin > 0 && is_digit(bytes[begin - 1])) --begin;
    if (begin == end || (begin > 0 && bytes[begin - 1] == '/')) return false;
    std::size_t total = slash + 1;
    if (at(bytes, total) == 'U') return true;
    while (is_blank(at(bytes, total))) ++total;
    std::size_t rest = total;
    while (is_digit(at(bytes, rest))) ++rest;
    const char follows = at(bytes, rest);
    if (rest == total || is_alnum(follows) || follows == '_' || follows == '/' || follows == '%')
        return false;
    // "11/01 20:14:15"
    std::size_t hour = rest;
    while (is_blank(at(bytes, hour))) ++hour;
    const bool two_digits = is_digit(at(bytes, hour)) && is_digit(at(bytes, hour + 1));
    const bool date = end - begin == 2 && rest - total == 2 && hour > rest && two_digits &&
                      at(bytes, hour + 2) == ':';
    return !date;
}

/// Sixteen bytes at a time: every 64-bit platform can.
using Block = std::uint8_t __attribute__((vector_size(16)));
using Halves = std::uint64_t __attribute__((vector_size(16)));

/// A bit for each byte, which is 0xff or 0.
std::uint64_t bits_of(Block block) {
#ifdef __SSE2__
    using Chars = char __attribute__((vector_size(16)));
    return static_cast<std::uint32_t>(__builtin_ia32_pmovmskb128(reinterpret_cast<Chars>(block)));
#else
    const Halves halves = reinterpret_cast<Halves>(block);
    // the lowest bit of each byte comes to lie in the highest byte of the product
    const auto gather = [](std::uint64_t bytes) {
        return (bytes & 0x0101010101010101U) * 0x0102040810204080U >> 56;
    };
    return gather(halves[0]) | gather(halves[1]) << 8;
#endif
}

Block load(const char* bytes) {
    Block block;
    std::memcpy(&block, bytes, sizeof block);
    return block;
}

Block each(char c) {
    Block block{};
    return block + static_cast<std::uint8_t>(c);
}

/// 0xff in each place where it may be worth while to look closer, else 0. `first`, `second`: the
/// pair of letters of a loss.
Block suspects(const char* place, Block first, Block second) {
    const Block a = load(place);
    const Block b = load(place + 1);
    const Block x = a | each(0x20);
    const Block y = b | each(0x20);
    const auto loss = (x == first) & (y == second);
    const auto step_or_epoch = (x == each('e')) & (y == each('p'));
    const auto iteration = (x == each('i')) & (y == each('t'));
    const auto update = (x == each('p')) & (y == each('d'));
    const auto progress = (x == each('g')) & (y == each('r'));
    const auto count = (a <= each('9')) & (b == each('/'));
    const auto control = a == each(escape);
    return reinterpret_cast<Block>((loss | step_or_epoch) | (iteration | update) |
                                   (progress | count) | control);
}

}  // namespace

LineHints::LineHints(std::string_view key) : word_("loss"), pair_(2) {
    if (key.empty()) return;
    std::string_view longest;
    for (const std::string_view word : split(key, ' ')) {
        if (word.size() > longest.size()) longest = word;
    }
    word_ = longest;
    usable_ = word_.size() >= 2;
    pair_ = usable_ ? word_.size() - 2 : 0;
}

bool LineHints::is_hint(std::string_view bytes, std::size_t place) const {
    const char c = bytes[place];
    if (c == escape) return true;
    if (at(bytes, place + 1) == '/') return is_count(bytes, place + 1);
    if (place >= pair_ && stands_at(bytes, place - pair_, word_)) return true;
    switch (small(c)) {
        case 'e':
            if (stands_before(bytes, place, "st") || stands_at(bytes, place + 2, "oc")) return true;
            return stands_at(bytes, place, "ep") && is_word_before_number(bytes, place, place + 2);
        case 'i': {
            if (!stands_at(bytes, place, "it")) return false;
            if (stands_at(bytes, place + 2, "er")) return true;
            std::size_t next = place + 2;
            if (place > 0 && is_digit(bytes[place - 1])) {  // "32it [", a bar without a total
                while (is_blank(at(bytes, next))) ++next;
                return at(bytes, next) == '[';
            }
            if (small(at(bytes, next)) == 'r') ++next;  // "itr"
            return is_word_before_number(bytes, place, next);
        }
        case 'p':
            return stands_before(bytes, place, "u") && stands_at(bytes, place, "pdate");
        case 'g':
            return stands_before(bytes, place, "pro") && stands_at(bytes, place, "gress");
        default:
            return false;
    }
}

std::size_t LineHints::find(std::string_view bytes, std::size_t begin) const {
    const Block first = each(word_[pair_]);
    const Block second = each(word_[pair_ + 1]);
    constexpr std::size_t width = sizeof(Block);
    const auto first_of = [&](std::uint64_t bits, std::size_t from) {
        for (; bits != 0; bits &= bits - 1) {
            const std::size_t here = from + static_cast<std::size_t>(std::countr_zero(bits));
            if (is_hint(bytes, here)) return here;
        }
        return std::string_view::npos;
    };
    std::size_t place = begin;
    for (; place + 4 * width < bytes.size(); place += 4 * width) {
        const char* const from = bytes.data() + place;
        const Block found[4] = {
            suspects(from, first, second), suspects(from + width, first, second),
            suspects(from + 2 * width, first, second), suspects(from + 3 * width, first, second)};
        const Halves any = reinterpret_cast<Halves>((found[0] | found[1]) | (found[2] | found[3]));
        if ((any[0] | any[1]) == 0) continue;
        const std::size_t hint = first_of(bits_of(found[0]) | bits_of(found[1]) << 16 |
                                              bits_of(found[2]) << 32 | bits_of(found[3]) << 48,
                                          place);
        if (hint != std::string_view::npos) return hint;
    }
    // what is left, the last block over bytes that have been looked at already
    while (place + 1 < bytes.size() && begin + width < bytes.size()) {
        const std::size_t from = std::min(place, bytes.size() - width - 1);
        const Block found = suspects(bytes.data() + from, first, second);
        const std::size_t hint = first_of(bits_of(found) >> (place - from), place);
        if (hint != std::string_view::npos) return hint;
        place = from + width;
    }
    for (; place < bytes.size(); ++place) {
        if (is_hint(bytes, place)) return place;
    }
    return std::string_view::npos;
}

}  // namespace sluice::log
