// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/samples/json_scanner.hpp"

#include "common/base/text.hpp"

namespace sluice {
namespace {

bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

bool is_word(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '+' || c == '.';
}

int hex_value(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    const char lower = static_cast<char>(c | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

}  // namespace

bool JsonScanner::feed(std::string_view bytes) {
    for (const char c : bytes) {
        if (failed_) break;
        failed_ = !take(c);
    }
    return !failed_;
}

void JsonScanner::keep(char c) {
    if (text_.size() < max_text) text_.push_back(c);
}

bool JsonScanner::take(char c) {
    switch (state_) {
        case State::string:
            if (c == '"')
                end_string();
            else if (c == '\\')
                state_ = State::escape;
            else
                keep(c);
            return true;
        case State::escape:
            state_ = State::string;
            switch (c) {
                case '"':
                case '\\':
                case '/':
                    keep(c);
                    return true;
                case 'b':
                case 'f':
                case 'n':
                case 'r':
                case 't':
                    keep(' ');
                    return true;
                case 'u':
                    state_ = State::hex;
                    code_ = 0;
                    hex_digits_ = 0;
                    return true;
            }
            return false;
        case State::hex: {
            const int value = hex_value(c);
            if (value < 0) return false;
            code_ = code_ << 4 | static_cast<std::uint32_t>(value);
            if (++hex_digits_ < 4) return true;
            keep(code_ >= 0x20 && code_ < 0x7f ? static_cast<char>(code_) : '?');
            state_ = State::string;
            return true;
        }
        case State::word:
            if (is_word(c)) {
                if (text_.size() >= max_text) return false;
                text_.push_back(c);
                return true;
            }
            return end_word() && take(c);
        case State::value:
        case State::item:
        case State::first_key:
        case State::key:
        case State::colon:
        case State::next:
        case State::done:
            break;
    }
    if (is_blank(c)) return true;
    switch (state_) {
        case State::item:
            if (c == ']') return close(false);
            return begin_value(c);
        case State::value:
            return begin_value(c);
        case State::first_key:
            if (c == '}') return close(true);
            [[fallthrough]];
        case State::key:
            if (c != '"') return false;
            string_is_key_ = true;
            text_.clear();
            state_ = State::string;
            return true;
        case State::colon:
            state_ = State::value;
            return c == ':';
        case State::next:
            if (c == ',') {
                state_ = in_object() ? State::key : State::value;
                return true;
            }
            return (c == '}' || c == ']') && close(c == '}');
        case State::done:
        case State::string:
        case State::escape:
        case State::hex:
        case State::word:
            break;
    }
    return false;
}

bool JsonScanner::begin_value(char c) {
    if (c == '{' || c == '[') return open(c == '{');
    text_.clear();
    if (c == '"') {
        string_is_key_ = false;
        state_ = State::string;
        return true;
    }
    text_.push_back(c);
    state_ = State::word;
    return is_word(c);
}

bool JsonScanner::open(bool object) {
    if (depth_ == max_depth) return false;
    const std::uint64_t bit = std::uint64_t{1} << depth_;
    objects_ = object ? objects_ | bit : objects_ & ~bit;
    ++depth_;
    taker_.open(key_, object);
    key_.clear();
    state_ = object ? State::first_key : State::item;
    return true;
}

bool JsonScanner::close(bool object) {
    if (in_object() != object) return false;
    --depth_;
    taker_.close();
    after_value();
    return true;
}

void JsonScanner::end_string() {
    if (string_is_key_) {
        key_ = text_;
        state_ = State::colon;
        return;
    }
    taker_.text(key_, text_);
    key_.clear();
    after_value();
}

bool JsonScanner::end_word() {
    if (text_ != "true" && text_ != "false" && text_ != "null") {
        const auto number = parse_number(text_);
        if (!number) return false;
        taker_.number(key_, *number);
    }
    key_.clear();
    after_value();
    return true;
}

}  // namespace sluice
