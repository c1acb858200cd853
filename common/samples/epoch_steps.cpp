// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/samples/epoch_steps.hpp"

#include <algorithm>

namespace sluice::log {

std::int64_t EpochSteps::over_epochs(const LineReading& reading,
                                     std::optional<std::int64_t> epoch) {
    constexpr double most = 9007199254740992.0;  // 2^53
    const std::int64_t step = *reading.step;
    if (reading.step_kind == StepKind::global) return step;
    Count& count = counts_[static_cast<std::size_t>(reading.step_kind)];
    // an epoch named on an earlier line may belong to another count: an evaluation's, for one
    const bool same_count = reading.epoch || reading.total == count.total;
    if (epoch && count.epoch && same_count) {
        const double epochs = static_cast<double>(*epoch) - static_cast<double>(*count.epoch);
        const bool again = epochs > 0 && step <= count.step;
        if (again) {
            // steps from 0 on need one more than the last of them
            count.length = count.total > 0 ? count.total : count.step + (step == 0 ? 1 : 0);
        }
        if (again || (epochs != 0 && count.length > 0)) {
            const double before =
                static_cast<double>(count.before) + epochs * static_cast<double>(count.length);
            if (before > most) return step;
            count.before = static_cast<std::int64_t>(std::max(0.0, before));
        }
    }
    if (epoch) count.epoch = epoch;
    count.step = step;
    count.total = reading.total;
    return count.before + step;
}

}  // namespace sluice::log
