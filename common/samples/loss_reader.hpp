// SPDX-License-Identifier: GPL-2.0-or-later
//
// Losses from the log of a training job, read as it grows. What a user's job prints is hostile: any
// bytes, any length. Memory is bounded, no input is an error, and what is not understood is
// skipped.
//
// Lines end in \n or \r; terminal control sequences are dropped. A loss is a *named* number
// ("loss: 2.5", "lm loss: 1.0E+01", "'loss': 1.6", "loss=3.1", "train loss 2.49"), a step is the
// number named step, iter, iteration, global_step, "Training Step", a progress count
// ("27/5000", "Epoch [1][50/2931]"), ...; never a column number, but in comma-separated values the
// header's names. Names are matched whole: "loss scale", "val loss", "loss_cls" are no training
// loss unless asked for with `key`. Where a line has several, the more exact name wins
// (reduced_train_loss before loss).
//
// Equal steps that repeat (ranks, progress bars drawn again) give one point, which is why a point
// is held back until a line with another step, or the end. A step on a line of its own belongs to
// the loss that follows it. Steps that begin again in each epoch go on where the last epoch ended,
// as far as the log shows it; steps go back where a run was restarted.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/samples/loss_point.hpp"
#include "common/samples/name_pattern.hpp"

namespace sluice {

struct LossReaderOptions {
    std::string key;  ///< the name of the loss as the log prints it, in any spelling; empty:
                      ///< recognised
    enum class Format { automatic, text, json_lines, csv } format = Format::automatic;
    std::size_t max_line_bytes = std::size_t{64} * 1024;  ///< the rest of a longer line is skipped
    std::size_t max_keys_seen = 32;
    /// Read each line in full, also those that nothing hints at: slower, the same result. For
    /// tests.
    bool every_line = false;
    /// Takes the place of the key: names that match, as the log prints them, are the loss, in
    /// training and elsewhere (key_pattern.hpp). The first of a line counts.
    std::shared_ptr<const NamePattern> pattern;
};

/// Not thread-safe. The result does not depend on how the input is cut into pieces.
class LossReader {
  public:
    explicit LossReader(LossReaderOptions options = {});
    ~LossReader();
    LossReader(LossReader&&) noexcept;
    LossReader& operator=(LossReader&&) noexcept;

    /// What stands in the file before the first bytes of the log: of others, but it may name the
    /// columns of what follows.
    void learn_columns(std::string_view before);
    /// The next bytes of the log; the points completed by them are appended to `out`.
    void feed(std::string_view bytes, std::vector<LossPoint>& out);
    /// The log has ended: a last line without a newline counts, too.
    void finish(std::vector<LossPoint>& out);

    /// The largest progress seen in any line, with a loss or without.
    std::optional<std::int64_t> last_step() const;
    /// Names that stood before a number, in order of first appearance, for "no loss found in FILE;
    /// keys seen: ...".
    const std::vector<std::string>& keys_seen() const;
    /// Lines whose rest was skipped, as they had max_line_bytes or more.
    std::int64_t cut_lines() const;

  private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace sluice
