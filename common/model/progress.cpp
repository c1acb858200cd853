// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/model/progress.hpp"

namespace sluice {

void Progress::add(const LossPoint& point, double seconds, bool live) {
    ++count_;
    points_.add(point);
    last_ = point;
    if (!live || !point.step) return;
    const auto step = static_cast<double>(*point.step);
    // A step that goes back begins a new count: a restart from a checkpoint, or another phase.
    if (!arrivals_.empty() && step < arrivals_.back().second) arrivals_.clear();
    if (arrivals_.size() >= max_arrivals) arrivals_.pop_front();
    arrivals_.emplace_back(seconds, step);
}

std::optional<double> Progress::steps_per_second(double least_seconds) const {
    if (arrivals_.size() < 3) return std::nullopt;
    if (arrivals_.back().first - arrivals_.front().first < least_seconds) return std::nullopt;
    double mean_time = 0;
    double mean_step = 0;
    for (const auto& [time, step] : arrivals_) {
        mean_time += time;
        mean_step += step;
    }
    const auto n = static_cast<double>(arrivals_.size());
    mean_time /= n;
    mean_step /= n;
    double covariance = 0;
    double variance = 0;
    for (const auto& [time, step] : arrivals_) {
        covariance += (time - mean_time) * (step - mean_step);
        variance += (time - mean_time) * (time - mean_time);
    }
    if (variance <= 0 || covariance <= 0) return std::nullopt;
    return covariance / variance;
}

}  // namespace sluice
