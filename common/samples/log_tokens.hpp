// SPDX-License-Identifier: GPL-2.0-or-later
//
// One line of a training log as names and the numbers that belong to them.
//
//     step 100: train loss 2.4989   number(step, 100) number(train loss, 2.4989)
//     | lm loss: 1.02E+01 |         number(lm loss, 10.2)
//     {'loss': 1.6}                 open, number(loss, 1.6), close
//     Epoch [1][50/2931] lr: 2e-2   number(Epoch, 1) count(50, 2931) number(lr, 0.02)
//     Epoch 0:   1%| | 795/77225 [  number(Epoch, 0) percent(1) count(795, 77225)
//     [rank0]: valid |              label(rank0) label(valid)
//
// A name is the run of words before the number, parted from it by blanks, ":", "=" or "is"; any
// other character ends the run, and a run without a number is a label. Dates and times yield
// nothing. Each byte is looked at a bounded number of times.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace sluice::log {

struct Token {
    enum class Kind {
        number,   ///< name (may be empty), value
        count,    ///< name (may be empty), done / total; total is 0 where it is not known
        percent,  ///< name (may be empty), value
        label,    ///< name
        open,     ///< "{", with the name before it, if any
        close,    ///< "}"
    };
    Kind kind = Kind::label;
    std::string_view name;  ///< as written, part of the line
    double value = 0;
    std::int64_t done = 0;
    std::int64_t total = 0;
    bool whole = false;    ///< digits alone, no point and no exponent
    bool clean = true;     ///< the number stands alone: no unit, no list, no file name around it
    bool grouped = false;  ///< written with thousands separators: 1,234
    bool bar = false;      ///< a progress bar follows: "27/5000 [", "1%|"
};

class TokenReader {
  public:
    explicit TokenReader(std::string_view line) : line_(line) {}

    /// The next token; nothing at the end of the line.
    std::optional<Token> next();

  private:
    struct Number {
        std::size_t end = 0;
        double value = 0;
        bool digits_only = false;
    };

    char at(std::size_t position) const { return position < line_.size() ? line_[position] : '\0'; }
    std::size_t skip_blanks(std::size_t position) const;
    std::size_t skip_digits(std::size_t position) const;
    /// The end of a word that begins here.
    std::size_t word_end(std::size_t position) const;
    std::optional<Number> number_at(std::size_t position) const;
    /// Where the number begins that a name's separator leads to: over a quote, brackets, a type
    /// such as "tensor(".
    std::size_t value_begin(std::size_t position, bool& in_list) const;
    /// The number at position_, whose name is the run, and what is glued to it.
    std::optional<Token> take_number(const Number& number, bool in_list);
    std::optional<Token> take_count(const Number& number);
    std::optional<Token> take_endless_count(const Number& number);
    void take_thousands(const Number& number, Token& token);

    std::string_view run() const { return line_.substr(run_begin_, run_end_ - run_begin_); }
    bool has_run() const { return run_end_ > run_begin_; }
    std::string_view take_run();
    Token take_label();

    std::string_view line_;
    std::size_t position_ = 0;
    std::size_t run_begin_ = 0;  ///< the words so far that may become a name
    std::size_t run_end_ = 0;
    /// Up to here groups of three digits go on, and are a list: what follows them is none.
    std::size_t list_end_ = 0;
};

}  // namespace sluice::log
