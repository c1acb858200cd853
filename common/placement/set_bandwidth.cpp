// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/placement/set_bandwidth.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>

#include "common/placement/ring_packing.hpp"

namespace sluice {
namespace {

constexpr int most_gpus = 16;
constexpr int most_gpus_exact = 8;
constexpr long exact_steps = 2'000'000;
constexpr long bounded_steps = 500;

using Mask = std::uint32_t;
/// [a][b]: how good an edge is, 0 for none.
using Ranks = std::array<std::array<std::uint8_t, most_gpus>, most_gpus>;

int lowest(Mask mask) {
    return std::countr_zero(mask);
}

/// For every set, the largest rank r such that it has a ring over edges of rank r and more; 0 where
/// it has none. path[S][v] is the same for paths that start at the lowest GPU of S, end at v and
/// visit all of S.
std::vector<std::uint8_t> best_ring_ranks(const Ranks& ranks, int count) {
    std::vector<std::array<std::uint8_t, most_gpus>> path(std::size_t{1} << count);
    std::vector<std::uint8_t> ring(path.size(), 0);
    for (Mask set = 3; set < path.size(); ++set) {
        const int start = lowest(set);
        const Mask others = set & (set - 1);
        for (Mask ends = others; ends != 0; ends &= ends - 1) {
            const int end = lowest(ends);
            const auto& shorter = path[set & ~(Mask{1} << end)];
            const auto& edges = ranks[static_cast<std::size_t>(end)];
            Mask before = others & ~(Mask{1} << end);
            std::uint8_t best = before == 0 ? edges[static_cast<std::size_t>(start)] : 0;
            for (; before != 0; before &= before - 1) {
                const auto last = static_cast<std::size_t>(lowest(before));
                best = std::max(best, std::min(shorter[last], edges[last]));
            }
            path[set][static_cast<std::size_t>(end)] = best;
            ring[set] = std::max(ring[set], std::min(best, edges[static_cast<std::size_t>(start)]));
        }
    }
    return ring;
}

/// The graph in small integers.
struct Edges {
    std::vector<double> rates;  // of the ranks 1, 2, ..., rising
    Ranks by_rate{};
    Ranks links{};  // in units of the slowest link
    double unit_gbps = 0;
};

/// GB/s of the slowest single link, 0 where there is none.
double slowest_link_gbps(const GpuGraph& graph) {
    double slowest = 0;
    for (int a = 0; a < graph.size(); ++a) {
        for (int b = 0; b < a; ++b) {
            const GpuLink& link = graph.link(a, b);
            if (link.links == 0) continue;
            const double one = link.link_gbps / link.links;
            slowest = slowest > 0 ? std::min(slowest, one) : one;
        }
    }
    return slowest;
}

/// Of the GPUs `members`, at most 16, which become 0, 1, ...
Edges edges_of(const GpuGraph& graph, const std::vector<int>& members) {
    Edges edges;
    edges.unit_gbps = slowest_link_gbps(graph);
    for (const int a : members) {
        for (const int b : members) {
            if (a != b) edges.rates.push_back(graph.link(a, b).gbps());
        }
    }
    std::sort(edges.rates.begin(), edges.rates.end());
    edges.rates.erase(std::unique(edges.rates.begin(), edges.rates.end()), edges.rates.end());
    for (std::size_t i = 0; i < members.size(); ++i) {
        for (std::size_t j = 0; j < members.size(); ++j) {
            if (i == j) continue;
            const GpuLink& link = graph.link(members[i], members[j]);
            const auto rate = std::lower_bound(edges.rates.begin(), edges.rates.end(), link.gbps());
            edges.by_rate[i][j] = static_cast<std::uint8_t>(rate - edges.rates.begin() + 1);
            if (link.links == 0) continue;
            // 3 x 8.3333 GB/s are three units of 8.3333, whatever the last bit says.
            const double units = std::floor(link.link_gbps / edges.unit_gbps + 1e-6);
            edges.links[i][j] = static_cast<std::uint8_t>(std::clamp(units, 1.0, 255.0));
        }
    }
    return edges;
}

LinkCounts links_within(const Edges& edges, Mask set) {
    LinkCounts links;
    links.size = std::popcount(set);
    for (Mask rows = set; rows != 0; rows &= rows - 1) {
        for (Mask columns = set; columns != 0; columns &= columns - 1) {
            links.counts.push_back(edges.links[static_cast<std::size_t>(lowest(rows))]
                                              [static_cast<std::size_t>(lowest(columns))]);
        }
    }
    return links;
}

int rings_within(const LinkCounts& links) {
    return most_rings(links, links.size <= most_gpus_exact ? exact_steps : bounded_steps);
}

/// Prim's algorithm with the widest edge first: the slowest edge of the tree that it grows.
double best_tree_gbps(const GpuGraph& graph, GpuSet set) {
    GpuSet outside = set;
    outside.erase(set.lowest());
    double slowest = std::numeric_limits<double>::infinity();
    while (!outside.empty()) {
        int best = -1;
        double widest = -1;
        for (const int to : outside.indices()) {
            for (const int from : (set - outside).indices()) {
                if (graph.link(from, to).gbps() <= widest) continue;
                widest = graph.link(from, to).gbps();
                best = to;
            }
        }
        slowest = std::min(slowest, widest);
        outside.erase(best);
    }
    return slowest;
}

}  // namespace

std::vector<SetBandwidth> all_set_bandwidths(const GpuGraph& graph) {
    if (graph.size() > most_gpus) return {};
    const Edges edges = edges_of(graph, GpuSet::first(graph.size()).indices());
    std::vector<SetBandwidth> out(std::size_t{1} << graph.size());
    const auto ring = best_ring_ranks(edges.by_rate, graph.size());
    for (Mask set = 0; set < out.size(); ++set) {
        if (ring[set] > 0) out[set].bottleneck_gbps = edges.rates[ring[set] - std::size_t{1}];
        out[set].total_gbps = out[set].bottleneck_gbps;
    }
    if (graph.switched() || edges.unit_gbps <= 0) return out;
    const auto linked_ring = best_ring_ranks(edges.links, graph.size());
    std::map<std::vector<std::uint8_t>, int> known;  // most machines repeat a few patterns
    for (Mask set = 0; set < out.size(); ++set) {
        if (linked_ring[set] == 0 || std::popcount(set) < 3) continue;
        const LinkCounts links = links_within(edges, set);
        const auto [entry, fresh] = known.try_emplace(links.counts, 0);
        if (fresh) entry->second = rings_within(links);
        out[set].total_gbps = std::max(out[set].bottleneck_gbps, entry->second * edges.unit_gbps);
    }
    return out;
}

SetBandwidth set_bandwidth(const GpuGraph& graph, GpuSet set) {
    if (set.size() < 2 || !GpuSet::first(graph.size()).contains(set)) return {};
    if (set.size() > most_gpus) {
        const double tree = best_tree_gbps(graph, set);
        return {tree, tree};
    }
    const Edges edges = edges_of(graph, set.indices());
    const double bottleneck =
        edges.rates[best_ring_ranks(edges.by_rate, set.size()).back() - std::size_t{1}];
    SetBandwidth out{bottleneck, bottleneck};
    if (graph.switched() || set.size() < 3 || best_ring_ranks(edges.links, set.size()).back() == 0)
        return out;
    const int rings = rings_within(links_within(edges, (Mask{1} << set.size()) - 1));
    out.total_gbps = std::max(bottleneck, rings * edges.unit_gbps);
    return out;
}

}  // namespace sluice
