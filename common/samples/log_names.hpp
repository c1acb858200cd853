// SPDX-License-Identifier: GPL-2.0-or-later
//
// What a name in a training log stands for. Every framework writes its names in its own way
// ("train_loss", "Train Loss", "train/loss"), so a name is first brought to words: lower case,
// letters and digits only, parted by one blank. It is then looked up whole in small ranked tables.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/samples/name_pattern.hpp"

namespace sluice::log {

/// A name as words. Names of more than 64 bytes are prose and become no words at all.
class Words {
  public:
    explicit Words(std::string_view name);

    std::string_view text() const { return {text_.data(), size_}; }
    bool empty() const { return size_ == 0; }

  private:
    std::array<char, 64> text_;
    std::size_t size_ = 0;
};

/// What a step is counted in, the better kinds first: `global` goes on over epochs, `step` and
/// `iteration` mostly do, `count` is the n of an unnamed n/m, and the rest is what else counts up
/// while training.
enum class StepKind { global, step, iteration, count, batch };

/// Which part of a run the names that follow speak of.
enum class Scope { training, validation };

/// What a run was told before it began: steps of an epoch, epochs, steps in all.
enum class Setting { epoch_length, all_epochs, all_steps };

/// Everything that the tables know about a name.
struct NameFacts {
    std::optional<int> loss_rank;  ///< of a training loss: 0 is the most exact
    std::optional<StepKind> step;
    std::optional<int> loss_behind;  ///< "loss at step": behind the step stands a loss of this rank
    bool epoch = false;
    std::optional<Setting> setting;
    std::optional<Scope> scope;           ///< "Validation", "Test set", "train_inner", "Eval step"
    std::optional<std::int64_t> process;  ///< the n of "rank3" and torchrun's "default3"
    bool rank = false;                    ///< "rank": its number is the process
    bool summary = false;  ///< the line sums up a run or an epoch: its loss is a mean, not a point
    bool empty = false;    ///< no name, or one that adds nothing: a log level

    /// A bar or a count under this name shows how far training has come.
    bool counts_training() const { return step || epoch || loss_rank || scope == Scope::training; }
};
NameFacts facts_of(std::string_view name);

/// Names looked up, the recent ones from memory; and those that stood before a number.
class NameTable {
  public:
    /// With a key or a pattern, the loss is what that names, and nothing else is.
    NameTable(std::string_view key, std::shared_ptr<const NamePattern> pattern,
              std::size_t max_keys_seen);

    const NameFacts& facts(std::string_view name) { return entry(name).facts; }
    /// The same for a name that stands before a number.
    const NameFacts& facts_of_number(std::string_view name);

    /// The loss was asked for by a name that the tables do not know, or by a pattern.
    bool own_key() const { return own_key_; }
    /// The key as words; empty: none was given.
    const std::string& key() const { return key_; }

    /// Which names that stand before numbers go among keys_seen() from now on. Half of the room is
    /// kept from `some`: a run may print all of its settings before it comes to its metrics.
    enum class Collect { none, some, all };
    void collect(Collect which) {
        collect_ = which;
        missed_ = missed_loss_ = false;
    }
    /// Since then there was one that may not be among them; and one with "loss" in it, which
    /// nobody asked for by a key.
    bool missed() const { return missed_; }
    bool missed_loss() const { return missed_loss_; }

    const std::vector<std::string>& keys_seen() const { return keys_seen_; }
    bool half_full() const { return keys_seen_.size() >= max_keys_seen_ / 2; }

  private:
    struct Entry {
        std::string name;
        NameFacts facts;
        bool seen = false;  ///< among keys_seen_, or no room there
    };
    Entry& entry(std::string_view name);
    void see(Entry& entry);

    std::string key_;  ///< as words
    std::shared_ptr<const NamePattern> pattern_;
    bool own_key_ = false;
    Collect collect_ = Collect::all;
    bool missed_ = false;
    bool missed_loss_ = false;
    std::size_t max_keys_seen_;
    std::vector<std::string> keys_seen_;
    Entry none_;
    Entry prose_;                    ///< longer than any name
    std::array<Entry, 64> entries_;  ///< by hash; a newcomer takes the place
};

}  // namespace sluice::log
