// SPDX-License-Identifier: GPL-2.0-or-later
//
// Steps per second of a job on k GPUs with a fixed global batch:
//
//     1 / f(k) = t0 / k + t1,      t0, t1 >= 0   (seconds per step)
//
// Optimus's speed function for synchronous training (EuroSys 2018, section 3.2) for all-reduce,
// without its term in k, which needs more sizes than a job visits: t0 is the work that divides
// among the GPUs, t1 what does not. Weighted non-negative least squares; with one size measured the
// split is the prior's.
#pragma once

#include <optional>
#include <vector>

#include "common/base/result.hpp"

namespace sluice {

struct SpeedSample {
    int gpus = 0;
    double steps_per_second = 0;
    double weight = 1;  ///< e.g. the seconds over which it was measured
};

struct SpeedModel {
    double t0_s = 0;
    double t1_s = 0;

    double steps_per_second(int gpus) const { return 1.0 / (t0_s / gpus + t1_s); }
};

struct SpeedOptions {
    double prior_serial_fraction = 0.05;  ///< t1 / (t0 + t1) where only one size was measured
};

/// Nothing when no sample is usable (gpus >= 1, speed finite and > 0).
std::optional<SpeedModel> fit_speed(const std::vector<SpeedSample>& samples,
                                    const SpeedOptions& options = {});

}  // namespace sluice
