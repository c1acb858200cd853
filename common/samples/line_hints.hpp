// SPDX-License-Identifier: GPL-2.0-or-later
//
// Which lines can hold a loss, a step or an epoch at all? Most lines of most logs hold none, so
// this pass decides how fast a log is read. It goes over many lines at once, looking for pairs of
// letters that stand in every name of log_names' tables ("ss" for loss, "ep" for step and epoch),
// for the "/" of a count such as 27/5000, and for control sequences, which may hide any of them;
// where it finds one it looks closer.
//
// A line without a hint has nothing in it: reading it would change nothing. The other way round a
// hint promises nothing.
#pragma once

#include <string>
#include <string_view>

namespace sluice::log {

class LineHints {
  public:
    /// `key`: words (Words::text) of the loss that was asked for; empty: the losses of the tables.
    explicit LineHints(std::string_view key);

    /// False where the key has no word of two letters: every line may hold it.
    bool usable() const { return usable_; }

    /// The first place from `begin` on that hints at something; npos where there is none. Lines of
    /// `bytes` are whole.
    std::size_t find(std::string_view bytes, std::size_t begin = 0) const;

  private:
    bool is_hint(std::string_view bytes, std::size_t place) const;

    std::string word_;  ///< of the loss, in small letters
    std::size_t pair_;  ///< where in it the two letters are that are looked for
    bool usable_ = true;
};

}  // namespace sluice::log
