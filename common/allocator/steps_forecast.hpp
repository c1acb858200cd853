// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <optional>
#include <vector>

#include "common/allocator/policy.hpp"
#include "common/jobspec/jobspec.hpp"
#include "common/model/remaining_work.hpp"

namespace sluice {

/// A job's steps that are left, by what can be known in this order: the target it was given, in
/// steps or, where the curve says when it is reached, as a loss; the steps of earlier runs of its
/// model (`earlier`; total 0: none); where the curve becomes flat; as many again as it has made.
/// Equally likely values, ascending; empty: cannot say.
std::vector<double> steps_left(const std::optional<Target>& target,
                               const std::optional<LossCurve>& curve, const ExpectedWork& earlier,
                               double step);

/// Work in steps of a batch that stays as it is, by a model of step times or, without one, by the
/// speeds of sizes.
class StepsForecast : public WorkForecast {
  public:
    /// `left` is not empty. The batch is of all GPUs together.
    StepsForecast(std::vector<double> left, const StepTimeModel& steps, double batch)
        : left_(std::move(left)), steps_(steps), batch_(batch) {}
    StepsForecast(std::vector<double> left, const SpeedModel& speed)
        : left_(std::move(left)), speed_(speed) {}

    double remaining() const override;
    std::vector<double> remaining_quantiles() const override { return left_; }
    double rate(const StepPlacement& placement, std::size_t type) const override;

  private:
    std::vector<double> left_;
    std::optional<StepTimeModel> steps_;
    double batch_ = 0;
    SpeedModel speed_;
};

}  // namespace sluice
