// SPDX-License-Identifier: GPL-2.0-or-later
//
// Which points of a log enter the fit of its curve, and as what.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/model/loss_curve_options.hpp"
#include "common/samples/loss_point.hpp"

namespace sluice {

struct CurveSample {
    double step = 0;
    double loss = 0;
    double count = 1;  ///< points it is the mean of
    double last = 0;   ///< the last step of these
};
using CurveSamples = std::vector<CurveSample>;

/// The points of a run as they come, in bounded memory: at most max_samples of them as they are;
/// when there are more, what is long past becomes means over intervals that are proportional to
/// the step (1% and more), and the latest stay as they are.
class CurveReservoir {
  public:
    static constexpr std::size_t max_samples = 2048;

    /// nan, inf and what is too large for a loss are passed over. Where the step goes back the run
    /// was restarted there: what came after it is gone.
    void add(const LossPoint& point);

    /// By rising step. Points without a step from 0 to max_step are numbered where most have none,
    /// and left out where most have one.
    const CurveSamples& samples() const;

  private:
    static void add(CurveSamples& samples, double step, double loss);

    CurveSamples by_step_;
    CurveSamples by_position_;
    std::int64_t points_ = 0;
    std::int64_t with_step_ = 0;
};

/// Why the samples say nothing about a curve, for people; empty: they do.
std::string suspect(const CurveSamples& samples, std::size_t min_points);

/// A spike is far from the median of its neighbours, by the measure of how far the others are. It
/// becomes that median. Means are no spikes.
void level_spikes(CurveSamples& samples);

/// Takes the begin away, see LossCurveOptions; min_points are left.
void skip_warmup(CurveSamples& samples, const LossCurveOptions& options);

/// Where the loss goes up or down at once and stays there (another batch size after a resize, a
/// lower learning rate), what came before is moved by as much, so that the pieces join: the shape
/// of all of them is one curve, its height that of the last. Returns how many places there were.
int join_segments(CurveSamples& samples);

/// At most max_points, one for each of as many intervals of equal length in log(step): the mean of
/// what is not far from the interval's median.
CurveSamples thinned(const CurveSamples& samples, std::size_t max_points);

double median(std::vector<double> values);

/// The standard deviation of normal noise, from the median of the residuals' absolute values.
double robust_deviation(std::vector<double> residuals);

}  // namespace sluice
