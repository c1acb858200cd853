// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/allocator/worst_fit.hpp"

#include <algorithm>

namespace sluice {

WorstFit::WorstFit(const std::vector<NodeView>& nodes) {
    free_.reserve(nodes.size());
    for (const NodeView& node : nodes) {
        free_.push_back(node.gpus);
        total_ += node.gpus;
    }
}

void WorstFit::take(const std::vector<NodeShare>& shares) {
    for (const NodeShare& share : shares) {
        free_[share.node] -= share.gpus;
        total_ -= share.gpus;
    }
}

std::vector<NodeShare> WorstFit::place_on_one(int gpus) {
    std::size_t tightest = free_.size();
    for (std::size_t node = 0; node < free_.size(); ++node) {
        if (free_[node] >= gpus && (tightest == free_.size() || free_[node] < free_[tightest]))
            tightest = node;
    }
    if (tightest == free_.size()) return {};
    std::vector<NodeShare> shares{{tightest, gpus}};
    take(shares);
    return shares;
}

std::vector<NodeShare> WorstFit::place(int gpus) {
    std::vector<NodeShare> shares;
    if (gpus < 1 || gpus > total_) return shares;
    for (int left = gpus; left > 0;) {
        const auto most = std::max_element(free_.begin(), free_.end());
        const NodeShare share{static_cast<std::size_t>(most - free_.begin()),
                              std::min(*most, left)};
        left -= share.gpus;
        shares.push_back(share);
        take({share});
    }
    return shares;
}

}  // namespace sluice
