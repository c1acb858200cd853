// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/samples/loss_reader.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/base/text.hpp"
#include "common/samples/csv_columns.hpp"
#include "common/samples/epoch_steps.hpp"
#include "common/samples/log_line.hpp"

namespace sluice {
namespace {

using Format = LossReaderOptions::Format;

/// Whether a line can hold a loss or a step, as the tables of log_names spell them. Most lines of
/// most logs hold neither, so this pass decides how fast a log is read: eight places at a time are
/// compared with each word.
class Hints {
  public:
    static bool any(std::string_view line) {
        if (line.size() < block) return true;  // not worth the while
        const char* const last = line.data() + line.size() - block;
        for (const char* place = line.data(); place < last; place += 8) {
            if (words_at(place) != 0) return true;
        }
        return words_at(last) != 0 || has_count(line);
    }

  private:
    static constexpr std::size_t block = 8 + 3;  ///< eight words of four bytes, overlapping

    static constexpr std::uint64_t each_byte(char c) {
        return 0x0101010101010101U * static_cast<unsigned char>(c);
    }

    /// Eight bytes, letters in lower case.
    static std::uint64_t load(const char* bytes) {
        std::uint64_t value;
        std::memcpy(&value, bytes, sizeof value);
        return value | each_byte(0x20);
    }

    struct Word {
        std::uint64_t first, second, third, fourth;
    };
    static constexpr Word word(const char (&text)[5]) {
        const auto each = [](char c) { return each_byte(static_cast<char>(c | 0x20)); };
        return {each(text[0]), each(text[1]), each(text[2]), each(text[3])};
    }

    /// Not 0 where a word begins in one of the eight places.
    static std::uint64_t words_at(const char* place) {
        const Word bytes{load(place), load(place + 1), load(place + 2), load(place + 3)};
        const auto begins = [&bytes](Word word) {
            const std::uint64_t differs = (bytes.first ^ word.first) |
                                          (bytes.second ^ word.second) |
                                          (bytes.third ^ word.third) | (bytes.fourth ^ word.fourth);
            return (differs - each_byte(1)) & ~differs & each_byte('\x80');
        };
        return begins(word("loss")) | begins(word("step")) | begins(word("iter")) |
               begins(word("epoc")) | begins(word("date")) |  // num_updates
               begins(word("it ["));                          // a bar without a total
    }

    /// Something like "27/5000" or "5 / 356".
    static bool has_count(std::string_view line) {
        const auto fits = [&](std::size_t i) {
            return i < line.size() && (line[i] == ' ' || (line[i] >= '0' && line[i] <= '9'));
        };
        for (std::size_t i = line.find('/'); i != std::string_view::npos;
             i = line.find('/', i + 1)) {
            if (i > 0 && fits(i - 1) && fits(i + 1)) return true;
        }
        return false;
    }
};

/// Takes terminal control sequences out: "\33[31mloss\33[0m" is "loss".
void strip_control_sequences(std::string_view line, std::string& out) {
    out.clear();
    for (std::size_t i = 0; i < line.size();) {
        if (line[i] != '\33') {
            out.push_back(line[i++]);
            continue;
        }
        const char kind = ++i < line.size() ? line[i] : '\0';
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
        : options_(std::move(options)), names_(options_.key, options_.max_keys_seen) {}

    void feed(std::string_view bytes, std::vector<LossPoint>& out) {
        // Where the next of each line end is, remembered: a log without \r is searched for it once.
        std::size_t newline = find(bytes, '\n', 0);
        std::size_t carriage_return = find(bytes, '\r', 0);
        std::size_t begin = 0;
        while (begin < bytes.size()) {
            const std::size_t end = std::min(newline, carriage_return);
            const std::string_view piece = bytes.substr(begin, end - begin);
            if (end == bytes.size()) {
                keep(piece);
                return;
            }
            if (partial_.empty()) {
                line(piece, out);
            } else {
                keep(piece);
                line(partial_, out);
                partial_.clear();
            }
            begin = end + 1;
            if (newline < begin) newline = find(bytes, '\n', begin);
            if (carriage_return < begin) carriage_return = find(bytes, '\r', begin);
        }
    }

    void finish(std::vector<LossPoint>& out) {
        if (!partial_.empty()) line(partial_, out);
        partial_.clear();
        flush(out);
    }

    std::optional<std::int64_t> last_step() const { return last_step_; }
    const std::vector<std::string>& keys_seen() const { return names_.keys_seen(); }

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

    void keep(std::string_view piece) {
        partial_.append(piece.substr(0, options_.max_line_bytes - partial_.size()));
    }

    void line(std::string_view text, std::vector<LossPoint>& out) {
        if (text.size() >= options_.max_line_bytes) {
            // without the last word: it may be half a number
            text = text.substr(0, options_.max_line_bytes);
            text = text.substr(0, std::min(text.find_last_of(" ,"), text.size()));
        }
        if (text.empty()) return;
        ++lines_;
        // names are collected from the first lines only, or a log without a loss would be slow
        const bool collecting = lines_ <= 4096 && !names_.keys_full();
        if (names_.recognised() && !collecting && !columns_.active() && !Hints::any(text)) {
            return;
        }
        if (text.find('\33') != std::string_view::npos) {
            strip_control_sequences(text, stripped_);
            text = stripped_;
        }
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
            log::LineReading bar = log::read_line(text.substr(0, end), names_);
            if (!whole(bar) || !whole(log::read_line(text.substr(end), names_))) break;
            if (!bar.process) bar.process = label;
            take(bar, out);
            text.remove_prefix(end);
        }
        log::LineReading reading = log::read_line(text, names_);
        if (!reading.process) reading.process = label;
        take(reading, out);
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
    log::CsvColumns columns_;
    log::EpochSteps steps_;
    std::string partial_;   ///< the line that has begun
    std::string stripped_;  ///< a line without control sequences
    std::int64_t lines_ = 0;
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

Result<LossSource> parse_loss_source(std::string_view text) {
    LossSource source;
    std::string_view path = text;
    struct Prefix {
        std::string_view text;
        Format format;
    };
    for (const Prefix& prefix :
         {Prefix{"csv:", Format::csv}, Prefix{"jsonl:", Format::json_lines}}) {
        if (text.substr(0, prefix.text.size()) != prefix.text) continue;
        source.format = prefix.format;
        path.remove_prefix(prefix.text.size());
    }
    const auto bad = [&](const char* why) {
        return Error{
            ErrorCode::bad_input,
            "loss source \"" + printable(text) + "\" " + why +
                ": write PATH, csv:PATH or jsonl:PATH (./csv:PATH for a file of that name)"};
    };
    if (path.empty()) return bad("names no file");
    for (const std::string_view later : {"tfevents:", "mlflow:"}) {
        if (path.substr(0, later.size()) == later) return bad("is of a kind that is not read yet");
    }
    if (path.size() > 4096) return bad("is longer than 4096 bytes");
    for (const char c : path) {
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
            return bad("holds a control character");
    }
    source.path = std::string(path);
    return source;
}

}  // namespace sluice
