// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/model/loss_curve.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/model/curve_samples.hpp"
#include "common/model/hyperbola.hpp"

namespace sluice {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double z_80 = 1.2815515655446004;  // of a normal distribution's middle 80%

/// The samples in the fit's own units.
struct Scale {
    double step = 1;
    double loss = 1;
};

std::vector<HyperbolaFit::Point> scaled(const CurveSamples& samples, const Scale& scale) {
    std::vector<double> losses;
    for (const CurveSample& sample : samples) losses.push_back(sample.loss);
    const double middle = median(losses);
    // what is out of all proportion may not swamp the sums of squares
    const double reach = 50 * scale.loss;
    std::vector<HyperbolaFit::Point> points;
    for (const CurveSample& sample : samples) {
        const double x = sample.step / scale.step;
        const double loss = std::clamp(sample.loss, middle - reach, middle + reach);
        // each doubling of the steps tells as much as the next: the form is nowhere exact, and the
        // late points, by far the most, would leave nothing of how the loss came down
        points.push_back({x, loss / scale.loss, sample.count / (x + 0.03)});
    }
    double sum = 0;
    for (const HyperbolaFit::Point& point : points) sum += point.weight;
    for (HyperbolaFit::Point& point : points) point.weight /= sum;
    return points;
}

Scale scale_of(const CurveSamples& samples) {
    std::vector<double> losses;
    for (const CurveSample& sample : samples) losses.push_back(sample.loss);
    std::sort(losses.begin(), losses.end());
    const std::size_t edge = losses.size() / 20;
    double spread = losses[losses.size() - 1 - edge] - losses[edge];
    if (!(spread > 0)) spread = losses.back() - losses.front();
    spread = std::max(spread, 1e-100);  // or parameters would overflow
    return {samples.back().step, spread};
}

/// By how much a curve of this form errs when it looks ahead twice as far: fitted to the first
/// half, it misses the end. 0 where noise explains the miss, or nobody can tell.
double misfit_per_doubling(const std::vector<HyperbolaFit::Point>& points,
                           const LossCurveOptions& options) {
    std::vector<HyperbolaFit::Point> first;
    std::vector<HyperbolaFit::Point> end;
    for (const HyperbolaFit::Point& point : points) {
        if (point.x <= 0.5) first.push_back(point);
        if (point.x > 0.8) end.push_back(point);
    }
    if (first.size() < 2 * options.min_points || end.size() < 2) return 0;
    const HyperbolaFit half(first, options);
    std::vector<double> errors;
    double place = 0;
    for (const HyperbolaFit::Point& point : end) {
        errors.push_back(point.y - half.curve().at(point.x));
        place += point.x / static_cast<double>(end.size());
    }
    const double error = median(errors);
    const double noise = half.deviation() * half.deviation() * half.correlation_factor() /
                         static_cast<double>(end.size());
    const double curve = half.deviation_of_mean(end);
    if (std::fabs(error) <= 1.5 * std::sqrt(curve * curve + noise)) return 0;
    return std::fabs(error) / std::log2(place / first.back().x);
}

double deviation_at(const LossCurve& curve, double step) {
    const double v = 1 / (curve.b0 * step + curve.b1);
    const double gradient[3] = {-step * v * v, -v * v, 1};
    double variance = 0;
    for (int i = 0; i < 3; ++i) {
        for (int j = 0; j < 3; ++j)
            variance += gradient[i] * curve.covariance[i * 3 + j] * gradient[j];
    }
    const double last = static_cast<double>(curve.last_step);
    const double ahead = step > last && last > 0 ? curve.misfit * std::log2(step / last) : 0;
    // a record may hold anything: what overflows is not known at all
    if (!std::isfinite(variance)) return infinity;
    return std::sqrt(std::max(0.0, variance) + ahead * ahead);
}

/// Where in (before, after] a condition that holds at `after` begins to hold.
template <typename Condition>
double first_step(const Condition& holds, double before, double after) {
    for (int halving = 0; halving < 60 && after - before > 1e-6 * after; ++halving) {
        const double middle = before + (after - before) / 2;
        (holds(middle) ? after : before) = middle;
    }
    return after;
}

}  // namespace

double LossCurve::at(double step) const {
    return 1 / (b0 * step + b1) + b2;
}

bool LossCurveOptions::is_valid(std::string* why) const {
    const auto check = [why](bool good, const char* text) {
        if (!good && why) *why = text;
        return good;
    };
    return check(min_points >= 4,
                 "min_points: a curve of three parameters needs 4 points or more") &&
           check(max_points >= min_points, "max_points: not below min_points") &&
           check(warmup_fraction >= 0 && warmup_fraction < 1, "warmup_fraction: 0 to below 1") &&
           check(untrained_fraction >= 0 && untrained_fraction < 1,
                 "untrained_fraction: 0 to below 1") &&
           check(huber_sigmas > 0, "huber_sigmas: above 0") &&
           check(reweightings >= 0 && reweightings <= 1000, "reweightings: 0 to 1000");
}

Result<LossCurve> fit_loss_curve(const std::vector<LossPoint>& points,
                                 const LossCurveOptions& options) {
    std::string why;
    if (!options.is_valid(&why)) return {ErrorCode::usage, why};
    CurveSamples samples = samples_in_order(points);
    why = suspect(samples, options.min_points);
    if (!why.empty()) return {ErrorCode::not_found, "cannot say yet: " + why};
    const std::size_t finite = samples.size();
    level_spikes(samples);
    skip_warmup(samples, options);
    const CurveSamples means = thinned(samples, options.max_points);
    const Scale scale = scale_of(means);
    const std::vector<HyperbolaFit::Point> scaled_points = scaled(means, scale);
    const HyperbolaFit fit(scaled_points, options);

    LossCurve curve;
    const double unit[3] = {1 / (scale.step * scale.loss), 1 / scale.loss, scale.loss};
    curve.b0 = fit.curve().p * unit[0];
    curve.b1 = fit.curve().q * unit[1];
    curve.b2 = fit.curve().r * unit[2];
    for (std::size_t i = 0; i < 3; ++i) {
        for (std::size_t j = 0; j < 3; ++j) {
            curve.covariance[i * 3 + j] = fit.covariance()[i][j] * unit[i] * unit[j];
        }
    }
    curve.misfit = misfit_per_doubling(scaled_points, options) * scale.loss;
    std::vector<double> residuals;
    for (const CurveSample& sample : samples)
        residuals.push_back(sample.loss - curve.at(sample.step));
    curve.residual = robust_deviation(residuals);
    curve.last_step = static_cast<std::int64_t>(samples.back().step);
    curve.last_loss = curve.at(samples.back().step);
    curve.first_loss = curve.at(samples.front().step);
    curve.points = static_cast<std::int64_t>(finite);
    return curve;
}

Forecast forecast_loss(const LossCurve& curve, double step) {
    Forecast forecast;
    forecast.value = curve.at(step);
    const double reach = z_80 * deviation_at(curve, step);
    forecast.low = reach < infinity ? std::max(0.0, forecast.value - reach) : 0;
    forecast.high = forecast.value + reach;
    const double last = static_cast<double>(curve.last_step);
    if (step > last) {
        // the curve falls: later is not above the last
        forecast.high = std::min(forecast.high, curve.at(last) + z_80 * deviation_at(curve, last));
        forecast.high = std::max(forecast.high, forecast.value);
    }
    return forecast;
}

std::optional<Forecast> forecast_step(const LossCurve& curve, double loss) {
    const double above = loss - curve.b2;
    if (!(above > 0) || !(curve.b0 > 0)) return std::nullopt;
    Forecast forecast;
    forecast.value = std::max(0.0, (1 / above - curve.b1) / curve.b0);
    if (!std::isfinite(forecast.value)) return std::nullopt;
    const auto low_reaches = [&](double step) { return forecast_loss(curve, step).low <= loss; };
    const auto high_reaches = [&](double step) { return forecast_loss(curve, step).high <= loss; };
    forecast.low = low_reaches(0) ? 0 : first_step(low_reaches, 0, forecast.value);
    // the upper end may never come down to the loss; a search that far ahead is one of principle
    forecast.high = infinity;
    double before = forecast.value;
    double ahead = std::max(1.0, forecast.value / 1024);
    for (int doubling = 0; doubling < 40; ++doubling, ahead *= 2) {
        const double after = forecast.value + ahead;
        if (high_reaches(after)) {
            forecast.high = first_step(high_reaches, before, after);
            break;
        }
        before = after;
    }
    return forecast;
}

}  // namespace sluice
