// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/allocator/node_packing.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <tuple>
#include <utility>

namespace sluice {

NodePacking::NodePacking(const std::vector<NodeView>& nodes) {
    for (const NodeView& node : nodes) {
        unpinned_.push_back(std::max(0, node.gpus));
        total_ += unpinned_.back();
    }
    free_ = capacity_ = unpinned_;
    free_gpus_ = total_;
    std::sort(capacity_.begin(), capacity_.end(), std::greater());
}

bool NodePacking::could_hold(int size, int node_count) const {
    if (size < 1) return false;
    if (node_count == 0) return size <= total_;
    const auto nodes = static_cast<std::size_t>(node_count);
    return size % node_count == 0 && nodes <= capacity_.size() &&
           capacity_[nodes - 1] >= size / node_count;
}

void NodePacking::take(const std::vector<NodeShare>& shares, int sign) {
    for (const NodeShare& share : shares) {
        int& free = free_[share.node];
        free_gpus_ -= std::max(0, free);
        free -= sign * share.gpus;
        free_gpus_ += std::max(0, free);
    }
}

void NodePacking::pin_as_is(const std::vector<NodeShare>& held) {
    for (const NodeShare& share : held) unpinned_[share.node] -= share.gpus;
    take(held, 1);
}

bool NodePacking::pin(const std::vector<NodeShare>& held) {
    pin_as_is(held);
    const auto fits = [this](const NodeShare& share) { return free_[share.node] >= 0; };
    if (std::all_of(held.begin(), held.end(), fits) || place_all_again()) return true;
    unpin(held);
    return false;
}

void NodePacking::unpin(const std::vector<NodeShare>& held) {
    for (const NodeShare& share : held) unpinned_[share.node] += share.gpus;
    take(held, -1);
}

std::vector<NodePacking::Placed>::iterator NodePacking::find(std::size_t job) {
    return std::lower_bound(placed_.begin(), placed_.end(), job,
                            [](const Placed& placed, std::size_t id) { return placed.job < id; });
}

bool NodePacking::place(std::size_t job, int size, int node_count) {
    const auto at = static_cast<std::size_t>(find(job) - placed_.begin());
    const bool known = at < placed_.size() && placed_[at].job == job;
    Placed before;
    if (known) {
        before = std::move(placed_[at]);
        take(before.shares, -1);
    } else {
        placed_.emplace(placed_.begin() + static_cast<std::ptrdiff_t>(at));
    }
    placed_[at] = {job, size, node_count, {}};
    if (free_gpus_ >= size && (best_fit(placed_[at]) || place_all_again())) return true;
    if (known) {
        take(before.shares, 1);
        placed_[at] = std::move(before);
    } else {
        placed_.erase(placed_.begin() + static_cast<std::ptrdiff_t>(at));
    }
    return false;
}

void NodePacking::remove(std::size_t job) {
    const auto at = find(job);
    if (at == placed_.end() || at->job != job) return;
    take(at->shares, -1);
    placed_.erase(at);
}

void NodePacking::roll_back(const NodePacking& before) {
    const int left = repacks_left_;
    *this = before;
    repacks_left_ = left;
}

// Fills in `shares` and takes them. Ties go to the node that comes first.
bool NodePacking::best_fit(Placed& placed) {
    placed.shares.clear();
    if (placed.node_count > 1) {
        fit_evenly(placed);
    } else {
        fit_one_node(placed);
        if (placed.shares.empty() && placed.node_count == 0 && free_gpus_ >= placed.size)
            fit_any_split(placed);
    }
    take(placed.shares, 1);
    return !placed.shares.empty();
}

void NodePacking::fit_one_node(Placed& placed) const {
    std::size_t best = free_.size();
    for (std::size_t node = 0; node < free_.size(); ++node) {
        if (free_[node] >= placed.size && (best == free_.size() || free_[node] < free_[best]))
            best = node;
    }
    if (best < free_.size()) placed.shares.push_back({best, placed.size});
}

void NodePacking::fit_evenly(Placed& placed) const {
    const auto parts = static_cast<std::size_t>(placed.node_count);
    const int part = placed.size / placed.node_count;
    std::vector<std::size_t> nodes;
    for (std::size_t node = 0; node < free_.size(); ++node) {
        if (free_[node] >= part) nodes.push_back(node);
    }
    if (nodes.size() < parts) return;
    std::partial_sort(nodes.begin(), nodes.begin() + placed.node_count, nodes.end(),
                      [this](std::size_t a, std::size_t b) {
                          return std::pair(free_[a], a) < std::pair(free_[b], b);
                      });
    nodes.resize(parts);
    for (const std::size_t node : nodes) placed.shares.push_back({node, part});
}

// On few nodes, so the emptiest first.
void NodePacking::fit_any_split(Placed& placed) const {
    std::vector<std::size_t> nodes(free_.size());
    std::iota(nodes.begin(), nodes.end(), std::size_t{0});
    std::sort(nodes.begin(), nodes.end(), [this](std::size_t a, std::size_t b) {
        return std::pair(-free_[a], a) < std::pair(-free_[b], b);
    });
    int left = placed.size;
    for (std::size_t i = 0; left > 0; ++i) {
        const int gpus = std::min(left, free_[nodes[i]]);
        placed.shares.push_back({nodes[i], gpus});
        left -= gpus;
    }
}

// Best fit decreasing: the largest share of a node first, any split last.
bool NodePacking::place_all_again() {
    if (repacks_left_ == 0) return false;
    --repacks_left_;
    const std::vector<Placed> placed = placed_;
    const std::vector<int> free = free_;
    const int free_gpus = free_gpus_;

    free_ = unpinned_;
    free_gpus_ = std::accumulate(free_.begin(), free_.end(), 0,
                                 [](int sum, int gpus) { return sum + std::max(0, gpus); });
    std::vector<std::size_t> order(placed_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto key = [this](std::size_t i) {
        const Placed& each = placed_[i];
        const int part = each.node_count == 0 ? 0 : each.size / each.node_count;
        return std::tuple(-part, -each.size, each.job);
    };
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
    if (std::all_of(order.begin(), order.end(),
                    [this](std::size_t i) { return best_fit(placed_[i]); }))
        return true;
    placed_ = placed;
    free_ = free;
    free_gpus_ = free_gpus;
    return false;
}

}  // namespace sluice
