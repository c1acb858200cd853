// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/samples/log_line.hpp"

#include <array>
#include <cmath>
#include <utility>

#include "common/samples/log_tokens.hpp"
#include "common/samples/loss_point.hpp"

namespace sluice::log {
namespace {

/// Reads the tokens of one line from left to right.
class LineReader {
  public:
    explicit LineReader(NameTable& names) : names_(names) {}

    void take(const Token& token) {
        const std::optional<int> behind = std::exchange(loss_behind_, std::nullopt);
        switch (token.kind) {
            case Token::Kind::number:
                take_number(token, names_.facts_of_number(token.name));
                if (token.name.empty() && behind && token.clean) take_loss(token.value, *behind);
                break;
            case Token::Kind::count:
                take_count(token, names_.facts_of_number(token.name));
                break;
            case Token::Kind::percent:
                enter(names_.facts_of_number(token.name));
                if (token.bar) in_other_bar_ = other_name_;
                break;
            case Token::Kind::label: {
                const NameFacts& facts = names_.facts(token.name);
                if (facts.process) reading_.process = facts.process;
                enter(facts);
                break;
            }
            case Token::Kind::open:
                if (depth_ < scopes_.size()) scopes_[depth_] = scope_;
                ++depth_;
                if (const auto scope = names_.facts(token.name).scope) scope_ = *scope;
                break;
            case Token::Kind::close:
                if (depth_ == 0) break;
                --depth_;
                if (depth_ < scopes_.size()) scope_ = scopes_[depth_];
                break;
        }
    }

    LineReading reading() {
        if (summary_ && !names_.own_key()) reading_.loss.reset();
        const bool none_better = !reading_.step || StepKind::count < reading_.step_kind;
        if (count_.step && none_better && (!count_.other || reading_.loss)) {
            reading_.step = count_.step;
            reading_.step_kind = StepKind::count;
            reading_.total = count_.total;
            reading_.progress = count_.progress;
        }
        return reading_;
    }

  private:
    void enter(const NameFacts& facts) {
        if (facts.empty) return;
        if (facts.scope) scope_ = *facts.scope;
        summary_ = summary_ || facts.summary;
        if (!facts.process) other_name_ = !facts.counts_training();
    }

    bool left_out() const { return scope_ == Scope::validation && !names_.own_key(); }

    void take_number(const Token& token, const NameFacts& facts) {
        enter(facts);
        if (!token.clean || left_out()) return;
        const auto whole = as_step(token.value);
        if (facts.rank) reading_.process = whole;
        if (facts.loss_rank && !token.grouped) take_loss(token.value, *facts.loss_rank);
        if (facts.setting && token.value >= 1) take_setting(*facts.setting, token.value);
        if (facts.epoch && token.value >= 0 && !reading_.epoch_progress)
            reading_.epoch_progress = token.value;
        if (!whole) return;
        // 0.5 and 1.0 are progress, not the number of an epoch
        if (facts.epoch && token.whole && !reading_.epoch) reading_.epoch = whole;
        if (facts.step) {
            take_step(*whole, 0, *facts.step);
            loss_behind_ = facts.loss_behind;
        }
    }

    void take_count(const Token& token, const NameFacts& facts) {
        enter(facts);
        if (left_out()) return;
        if (facts.epoch) {
            if (!reading_.epoch) reading_.epoch = token.done;
            if (!reading_.epoch_progress) reading_.epoch_progress = static_cast<double>(token.done);
        } else if (facts.step) {
            take_step(token.done, token.total, *facts.step);
        } else if (facts.empty || facts.scope == Scope::training) {
            // of several the longest is the run's or the epoch's own
            if (count_.step && token.total <= count_.total) return;
            count_.step = token.done;
            count_.total = token.total;
            count_.other = in_other_bar_;
            count_.progress = !count_.other && (token.bar || !facts.empty);
        }
    }

    void take_setting(Setting setting, double value) {
        switch (setting) {
            case Setting::epoch_length:
                reading_.epoch_length = value;
                break;
            case Setting::all_epochs:
                reading_.all_epochs = value;
                break;
            case Setting::all_steps:
                reading_.all_steps = value;
                break;
        }
    }

    void take_loss(double value, int rank) {
        if (reading_.loss && rank >= reading_.loss_rank) return;
        reading_.loss = value;
        reading_.loss_rank = rank;
    }

    void take_step(std::int64_t value, std::int64_t total, StepKind kind) {
        if (reading_.step && kind >= reading_.step_kind) return;
        reading_.step = value;
        reading_.step_kind = kind;
        reading_.total = total;
        reading_.progress = kind < StepKind::batch || total > 0;
    }

    NameTable& names_;
    LineReading reading_;
    Scope scope_ = Scope::training;
    std::array<Scope, 8> scopes_{};  ///< of the objects around this one; deeper ones inherit
    std::size_t depth_ = 0;
    std::optional<int> loss_behind_;
    bool summary_ = false;
    bool other_name_ = false;    ///< the last name has nothing to do with training
    bool in_other_bar_ = false;  ///< "Loading checkpoint shards: 50%| | 1/2"
    struct {
        std::optional<std::int64_t> step;
        std::int64_t total = 0;
        bool other = false;
        bool progress = false;
    } count_;  ///< the longest n/m without a name
};

}  // namespace

std::optional<std::int64_t> as_step(double value) {
    if (!(value >= 0 && value <= static_cast<double>(max_step)) || std::floor(value) != value)
        return std::nullopt;
    return static_cast<std::int64_t>(value);
}

LineReading read_line(std::string_view line, NameTable& names) {
    LineReader reader(names);
    TokenReader tokens(line);
    while (const auto token = tokens.next()) reader.take(*token);
    return reader.reading();
}

}  // namespace sluice::log
