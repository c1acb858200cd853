// SPDX-License-Identifier: GPL-2.0-or-later
//
// The points of one job as they come: a bounded set of them for the fit, and the pace of this run.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <utility>

#include "common/model/curve_samples.hpp"
#include "common/samples/loss_point.hpp"

namespace sluice {

class Progress {
  public:
    /// Arrivals that the pace is taken from.
    static constexpr std::size_t max_arrivals = 256;

    /// A point seen `seconds` after some fixed moment. `live` is false for what stood in the log
    /// before this run: it is part of the curve and says nothing about the pace.
    void add(const LossPoint& point, double seconds, bool live);

    /// What the curve is fitted to.
    const CurveReservoir& points() const { return points_; }
    std::int64_t count() const { return count_; }  ///< all that were ever added
    const std::optional<LossPoint>& last() const { return last_; }

    /// Steps per second over the live arrivals (least squares of step over time); nothing before
    /// there are three, spread over at least `least_seconds`.
    std::optional<double> steps_per_second(double least_seconds) const;

  private:
    CurveReservoir points_;
    std::optional<LossPoint> last_;
    std::deque<std::pair<double, double>> arrivals_;  // seconds, step
    std::int64_t count_ = 0;
};

}  // namespace sluice
