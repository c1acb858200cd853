// SPDX-License-Identifier: GPL-2.0-or-later
//
// Steps that go on over epochs. Many frameworks count steps within the epoch: "Epoch [2][50/2931]"
// follows "Epoch [1][2900/2931]". Where the step has gone back (or stands) while the epoch has gone
// up, the epoch's length is added from then on, so 50 becomes 2981; a log that begins in a later
// epoch begins with the step that it prints.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "common/samples/log_line.hpp"

namespace sluice::log {

class EpochSteps {
  public:
    /// reading.step, which is there, with the epochs before it.
    std::int64_t over_epochs(const LineReading& reading, std::optional<std::int64_t> epoch);

  private:
    struct Count {
        std::optional<std::int64_t> epoch;
        std::int64_t step = 0;    ///< as printed
        std::int64_t total = 0;   ///< as printed, 0: not
        std::int64_t length = 0;  ///< steps of an epoch, once known
        std::int64_t before = 0;  ///< steps of the epochs before this one
    };
    std::array<Count, step_kinds> counts_;
};

}  // namespace sluice::log
