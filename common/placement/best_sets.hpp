// SPDX-License-Identifier: GPL-2.0-or-later
//
// Which k of the free GPUs: compiled once for a node class, then answered by lookup.
//
// The best set S of size k within the free set F is the one with, in this order,
//   0. GPUs of one model, if the node has several: a step takes as long as on the slowest
//   1. the larger bottleneck(S), 2. the larger total(S)             (set_bandwidth.hpp)
//   3. the larger value of what stays free, left(F \ S), where left(R) is the sum over j = 2..|R|
//   of
//      w(j) pack(R, j): pack(R, j) is the largest sum of total() over disjoint sets of j within R,
//      what the next jobs would get if all had j GPUs; w(j) is 1 for the powers of two, which most
//      jobs ask for, and 1/4 for others
//   4. the lower indices (lexicographic order of the sorted index lists).
// So a single GPU is taken where it breaks no island: from a pair that is broken already. README.md
// has the measurements that criterion 3 was chosen by.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/gpu_set.hpp"
#include "common/placement/set_bandwidth.hpp"
#include "common/topology/gpu_graph.hpp"

namespace sluice {

/// Immutable once made; safe to read from any number of threads.
class BestSets {
  public:
    /// Sizes up to which the tables are compiled: 2^16 free sets x 17 sizes x 2 bytes are 2.2 MB
    /// each.
    static constexpr int max_table_gpus = 16;
    /// Up to so many, all sets of a size are few enough to be looked at one by one.
    static constexpr int max_enumerated_gpus = 8;

    /// not_found for a graph of more than max_table_gpus GPUs or none. 3^n steps: microseconds for
    /// 8 GPUs, some tenths of a second for 16.
    static Result<std::shared_ptr<const BestSets>> compile(const GpuGraph& graph);

    int size() const { return count_; }

    /// The best `count` of `free`; nothing when free has fewer, count < 1, or free names a GPU the
    /// node lacks. Constant time, no allocation.
    std::optional<GpuSet> best(GpuSet free, int count) const;

    /// For a job that does not depend on its links: the same with criterion 3 before 1 and 2.
    std::optional<GpuSet> thriftiest(GpuSet free, int count) const;

    /// True where the set has GPUs of different models (GpuGraph::mixed).
    bool mixed(GpuSet set) const;

    /// Constant time; the empty set and sets beyond the node give zeros.
    SetBandwidth bandwidth(GpuSet set) const;

    /// How near the set is to the node's NICs: those on its nearest level (nic_affinity()) times
    /// the rate of such a path, relative to the best set of its size. 1 where the topology names no
    /// NICs or all GPUs are alike to them, and beyond the node. Constant time.
    double network_share(GpuSet set) const;

    /// False where network_share() is 1 for every set.
    bool network_differs() const { return !network_share_.empty(); }

    /// Criterion 3, a sum of whole MB/s so that equal sums are equal. Constant time; 0 beyond the
    /// node.
    double left_gbps(GpuSet free) const;

  private:
    BestSets() = default;
    std::optional<GpuSet> look_up(const std::vector<std::uint16_t>& table, GpuSet free,
                                  int count) const;

    int count_ = 0;
    std::vector<GpuSet> models_;           // the GPUs of each model that is known
    std::vector<SetBandwidth> bandwidth_;  // by set
    std::vector<std::uint64_t> left_;      // by set, in MB/s / 4
    std::vector<float> network_share_;     // by set; empty: 1 for all
    std::vector<std::uint16_t> best_;      // [free * (count_ + 1) + k]
    std::vector<std::uint16_t> thriftiest_;
};

/// One candidate and its score, as `sluice pick` prints it.
struct RankedSet {
    GpuSet set;
    SetBandwidth bandwidth;
    double left_gbps = 0;  ///< criterion 3
    bool mixed = false;    ///< criterion 0
};

/// Every set of `count` GPUs of `free` that contains `must`, best first, at most `limit` of them.
/// By enumeration, for people and tests, not for the controller. not_found when free has a GPU
/// that the node lacks, must is not part of free or larger than count, or free has fewer than
/// count.
Result<std::vector<RankedSet>> rank_sets(const BestSets& sets, GpuSet free, int count, GpuSet must,
                                         std::size_t limit);

/// One sentence for people: why the first of `ranked`, which is not empty, beats the others.
std::string explain(const GpuGraph& graph, const std::vector<RankedSet>& ranked);

}  // namespace sluice
