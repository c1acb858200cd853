// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/samples/loss_feed.hpp"

#include <algorithm>
#include <utility>

#include "common/base/text.hpp"
#include "common/samples/event_feed.hpp"
#include "common/samples/text_feed.hpp"
#include "common/samples/trainer_state.hpp"

namespace sluice {
namespace {

using Format = LossReaderOptions::Format;
using Kind = LossSource::Kind;

struct Prefix {
    std::string_view text;
    Kind kind;
    Format format = Format::automatic;
};
constexpr Prefix prefixes[] = {
    {"csv:", Kind::log, Format::csv}, {"jsonl:", Kind::log, Format::json_lines},
    {"tfevents:", Kind::events},      {"state:", Kind::trainer_state},
    {"mlflow:", Kind::mlflow},
};
constexpr std::size_t max_run_bytes = 64;

bool is_run(std::string_view text) {
    return text.size() <= max_run_bytes && std::all_of(text.begin(), text.end(), [](char c) {
               const char lower = static_cast<char>(c | 0x20);
               return (c >= '0' && c <= '9') || (lower >= 'a' && lower <= 'z') || c == '-' ||
                      c == '_';
           });
}

/// "[RUN][@URI]"; the reason why it is none, or "".
const char* read_mlflow(std::string_view text, LossSource& source) {
    const std::size_t at = text.find('@');
    source.run = text.substr(0, at);
    if (!is_run(source.run)) return "names no run: the id of one is 1 to 64 letters and digits";
    if (at == std::string_view::npos) return "";
    std::string_view uri = text.substr(at + 1);
    while (uri.ends_with('/')) uri.remove_suffix(1);
    const std::size_t host = uri.starts_with("http://")    ? 7
                             : uri.starts_with("https://") ? 8
                                                           : std::string_view::npos;
    if (host == std::string_view::npos || host >= uri.size())
        return "names no server: its address begins with http:// or https://";
    if (uri.find_first_of("@?# \"\\") != std::string_view::npos)
        return "has more than an address: no user, password or query belongs there";
    source.uri = uri;
    return "";
}

std::string_view last_part(std::string_view path) {
    return path.substr(path.find_last_of('/') + 1);  // npos + 1 is 0
}

void known_by_name(std::string_view name, LossSource& source) {
    if (name.ends_with("trainer_state.json")) source.kind = Kind::trainer_state;
    if (name.find(".tfevents.") != std::string_view::npos) source.kind = Kind::events;
    if (name.ends_with(".csv")) source.format = Format::csv;
    if (name.ends_with(".jsonl")) source.format = Format::json_lines;
}

class ToldOrRead final : public LossFeed {
  public:
    ToldOrRead(std::unique_ptr<LossFeed> told, std::unique_ptr<LossFeed> read)
        : told_(std::move(told)), read_(std::move(read)) {}

    Poll poll(double now_s) override {
        Poll told = told_->poll(now_s);
        if (heard_) return told;
        if (!told.points.empty()) {
            heard_ = true;
            told.restarted = true;
            return told;
        }
        // A file that nobody has written to yet is no problem.
        Poll read = read_->poll(now_s);
        read.more = read.more || told.more;
        return read;
    }
    std::vector<LossPoint> finish() override { return current().finish(); }
    std::optional<std::int64_t> last_step() const override { return current().last_step(); }
    const std::vector<std::string>& keys_seen() const override { return current().keys_seen(); }
    std::string name() const override { return current().name(); }

  private:
    LossFeed& current() const { return heard_ ? *told_ : *read_; }

    std::unique_ptr<LossFeed> told_;
    std::unique_ptr<LossFeed> read_;
    bool heard_ = false;
};

class BrokenFeed final : public LossFeed {
  public:
    BrokenFeed(std::string name, std::string problem)
        : name_(std::move(name)), problem_(std::move(problem)) {}

    Poll poll(double) override { return {{}, false, false, false, problem_}; }
    std::optional<std::int64_t> last_step() const override { return std::nullopt; }
    const std::vector<std::string>& keys_seen() const override { return none_; }
    std::string name() const override { return name_; }

  private:
    const std::string name_;
    const std::string problem_;
    const std::vector<std::string> none_;
};

}  // namespace

Result<LossSource> parse_loss_source(std::string_view text) {
    LossSource source;
    const auto bad = [&](const char* why) {
        return Error{ErrorCode::bad_input,
                     "loss source \"" + printable(text) + "\" " + why +
                         ": write PATH, csv:PATH, jsonl:PATH, tfevents:PATH, state:PATH or "
                         "mlflow:[RUN][@URI] (./csv:PATH for a file of that name)"};
    };
    for (const char c : text) {
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
            return bad("holds a control character");
    }
    if (text.size() > 4096) return bad("is longer than 4096 bytes");
    std::string_view path = text;
    bool prefixed = false;
    for (const Prefix& prefix : prefixes) {
        if (!text.starts_with(prefix.text)) continue;
        source.kind = prefix.kind;
        source.format = prefix.format;
        path.remove_prefix(prefix.text.size());
        prefixed = true;
    }
    if (source.kind == Kind::mlflow) {
        const char* const why = read_mlflow(path, source);
        if (*why != '\0') return bad(why);
        return source;
    }
    if (path.empty()) return bad("names no file");
    if (!prefixed) known_by_name(last_part(path), source);
    source.path = std::string(path);
    return source;
}

std::unique_ptr<LossFeed> open_file_feed(const LossSource& source, const LossReaderOptions& options,
                                         const LogMark& begin) {
    switch (source.kind) {
        case Kind::log: {
            LossReaderOptions of_log = options;
            of_log.format = source.format;
            return std::make_unique<TextFeed>(source.path, of_log, begin);
        }
        case Kind::events:
            return std::make_unique<EventFeed>(source.path, options);
        case Kind::trainer_state:
            return std::make_unique<TrainerStateFeed>(source.path, options);
        case Kind::mlflow:
            break;
    }
    return nullptr;
}

std::unique_ptr<LossFeed> broken_feed(std::string name, std::string problem) {
    return std::make_unique<BrokenFeed>(std::move(name), std::move(problem));
}

std::unique_ptr<LossFeed> prefer_told(std::unique_ptr<LossFeed> told,
                                      std::unique_ptr<LossFeed> read) {
    return std::make_unique<ToldOrRead>(std::move(told), std::move(read));
}

}  // namespace sluice
