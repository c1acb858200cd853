// SPDX-License-Identifier: GPL-2.0-or-later
//
// How fast an all-reduce runs over a set of GPUs.
//
// A ring all-reduce of b bytes over k GPUs sends 2 (k-1)/k b over every edge of the ring, so its
// slowest edge sets the time (Patarasuk and Yuan, J. Parallel Distrib. Comput. 69, 2009). NCCL runs
// several rings or trees at once over parallel links, and uses paths over PCIe only where there is
// no ring without them. So, for a set S:
//   bottleneck(S)  the largest rate r such that S has a ring (Hamiltonian cycle; for two GPUs the
//                  pair) whose edges all carry at least r GB/s in each direction;
//   total(S)       for two GPUs the rate of the pair; else the largest number of rings of direct
//                  links that use no link twice, times the rate of a link. Where S has no such
//                  ring, and behind a switch, it is bottleneck(S): a GPU has one PCIe port, and a
//                  GPU's links to the switch carry all its rings.
// A set is better when its bottleneck is larger, and among equals when its total is larger. One GPU
// needs no communication: both are 0, and every single GPU is equal.
//
// Where links differ in rate, the slowest link of the graph is the unit, an edge of rate g holds
// floor(g / unit) of them, and total(S) is at least bottleneck(S).
#pragma once

#include <compare>
#include <vector>

#include "common/base/gpu_set.hpp"
#include "common/topology/gpu_graph.hpp"

namespace sluice {

struct SetBandwidth {
    double bottleneck_gbps = 0;
    double total_gbps = 0;

    // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 sees a pointer in what is generated
    friend auto operator<=>(const SetBandwidth&, const SetBandwidth&) = default;
};

/// The bottleneck is exact for sets of up to 16 GPUs. The total is exact for up to 8 and behind a
/// switch; for 9 to 16 GPUs with direct links it is what a search of bounded length finds, at most
/// the true one. Larger sets: the bottleneck is that of the best spanning tree (an upper bound of
/// the ring's), the total equals it.
SetBandwidth set_bandwidth(const GpuGraph& graph, GpuSet set);

/// The same for every set of a graph of up to 16 GPUs, [set.bits()]; empty for a larger graph. The
/// rings come from one dynamic programme over all sets (Held and Karp, SIAM J. 10, 1962), O(2^n
/// n^2).
std::vector<SetBandwidth> all_set_bandwidths(const GpuGraph& graph);

}  // namespace sluice
