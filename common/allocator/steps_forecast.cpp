// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/allocator/steps_forecast.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace sluice {
namespace {

constexpr double flat_share = 0.01;  ///< as forecast_flat() takes it
constexpr double unknown_log_sd = 0.8;
constexpr double widest_log_sd = 1;  ///< of a step that may never be reached
constexpr double z_of_80_percent = 1.2816;

/// What is left until the step of a forecast.
std::vector<double> left_until(const Forecast& at, double step) {
    const double left = at.value - step;
    if (!(left >= 1) || !std::isfinite(left)) return {1};
    double log_sd = widest_log_sd;
    if (std::isfinite(at.high) && at.high > step)
        log_sd =
            std::clamp(std::log((at.high - step) / left) / z_of_80_percent, 0.05, widest_log_sd);
    return total_quantiles({left, log_sd}, 0);
}

}  // namespace

std::vector<double> steps_left(const std::optional<Target>& target,
                               const std::optional<LossCurve>& curve, const ExpectedWork& earlier,
                               double step) {
    if (target && target->kind == Target::Kind::steps)
        return {std::max(1.0, static_cast<double>(target->steps) - step)};
    if (target && target->kind == Target::Kind::loss && curve)
        if (const auto reached = forecast_step(*curve, target->loss))
            return left_until(*reached, step);
    if (earlier.total > 0) {
        std::vector<double> left = total_quantiles(earlier, step);
        for (double& each : left) each = std::max(1.0, each - step);
        return left;
    }
    if (curve)
        if (const auto flat = forecast_flat(*curve, flat_share)) return left_until(*flat, step);
    // who has come so far is expected to go as far again
    if (step >= 1) return total_quantiles({step, unknown_log_sd}, 0);
    return {};
}

double StepsForecast::remaining() const {
    return std::accumulate(left_.begin(), left_.end(), 0.0) / static_cast<double>(left_.size());
}

double StepsForecast::rate(const StepPlacement& placement, std::size_t) const {
    if (!steps_) return speed_.steps_per_second(placement.gpus);
    StepPlacement at = placement;
    at.local_batch = batch_ / placement.gpus;
    return usable(at) ? 1 / step_seconds(*steps_, at) : 0;
}

}  // namespace sluice
