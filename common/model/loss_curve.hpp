// SPDX-License-Identifier: GPL-2.0-or-later
//
// The loss of a training job as a function of its step:
//
//     l(k) = 1 / (b0 k + b1) + b2,      b0, b1, b2 >= 0
//
// the O(1/k) convergence of stochastic gradient descent (Optimus, Peng et al., EuroSys 2018,
// section 3.1). For a fixed b2 the transformed 1 / (l - b2) is linear in k, so (b0, b1) are the
// solution of a weighted non-negative least squares problem in two unknowns, exact in closed form;
// b2 is found by a bounded line search in [0, min l). Residuals in l are what is minimised: the
// transformed problem is weighted by (l - b2)^4 and reweighted against spikes (Huber).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/result.hpp"
#include "common/samples/loss_point.hpp"

namespace sluice {

struct LossCurve {
    double b0 = 0;  ///< 1 / (loss x step)
    double b1 = 0;  ///< 1 / loss
    double b2 = 0;  ///< loss: the limit for k -> infinity
    /// Standard deviation of the relative parameters, from the fit: covariance of (b0, b1, b2),
    /// row-major, symmetric.
    double covariance[9] = {};
    double residual =
        0;  ///< robust standard deviation of the points around the curve, in units of loss
    std::int64_t last_step = 0;  ///< the last step that entered the fit
    double last_loss = 0;        ///< the curve's own value there
    double first_loss = 0;       ///< the curve's own value at the first step that entered
    std::int64_t points = 0;     ///< finite points that entered

    /// Expected loss at a step >= 0.
    double at(double step) const;
};

struct LossCurveOptions {
    std::size_t min_points = 5;  ///< finite, distinct steps; fewer: cannot say yet
    std::size_t max_points =
        512;  ///< more are thinned to log-spaced steps, each the mean of its interval
    double warmup_fraction =
        0.05;  ///< of the steps so far: skipped when the loss there rises or is far off
    double huber_sigmas = 1.5;  ///< residuals beyond weigh less
    int reweightings = 10;

    bool is_valid(std::string* why) const;
};

/// Fits the points in order of arrival; points without a step are numbered by position. nan and inf
/// are left out. After a restart the step may go back: later points replace earlier ones of the
/// same or a higher step. not_found, with a reason for people, when it cannot say yet: too few
/// points, no finite loss, a constant (suspect, not converged: an exact 0.0 for ever is an
/// overflow).
Result<LossCurve> fit_loss_curve(const std::vector<LossPoint>& points,
                                 const LossCurveOptions& options = {});

/// A value with its 80% interval.
struct Forecast {
    double value = 0;
    double low = 0;
    double high = 0;
};

/// The loss at a step, and the step at which a loss is reached (nothing: never, the curve's limit
/// is above it; high may be infinite).
Forecast forecast_loss(const LossCurve& curve, double step);
std::optional<Forecast> forecast_step(const LossCurve& curve, double loss);

}  // namespace sluice
