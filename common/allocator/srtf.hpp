// SPDX-License-Identifier: GPL-2.0-or-later
//
// The policy `srtf`: shortest remaining time first, for jobs of fixed size (Schrage 1968, for one
// machine the best there is).
//
// In order of remaining work over rate on as many GPUs as were asked for, on as few nodes as can
// be; jobs whose work is not known come last, by arrival. Who fits what is left runs, others give
// way (run_in_order()). O(J log J + J N).
#pragma once

#include "common/allocator/policy.hpp"

namespace sluice {

class SrtfPolicy : public Policy {
  public:
    std::string_view name() const override { return "srtf"; }
    Plan plan(const ClusterView& cluster) const override;
};

}  // namespace sluice
