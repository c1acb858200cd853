// SPDX-License-Identifier: GPL-2.0-or-later
//
// The loss of a training job as a function of its step:
//
//     l(k) = 1 / (b0 k + b1) + b2,      b0, b1, b2 >= 0
//
// the O(1/k) convergence of stochastic gradient descent (Optimus, Peng et al., EuroSys 2018,
// section 3.1). Residuals in l are what is minimised (hyperbola.hpp says how), robustly against
// spikes, and with weights under which each doubling of the steps tells as much as the next.
//
// The intervals cover noise, what the points leave open, and how far the form itself has been seen
// to err in this very run. They know nothing of the future: a learning-rate decay yet to come may
// take the loss below them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/result.hpp"
#include "common/samples/loss_point.hpp"

namespace sluice {

struct LossCurve {
    double b0 = 0;              ///< 1 / (loss x step)
    double b1 = 0;              ///< 1 / loss
    double b2 = 0;              ///< loss: the limit for k -> infinity
    double covariance[9] = {};  ///< of (b0, b1, b2), row-major, symmetric
    double residual =
        0;  ///< robust standard deviation of the points around the curve, in units of loss
    /// Loss by which a curve of this form has been seen to err for each doubling of the steps it
    /// looked ahead; 0: no more than noise explains.
    double misfit = 0;
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
    /// Of the steps so far: where the loss rises in it, the curve begins at the highest loss there.
    double warmup_fraction = 0.05;
    /// Of the steps so far, left out where it has three points or more: the loss there is that of
    /// an untrained network.
    double untrained_fraction = 0.01;
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

/// What the loss is expected to be at a step (a single printed loss scatters around it by
/// curve.residual), and the step at which a loss is reached. Nothing: never, the curve's limit is
/// not below it. `high` may be infinite.
Forecast forecast_loss(const LossCurve& curve, double step);
std::optional<Forecast> forecast_step(const LossCurve& curve, double loss);

}  // namespace sluice
