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
            if (const auto reading = columns_.row(text)) return take(*reading, out);
            if (options_.format == Format::csv) return;
        }
        if (options_.format == Format::json_lines && trim(text).substr(0, 1) != "{") return;
        log::LineReading reading = log::read_line(text, names_);
        if (!reading.process) reading.process = srun_label(text);
        take(reading, out);
    }

    void take(const log::LineReading& reading, std::vector<LossPoint>& out) {
        if (reading.epoch) epoch_ = reading.epoch;
        std::optional<std::int64_t> step;
        if (reading.step && (reading.progress || reading.loss)) {
            step = steps_.over_epochs(reading, epoch_);
            last_step_ = std::max(last_step_.value_or(0), *step);
        }
        if (reading.loss) {
            point({step_of_loss(reading, step), *reading.loss}, reading, out);
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
        bool used = false;
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
        // "Training Step: 8 | ..." and, below it, "epoch: 001 | ... iter: 00512/55000": one step
        const bool within_epoch =
            reading.step_kind >= log::StepKind::count || (reading.total > 0 && reading.epoch);
        const bool below = carried_ && lines_ - carried_->line <= 2 &&
                           carried_->kind < reading.step_kind && within_epoch;
        if (step && !below) {
            carried_ = Carried{*step, reading.step_kind, lines_, true};
        } else if (!step && carried_ && carried_->used) {
            return std::nullopt;
        }
        if (!carried_) return std::nullopt;
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
