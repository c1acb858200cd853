// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/model/loss_curve.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "common/model/curve_samples.hpp"
#include "common/model/decay_fit.hpp"

namespace sluice {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double z_80 = 1.2815515655446004;  // of a normal distribution's middle 80%

/// The families, and how much each is believed in before a point is seen. 1/3 is what the losses of
/// language models fall with (Hoffmann et al., NeurIPS 2022, equation 10: 0.34 by parameters, 0.28
/// by data), and foretells the public curves that were tuned on best.
struct Family {
    double exponent;
    double prior;
};
constexpr std::array<Family, 5> families{
    {{1.0 / 3, 0.4}, {0.5, 0.25}, {1, 0.2}, {2, 0.1}, {infinity, 0.05}}};

// How far real losses leave their curves, tuned on the first two trials of AlgoPerf's workloads
// (tests/bench/README.md): about nine in ten fall by all that the curve falls but this, ...
constexpr double missed_fall = 0.6;
// ... and about as many come to lie below the curve by no more than this share of it: losses drop
// when the learning rate is taken back, as it mostly is once, at the end.
constexpr double annealed = 0.2;

// Of single losses, as a share of their spread.
constexpr double least_noise = 1e-3;

/// The samples in the fit's own units.
struct Scale {
    double step = 1;
    double loss = 1;
};

using Points = std::vector<DecayFit::Point>;

Points scaled(const CurveSamples& samples, const Scale& scale) {
    std::vector<double> losses;
    for (const CurveSample& sample : samples) losses.push_back(sample.loss);
    const double middle = median(losses);
    // what is out of all proportion may not swamp the sums of squares
    const double reach = 50 * scale.loss;
    Points points;
    for (const CurveSample& sample : samples) {
        const double x = sample.step / scale.step;
        const double loss = std::clamp(sample.loss, middle - reach, middle + reach);
        // each doubling of the steps tells as much as the next: the form is nowhere exact, and the
        // late points, by far the most, would leave nothing of how the loss came down
        points.push_back({x, loss / scale.loss, sample.count / (x + 0.03)});
    }
    double sum = 0;
    for (const DecayFit::Point& point : points) sum += point.weight;
    for (DecayFit::Point& point : points) point.weight /= sum;
    return points;
}

Scale scale_of(const CurveSamples& samples) {
    std::vector<double> losses;
    for (const CurveSample& sample : samples) losses.push_back(sample.loss);
    std::sort(losses.begin(), losses.end());
    const std::size_t edge = losses.size() / 20;
    double spread = losses[losses.size() - 1 - edge] - losses[edge];
    if (!(spread > 0)) spread = losses.back() - losses.front();
    // or parameters would overflow, and what differs be lost beside the level
    spread = std::max({spread, 1e-100, 1e-9 * std::fabs(losses[losses.size() / 2])});
    return {samples.back().step, spread};
}

/// How a curve stands to its points in the large: means of neighbouring residuals against what
/// independent noise would make of them. The noise is measured by differences of neighbours, of
/// which a smooth misfit has no part.
struct Closeness {
    double excess = 0;        ///< sum of squares of these means, each over its own noise
    double freedom = 0;       ///< and what noise alone would make of that sum
    double noise = infinity;  ///< standard deviation of such a mean
};

/// Of single losses.
double noise_of(const Points& points, const CurveSamples& samples, const DecayFit& fit) {
    std::vector<double> differences;
    double previous = 0;
    for (std::size_t i = 0; i < points.size(); ++i) {
        const double residual = points[i].y - fit.curve().at(points[i].x);
        if (i > 0) {
            differences.push_back((residual - previous) /
                                  std::sqrt(1 / samples[i].count + 1 / samples[i - 1].count));
        }
        previous = residual;
    }
    return robust_deviation(std::move(differences));
}

Closeness closeness(const Points& points, const CurveSamples& samples, double noise,
                    const DecayFit& fit) {
    constexpr std::size_t parameters = 3;
    constexpr std::size_t least = 4;  // points in a mean
    const std::size_t means = std::min<std::size_t>(points.size() / least, 16);
    Closeness close;
    if (means <= parameters) return close;
    close.freedom = static_cast<double>(means - parameters);
    double variance = 0;
    for (std::size_t m = 0; m < means; ++m) {
        double sum = 0;
        double count = 0;
        for (std::size_t i = points.size() * m / means; i < points.size() * (m + 1) / means; ++i) {
            const double away = points[i].y - fit.curve().at(points[i].x);
            // one spike that was overlooked is not a form that fails
            const double reach = 3 * noise / std::sqrt(samples[i].count);
            sum += samples[i].count * std::clamp(away, -reach, reach);
            count += samples[i].count;
        }
        close.excess += sum * sum / (count * noise * noise + 1e-18);
        variance += noise * noise / count;
    }
    close.noise = std::sqrt(variance / static_cast<double>(means));
    return close;
}

/// Every family's curve, and how much it is believed in.
struct Candidates {
    struct Curve {
        DecayFit fit;
        double weight = 0;
    };
    std::vector<Curve> curves;
    Closeness closest;
    double failure = 1;  ///< 0 where a form holds, 1 where none does

    /// The one whose forecast two octaves ahead is the weighted median of all.
    const Curve& best() const;
};

const Candidates::Curve& Candidates::best() const {
    constexpr double ahead = 4;
    std::vector<const Curve*> by_forecast;
    for (const Curve& each : curves) by_forecast.push_back(&each);
    std::stable_sort(by_forecast.begin(), by_forecast.end(), [](const Curve* a, const Curve* b) {
        return a->fit.curve().at(ahead) < b->fit.curve().at(ahead);
    });
    double sum = 0;
    for (const Curve* each : by_forecast) {
        sum += each->weight;
        if (sum >= 0.5) return *each;
    }
    return *by_forecast.back();
}

Candidates candidates(const Points& points, const CurveSamples& samples,
                      const LossCurveOptions& options) {
    Candidates all;
    all.closest.excess = infinity;
    double noise = infinity;
    for (const Family& family : families) {
        all.curves.push_back({DecayFit(points, family.exponent, options), family.prior});
        noise = std::min(noise, noise_of(points, samples, all.curves.back().fit));
    }
    // No loss is as exact: thinning alone leaves a trace in points without noise.
    noise = std::max(noise, least_noise);
    std::vector<double> excess;
    for (const auto& each : all.curves) {
        const Closeness close = closeness(points, samples, noise, each.fit);
        excess.push_back(close.excess);
        if (close.excess < all.closest.excess) all.closest = close;
    }
    // a form may be off by chance, or by little beside which all others are far off
    std::vector<double> sorted = excess;
    std::nth_element(sorted.begin(), sorted.begin() + 1, sorted.end());
    const double freedom = std::max(1.0, all.closest.freedom);
    all.failure = std::clamp(
        (all.closest.excess / freedom - 1) / std::max(1.0, sorted[1] / freedom / 10), 0.0, 1.0);
    // one scale for all, or a fit that takes noise for outliers would seem the better one
    double deviation = infinity;
    for (const auto& each : all.curves) deviation = std::min(deviation, each.fit.deviation());
    double least = infinity;
    for (const auto& each : all.curves) least = std::min(least, each.fit.cost(deviation));
    // Where a form holds, the points choose it. Where none does, the one that is the nearest to the
    // past need not be nearest to what comes: all points together then tell as much as one.
    const double told = 1 - all.failure;
    double sum = 0;
    for (std::size_t i = 0; i < all.curves.size(); ++i) {
        Candidates::Curve& each = all.curves[i];
        const double farther = told * (excess[i] - all.closest.excess) +
                               std::log((each.fit.cost(deviation) + 1e-18) / (least + 1e-18));
        each.weight *= std::exp(-farther / 2);
        sum += each.weight;
    }
    for (auto& each : all.curves) each.weight /= sum;
    return all;
}

/// How much to expect of a curve that it will leave its form: 1 where no form holds, or where noise
/// would hide it; 0 where one has held so far.
double distrust(const Candidates& all, double loss) {
    const double hidden = all.closest.noise / (0.25 * annealed * loss + 1e-18);
    return std::clamp(std::max(all.failure, hidden), 0.0, 1.0);
}

/// The reach of the 80% interval at each octave, in the fit's units.
void estimate_reach(const Candidates& all, const LossCurveOptions& options, LossCurve& curve) {
    const DecayFit& best = all.best().fit;
    const double now = best.curve().at(1);
    const double drift = options.drift * distrust(all, now);
    for (std::size_t i = 0; i < LossCurve::octaves.size(); ++i) {
        const double x = std::exp2(LossCurve::octaves[i]);
        const double value = best.curve().at(x);
        const double open = best.deviation_at(x);
        double below = 0;
        double above = 0;
        for (const auto& each : all.curves) {
            const double away = each.fit.curve().at(x) - value;
            (away < 0 ? below : above) += each.weight * away * away;
        }
        // what was seen of real losses has all of it inside: the greater of the two, not the sum
        const double lower = drift * annealed * value * std::min(1.0, LossCurve::octaves[i]);
        const double higher = drift * missed_fall * (now - value);
        curve.below[i] = std::max(z_80 * std::sqrt(open * open + below), lower);
        curve.above[i] = std::max(z_80 * std::sqrt(open * open + above), higher);
        if (i > 0) {
            curve.below[i] = std::max(curve.below[i], curve.below[i - 1]);
            curve.above[i] = std::max(curve.above[i], curve.above[i - 1]);
        }
    }
}

/// Where a loss that does not fall is now: its later part, where that lies above the level of all
/// by more than noise makes of it.
double level_now(const CurveSamples& samples, double level, double deviation) {
    constexpr std::size_t least = 4;
    std::vector<double> late;
    for (std::size_t i = samples.size() - std::max(least, samples.size() / 4); i < samples.size();
         ++i)
        late.push_back(samples[i].loss);
    const double noise = deviation / std::sqrt(static_cast<double>(late.size()));
    const double now = median(std::move(late));
    return now - level > 3 * noise ? now : level;
}

/// To four digits: an interval is no surer than that, and a record shorter.
double rounded(double value) {
    std::array<char, 32> text{};
    const auto end =
        std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::general, 4);
    std::from_chars(text.data(), end.ptr, value);
    return value;
}

/// At a step: the intervals of the past are that of now.
double reach_at(const LossCurve& curve, const LossCurve::Reach& reach, double step) {
    const double last = static_cast<double>(curve.last_step);
    const double ahead = step > last && last > 0 ? std::log2(step / last) : 0;
    std::size_t i = 0;
    while (i + 2 < reach.size() && LossCurve::octaves[i + 1] <= ahead) ++i;
    const double slope =
        (reach[i + 1] - reach[i]) / (LossCurve::octaves[i + 1] - LossCurve::octaves[i]);
    const double value = reach[i] + slope * (ahead - LossCurve::octaves[i]);
    // a record may hold anything: what overflows is not known at all
    return std::isfinite(value) ? std::max(0.0, value) : infinity;
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

/// Where from `from` on a condition begins to hold; infinite: a search so far ahead is one of
/// principle.
template <typename Condition>
double first_step_after(const Condition& holds, double from) {
    if (holds(from)) return from;
    double before = from;
    double ahead = std::max(1.0, from / 1024);
    for (int doubling = 0; doubling < 40; ++doubling, ahead *= 2) {
        const double after = from + ahead;
        if (holds(after)) return first_step(holds, before, after);
        before = after;
    }
    return infinity;
}

/// From where on, up to what is far ahead of `last`, a condition holds for good; infinite: not even
/// there. It may hold for a while before too, where a curve has not begun to fall.
template <typename Condition>
double last_begin(const Condition& holds, double last) {
    double step = std::max(1.0, last) * 0x1p40;
    if (!holds(step)) return infinity;
    while (step > 1 && holds(step / 2)) step /= 2;
    return step > 1 ? first_step(holds, step / 2, step) : 0;
}

}  // namespace

const char* LossCurve::family() const {
    if (exponent == 1) return "hyperbola";
    return std::isinf(exponent) ? "exponential" : "power";
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
           check(reweightings >= 0 && reweightings <= 1000, "reweightings: 0 to 1000") &&
           check(drift >= 0 && drift < infinity, "drift: 0 and more");
}

Result<LossCurve> fit_loss_curve(const std::vector<LossPoint>& points,
                                 const LossCurveOptions& options) {
    CurveReservoir reservoir;
    for (const LossPoint& point : points) reservoir.add(point);
    return fit_loss_curve(reservoir, options);
}

Result<LossCurve> fit_loss_curve(const CurveReservoir& points, const LossCurveOptions& options) {
    std::string why;
    if (!options.is_valid(&why)) return {ErrorCode::usage, why};
    CurveSamples samples = points.samples();
    why = suspect(samples, options.min_points);
    if (!why.empty()) return {ErrorCode::not_found, "cannot say yet: " + why};
    LossCurve curve;
    for (const CurveSample& sample : samples)
        curve.points += static_cast<std::int64_t>(sample.count);
    level_spikes(samples);
    curve.first_loss = median({samples[0].loss, samples[1].loss, samples[2].loss});
    skip_warmup(samples, options);
    join_segments(samples);
    const CurveSamples means = thinned(samples, options.max_points);
    const Scale scale = scale_of(means);
    const Points scaled_points = scaled(means, scale);
    const Candidates all = candidates(scaled_points, means, options);
    const DecayFit::Curve& best = all.best().fit.curve();
    curve.exponent = best.exponent;
    curve.b0 = best.p / (scale.step * scale.loss);
    curve.b1 = best.q / scale.loss;
    curve.b2 = best.r * scale.loss;
    estimate_reach(all, options, curve);
    for (double& reach : curve.below) reach = rounded(reach * scale.loss);
    for (double& reach : curve.above) reach = rounded(reach * scale.loss);
    const auto residual = [&] {
        std::vector<double> residuals;
        for (const CurveSample& sample : samples)
            residuals.push_back(sample.loss - curve.at(sample.step));
        return robust_deviation(std::move(residuals));
    };
    curve.residual = residual();
    if (!curve.falls()) {
        const double level = curve.at(0);
        const double risen = level_now(samples, level, curve.residual) - level;
        curve.b2 += risen;
        for (double& reach : curve.below) reach = std::max(reach, rounded(risen));
        for (double& reach : curve.above) reach = std::max(reach, rounded(risen));
        curve.residual = residual();
    }
    curve.last_step = static_cast<std::int64_t>(samples.back().step);
    curve.last_loss = curve.at(samples.back().step);
    return curve;
}

Forecast forecast_loss(const LossCurve& curve, double step) {
    Forecast forecast;
    forecast.value = curve.at(step);
    const double below = reach_at(curve, curve.below, step);
    forecast.low = below < infinity ? std::max(0.0, forecast.value - below) : 0;
    forecast.high = forecast.value + reach_at(curve, curve.above, step);
    const double last = static_cast<double>(curve.last_step);
    if (step > last) {
        // the curve falls: later is not above the last
        forecast.high =
            std::min(forecast.high, curve.at(last) + reach_at(curve, curve.above, last));
        forecast.high = std::max(forecast.high, forecast.value);
    }
    return forecast;
}

Forecast forecast_limit(const LossCurve& curve) {
    // The last octave is not the end: with its reach as it is the limit was held in 69% only.
    constexpr double farther = 1.5;
    const double last = static_cast<double>(curve.last_step);
    Forecast forecast;
    forecast.value = curve.falls() ? curve.b2 : curve.at(0);
    const double below = farther * curve.below.back();
    forecast.low = std::isfinite(below) ? std::max(0.0, forecast.value - below) : 0;
    // what the loss comes to is not above what it is on the way there
    const double on_the_way =
        curve.at(std::exp2(LossCurve::octaves.back()) * last) + farther * curve.above.back();
    forecast.high = std::max(forecast.value, std::min(on_the_way, forecast_loss(curve, last).high));
    return forecast;
}

std::optional<Forecast> forecast_step(const LossCurve& curve, double loss) {
    const double above = loss - curve.b2;
    if (!(above > 0) || !(curve.b0 > 0)) return std::nullopt;
    Forecast forecast;
    forecast.value = curve.decay().reached(above);
    if (!std::isfinite(forecast.value)) return std::nullopt;
    const auto low_reaches = [&](double step) { return forecast_loss(curve, step).low <= loss; };
    const auto high_reaches = [&](double step) { return forecast_loss(curve, step).high <= loss; };
    forecast.low = low_reaches(0) ? 0 : first_step(low_reaches, 0, forecast.value);
    forecast.high = first_step_after(high_reaches, forecast.value);
    return forecast;
}

std::optional<Forecast> forecast_flat(const LossCurve& curve, double share) {
    if (!(curve.b0 > 0) || !(share > 0)) return std::nullopt;
    // between step and 2 step the loss falls by this, and by so much more or less
    const auto falls = [&curve](double step, double more) {
        const double usual = curve.at(step) - curve.at(2 * step);
        const LossCurve::Reach& reach = more > 0 ? curve.below : curve.above;
        return std::max(
            0.0, usual + more * (reach_at(curve, reach, 2 * step) - reach_at(curve, reach, step)));
    };
    const auto flat = [&](double more) {
        return [&, more](double step) {
            return falls(step, more) <= share * (curve.first_loss - curve.at(step));
        };
    };
    const auto begins = [&](double more) {
        return last_begin(flat(more), static_cast<double>(curve.last_step));
    };
    Forecast forecast;
    forecast.value = begins(0);
    if (!std::isfinite(forecast.value)) return std::nullopt;
    forecast.low = std::min(forecast.value, begins(-1));
    forecast.high = std::max(forecast.value, begins(1));
    return forecast;
}

}  // namespace sluice
