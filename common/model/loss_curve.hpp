// SPDX-License-Identifier: GPL-2.0-or-later
//
// The loss of a training job as a function of its step:
//
//     l(k) = (1 / b1) (1 + b0 k / (b1 c))^-c + b2,      b0, b1, b2 >= 0, c > 0
//
// a family for each exponent c (decay.hpp): c = 1 is the hyperbola 1 / (b0 k + b1) + b2 of Optimus
// (Peng et al., EuroSys 2018, section 3.1), c = 1/3 and 1/2 are power laws, c = 2 falls like SLAQ's
// quadratic form (Zhang et al., SoCC 2017), c = infinity exponentially. Residuals in l are what is
// minimised (decay_fit.hpp says how), robustly against spikes, and with weights under which each
// doubling of the steps tells as much as the next. The family is the one that the points speak for.
//
// Where a family's form holds, up to noise, the points choose it. Where none does, the one that is
// nearest to the past has been seen to foretell no better, and what is believed beforehand decides.
//
// The intervals cover noise, what the points leave open, how far the families that are believed in
// differ, and, where no form holds, how far real losses leave their curves: learning rates decay.
// That was measured on public curves.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/result.hpp"
#include "common/model/curve_samples.hpp"
#include "common/model/decay.hpp"
#include "common/model/loss_curve_options.hpp"
#include "common/samples/loss_point.hpp"

namespace sluice {

struct LossCurve {
    /// Doublings of the steps so far, for which the intervals are known; straight lines between.
    static constexpr std::array<double, 5> octaves{0, 1, 2, 4, 8};
    using Reach = std::array<double, octaves.size()>;

    double b0 = 0;        ///< 1 / (loss x step)
    double b1 = 0;        ///< 1 / loss
    double b2 = 0;        ///< loss: the limit for k -> infinity; where it does not fall, its level
    double exponent = 1;  ///< c; may be infinite
    Reach below{};        ///< loss from the curve to the lower end of its 80% interval
    Reach above{};        ///< and to the upper end
    double residual =
        0;  ///< robust standard deviation of the points around the curve, in units of loss
    std::int64_t last_step = 0;  ///< the last step that entered the fit
    double last_loss = 0;        ///< the curve's own value there
    double first_loss = 0;       ///< median of the first three that were finite
    std::int64_t points = 0;     ///< finite points that entered

    /// False where the loss stays as it is or rises: the curve is then level, where it is now.
    bool falls() const { return b0 > 0; }
    /// Expected loss at a step >= 0.
    double at(double step) const { return decay().at(step) + b2; }
    Decay decay() const { return {b0, b1, exponent}; }
    /// "hyperbola", "power" or "exponential".
    const char* family() const;
};

/// Fits the points in order of arrival; points without a step are numbered by position. nan and inf
/// are left out. After a restart the step may go back: later points replace earlier ones of the
/// same or a higher step. not_found, with a reason for people, when it cannot say yet: too few
/// points, no finite loss, a constant (suspect, not converged: an exact 0.0 for ever is an
/// overflow).
Result<LossCurve> fit_loss_curve(const std::vector<LossPoint>& points,
                                 const LossCurveOptions& options = {});
Result<LossCurve> fit_loss_curve(const CurveReservoir& points,
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

/// What the loss comes to in the end. No public curve goes on for so long; of curves of each family
/// with noise the interval has held the limit in 78 to 100%, 90% on average
/// (tests/unit/model_test.cpp).
Forecast forecast_limit(const LossCurve& curve);

/// The step from which on the loss is flat: twice as many steps take it down by no more than
/// `share` of what it has fallen by since the first step. Nothing: it never fell.
std::optional<Forecast> forecast_flat(const LossCurve& curve, double share);

}  // namespace sluice
