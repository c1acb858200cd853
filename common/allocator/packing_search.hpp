// SPDX-License-Identifier: GPL-2.0-or-later
//
// Who runs where, so that the sum of what placements are worth is largest: each job has a list of
// shapes, each with a value, and takes one of them, stays where it is, or gets nothing. On no node
// are there two jobs that spread over several (they would share its way to the network).
//
// That is NP-hard (it contains bin packing). Searched by large neighbourhoods (Shaw, CP 1998):
// three first packings, by the price per GPU that clears the market; then `steps` times a few jobs
// are taken out (some at random, or all of two nodes) and put back, each where its value less the
// price is largest; kept where the sum is better. Deterministic: the same input, the same packing.
//
// With J jobs of S shapes on nodes of at most G GPUs: a job is put in place in O(S + G), a step
// moves some ten of them; the first packings O(J (S + G)).
#pragma once

#include <cstddef>
#include <set>
#include <vector>

#include "common/allocator/policy.hpp"

namespace sluice {

/// A way to lie on nodes of one type.
struct Shape {
    StepPlacement placement;  ///< without a local batch
    std::size_t type = 0;     ///< of the nodes
    /// GPUs on each node, descending. Empty: any split over placement.nodes.
    std::vector<int> pieces;
};

/// Every number of GPUs up to `most` on one node; on two to four nodes the same number on all but
/// one, which may have fewer; beyond, on every second count of nodes or so, those full, half full,
/// or with one GPU each. Then the sizes of `also` that are not among these, on as few nodes as can
/// be. By type of node, then by nodes, then GPUs, `also` last.
std::vector<Shape> shapes_of(const std::vector<NodeView>& nodes, int most,
                             const std::set<int>& also = {});

struct PackingOffer {
    std::size_t shape = 0;
    double value = 0;  ///< only what is above 0 is taken
};

struct PackingJob {
    std::vector<PackingOffer> offers;
    std::vector<NodeShare> held;  ///< where it may stay
    double stay_value = 0;
    bool urgent = false;  ///< comes before all that are not
};

struct PackingResult {
    bool stays = false;
    std::vector<NodeShare> shares;  ///< empty: nothing
    double value = 0;
};

/// The price per GPU of each type at which jobs that each take what is worth most to them ask for
/// no more GPUs than there are, disregarding nodes.
std::vector<double> clearing_prices(const std::vector<NodeView>& nodes,
                                    const std::vector<Shape>& shapes,
                                    const std::vector<PackingJob>& jobs);

std::vector<PackingResult> search_packing(const std::vector<NodeView>& nodes,
                                          const std::vector<Shape>& shapes,
                                          const std::vector<PackingJob>& jobs, int steps);

}  // namespace sluice
