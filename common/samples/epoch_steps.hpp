// SPDX-License-Identifier: GPL-2.0-or-later
//
// Steps that go on over epochs. Many frameworks count steps within the epoch: "Epoch [2][50/2931]"
// follows "Epoch [1][2900/2931]". Where the step has gone back (or stands) while the epoch has gone
// up, the epoch's length is added from then on, so 50 becomes 2981; a log that begins in a later
// epoch begins with the step that it prints.
//
// A log may hold several counts: the bar of the training beside that of an evaluation. Two numbers
// belong to one count where they are of one kind, both or neither stand on a line with its epoch,
// and their totals differ by less than an eighth (batches of varying size).
//
// And where a line knows its epoch alone ("'epoch': 0.5"), the step follows from the length of an
// epoch, if the log has said it: "steps_per_epoch: 1875", or "Num Epochs = 3" and "Total
// optimization steps = 375".
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "common/samples/log_line.hpp"

namespace sluice::log {

class EpochSteps {
  public:
    /// Remembers what the line says of the length of an epoch.
    void take_settings(const LineReading& reading);

    /// reading.step, which is there, with the epochs before it.
    std::int64_t over_epochs(const LineReading& reading, std::optional<std::int64_t> epoch);

    /// The step at which the epoch of this line is reached; nothing where the log has not said how
    /// long an epoch is.
    std::optional<std::int64_t> of_epoch(const LineReading& reading) const;

  private:
    struct Count {
        StepKind kind = StepKind::step;
        bool names_epoch = false;   ///< its lines do
        std::int64_t last_use = 0;  ///< 0: free
        std::optional<std::int64_t> epoch;
        std::int64_t step = 0;    ///< as printed
        std::int64_t total = 0;   ///< as printed, 0: not
        std::int64_t length = 0;  ///< steps of an epoch, once known
        std::int64_t before = 0;  ///< steps of the epochs before this one
    };
    Count& count_of(const LineReading& reading);

    std::array<Count, 8> counts_;  ///< the least recently used one makes way
    std::int64_t uses_ = 0;
    std::optional<double> epoch_length_;
    std::optional<double> all_epochs_;
    std::optional<double> all_steps_;
};

}  // namespace sluice::log
