// SPDX-License-Identifier: GPL-2.0-or-later
//
// How fast an all-reduce runs over a set of GPUs.
//
// A ring all-reduce of b bytes over k GPUs sends 2 (k-1)/k b over every edge of the ring, so its
// slowest edge sets the time (Patarasuk and Yuan, J. Parallel Distrib. Comput. 69, 2009). NCCL runs
// several rings or trees at once over parallel links. So, for a set S:
//   bottleneck(S)  the largest rate r such that S has a ring (Hamiltonian cycle; for two GPUs the
//   pair) whose edges all
//                  carry at least r GB/s in each direction;
//   total(S)       the largest total rate of rings that use no link twice (for two GPUs the rate of
//   the pair; behind a
//                  switch the rate of one GPU's links).
// A set is better when its bottleneck is larger, and among equals when its total is larger. One GPU
// needs no communication: both are 0, and every single GPU is equal.
#pragma once

#include "common/base/gpu_set.hpp"
#include "common/topology/gpu_graph.hpp"

namespace sluice {

struct SetBandwidth {
    double bottleneck_gbps = 0;
    double total_gbps = 0;

    friend auto operator<=>(const SetBandwidth&, const SetBandwidth&) = default;
};

/// Exact for sets of up to 16 GPUs. Larger sets: the bottleneck is that of the best spanning tree
/// (an upper bound of the ring's), the total equals it.
SetBandwidth set_bandwidth(const GpuGraph& graph, GpuSet set);

}  // namespace sluice
