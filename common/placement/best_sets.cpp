// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/placement/best_sets.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "common/base/text.hpp"

namespace sluice {
namespace {

using Mask = std::uint32_t;

/// Of n values, the place of each among the distinct ones, 0 for the least. There are at most 2^16
/// sets, so a place fits 16 bits.
template <typename T>
std::vector<std::uint16_t> places_of(const std::vector<T>& values) {
    std::vector<T> sorted = values;
    std::sort(sorted.begin(), sorted.end());
    sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
    std::vector<std::uint16_t> places;
    places.reserve(values.size());
    for (const T& value : values) {
        places.push_back(static_cast<std::uint16_t>(
            std::lower_bound(sorted.begin(), sorted.end(), value) - sorted.begin()));
    }
    return places;
}

constexpr std::uint64_t weight_of_size(std::size_t size) {
    return std::has_single_bit(size) ? 4 : 1;
}

/// left(set) for every set, in quarters of MB/s.
std::vector<std::uint64_t> values_left(const std::vector<SetBandwidth>& bandwidth) {
    std::vector<std::uint32_t> mbps;
    mbps.reserve(bandwidth.size());
    for (const SetBandwidth& each : bandwidth) {
        // No sum of eight reaches 2^32.
        mbps.push_back(
            static_cast<std::uint32_t>(std::lround(std::min(each.total_gbps, 1e5) * 1000)));
    }
    using BySize = std::array<std::uint32_t, BestSets::max_table_gpus + 1>;
    std::vector<BySize> pack(bandwidth.size(), BySize{});
    std::vector<std::uint64_t> left(bandwidth.size(), 0);
    for (Mask free = 1; free < bandwidth.size(); ++free) {
        // The lowest GPU is in none of the disjoint sets, or in one, together with some others.
        const Mask lowest = free & -free;
        const Mask others = free & ~lowest;
        BySize& best = pack[free];
        best = pack[others];
        for (Mask some = others; some != 0; some = (some - 1) & others) {
            const auto size = static_cast<std::size_t>(std::popcount(some)) + 1;
            best[size] = std::max(best[size], mbps[some | lowest] + pack[others & ~some][size]);
        }
        for (std::size_t j = 2; j < best.size(); ++j) left[free] += weight_of_size(j) * best[j];
    }
    return left;
}

/// network_share() of every set; empty where all are alike.
std::vector<float> network_shares(const GpuGraph& graph) {
    const std::size_t sets = std::size_t{1} << graph.size();
    std::vector<double> rates(sets, 0);
    std::array<double, BestSets::max_table_gpus + 1> best{};
    bool differ = false;
    for (Mask set = 1; set < sets; ++set) {
        const NicAffinity near = nic_affinity(graph, GpuSet(set));
        rates[set] = near.nics * path_bandwidth_gbps(near.path);
        auto& most = best[static_cast<std::size_t>(std::popcount(set))];
        differ = differ || (most > 0 && rates[set] != most);
        most = std::max(most, rates[set]);
    }
    if (!differ) return {};
    std::vector<float> shares(sets, 1);
    for (Mask set = 1; set < sets; ++set) {
        const double most = best[static_cast<std::size_t>(std::popcount(set))];
        // No path at all is known of such a set: it is taken for the farthest.
        const double farthest = path_bandwidth_gbps(PciPath::unknown);
        shares[set] = static_cast<float>(std::max(rates[set], farthest) / std::max(most, farthest));
    }
    return shares;
}

std::vector<GpuSet> gpus_of_models(const GpuGraph& graph) {
    std::vector<std::string> models;
    std::vector<GpuSet> sets;
    for (int i = 0; i < graph.size(); ++i) {
        const std::string& model = graph.gpu(i).model;
        if (model.empty()) continue;
        const auto known = std::find(models.begin(), models.end(), model);
        const auto at = static_cast<std::size_t>(known - models.begin());
        if (known == models.end()) {
            models.push_back(model);
            sets.emplace_back();
        }
        sets[at].insert(i);
    }
    return sets;
}

/// Larger for lexicographically lower index lists of equal length: GPU 0 is the highest bit.
std::uint16_t mirrored(Mask set) {
    std::uint32_t out = 0;
    for (int bit = 0; bit < 16; ++bit) out |= (set >> bit & 1) << (15 - bit);
    return static_cast<std::uint16_t>(out);
}

std::string gpus_text(GpuSet set) {
    return (set.size() == 1 ? "GPU " : "GPUs ") + to_string(set);
}

std::string rate_text(double gbps) {
    return format_number(gbps) + " GB/s";
}

}  // namespace

Result<std::shared_ptr<const BestSets>> BestSets::compile(const GpuGraph& graph) {
    if (graph.size() < 1 || graph.size() > max_table_gpus) {
        return {ErrorCode::not_found,
                "no table of the best sets for a node of " + std::to_string(graph.size()) +
                    " GPUs: it is made for 1 to " + std::to_string(max_table_gpus)};
    }
    const std::shared_ptr<BestSets> table(new BestSets());
    table->count_ = graph.size();
    table->bandwidth_ = all_set_bandwidths(graph);
    const auto sets = static_cast<Mask>(table->bandwidth_.size());
    const auto speed = places_of(table->bandwidth_);
    table->left_ = values_left(table->bandwidth_);
    const auto left = places_of(table->left_);
    std::vector<std::uint16_t> mirror(sets);
    for (Mask set = 0; set < sets; ++set) mirror[set] = mirrored(set);
    table->models_ = gpus_of_models(graph);
    if (!graph.nics().empty()) table->network_share_ = network_shares(graph);
    std::vector<std::uint8_t> pure(sets);
    for (Mask set = 0; set < sets; ++set) pure[set] = table->mixed(GpuSet(set)) ? 0 : 1;

    const std::size_t row = static_cast<std::size_t>(table->count_) + 1;
    table->best_.assign(sets * row, 0);
    table->thriftiest_.assign(sets * row, 0);
    for (Mask free = 1; free < sets; ++free) {
        // The criteria side by side in one number; the last tells any two sets apart.
        std::array<std::uint64_t, max_table_gpus + 1> best{};
        std::array<std::uint64_t, max_table_gpus + 1> thriftiest{};
        for (Mask set = free; set != 0; set = (set - 1) & free) {
            const std::uint64_t fast = speed[set];
            const std::uint64_t thrifty = left[free & ~set];
            const auto size = static_cast<std::size_t>(std::popcount(set));
            const std::uint64_t ends = std::uint64_t{pure[set]} << 48 | mirror[set];
            best[size] = std::max(best[size], ends | fast << 32 | thrifty << 16);
            thriftiest[size] = std::max(thriftiest[size], ends | thrifty << 32 | fast << 16);
        }
        for (std::size_t k = 1; k < row; ++k) {
            table->best_[free * row + k] = mirrored(static_cast<Mask>(best[k] & 0xffff));
            table->thriftiest_[free * row + k] =
                mirrored(static_cast<Mask>(thriftiest[k] & 0xffff));
        }
    }
    return std::shared_ptr<const BestSets>(table);
}

std::optional<GpuSet> BestSets::best(GpuSet free, int count) const {
    return look_up(best_, free, count);
}

std::optional<GpuSet> BestSets::thriftiest(GpuSet free, int count) const {
    return look_up(thriftiest_, free, count);
}

std::optional<GpuSet> BestSets::look_up(const std::vector<std::uint16_t>& table, GpuSet free,
                                        int count) const {
    if (count < 1 || count > free.size() || !GpuSet::first(count_).contains(free))
        return std::nullopt;
    const std::size_t row = static_cast<std::size_t>(count_) + 1;
    return GpuSet(table[free.bits() * row + static_cast<std::size_t>(count)]);
}

bool BestSets::mixed(GpuSet set) const {
    return std::count_if(models_.begin(), models_.end(),
                         [set](GpuSet gpus) { return !(gpus & set).empty(); }) > 1;
}

SetBandwidth BestSets::bandwidth(GpuSet set) const {
    return GpuSet::first(count_).contains(set) ? bandwidth_[set.bits()] : SetBandwidth{};
}

double BestSets::network_share(GpuSet set) const {
    if (network_share_.empty() || !GpuSet::first(count_).contains(set)) return 1;
    return network_share_[set.bits()];
}

double BestSets::left_gbps(GpuSet free) const {
    if (!GpuSet::first(count_).contains(free)) return 0;
    return static_cast<double>(left_[free.bits()]) / 4000;
}

namespace {

/// "GPU 4 is here", "GPUs 4,6 are here".
std::string gpus_that(GpuSet set, const char* one, const char* several) {
    const bool single = set.size() == 1;
    return (single ? "GPU " : "GPUs ") + to_string(set) + ' ' + (single ? one : several);
}

}  // namespace

Result<std::vector<RankedSet>> rank_sets(const BestSets& sets, GpuSet free, int count, GpuSet must,
                                         std::size_t limit) {
    const GpuSet all = GpuSet::first(sets.size());
    if (count < 1 || count > GpuSet::max_gpus) {
        return {ErrorCode::usage, std::to_string(count) + " GPUs cannot be chosen: ask for 1 to " +
                                      std::to_string(sets.size())};
    }
    if (!all.contains(free)) {
        return {ErrorCode::not_found, gpus_that(free - all, "does not exist", "do not exist") +
                                          ": the node has GPUs " + to_string(all)};
    }
    if (!free.contains(must)) {
        return {ErrorCode::not_found, gpus_that(must - free, "has to be in the set, but is",
                                                "have to be in the set, but are") +
                                          " not among the free ones " + to_string(free)};
    }
    if (must.size() > count) {
        return {ErrorCode::not_found, std::to_string(must.size()) +
                                          " GPUs have to be in a set of " + std::to_string(count)};
    }
    if (free.size() < count) {
        return {ErrorCode::not_found, std::to_string(count) + " GPUs wanted, " +
                                          std::to_string(free.size()) + " free (" +
                                          to_string(free) + ")"};
    }
    std::vector<RankedSet> ranked;
    for (std::uint64_t bits = free.bits(); bits != 0; bits = (bits - 1) & free.bits()) {
        const GpuSet set(bits);
        if (set.size() != count || !set.contains(must)) continue;
        ranked.push_back({set, sets.bandwidth(set), sets.left_gbps(free - set), sets.mixed(set)});
    }
    const auto better = [](const RankedSet& a, const RankedSet& b) {
        if (a.mixed != b.mixed) return b.mixed;
        if (a.bandwidth != b.bandwidth) return a.bandwidth > b.bandwidth;
        if (a.left_gbps != b.left_gbps) return a.left_gbps > b.left_gbps;
        return a.set.indices() < b.set.indices();
    };
    std::sort(ranked.begin(), ranked.end(), better);
    if (ranked.size() > limit) ranked.resize(limit);
    return ranked;
}

std::string explain(const GpuGraph& graph, const std::vector<RankedSet>& ranked) {
    const RankedSet& chosen = ranked.front();
    const SetBandwidth speed = chosen.bandwidth;
    std::string out;
    if (chosen.set.size() == 1) {
        out = "one GPU needs no link";
    } else if (!graph.informative()) {
        return "the topology says nothing about links, so the lowest indices are as good as any";
    } else if (chosen.set.size() == 2) {
        const std::vector<int> pair = chosen.set.indices();
        const GpuLink& link = graph.link(pair[0], pair[1]);
        out = gpus_text(chosen.set) + " are joined at " + rate_text(speed.bottleneck_gbps) +
              (link.links > 0 ? " by " + std::to_string(link.links) + " direct link" +
                                    (link.links > 1 ? "s" : "")
                              : std::string(" over ") + path_name(link.path));
        if (graph.switched() && link.links > 0) out += " through a switch";
    } else {
        out = "the best ring over " + gpus_text(chosen.set) + " carries " +
              rate_text(speed.bottleneck_gbps) + " on its slowest edge";
        if (speed.total_gbps > speed.bottleneck_gbps)
            out += ", all its rings " + rate_text(speed.total_gbps);
    }
    if (chosen.mixed) out += "; they are of different models";
    if (ranked.size() == 1) return out + "; no other set is possible";
    const RankedSet& next = ranked[1];
    const std::string rival = to_string(next.set);
    if (next.mixed && !chosen.mixed) return out + "; the next best, " + rival + ", mixes models";
    if (next.bandwidth.bottleneck_gbps < speed.bottleneck_gbps) {
        return out + "; the next best, " + rival + ", carries " +
               rate_text(next.bandwidth.bottleneck_gbps);
    }
    if (next.bandwidth.total_gbps < speed.total_gbps) {
        return out + "; the next best, " + rival + ", carries " +
               rate_text(next.bandwidth.total_gbps) + " over all its rings";
    }
    if (next.left_gbps < chosen.left_gbps) {
        return out + "; " + rival + " is as fast but leaves less for the next jobs";
    }
    return out + "; " + rival + " is as good, the lower indices decide";
}

}  // namespace sluice
