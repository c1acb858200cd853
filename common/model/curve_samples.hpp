// SPDX-License-Identifier: GPL-2.0-or-later
//
// Which points of a log enter the fit of its curve, and as what.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "common/model/loss_curve.hpp"

namespace sluice {

struct CurveSample {
    double step = 0;
    double loss = 0;
    double count = 1;  ///< points it is the mean of
};
using CurveSamples = std::vector<CurveSample>;

/// Finite points, below 1e100, by rising step. Where the step goes back the run was restarted
/// there: what came after it is gone. Points without a step are numbered where most have none, and
/// left out where most have one.
CurveSamples samples_in_order(const std::vector<LossPoint>& points);

/// Why the samples say nothing about a curve, for people; empty: they do.
std::string suspect(const CurveSamples& samples, std::size_t min_points);

/// A spike is far from the median of its neighbours, by the measure of how far the others are. It
/// becomes that median.
void level_spikes(CurveSamples& samples);

/// Takes the begin away, see LossCurveOptions; min_points are left.
void skip_warmup(CurveSamples& samples, const LossCurveOptions& options);

/// At most max_points, one for each of as many intervals of equal length in log(step): the mean of
/// what is not far from the interval's median.
CurveSamples thinned(const CurveSamples& samples, std::size_t max_points);

double median(std::vector<double> values);

/// The standard deviation of normal noise, from the median of the residuals' absolute values.
double robust_deviation(std::vector<double> residuals);

}  // namespace sluice
