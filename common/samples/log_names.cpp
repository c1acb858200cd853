// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/samples/log_names.hpp"

#include <algorithm>
#include <utility>

#include "common/base/text.hpp"

namespace sluice::log {
namespace {

struct RankedName {
    std::string_view name;
    int rank;
};

// 0 and 1: the loss of this very step. 2: as a rule the same, in some frameworks a running mean.
// 3: sums and means. 4: one term, where nothing else is printed. 5: means over an epoch.
constexpr RankedName loss_names[] = {
    {"reduced train loss", 0},
    {"lm loss", 1},
    {"train loss", 1},
    {"training loss", 1},
    {"loss train", 1},
    {"loss training", 1},
    {"train loss step", 1},
    {"step loss", 1},
    {"loss step", 1},
    {"batch loss", 1},
    {"minibatch loss", 1},
    {"mini batch loss", 1},
    {"loss", 2},
    {"total loss", 3},
    {"loss total", 3},
    {"loss train total", 3},
    {"loss total loss", 3},
    {"overall loss", 3},
    {"avg loss", 3},
    {"avr loss", 3},
    {"average loss", 3},
    {"mean loss", 3},
    {"loss avg", 3},
    {"loss mean", 3},
    {"running loss", 3},
    {"smoothed loss", 3},
    {"smooth loss", 3},
    {"ema loss", 3},
    {"loss ema", 3},
    {"cross entropy loss", 4},
    {"crossentropy loss", 4},
    {"crossentropyloss", 4},
    {"ce loss", 4},
    {"mlm loss", 4},
    {"train loss epoch", 5},
    {"loss epoch", 5},
    {"epoch loss", 5},
};

struct StepName {
    std::string_view name;
    StepKind kind;
    bool whole = false;  ///< "steps: 5" counts, "training steps: 5000" is a setting
};

constexpr StepName step_names[] = {
    {"global step", StepKind::global},
    {"global steps", StepKind::global, true},
    {"global iteration", StepKind::global},
    {"global iter", StepKind::global},
    {"num updates", StepKind::global, true},
    {"step", StepKind::step},
    {"steps", StepKind::step, true},
    {"current steps", StepKind::step, true},
    {"optimizer step", StepKind::step},
    {"optim step", StepKind::step},
    {"update step", StepKind::step},
    {"step num", StepKind::step},
    {"step number", StepKind::step},
    {"iteration", StepKind::iteration},
    {"iter", StepKind::iteration},
    {"iters", StepKind::iteration, true},
    {"itr", StepKind::iteration},
    {"it", StepKind::iteration, true},
    {"iter num", StepKind::iteration},
    {"iteration number", StepKind::iteration},
    {"progress", StepKind::count, true},
    {"batch", StepKind::batch},
    {"batch idx", StepKind::batch},
    {"batch num", StepKind::batch},
    {"minibatch", StepKind::batch},
    {"mini batch", StepKind::batch},
    {"update", StepKind::batch},
    {"updates", StepKind::batch, true},
    {"data", StepKind::batch, true},
    {"sample", StepKind::batch, true},
    {"samples", StepKind::batch, true},
    {"examples", StepKind::batch, true},
};

struct SettingName {
    std::string_view name;
    Setting setting;
};

constexpr SettingName setting_names[] = {
    {"steps per epoch", Setting::epoch_length},
    {"num steps per epoch", Setting::epoch_length},
    {"update steps per epoch", Setting::epoch_length},
    {"num update steps per epoch", Setting::epoch_length},
    {"iterations per epoch", Setting::epoch_length},
    {"iters per epoch", Setting::epoch_length},
    {"num iters per epoch", Setting::epoch_length},
    {"num iterations per epoch", Setting::epoch_length},
    {"num epochs", Setting::all_epochs},
    {"number of epochs", Setting::all_epochs},
    {"total epochs", Setting::all_epochs},
    {"total optimization steps", Setting::all_steps},
};

constexpr std::string_view log_levels[] = {"info", "debug", "warning", "warn"};
constexpr std::string_view fillers[] = {"train",    "training",  "trainer", "current", "cur",
                                        "at",       "and",       "with",    "the",     "done",
                                        "finished", "completed", "complete"};
constexpr std::string_view validation_words[] = {
    "val",  "valid",    "validate", "validating", "validation", "eval",
    "test", "evaluate", "testing",  "evaluating", "evaluation", "dev"};
constexpr std::string_view training_words[] = {"train",      "training",    "trainer", "finetune",
                                               "finetuning", "pretraining", "pretrain"};
constexpr std::string_view scope_fillers[] = {
    "set",       "data", "dataset", "dataloader", "loader",  "loop",  "step",  "steps",   "epoch",
    "iteration", "iter", "batch",   "batches",    "phase",   "mode",  "split", "subset",  "net",
    "output",    "on",   "results", "result",     "metrics", "stats", "inner", "progress"};
constexpr std::string_view summaries[] = {"train runtime", "train net output", "averaged stats",
                                          "saving dict for global step", "loss for final step"};

template <std::size_t count>
bool contains(const std::string_view (&list)[count], std::string_view word) {
    return std::find(std::begin(list), std::end(list), word) != std::end(list);
}

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/// The first word, taken off the text.
std::string_view take_word(std::string_view& words) {
    const std::size_t end = std::min(words.find(' '), words.size());
    const std::string_view word = words.substr(0, end);
    words.remove_prefix(std::min(end + 1, words.size()));
    return word;
}

/// The first entry whose name is the text, or the text without leading fillers.
template <typename Entry, std::size_t count>
const Entry* find_name(const Entry (&table)[count], std::string_view words) {
    for (;;) {
        for (const Entry& entry : table) {
            if (entry.name == words) return &entry;
        }
        const std::string_view first = take_word(words);
        if (words.empty()) return nullptr;
        if (!contains(fillers, first) && !contains(log_levels, first)) return nullptr;
    }
}

/// Without what a logger puts before the text: "root INFO step" is "step".
std::string_view without_log_level(std::string_view words) {
    for (std::string_view rest = words; !rest.empty();) {
        if (contains(log_levels, take_word(rest))) words = rest;
    }
    return words;
}

std::optional<int> loss_rank(std::string_view words) {
    if (words.find("loss") == std::string_view::npos) return std::nullopt;
    const RankedName* entry = find_name(loss_names, words);
    return entry ? std::optional<int>(entry->rank) : std::nullopt;
}

std::optional<StepKind> step_kind(std::string_view words) {
    const StepName* entry = find_name(step_names, words);
    if (!entry || (entry->whole && entry->name != without_log_level(words))) return std::nullopt;
    return entry->kind;
}

bool is_epoch(std::string_view words) {
    struct EpochName {
        std::string_view name;
    };
    static constexpr EpochName epoch_names[] = {{"epoch"}, {"ep"}};
    return find_name(epoch_names, words) != nullptr;
}

std::optional<Setting> setting_of(std::string_view words) {
    const SettingName* entry = find_name(setting_names, words);
    return entry ? std::optional<Setting>(entry->setting) : std::nullopt;
}

std::optional<Scope> scope_of(std::string_view words) {
    std::optional<Scope> scope;
    while (!words.empty()) {
        const std::string_view word = take_word(words);
        if (contains(validation_words, word)) {
            scope = Scope::validation;
        } else if (contains(training_words, word)) {
            if (!scope) scope = Scope::training;
        } else if (!contains(scope_fillers, word) &&
                   !std::all_of(word.begin(), word.end(), is_digit)) {
            return std::nullopt;
        }
    }
    return scope;
}

std::optional<std::int64_t> process_rank(std::string_view words) {
    for (const std::string_view prefix : {"rank", "default"}) {
        if (words.substr(0, prefix.size()) != prefix) continue;
        const auto rank = parse_integer(trim(words.substr(prefix.size())));
        if (rank && *rank >= 0) return rank;
    }
    return std::nullopt;
}

}  // namespace

Words::Words(std::string_view name) {
    if (name.size() > text_.size()) return;
    bool gap = false;
    for (const char c : name) {
        const char lower = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
        if ((lower < 'a' || lower > 'z') && !is_digit(lower)) {
            gap = size_ > 0;
            continue;
        }
        if (gap) text_[size_++] = ' ';
        gap = false;
        text_[size_++] = lower;
    }
}

NameFacts facts_of(std::string_view name) {
    const Words as_words(name);
    const std::string_view words = without_log_level(as_words.text());
    NameFacts facts;
    facts.loss_rank = loss_rank(words);
    facts.step = step_kind(words);
    if (const std::size_t at = words.find(" at "); at != std::string_view::npos && !facts.step) {
        facts.loss_behind = loss_rank(words.substr(0, at));
        if (facts.loss_behind) facts.step = step_kind(words.substr(at + 4));
    }
    facts.epoch = is_epoch(words);
    facts.setting = setting_of(words);
    facts.scope = scope_of(words);
    facts.process = process_rank(words);
    facts.rank = words == "rank";
    facts.summary = contains(summaries, words);
    facts.empty = words.empty();
    return facts;
}

NameTable::NameTable(std::string_view key, std::shared_ptr<const NamePattern> pattern,
                     std::size_t max_keys_seen)
    : key_(pattern ? "" : Words(key).text()),
      pattern_(std::move(pattern)),
      max_keys_seen_(max_keys_seen) {
    own_key_ = pattern_ || (!key_.empty() && !loss_rank(key_));
    none_.facts.empty = true;
    none_.seen = prose_.seen = true;
}

NameTable::Entry& NameTable::entry(std::string_view name) {
    if (name.empty()) return none_;
    if (name.size() > 64) return prose_;
    std::size_t hash = name.size();
    for (const char c : name) hash = hash * 31 + static_cast<unsigned char>(c);
    Entry& entry = entries_[(hash ^ hash >> 6) % entries_.size()];
    if (entry.name == name) return entry;
    entry.name = name;
    entry.seen = false;
    entry.facts = facts_of(name);
    if (!key_.empty() || pattern_) {
        const Words words(name);
        const bool is_key =
            pattern_ ? pattern_->matches(name) : without_log_level(words.text()) == key_;
        entry.facts.loss_rank = is_key ? std::optional<int>(0) : std::nullopt;
        entry.facts.loss_behind.reset();
    }
    return entry;
}

const NameFacts& NameTable::facts_of_number(std::string_view name) {
    Entry& found = entry(name);
    if (!found.seen) see(found);
    return found.facts;
}

void NameTable::see(Entry& entry) {
    if (keys_seen_.size() >= max_keys_seen_) return;
    const auto is_among = [&](const std::string& text) {
        return std::find(keys_seen_.begin(), keys_seen_.end(), text) != keys_seen_.end();
    };
    if (collect_ == Collect::none || (collect_ == Collect::some && half_full())) {
        missed_ = true;
        const bool any_loss = key_.empty() && !pattern_;
        // it may be among them, and have lost its entry to another name since
        missed_loss_ =
            missed_loss_ ||
            (any_loss && Words(entry.name).text().find("loss") != std::string_view::npos &&
             !is_among(printable(entry.name)));
        return;
    }
    entry.seen = true;
    std::string text = printable(entry.name);
    if (!is_among(text)) keys_seen_.push_back(std::move(text));
}

}  // namespace sluice::log
