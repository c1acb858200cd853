// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <vector>

#include "common/allocator/policy.hpp"

namespace sluice {

/// GPUs from the nodes that have most free, as the published simulators place them.
class WorstFit {
  public:
    explicit WorstFit(const std::vector<NodeView>& nodes);

    int free_gpus() const { return total_; }
    void take(const std::vector<NodeShare>& shares);
    /// All from one node, that which has least of those that have enough; empty where none has.
    std::vector<NodeShare> place_on_one(int gpus);
    /// Empty where fewer are free; then nothing has changed.
    std::vector<NodeShare> place(int gpus);

  private:
    std::vector<int> free_;
    int total_ = 0;
};

}  // namespace sluice
