// SPDX-License-Identifier: GPL-2.0-or-later
//
// The policy `progress`: GPUs go where the loss falls most for them, first come first served
// underneath (size_plan.hpp). Value of a size s for job j within t seconds is relative_gain():
//
//     V_j(s) = (l_j(k) - l_j(k + f_j(s) t)) / (l_j(k) - limit_j)      in [0, 1]
#pragma once

#include "common/allocator/policy.hpp"

namespace sluice {

class ProgressPolicy : public Policy {
  public:
    std::string_view name() const override { return "progress"; }
    Plan plan(const ClusterView& cluster) const override;
};

}  // namespace sluice
