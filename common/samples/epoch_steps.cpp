// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/samples/epoch_steps.hpp"

#include <algorithm>
#include <cmath>

#include "common/samples/loss_point.hpp"

namespace sluice::log {
namespace {

bool similar(std::int64_t a, std::int64_t b) {
    if (a == 0 || b == 0) return a == b;
    return std::max(a, b) - std::min(a, b) <= std::max(a, b) / 8;
}

}  // namespace

void EpochSteps::take_settings(const LineReading& reading) {
    if (reading.all_epochs) all_epochs_ = reading.all_epochs;
    if (reading.all_steps) all_steps_ = reading.all_steps;
    if ((reading.all_epochs || reading.all_steps) && all_epochs_ && all_steps_)
        epoch_length_ = *all_steps_ / *all_epochs_;
    if (reading.epoch_length) epoch_length_ = reading.epoch_length;
    // a run that ends at a number of steps may have any number of epochs
    if (epoch_length_ && *epoch_length_ < 1) epoch_length_.reset();
}

std::optional<std::int64_t> EpochSteps::of_epoch(const LineReading& reading) const {
    if (!epoch_length_ || !reading.epoch_progress) return std::nullopt;
    return as_step(std::round(*reading.epoch_progress * *epoch_length_));
}

EpochSteps::Count& EpochSteps::count_of(const LineReading& reading) {
    const bool names_epoch = reading.epoch.has_value();
    Count* oldest = &counts_[0];
    for (Count& count : counts_) {
        if (count.last_use > 0 && count.kind == reading.step_kind &&
            count.names_epoch == names_epoch && similar(count.total, reading.total)) {
            count.last_use = ++uses_;
            return count;
        }
        if (count.last_use < oldest->last_use) oldest = &count;
    }
    *oldest = Count{};
    oldest->kind = reading.step_kind;
    oldest->names_epoch = names_epoch;
    oldest->total = reading.total;
    oldest->last_use = ++uses_;
    return *oldest;
}

std::int64_t EpochSteps::over_epochs(const LineReading& reading,
                                     std::optional<std::int64_t> epoch) {
    const std::int64_t step = *reading.step;
    if (reading.step_kind == StepKind::global) return step;
    Count& count = count_of(reading);
    // an epoch named on an earlier line may belong to another count: that of an evaluation
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
            if (before > static_cast<double>(max_step)) return step;
            count.before = static_cast<std::int64_t>(std::max(0.0, before));
        }
    }
    if (epoch) count.epoch = epoch;
    count.step = step;
    count.total = reading.total;
    return count.before + step <= max_step ? count.before + step : step;
}

}  // namespace sluice::log
