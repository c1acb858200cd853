// SPDX-License-Identifier: GPL-2.0-or-later
//
// What one line of a log says about training: its best loss, its best step, its epoch.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "common/samples/log_names.hpp"

namespace sluice::log {

struct LineReading {
    std::optional<double> loss;
    int loss_rank = 0;

    std::optional<std::int64_t> step;
    StepKind step_kind = StepKind::step;
    /// The step shows how far training has come even where the line has no loss.
    bool progress = false;
    std::int64_t total = 0;  ///< of n/m; 0: not said

    std::optional<std::int64_t> epoch;
    /// The number of the epoch as the line says it, with a fraction where it has one.
    std::optional<double> epoch_progress;
    /// What the line says of the run: "steps_per_epoch: 1875", "Num Epochs = 3",
    /// "Total optimization steps = 375".
    std::optional<double> epoch_length;
    std::optional<double> all_epochs;
    std::optional<double> all_steps;
    std::optional<std::int64_t> process;  ///< the rank that printed the line
    bool row = false;                     ///< of a table: the lines around it are other things
};

LineReading read_line(std::string_view line, NameTable& names);

/// A number as a step: a whole number from 0 to max_step.
std::optional<std::int64_t> as_step(double value);

}  // namespace sluice::log
