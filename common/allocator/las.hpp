// SPDX-License-Identifier: GPL-2.0-or-later
//
// The policy `las`: least attained service in two queues (Tiresias, Gu et al., NSDI 2019,
// Discretized 2DAS), for jobs of fixed size.
//
// Attained is GPUs times seconds. Below `threshold_gpu_s` a job is in the first queue, then in the
// second; within a queue by arrival. In this order each job whose request fits what is left runs,
// others wait, running ones give way; nobody waits for a large job to fit. New GPUs come from the
// nodes that have most free. O(J log J + J N).
#pragma once

#include "common/allocator/policy.hpp"

namespace sluice {

class LasPolicy : public Policy {
  public:
    /// One threshold of 16 GPU-hours, as Pollux's comparison has it.
    explicit LasPolicy(double threshold_gpu_s = 16 * 3600) : threshold_gpu_s_(threshold_gpu_s) {}

    std::string_view name() const override { return "las"; }
    Plan plan(const ClusterView& cluster) const override;

  private:
    double threshold_gpu_s_;
};

}  // namespace sluice
