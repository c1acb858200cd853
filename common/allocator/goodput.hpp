// SPDX-License-Identifier: GPL-2.0-or-later
//
// The policy `goodput`: everyone as fast as can be relative to a fair share (Pollux, Qiao et al.,
// OSDI 2021, section 4.2).
//
//     max (1/J sum_j speedup_j^p)^(1/p),   speedup_j = rate on the shape / rate on 1/J of the GPUs
//
// with p = -1, which cares more for those who are slow. For another placement than it has a job's
// speed-up is multiplied by (T - R d) / (T + d): age T, R restarts so far, d seconds of each.
// Pollux searches for it by a genetic algorithm, this by search_packing(): the same objective is a
// sum over jobs of what their shapes are worth, -1 / speedup. A job whose work is not known counts
// as one that is as fast as it has GPUs, up to what was requested.
#pragma once

#include "common/allocator/policy.hpp"

namespace sluice {

class GoodputPolicy : public Policy {
  public:
    explicit GoodputPolicy(int steps = 400) : steps_(steps) {}

    std::string_view name() const override { return "goodput"; }
    Plan plan(const ClusterView& cluster) const override;

  private:
    int steps_;  ///< of the search
};

}  // namespace sluice
