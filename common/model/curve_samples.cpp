// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/model/curve_samples.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "common/base/text.hpp"

namespace sluice {
namespace {

// More is not a loss, and its square would overflow.
constexpr double largest_loss = 1e100;
constexpr double infinity = std::numeric_limits<double>::infinity();

// Of the newest samples so many stay single points, for a spike shows by both of its neighbours.
constexpr std::size_t kept_single = 16;
// Length of an interval that becomes one sample, over its last step.
constexpr double least_resolution = 1.0 / 128;

/// The mean of samples [begin, end) without those far from their median.
CurveSample mean_of(const CurveSamples& samples, std::size_t begin, std::size_t end) {
    std::vector<double> losses;
    for (std::size_t i = begin; i < end; ++i) losses.push_back(samples[i].loss);
    const double middle = median(losses);
    for (double& loss : losses) loss -= middle;
    const double reach = 5 * robust_deviation(losses);
    CurveSample mean{0, 0, 0, samples[end - 1].last};
    for (std::size_t i = begin; i < end; ++i) {
        const CurveSample& sample = samples[i];
        if (std::fabs(sample.loss - middle) > reach) continue;
        mean.step += sample.count * sample.step;
        mean.loss += sample.count * (sample.loss - middle);
        mean.count += sample.count;
    }
    mean.step /= mean.count;
    mean.loss = middle + mean.loss / mean.count;
    return mean;
}

/// Means over intervals of this length, relative to their last step; the newest as they are.
CurveSamples coarser(const CurveSamples& samples, double resolution) {
    CurveSamples means;
    const std::size_t old = samples.size() - std::min(samples.size(), kept_single);
    double begin = 0;
    for (std::size_t i = 0; i < samples.size(); ++i) {
        const CurveSample& sample = samples[i];
        if (i < old && !means.empty() && sample.last - begin <= resolution * sample.last) {
            CurveSample& mean = means.back();
            const double share = sample.count / (mean.count + sample.count);
            mean.step += share * (sample.step - mean.step);
            mean.loss += share * (sample.loss - mean.loss);
            mean.count += sample.count;
            mean.last = sample.last;
        } else {
            begin = i > 0 ? samples[i - 1].last : sample.step - 1;
            means.push_back(sample);
        }
    }
    return means;
}

void make_room(CurveSamples& samples) {
    level_spikes(samples);
    CurveSamples means;
    for (double resolution = least_resolution;; resolution *= 2) {
        means = coarser(samples, resolution);
        if (means.size() <= CurveReservoir::max_samples / 2 || resolution > 1) break;
    }
    samples = std::move(means);
}

/// The straight line through samples [begin, end): its value at `at`, its slope, and how far the
/// losses are from it.
struct Line {
    double value = 0;
    double slope = 0;
    double squares = 0;

    Line(const CurveSamples& samples, std::size_t begin, std::size_t end, double at) {
        double n = 0, x = 0, y = 0, xx = 0, xy = 0;
        for (std::size_t i = begin; i < end; ++i) {
            n += 1;
            x += samples[i].step - at;
            y += samples[i].loss;
        }
        x /= n;
        y /= n;
        for (std::size_t i = begin; i < end; ++i) {
            const double dx = samples[i].step - at - x;
            xx += dx * dx;
            xy += dx * (samples[i].loss - y);
        }
        slope = xx > 0 ? xy / xx : 0;
        value = y - slope * x;
        for (std::size_t i = begin; i < end; ++i) {
            const double error = samples[i].loss - value - slope * (samples[i].step - at);
            squares += error * error;
        }
    }
};

struct Jump {
    std::size_t place = 0;  ///< the first sample after it
    double height = 0;
    double certainty = 0;  ///< its height over what noise and slope could make of it
};

/// The clearest jump, by straight lines through `side` samples before and after each place.
Jump clearest_jump(const CurveSamples& samples, std::size_t side, double spread) {
    constexpr double sigmas = 6;
    Jump best;
    for (std::size_t i = side; i + side <= samples.size(); ++i) {
        const double at = (samples[i - 1].step + samples[i].step) / 2;
        const Line before(samples, i - side, i, at);
        const Line after(samples, i, i + side, at);
        const auto n = static_cast<double>(side);
        // of the difference of two lines' ends
        const double noise = std::sqrt((before.squares + after.squares) / (2 * n - 4) * 8 / n);
        const double sloped =
            std::fabs(before.slope) * (samples[i].step - samples[i - side].step) +
            std::fabs(after.slope) * (samples[i + side - 1].step - samples[i - 1].step);
        const double height = after.value - before.value;
        const double least = std::max({sigmas * noise, sloped, 0.05 * spread});
        const double certainty = std::fabs(height) / std::max(least, 1e-300);
        if (certainty > best.certainty) best = {i, height, certainty};
    }
    return best;
}

}  // namespace

double median(std::vector<double> values) {
    if (values.empty()) return 0;
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

double robust_deviation(std::vector<double> residuals) {
    for (double& residual : residuals) residual = std::fabs(residual);
    return 1.4826 * median(std::move(residuals));
}

void CurveReservoir::add(CurveSamples& samples, double step, double loss) {
    while (!samples.empty() && samples.back().last >= step) samples.pop_back();
    if (!(std::fabs(loss) < largest_loss)) return;
    if (samples.size() >= max_samples) make_room(samples);
    samples.push_back({step, loss, 1, step});
}

void CurveReservoir::add(const LossPoint& point) {
    // a summary among steps has no place in the curve
    if (point.step && *point.step >= 0 && *point.step <= max_step) {
        ++with_step_;
        add(by_step_, static_cast<double>(*point.step), point.loss);
    }
    add(by_position_, static_cast<double>(points_++), point.loss);
}

const CurveSamples& CurveReservoir::samples() const {
    return with_step_ * 2 > points_ ? by_step_ : by_position_;
}

std::string suspect(const CurveSamples& samples, std::size_t min_points) {
    if (samples.empty()) return "there is no finite loss";
    if (samples.size() < min_points) {
        return "finite losses at different steps: " + std::to_string(samples.size()) +
               ", needed: " + std::to_string(min_points);
    }
    const double last = samples.back().loss;
    std::size_t same = 0;
    while (same < samples.size() && samples[samples.size() - 1 - same].loss == last) ++same;
    if (same == samples.size() || (last == 0 && same >= min_points)) {
        return "the last " + std::to_string(same) + " losses are all exactly " +
               format_number(last) +
               ", which is suspect (an overflow, or a rank without a loss), not converged";
    }
    std::vector<double> late;
    for (std::size_t i = samples.size() * 3 / 4; i < samples.size(); ++i) {
        late.push_back(samples[i].loss);
    }
    if (median(late) <= 0) return "the losses are not above 0, and this curve is";
    return {};
}

void level_spikes(CurveSamples& samples) {
    constexpr std::size_t most = 3;  // neighbours on either side
    std::vector<double> away(samples.size());
    std::vector<double> single;
    for (std::size_t i = 0; i < samples.size(); ++i) {
        if (samples[i].count > 1) continue;
        // as many on either side, so that a slope is not taken for a spike
        const std::size_t side = std::min({most, i, samples.size() - 1 - i});
        std::array<double, 2 * most + 1> window{};
        for (std::size_t k = 0; k <= 2 * side; ++k) window[k] = samples[i - side + k].loss;
        const auto middle = window.begin() + static_cast<std::ptrdiff_t>(side);
        std::nth_element(window.begin(), middle,
                         window.begin() + static_cast<std::ptrdiff_t>(2 * side + 1));
        away[i] = samples[i].loss - *middle;
        single.push_back(away[i]);
    }
    const double reach = 6 * robust_deviation(std::move(single));
    if (!(reach > 0)) return;
    for (std::size_t i = 0; i < samples.size(); ++i) {
        if (std::fabs(away[i]) > reach) samples[i].loss -= away[i];
    }
}

int join_segments(CurveSamples& samples) {
    constexpr int most = 4;
    // few enough to stand beside each other, enough to tell a jump from noise
    const std::size_t side = std::clamp<std::size_t>(samples.size() / 16, 6, 16);
    std::vector<double> losses;
    for (const CurveSample& sample : samples) losses.push_back(sample.loss);
    std::sort(losses.begin(), losses.end());
    if (losses.size() < 4 * side) return 0;
    const double spread = losses[losses.size() * 9 / 10] - losses[losses.size() / 10];
    for (int joined = 0; joined < most; ++joined) {
        const Jump jump = clearest_jump(samples, side, spread);
        if (jump.certainty <= 1) return joined;
        for (std::size_t i = 0; i < jump.place; ++i) samples[i].loss += jump.height;
    }
    return most;
}

// Of three in a row the middle one, against what is left of spikes.
void skip_warmup(CurveSamples& samples, const LossCurveOptions& options) {
    const double first = samples.front().step;
    const double length = samples.back().step - first;
    const std::size_t spare = samples.size() - options.min_points;
    std::size_t begin = 0;
    double highest = -infinity;
    for (std::size_t i = 1; i + 1 < samples.size() && i <= spare; ++i) {
        if (samples[i].step > first + options.warmup_fraction * length) break;
        const double a = samples[i - 1].loss;
        const double b = samples[i].loss;
        const double c = samples[i + 1].loss;
        const double middle = std::max(std::min(a, b), std::min(std::max(a, b), c));
        if (middle > highest) {
            highest = middle;
            begin = i - 1;
        }
    }
    std::size_t untrained = 0;
    while (untrained < spare &&
           samples[untrained].step < first + options.untrained_fraction * length) {
        ++untrained;
    }
    if (untrained >= 3) begin = std::max(begin, untrained);
    samples.erase(samples.begin(), samples.begin() + static_cast<std::ptrdiff_t>(begin));
}

CurveSamples thinned(const CurveSamples& samples, std::size_t max_points) {
    if (samples.size() <= max_points) return samples;
    const double unit = std::max(1.0, samples.front().step);
    const double scale =
        static_cast<double>(max_points - 1) /
        (std::log1p(samples.back().step / unit) - std::log1p(samples.front().step / unit));
    const auto interval = [&](std::size_t i) {
        return std::floor(
            scale * (std::log1p(samples[i].step / unit) - std::log1p(samples.front().step / unit)));
    };
    CurveSamples means;
    for (std::size_t begin = 0; begin < samples.size();) {
        std::size_t end = begin + 1;
        while (end < samples.size() && interval(end) == interval(begin)) ++end;
        means.push_back(mean_of(samples, begin, end));
        begin = end;
    }
    return means;
}

}  // namespace sluice
