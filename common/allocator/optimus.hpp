// SPDX-License-Identifier: GPL-2.0-or-later
//
// The policy `optimus`: GPUs go, one by one, where they shorten the sum of the remaining times most
// (Peng et al., EuroSys 2018, section 4.1).
//
// In order of arrival each job gets one GPU while there are some; then, as long as one is left, the
// job with the largest Q/f(k) - Q/f(k + 1), Q its remaining work and f(k) its rate on k GPUs that
// lie on as few nodes as can be. Whose number changes is placed anew, the smallest first, on the
// nodes that have most free. A job whose work is not known keeps what it has. O(J + G log J) for G
// GPUs, and the forecasts.
#pragma once

#include "common/allocator/policy.hpp"

namespace sluice {

class OptimusPolicy : public Policy {
  public:
    std::string_view name() const override { return "optimus"; }
    Plan plan(const ClusterView& cluster) const override;
};

}  // namespace sluice
