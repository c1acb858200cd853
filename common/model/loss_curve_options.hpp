// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstddef>
#include <string>

namespace sluice {

struct LossCurveOptions {
    std::size_t min_points = 5;  ///< finite, distinct steps; fewer: cannot say yet
    std::size_t max_points =
        256;  ///< more are thinned to log-spaced steps, each the mean of its interval
    /// Of the steps so far: where the loss rises in it, the curve begins at the highest loss there.
    double warmup_fraction = 0.05;
    /// Of the steps so far, left out where it has three points or more: the loss there is that of
    /// an untrained network, or of one whose learning rate is still warmed up.
    double untrained_fraction = 0.08;
    double huber_sigmas = 1.5;  ///< residuals beyond weigh less
    int reweightings = 10;
    /// How far real losses have been seen to leave their curve later on (loss_curve.cpp), as a
    /// factor. 0: the intervals cover noise and what the points leave open, no more.
    double drift = 1;

    bool is_valid(std::string* why) const;
};

}  // namespace sluice
