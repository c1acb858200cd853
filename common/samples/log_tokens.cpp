// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/samples/log_tokens.hpp"

#include "common/base/text.hpp"
#include "common/samples/loss_point.hpp"

namespace sluice::log {
namespace {

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}
bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_word(char c) {
    return is_letter(c) || is_digit(c);
}
bool is_blank(char c) {
    return c == ' ' || c == '\t';
}
bool is_quote(char c) {
    return c == '"' || c == '\'';
}

bool is_time_mark(char c) {
    return c == ':' || c == '-' || c == '+' || c == '.' || c == ',';
}

bool is_not_finite(std::string_view word) {
    return equal_ignoring_case(word, "nan") || equal_ignoring_case(word, "inf") ||
           equal_ignoring_case(word, "infinity");
}

}  // namespace

std::size_t TokenReader::skip_blanks(std::size_t position) const {
    while (is_blank(at(position))) ++position;
    return position;
}

std::size_t TokenReader::skip_digits(std::size_t position) const {
    while (is_digit(at(position))) ++position;
    return position;
}

// "s0.loss_cls", "train/loss", "grad-norm", "Acc@1": a mark inside a word belongs to it.
std::size_t TokenReader::word_end(std::size_t position) const {
    for (;; ++position) {
        const char c = at(position);
        if (is_word(c)) continue;
        const bool mark = c == '.' || c == '/' || c == '-' || c == '@' || c == '#';
        if (!mark || !is_word(at(position + 1))) return position;
    }
}

std::optional<TokenReader::Number> TokenReader::number_at(std::size_t position) const {
    Number number;
    std::size_t end = position;
    const bool sign = at(end) == '-' || at(end) == '+';
    if (sign) ++end;
    if (is_letter(at(end))) {
        const std::size_t begin = end;
        while (is_word(at(end))) ++end;
        if (!is_not_finite(line_.substr(begin, end - begin))) return std::nullopt;
    } else {
        const std::size_t whole = skip_digits(end);
        std::size_t digits = whole - end;
        end = whole;
        if (at(end) == '.') {
            const std::size_t fraction = skip_digits(end + 1);
            digits += fraction - (end + 1);
            // "3." is a number, but in "3..." and "3.ckpt" the point is something else's
            if (fraction > end + 1 || (!is_word(at(fraction)) && at(fraction) != '.')) {
                end = fraction;
            }
        }
        if (digits == 0) return std::nullopt;
        number.digits_only = !sign && end == whole;
        if (at(end) == 'e' || at(end) == 'E') {
            const std::size_t exponent =
                end + 1 + (at(end + 1) == '-' || at(end + 1) == '+' ? 1 : 0);
            if (is_digit(at(exponent))) {
                end = skip_digits(exponent);
                number.digits_only = false;
            }
        }
    }
    const auto value = parse_number(line_.substr(position, end - position));
    if (!value) return std::nullopt;
    number.value = *value;
    number.end = end;
    return number;
}

std::size_t TokenReader::value_begin(std::size_t position, bool& in_list) const {
    position = skip_blanks(position);
    if (at(position) == '\\') ++position;
    if (is_quote(at(position))) ++position;
    if (is_letter(at(position))) {
        const std::size_t end = word_end(position);
        if (at(end) == '(') position = end;
    }
    for (int brackets = 0; brackets < 3; ++brackets) {
        const char c = at(position);
        if (c != '(' && c != '[') break;
        in_list = in_list || c == '[';
        position = skip_blanks(position + 1);
    }
    return position;
}

std::string_view TokenReader::take_run() {
    const std::string_view name = run();
    run_begin_ = run_end_ = 0;
    return name;
}

Token TokenReader::take_label() {
    Token token;
    token.kind = Token::Kind::label;
    token.name = take_run();
    return token;
}

// tqdm's "32it [00:10, 3.1it/s]" and Keras's "32/Unknown".
std::optional<Token> TokenReader::take_endless_count(const Number& number) {
    const std::size_t begin = position_;
    std::size_t end = number.end;
    bool bar = false;
    if (line_.substr(end, 2) == "it" && !is_word(at(end + 2))) {
        end += 2;
        bar = at(skip_blanks(end)) == '[';
        if (!bar) return std::nullopt;
    } else if (line_.substr(end, 8) == "/Unknown") {
        end += 8;
    } else {
        return std::nullopt;
    }
    const auto done = parse_integer(line_.substr(begin, number.end - begin));
    if (!done || *done > max_step) return std::nullopt;
    Token token;
    token.kind = Token::Kind::count;
    token.name = take_run();
    token.done = *done;
    token.bar = bar;
    position_ = end;
    return token;
}

// "26/  500000", "5 / 356"; not "03/22/2024", "11/01 20:14:15", "40s/100".
std::optional<Token> TokenReader::take_count(const Number& number) {
    if (auto token = take_endless_count(number)) return token;
    const std::size_t begin = position_;
    std::size_t end = skip_blanks(number.end);
    if (at(end) != '/' || (begin > 0 && at(begin - 1) == '/')) return std::nullopt;
    const std::size_t total_begin = skip_blanks(end + 1);
    end = skip_digits(total_begin);
    if (is_word(at(end)) || at(end) == '/' || at(end) == '%') return std::nullopt;
    if (at(end) == '.' && is_word(at(end + 1))) return std::nullopt;
    const std::size_t next = skip_blanks(end);
    const bool date = number.end - begin == 2 && end - total_begin == 2 && next > end &&
                      skip_digits(next) == next + 2 && at(next + 2) == ':';
    if (date) return std::nullopt;
    const auto done = parse_integer(line_.substr(begin, number.end - begin));
    const auto total = parse_integer(line_.substr(total_begin, end - total_begin));
    if (!done || !total || *total < 1 || *done > *total || *total > max_step) {
        return std::nullopt;
    }
    Token token;
    token.kind = Token::Kind::count;
    token.name = take_run();
    token.done = *done;
    token.total = *total;
    token.bar = at(next) == '[';
    position_ = end;
    return token;
}

// "1,234" and "1,234.5" are one number; in "1,2" and "1,2345" the comma is a list's or a decimal
// one, and nobody can tell what the number is.
void TokenReader::take_thousands(const Number& number, Token& token) {
    if (at(number.end) != ',' || !is_digit(at(number.end + 1))) return;
    token.clean = false;
    const bool first_group = number.end - position_ <= 3 && at(position_) != '0';
    if (!first_group || number.end < list_end_) return;
    std::size_t end = number.end;
    double value = number.value;
    while (at(end) == ',' && skip_digits(end + 1) == end + 4) {
        value = value * 1000 + static_cast<double>(*parse_integer(line_.substr(end + 1, 3)));
        end += 4;
    }
    if (end == number.end) return;
    if (at(end) == ',' && is_digit(at(end + 1))) {
        list_end_ = end;
        return;
    }
    token.clean = true;
    token.grouped = true;
    if (at(end) == '.' && is_digit(at(end + 1))) {
        const std::size_t fraction = skip_digits(end + 1);
        value += *parse_number(line_.substr(end, fraction - end));
        end = fraction;
        token.grouped = false;  // a decimal point: there is no doubt
    }
    token.value = value;
    position_ = end;
}

std::optional<Token> TokenReader::take_number(const Number& number, bool in_list) {
    const char follows = at(number.end);
    const char then = at(number.end + 1);
    const bool time = follows == ':' && is_digit(then);
    if (number.digits_only && (time || (follows == '-' && is_digit(then)))) {
        // "2026-05-18T16:04:46.338Z"
        while (is_word(at(position_)) ||
               (is_time_mark(at(position_)) && is_digit(at(position_ + 1)))) {
            ++position_;
        }
        take_run();
        return std::nullopt;
    }
    if (number.digits_only) {
        if (auto count = take_count(number)) {
            return count;
        }
    }
    Token token;
    token.kind = Token::Kind::number;
    token.value = number.value;
    token.whole = number.digits_only;
    const std::size_t begin = position_;
    if (number.digits_only && !in_list) take_thousands(number, token);
    if (position_ == begin) position_ = number.end;
    token.name = take_run();
    if (at(position_) == '%') {
        token.kind = Token::Kind::percent;
        token.bar = at(skip_blanks(++position_)) == '|';
        return token;
    }
    // a unit, or the rest of something that only began like a number
    const std::size_t glued = position_;
    while (is_word(at(position_)) || at(position_) == '/' ||
           (at(position_) == '.' && is_word(at(position_ + 1)))) {
        ++position_;
    }
    if (position_ > glued || at(position_) == ':') {
        token.clean = position_ == glued && !is_digit(at(position_ + 1));
    }
    if (in_list && at(skip_blanks(position_)) == ',') token.clean = false;
    return token;
}

std::optional<Token> TokenReader::next() {
    while (position_ < line_.size()) {
        const char c = line_[position_];
        if (c == ' ') {
            ++position_;
            continue;
        }
        if (c == '\t') {  // columns: a name does not go on in the next one, its number may be there
            position_ = skip_blanks(position_);
            if (has_run() && is_letter(at(position_)) && !number_at(position_)) return take_label();
            continue;
        }
        if (is_letter(c)) {
            const std::size_t begin = position_;
            const std::size_t end = word_end(begin);
            const std::string_view word = line_.substr(begin, end - begin);
            if (has_run()) {
                if (is_not_finite(word) && !is_letter(at(skip_blanks(end)))) {
                    if (const auto number = number_at(begin)) {
                        if (auto token = take_number(*number, false)) return token;
                        continue;
                    }
                }
                if (word == "is" || at(end) == '(') {  // "loss is 2.5", "loss tensor(2.5)"
                    bool in_list = false;
                    const std::size_t value = value_begin(end, in_list);
                    if (const auto number = number_at(value)) {
                        position_ = value;
                        if (auto token = take_number(*number, in_list)) return token;
                        continue;
                    }
                }
            } else {
                run_begin_ = begin;
            }
            run_end_ = end;
            position_ = end;
            continue;
        }
        if (is_digit(c) || c == '.' || c == '-' || c == '+') {
            const bool inside = position_ > 0 && is_word(line_[position_ - 1]);
            const auto number = inside && !is_digit(c) ? std::nullopt : number_at(position_);
            if (number) {
                if (auto token = take_number(*number, false)) return token;
                continue;
            }
        }
        if (c == ':' || c == '=') {
            std::size_t after = position_ + 1;
            while (after < position_ + 3 &&
                   (at(after) == ':' || at(after) == '=' || at(after) == '>')) {
                ++after;
            }
            if (!has_run()) {
                position_ = after;
                continue;
            }
            bool in_list = false;
            const std::size_t value = value_begin(after, in_list);
            if (const auto number = number_at(value)) {
                position_ = value;
                if (auto token = take_number(*number, in_list)) return token;
                continue;
            }
            position_ = skip_blanks(after);
            if (at(position_) != '{') return take_label();
            ++position_;
            Token token = take_label();
            token.kind = Token::Kind::open;
            return token;
        }
        if (c == '\\' && is_quote(at(position_ + 1))) {  // JSON inside a JSON text
            ++position_;
            continue;
        }
        if (is_quote(c) && has_run()) {
            const char follows = at(skip_blanks(position_ + 1));
            if (follows == ':' || follows == '=') {  // the end of a quoted name
                ++position_;
                continue;
            }
        }
        if (c == '[' && has_run()) {  // "Epoch [1]"
            const std::size_t value = skip_blanks(position_ + 1);
            const auto number = number_at(value);
            if (number && is_digit(at(value))) {
                position_ = value;
                if (auto token = take_number(*number, true)) return token;
                continue;
            }
        }
        if (has_run()) return take_label();  // and come back to this character
        ++position_;
        if (c == '\\' && is_letter(at(position_))) ++position_;  // "\n" written out
        if (c == '{' || c == '}') {
            Token token;
            token.kind = c == '{' ? Token::Kind::open : Token::Kind::close;
            return token;
        }
    }
    if (has_run()) return take_label();
    return std::nullopt;
}

}  // namespace sluice::log
