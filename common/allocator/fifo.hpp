// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "common/allocator/policy.hpp"

namespace sluice {

/// Stock behaviour: every job keeps the size it has or asks for.
class FifoPolicy : public Policy {
  public:
    std::string_view name() const override { return "fifo"; }
    Plan plan(const ClusterView& cluster) const override;
};

}  // namespace sluice
