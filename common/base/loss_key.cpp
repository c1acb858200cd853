// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/base/loss_key.hpp"

#include <algorithm>
#include <cstdint>
#include <string>

#include "common/base/text.hpp"

namespace sluice {
namespace {

constexpr std::size_t max_key_bytes = 64;
constexpr std::int64_t max_repeat = 100;
constexpr std::int64_t max_places = 500;

/// Goes over a pattern by recursive descent; each function takes what it is named after off the
/// front and returns how many places it has when it is written out, or stops with a problem.
class Pattern {
  public:
    explicit Pattern(std::string_view text) : text_(text) {}

    std::string problem() {
        alternatives();
        if (problem_.empty() && !done()) fail("has \")\" without \"(\"");
        return problem_;
    }

  private:
    bool done() const { return at_ >= text_.size() || !problem_.empty(); }
    char next() const { return done() ? '\0' : text_[at_]; }
    bool take(char c) {
        if (done() || text_[at_] != c) return false;
        ++at_;
        return true;
    }
    void fail(const std::string& what) {
        if (problem_.empty()) problem_ = what + " at character " + std::to_string(at_ + 1);
    }
    std::int64_t checked(std::int64_t places) {
        if (places > max_places)
            fail("has more than " + std::to_string(max_places) +
                 " places, repetitions written out,");
        return std::min(places, max_places + 1);
    }

    // Each level takes a "(", so that the key's length bounds the depth.
    std::int64_t alternatives() {
        std::int64_t places = sequence();
        while (take('|')) places = checked(places + 1 + sequence());
        return places;
    }

    std::int64_t sequence() {
        std::int64_t places = 0;
        while (!done() && next() != '|' && next() != ')') {
            bool repeatable = true;
            const std::int64_t one = piece(repeatable);
            const std::int64_t times = repetition(repeatable);
            // a repeated piece is one of two ways, each time
            places = checked(places + (times == 0 ? one : times * (one + 1)));
        }
        return places;
    }

    std::int64_t piece(bool& repeatable) {
        const char c = text_[at_];
        switch (c) {
            case '(':
                return group();
            case '[':
                return set();
            case '\\':
                ++at_;
                if (next() == 'b' || next() == 'B') repeatable = false;
                escaped();
                return 1;
            case '^':
            case '$':
                repeatable = false;
                ++at_;
                return 1;
            case '*':
            case '+':
            case '?':
            case '{':
                fail(std::string("has nothing to repeat before \"") + c + "\"");
                return 1;
            case '/':
            case ']':
            case '}':
                fail(std::string("has a \"") + c + "\" without a \\ before it");
                return 1;
            default:
                ++at_;
                return 1;
        }
    }

    std::int64_t group() {
        ++at_;
        if (take('?') && !take(':')) fail("has \"(?\" for something else than \"(?:\"");
        const std::int64_t places = alternatives();
        if (!take(')')) fail("has \"(\" without \")\"");
        return 1 + places;
    }

    // Behind the "\": a class, a border or a mark.
    void escaped() {
        const char c = next();
        const bool letter_or_digit =
            (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (done() ||
            (letter_or_digit && std::string_view("dDwWsSbB").find(c) == std::string_view::npos)) {
            fail("has \"\\\" before none of d, w, s, b, D, W, S, B and marks");
            return;
        }
        ++at_;
    }

    std::int64_t set() {
        ++at_;
        take('^');
        bool empty = true;
        while (!done() && next() != ']') {
            empty = false;
            const auto [low, single] = set_member();
            if (next() != '-') continue;
            ++at_;
            if (next() == ']') break;
            const auto [high, other_single] = set_member();
            if (!single || !other_single || high < low) fail("has no range of characters before");
        }
        if (empty) fail("has an empty set");
        if (!take(']')) fail("has \"[\" without \"]\"");
        return 1;
    }

    struct Member {
        char character;
        bool single;  // no class
    };
    Member set_member() {
        const char c = next();
        if (c == '[' || c == '/' || c == '-' || c == '^') {
            fail(std::string("has a \"") + c + "\" without a \\ before it");
            return {c, true};
        }
        ++at_;
        if (c != '\\') return {c, true};
        const char kind = next();
        if (kind == 'b' || kind == 'B') fail("has a border of a word in a set");
        escaped();
        return {kind, std::string_view("dDwWsS").find(kind) == std::string_view::npos};
    }

    /// How often the piece stands there when it is written out; 0: it is not repeated.
    std::int64_t repetition(bool repeatable) {
        const std::size_t begin = at_;
        std::int64_t times = 0;
        if (take('{')) {
            const std::int64_t least = number();
            std::int64_t most = least;
            if (take(',') && next() != '}') most = number();
            if (!take('}')) fail("has \"{\" without \"}\"");
            if (most < least || most > max_repeat)
                fail("has a repetition that is not {N}, {N,} or {N,M} up to " +
                     std::to_string(max_repeat));
            times = std::max<std::int64_t>(most, 1);
            take('?');
        } else if (take('*') || take('+') || take('?')) {
            times = 1;
            take('?');
        }
        if (at_ > begin && !repeatable) fail("repeats a border");
        if (at_ > begin && (next() == '*' || next() == '+' || next() == '?' || next() == '{'))
            fail("repeats a repetition");
        return times;
    }

    std::int64_t number() {
        const std::size_t begin = at_;
        while (next() >= '0' && next() <= '9') ++at_;
        const auto value =
            parse_integer(text_.substr(begin, std::min<std::size_t>(at_ - begin, 9)));
        if (!value || at_ - begin > 9) fail("has no number");
        return value.value_or(0);
    }

    std::string_view text_;
    std::size_t at_ = 0;
    std::string problem_;
};

bool is_printable_ascii(char c) {
    return c >= 0x20 && c <= 0x7e;
}

}  // namespace

std::string_view pattern_of_key(std::string_view key) {
    if (key.size() < 3 || key.front() != '/' || key.back() != '/') return {};
    return key.substr(1, key.size() - 2);
}

Status check_loss_key(std::string_view key) {
    const auto bad = [](const std::string& what) { return Status(ErrorCode::bad_input, what); };
    if (key.empty()) return bad("is empty");
    if (key.size() > max_key_bytes) return bad("has " + std::to_string(key.size()) + " bytes");
    if (const std::string_view text = pattern_of_key(key); !text.empty()) {
        if (!std::all_of(text.begin(), text.end(), is_printable_ascii))
            return bad("is a pattern of other characters than printable ASCII");
        const std::string problem = Pattern(text).problem();
        return problem.empty() ? Status() : bad("is no pattern: it " + problem);
    }
    const bool named = std::any_of(key.begin(), key.end(), [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    });
    return named ? Status() : bad("has none of a-z, A-Z and 0-9, of which names are made");
}

}  // namespace sluice
