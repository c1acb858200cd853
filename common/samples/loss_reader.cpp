// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/samples/loss_reader.hpp"

#include <algorithm>
#include <utility>

#include "common/base/text.hpp"
#include "common/samples/csv_columns.hpp"
#include "common/samples/epoch_steps.hpp"
#include "common/samples/line_hints.hpp"
#include "common/samples/log_line.hpp"

namespace sluice {
namespace {

using Format = LossReaderOptions::Format;

/// Takes terminal control sequences out: "\33[31mloss\33[0m" is "loss".
void strip_control_sequences(std::string_view line, std::string& out) {
    out.clear();
    for (std::size_t i = 0; i < line.size();) {
        const std::size_t escape = std::min(line.find('\33', i), line.size());
        out.append(line, i, escape - i);
        if (escape == line.size()) return;
        i = escape + 1;
        const char kind = i < line.size() ? line[i] : '\0';
        if (kind == '[') {  // up to a byte of 0x40..0x7e
            ++i;
            while (i < line.size() && line[i] >= 0x20 && line[i] < 0x40) ++i;
            if (i < line.size() && line[i] >= 0x40) ++i;
        } else if (kind == ']') {  // a title or a link, up to BEL or ESC
            while (i < line.size() && line[i] != '\a' && line[i] != '\33') ++i;
            if (i < line.size() && line[i] == '\a') ++i;
        } else if (kind >= 0x20) {
            ++i;
        }
    }
}

/// Behind the "]" of a bar as tqdm draws it, "27/5000 [00:17<37:10, 2.23it/s, loss=0.08]", where
/// something follows; npos where there is no such bar.
std::size_t bar_end(std::string_view line) {
    const std::size_t less = line.find('<');
    if (less == std::string_view::npos) return less;
    std::size_t begin = less;
    while (begin > 0 && ((line[begin - 1] >= '0' && line[begin - 1] <= ':'))) --begin;
    if (begin == less || begin == 0 || line[begin - 1] != '[') return std::string_view::npos;
    int depth = 1;
    for (std::size_t i = begin; i < line.size(); ++i) {
        if (line[i] == '[') ++depth;
        if (line[i] == ']' && --depth == 0) {
            return trim(line.substr(i + 1)).empty() ? std::string_view::npos : i + 1;
        }
    }
    return std::string_view::npos;
}

/// `srun --label` begins each line with "3: ".
std::optional<std::int64_t> srun_label(std::string_view line) {
    const std::string_view text = line.substr(0, 16);
    const std::size_t colon = text.find(':');
    if (colon == std::string_view::npos || text.substr(colon, 2) != ": ") return std::nullopt;
    const auto rank = parse_integer(trim(text.substr(0, colon)));
    return rank && *rank >= 0 ? rank : std::nullopt;
}

}  // namespace

class LossReader::Impl {
  public:
    explicit Impl(LossReaderOptions options)
        : options_(std::move(options)),
          names_(options_.key, options_.pattern, options_.max_keys_seen),
          hints_(names_.key()) {}

    void feed(std::string_view bytes, std::vector<LossPoint>& out) {
        if (!partial_.empty()) {
            const std::size_t end = std::min(find(bytes, '\n', 0), find(bytes, '\r', 0));
            keep(bytes.substr(0, end));
            if (end == bytes.size()) return;
            line(partial_, out);
            partial_.clear();
            bytes.remove_prefix(end + 1);
        }
        const std::size_t whole = after_last_end(bytes, 0, bytes.size());
        lines(bytes.substr(0, whole), out);
        keep(bytes.substr(whole));
    }

    void learn_columns(std::string_view before) {
        if (options_.format != Format::csv && options_.format != Format::automatic) return;
        const bool certain = options_.format == Format::automatic;
        while (!before.empty()) {
            const std::size_t end = std::min(before.find_first_of("\n\r"), before.size());
            const std::string_view line = before.substr(0, end);
            if (!line.empty() && line.size() < options_.max_line_bytes)
                columns_.take_header(line, certain, names_);
            before.remove_prefix(std::min(end + 1, before.size()));
        }
    }

    void finish(std::vector<LossPoint>& out) {
        if (!partial_.empty()) line(partial_, out);
        partial_.clear();
        flush(out);
    }

    std::optional<std::int64_t> last_step() const { return last_step_; }
    const std::vector<std::string>& keys_seen() const { return names_.keys_seen(); }
    std::int64_t cut_lines() const { return cut_lines_; }

  private:
    /// A point that a line yet to come may replace: it repeats the step.
    struct Pending {
        LossPoint point;
        int loss_rank = 0;
        std::optional<std::int64_t> process;
    };

    static std::size_t find(std::string_view bytes, char c, std::size_t begin) {
        return std::min(bytes.find(c, begin), bytes.size());
    }

    /// Behind the last line end in [begin, end); `begin` where there is none.
    static std::size_t after_last_end(std::string_view bytes, std::size_t begin, std::size_t end) {
        while (end > begin && bytes[end - 1] != '\n' && bytes[end - 1] != '\r') --end;
        return end;
    }

    /// Whole lines, each with its end.
    void lines(std::string_view bytes, std::vector<LossPoint>& out) {
        // Where the next of each line end is, remembered: a log without \r is searched for it once.
        std::size_t newline = find(bytes, '\n', 0);
        std::size_t carriage_return = find(bytes, '\r', 0);
        for (std::size_t begin = 0; begin < bytes.size();) {
            if (only_hints()) {
                const std::size_t hint = hints_.find(bytes, begin);
                if (hint == std::string_view::npos) return pass(bytes.substr(begin));
                const std::size_t start = after_last_end(bytes, begin, hint);
                pass(bytes.substr(begin, start - begin));
                begin = start;
            }
            if (newline < begin) newline = find(bytes, '\n', begin);
            if (carriage_return < begin) carriage_return = find(bytes, '\r', begin);
            const std::size_t end = std::min(newline, carriage_return);
            line(bytes.substr(begin, end - begin), out);
            begin = end + 1;
        }
    }

    /// Lines with a hint are enough: the names of those without are of no more interest.
    bool only_hints() const {
        return !options_.every_line && options_.format != Format::csv && hints_.usable() &&
               !options_.pattern && !collecting() && !columns_.active();
    }

    /// Names are collected from all of the first lines, or until there are many; then from lines
    /// with a step or something like a loss.
    bool collecting() const { return lines_ <= 4096 && !names_.half_full(); }

    /// Passes over lines that hold nothing. How many there are matters near a step that may belong
    /// to the next loss.
    void pass(std::string_view bytes) {
        for (std::size_t begin = 0; carried_ && lines_ - carried_->line <= 2;) {
            const std::size_t end = bytes.find_first_of("\n\r", begin);
            if (end == std::string_view::npos) return;
            if (end > begin) ++lines_;
            begin = end + 1;
        }
    }

    void keep(std::string_view piece) {
        partial_.append(piece.substr(0, options_.max_line_bytes - partial_.size()));
    }

    void line(std::string_view text, std::vector<LossPoint>& out) {
        if (text.size() >= options_.max_line_bytes) {
            ++cut_lines_;
            // without the last word: it may be half a number
            text = text.substr(0, options_.max_line_bytes);
            text = text.substr(0, std::min(text.find_last_of(" ,"), text.size()));
        }
        if (text.empty()) return;
        ++lines_;
        if (text.find('\33') != std::string_view::npos) {
            strip_control_sequences(text, stripped_);
            text = stripped_;
        }
        if (only_hints() && hints_.find(text) == std::string_view::npos) return;
        if (options_.format == Format::csv || options_.format == Format::automatic) {
            const bool certain = options_.format == Format::automatic;
            if (columns_.take_header(text, certain, names_)) return;
            if (auto reading = columns_.row(text)) {
                reading->row = true;
                return take(*reading, out);
            }
            if (options_.format == Format::csv) return;
        }
        if (options_.format == Format::json_lines && trim(text).substr(0, 1) != "{") return;
        read(text, out);
    }

    /// A progress bar does not end its line, so what is printed next stands behind it. Where both
    /// tell a loss and a step of their own they are two lines.
    void read(std::string_view text, std::vector<LossPoint>& out) {
        constexpr int most_bars = 8;  // more are in a line that nobody means well with
        const std::optional<std::int64_t> label = srun_label(text);
        const auto whole = [](const log::LineReading& reading) {
            return reading.loss && (reading.step || reading.epoch_progress);
        };
        for (int bars = 0; bars < most_bars; ++bars) {
            const std::size_t end = bar_end(text);
            if (end == std::string_view::npos) break;
            log::LineReading bar = read_names(text.substr(0, end));
            if (!whole(bar) || !whole(read_names(text.substr(end)))) break;
            if (!bar.process) bar.process = label;
            take(bar, out);
            text.remove_prefix(end);
        }
        log::LineReading reading = read_names(text);
        if (!reading.process) reading.process = label;
        take(reading, out);
    }

    log::LineReading read_names(std::string_view text) {
        using Collect = log::NameTable::Collect;
        names_.collect(collecting() ? Collect::some : Collect::none);
        const log::LineReading reading = log::read_line(text, names_);
        const bool of_interest = reading.loss || reading.progress || names_.missed_loss();
        const bool again = names_.missed() && of_interest;
        names_.collect(Collect::all);
        if (again) log::read_line(text, names_);
        return reading;
    }

    void take(const log::LineReading& reading, std::vector<LossPoint>& out) {
        // a heading such as "Epoch 2/5" speaks of the lines below it, a whole report of itself
        const bool heading = !reading.step || !reading.loss;
        if (reading.epoch && heading) epoch_ = reading.epoch;
        steps_.take_settings(reading);
        std::optional<std::int64_t> step;
        if (reading.step && (reading.progress || reading.loss)) {
            step = steps_.over_epochs(reading, reading.epoch ? reading.epoch : epoch_);
            last_step_ = std::max(last_step_.value_or(0), *step);
        }
        if (reading.loss) {
            step = step_of_loss(reading, step);
            if (!step && (step = steps_.of_epoch(reading)))
                last_step_ = std::max(last_step_.value_or(0), *step);
            point({step, *reading.loss}, reading, out);
        } else if (step) {
            carry(reading, *step);
        }
    }

    /// A step that stands on a line of its own belongs to the loss that comes next: the progress
    /// bar before the Hugging Face trainer's "{'loss': 1.6}", "[step=10]" before a block of
    /// metrics.
    struct Carried {
        std::int64_t step = 0;
        log::StepKind kind = log::StepKind::step;
        std::int64_t line = 0;
        bool used = false;  ///< a loss has it
        int loss_rank = 0;  ///< of that loss
    };

    void carry(const log::LineReading& reading, std::int64_t step) {
        if (reading.step_kind == log::StepKind::count) {
            // the bar of an evaluation is shorter than that of the run
            if (reading.total < longest_bar_) return;
            longest_bar_ = reading.total;
        }
        carried_ = Carried{step, reading.step_kind, lines_};
    }

    std::optional<std::int64_t> step_of_loss(const log::LineReading& reading,
                                             std::optional<std::int64_t> step) {
        // "Training Step: 8 | total loss: 2.1" and, below it, "epoch: 001 | loss: 2.0 -- iter:
        // 00512/55000": one step
        const bool below = carried_ && lines_ - carried_->line <= 2 && carried_->used &&
                           carried_->kind < reading.step_kind && reading.total > 0 &&
                           reading.epoch && reading.step_kind < log::StepKind::count &&
                           reading.loss_rank < carried_->loss_rank;
        if (step && !below) {
            carried_ = Carried{*step, reading.step_kind, lines_, true, reading.loss_rank};
            return step;
        }
        if (!carried_ || reading.row || (!step && carried_->used)) return std::nullopt;
        // a line that knows its epoch is the next line of nothing but a bar
        if (!step && reading.epoch_progress && carried_->kind != log::StepKind::count)
            return std::nullopt;
        carried_->used = true;
        return carried_->step;
    }

    void point(const LossPoint& point, const log::LineReading& reading,
               std::vector<LossPoint>& out) {
        const bool ranks = reading.process && pending_ && pending_->process &&
                           *reading.process != *pending_->process;
        if (point.step && pending_ && pending_->point.step) {
            if (*point.step == *pending_->point.step) {
                if (replaces(point, reading)) {
                    pending_ = Pending{point, reading.loss_rank, reading.process};
                }
                return;
            }
            // another rank that is late; a restart begins again on every rank
            if (ranks && *point.step < *pending_->point.step) return;
        }
        if (!point.step && ranks && *reading.process > *pending_->process) return;
        flush(out);
        pending_ = Pending{point, reading.loss_rank, reading.process};
    }

    /// Of two losses of one step: the more exact name, then the lower rank, then the later line (a
    /// progress bar is first drawn with the old loss).
    bool replaces(const LossPoint& point, const log::LineReading& reading) const {
        if (reading.loss_rank != pending_->loss_rank) {
            return reading.loss_rank < pending_->loss_rank;
        }
        if (!reading.process || !pending_->process || *reading.process == *pending_->process) {
            return true;
        }
        // ranks without the last pipeline stage print -1
        const bool placeholder = pending_->point.loss < 0;
        if (placeholder != (point.loss < 0)) return placeholder;
        return *reading.process < *pending_->process;
    }

    void flush(std::vector<LossPoint>& out) {
        if (pending_) out.push_back(pending_->point);
        pending_.reset();
    }

    LossReaderOptions options_;
    log::NameTable names_;
    log::LineHints hints_;
    log::CsvColumns columns_;
    log::EpochSteps steps_;
    std::string partial_;   ///< the line that has begun
    std::string stripped_;  ///< a line without control sequences
    std::int64_t lines_ = 0;
    std::int64_t cut_lines_ = 0;
    std::optional<std::int64_t> epoch_;
    std::optional<std::int64_t> last_step_;
    std::optional<Carried> carried_;
    std::int64_t longest_bar_ = 0;
    std::optional<Pending> pending_;
};

LossReader::LossReader(LossReaderOptions options)
    : impl_(std::make_unique<Impl>(std::move(options))) {}
LossReader::~LossReader() = default;
LossReader::LossReader(LossReader&&) noexcept = default;
LossReader& LossReader::operator=(LossReader&&) noexcept = default;

void LossReader::learn_columns(std::string_view before) {
    impl_->learn_columns(before);
}

void LossReader::feed(std::string_view bytes, std::vector<LossPoint>& out) {
    impl_->feed(bytes, out);
}

void LossReader::finish(std::vector<LossPoint>& out) {
    impl_->finish(out);
}

std::optional<std::int64_t> LossReader::last_step() const {
    return impl_->last_step();
}

const std::vector<std::string>& LossReader::keys_seen() const {
    return impl_->keys_seen();
}

std::int64_t LossReader::cut_lines() const {
    return impl_->cut_lines();
}

}  // namespace sluice
