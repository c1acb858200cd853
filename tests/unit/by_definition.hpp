// SPDX-License-Identifier: GPL-2.0-or-later
//
// set_bandwidth() as its header defines it, tried out one permutation at a time.
#pragma once

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "common/placement/set_bandwidth.hpp"

namespace sluice {

using Ring = std::vector<int>;  // GPUs in the order of the ring

inline std::vector<Ring> all_rings(const std::vector<int>& gpus) {
    std::vector<Ring> rings;
    Ring order = gpus;
    do {
        if (order[1] <= order.back()) rings.push_back(order);  // each ring in one direction
    } while (std::next_permutation(order.begin() + 1, order.end()));
    return rings;
}

inline double slowest_edge(const GpuGraph& graph, const Ring& ring) {
    double slowest = 1e300;
    for (std::size_t i = 0; i < ring.size(); ++i)
        slowest = std::min(slowest, graph.link(ring[i], ring[(i + 1) % ring.size()]).gbps());
    return slowest;
}

/// The most rings of `rings` from `first` on, each as often as it fits.
inline int pack(const std::vector<Ring>& rings, std::size_t first,
                std::map<std::pair<int, int>, int>& left, int enough) {
    int most = 0;
    for (std::size_t i = first; i < rings.size() && most < enough; ++i) {
        const Ring& ring = rings[i];
        bool fits = true;
        for (std::size_t j = 0; j < ring.size(); ++j)
            fits = left[std::minmax(ring[j], ring[(j + 1) % ring.size()])]-- > 0 && fits;
        if (fits) most = std::max(most, 1 + pack(rings, i, left, enough - 1));
        for (std::size_t j = 0; j < ring.size(); ++j)
            ++left[std::minmax(ring[j], ring[(j + 1) % ring.size()])];
    }
    return most;
}

inline SetBandwidth by_definition(const GpuGraph& graph, GpuSet set) {
    const std::vector<int> gpus = set.indices();
    if (gpus.size() < 2) return {};
    if (gpus.size() == 2) {
        const double rate = graph.link(gpus[0], gpus[1]).gbps();
        return {rate, rate};
    }
    const std::vector<Ring> rings = all_rings(gpus);
    double bottleneck = 0;
    for (const Ring& ring : rings) bottleneck = std::max(bottleneck, slowest_edge(graph, ring));
    if (graph.switched()) return {bottleneck, bottleneck};
    std::map<std::pair<int, int>, int> left;
    std::map<int, int> degrees;
    for (const int a : gpus) {
        for (const int b : gpus) {
            if (a == b) continue;
            left[std::minmax(a, b)] = graph.link(a, b).links;
            degrees[a] += graph.link(a, b).links;
        }
    }
    int enough = 1000;  // a ring takes two links at each GPU
    for (const auto& [gpu, degree] : degrees) enough = std::min(enough, degree / 2);
    const int count = pack(rings, 0, left, enough);
    return {bottleneck, std::max(bottleneck, count * default_link_gbps)};
}

}  // namespace sluice
