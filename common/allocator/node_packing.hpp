// SPDX-License-Identifier: GPL-2.0-or-later
//
// Whether a set of sizes fits on the nodes. GPUs that stay where they are (of running jobs that are
// not resized) are pinned; the other jobs are placed: one job at a time by best fit, and where that
// fails all of them again by best fit decreasing. Bin packing is NP-hard and this is a heuristic
// (at most 11/9 of the optimal number of nodes plus a constant for jobs of one node; Johnson 1973):
// it can miss a packing, and never claims one that is none.
#pragma once

#include <cstddef>
#include <vector>

#include "common/allocator/policy.hpp"

namespace sluice {

class NodePacking {
  public:
    explicit NodePacking(const std::vector<NodeView>& nodes);

    /// Whether a job of this size fits on the nodes when they are empty. `node_count` as in
    /// JobView: evenly over that many nodes, 0: any split.
    bool could_hold(int size, int node_count) const;

    /// GPUs that nobody has.
    int free_gpus() const { return free_gpus_; }

    /// These GPUs are taken where they are. False, and nothing has changed, where that leaves no
    /// room for the placed jobs.
    bool pin(const std::vector<NodeShare>& held);
    /// The same at the start, when a node may hold more than it has (it went down): never fails.
    void pin_as_is(const std::vector<NodeShare>& held);
    void unpin(const std::vector<NodeShare>& held);

    /// Places the job, or gives a placed job another size. False, and nothing has changed, where it
    /// does not fit.
    bool place(std::size_t job, int size, int node_count);
    void remove(std::size_t job);

    /// Back to a copy made before; what was spent on packing again stays spent.
    void roll_back(const NodePacking& before);

  private:
    struct Placed {
        std::size_t job = 0;
        int size = 0;
        int node_count = 0;
        std::vector<NodeShare> shares;
    };

    void take(const std::vector<NodeShare>& shares, int sign);
    bool best_fit(Placed& placed);
    void fit_one_node(Placed& placed) const;
    void fit_evenly(Placed& placed) const;
    void fit_any_split(Placed& placed) const;
    bool place_all_again();
    std::vector<Placed>::iterator find(std::size_t job);

    std::vector<int> capacity_;  // descending
    int total_ = 0;
    std::vector<int> unpinned_;  // by node; negative where more is held than there is
    std::vector<int> free_;      // by node: unpinned less what is placed
    int free_gpus_ = 0;
    std::vector<Placed> placed_;  // by job
    int repacks_left_ = 512;      // bounds the work of one plan
};

}  // namespace sluice
