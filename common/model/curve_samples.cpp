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

/// The mean of samples [begin, end) without those far from their median.
CurveSample mean_of(const CurveSamples& samples, std::size_t begin, std::size_t end) {
    std::vector<double> losses;
    for (std::size_t i = begin; i < end; ++i) losses.push_back(samples[i].loss);
    const double middle = median(losses);
    for (double& loss : losses) loss -= middle;
    const double reach = 5 * robust_deviation(losses);
    CurveSample mean{0, 0, 0};
    for (std::size_t i = begin; i < end; ++i) {
        if (std::fabs(samples[i].loss - middle) > reach) continue;
        mean.step += samples[i].step;
        mean.loss += samples[i].loss - middle;
        mean.count += 1;
    }
    mean.step /= mean.count;
    mean.loss = middle + mean.loss / mean.count;
    return mean;
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

CurveSamples samples_in_order(const std::vector<LossPoint>& points) {
    std::size_t with_step = 0;
    for (const LossPoint& point : points) with_step += point.step.has_value() ? 1 : 0;
    const bool by_step = with_step * 2 > points.size();
    CurveSamples samples;
    std::int64_t position = 0;
    for (const LossPoint& point : points) {
        // a summary among steps has no place in the curve
        if (by_step && !point.step) continue;
        const double step = static_cast<double>(by_step ? *point.step : position++);
        if (step < 0) continue;
        while (!samples.empty() && samples.back().step >= step) samples.pop_back();
        if (std::fabs(point.loss) < largest_loss) samples.push_back({step, point.loss, 1});
    }
    return samples;
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
    for (std::size_t i = 0; i < samples.size(); ++i) {
        // as many on either side, so that a slope is not taken for a spike
        const std::size_t side = std::min({most, i, samples.size() - 1 - i});
        std::array<double, 2 * most + 1> window{};
        for (std::size_t k = 0; k <= 2 * side; ++k) window[k] = samples[i - side + k].loss;
        const auto middle = window.begin() + static_cast<std::ptrdiff_t>(side);
        std::nth_element(window.begin(), middle,
                         window.begin() + static_cast<std::ptrdiff_t>(2 * side + 1));
        away[i] = samples[i].loss - *middle;
    }
    const double reach = 6 * robust_deviation(away);
    if (!(reach > 0)) return;
    for (std::size_t i = 0; i < samples.size(); ++i) {
        if (std::fabs(away[i]) > reach) samples[i].loss -= away[i];
    }
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
