// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/placement/node_choice.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <unordered_map>

#include "common/placement/assignment.hpp"

namespace sluice {
namespace {

constexpr double rounding = 1e-12;                                   // of costs and times
constexpr double no_rate = std::numeric_limits<double>::infinity();  // one GPU sends nothing

/// One way to take so many GPUs of a node.
struct Option {
    GpuSet set;
    double rate = 0;     // GB/s
    double network = 1;  // share
    double broken = 0;
};

double broken_by(const BestSets& sets, GpuSet free, GpuSet taken) {
    const double whole = sets.left_gbps(GpuSet::first(sets.size()));
    if (whole <= 0) return 0;
    return (sets.left_gbps(free) - sets.left_gbps(free - taken)) / whole;
}

Option option_of(const BestSets& sets, GpuSet free, GpuSet set) {
    return {set, set.size() > 1 ? sets.bandwidth(set).total_gbps : no_rate, sets.network_share(set),
            broken_by(sets, free, set)};
}

/// Every set; on large nodes the fastest and the one that leaves most. GPUs of two models only
/// where the fastest has such.
std::vector<Option> all_options(const BestSets& sets, GpuSet free, int count, GpuSet fastest) {
    std::vector<Option> options;
    const auto add = [&](GpuSet set) {
        if (!sets.mixed(set) || sets.mixed(fastest)) options.push_back(option_of(sets, free, set));
    };
    if (sets.size() > BestSets::max_enumerated_gpus) {
        add(fastest);
        add(*sets.thriftiest(free, count));
        return options;
    }
    for (std::uint64_t bits = free.bits(); bits != 0; bits = (bits - 1) & free.bits()) {
        if (GpuSet(bits).size() == count) add(GpuSet(bits));
    }
    return options;
}

/// Leaves, by what they break, those that are faster in some way than all that break less.
void drop_dominated(std::vector<Option>& options) {
    std::sort(options.begin(), options.end(), [](const Option& a, const Option& b) {
        if (a.broken != b.broken) return a.broken < b.broken;
        if (a.rate != b.rate) return a.rate > b.rate;
        if (a.network != b.network) return a.network > b.network;
        return a.set.indices() < b.set.indices();
    });
    std::vector<Option> kept;
    for (const Option& option : options) {
        const bool dominated = std::any_of(kept.begin(), kept.end(), [&](const Option& other) {
            return other.rate >= option.rate && other.network >= option.network;
        });
        if (!dominated) kept.push_back(option);
    }
    options.swap(kept);
}

/// Of nodes that share `shared` switches, the deepest of which has `deepest` above it.
int hops_between(std::size_t deepest, std::size_t shared) {
    return deepest == 0 ? 0 : static_cast<int>(deepest - shared) + 1;
}

using Taken = std::vector<std::pair<const NodeOffer*, Option>>;

/// The deepest and the one that shares least with it are the farthest apart. That one shares with
/// it what all share.
int hops_of(const Taken& taken) {
    if (taken.size() < 2) return 0;
    const auto& first = taken.front().first->switches;
    std::size_t shared = first.size();
    std::size_t deepest = 0;
    for (const auto& [offer, way] : taken) {
        const auto& switches = offer->switches;
        deepest = std::max(deepest, switches.size());
        const auto common =
            std::mismatch(first.begin(), first.end(), switches.begin(), switches.end());
        shared = std::min(shared, static_cast<std::size_t>(common.first - first.begin()));
    }
    return hops_between(deepest, shared);
}

/// What it costs to take these sets of these nodes.
NodePlacement placement_of(const Taken& taken, const StepTimeOf& step_time,
                           const NodeChoiceOptions& options) {
    NodePlacement placement;
    PlacementShape& shape = placement.shape;
    shape.nodes = static_cast<int>(taken.size());
    shape.hops = hops_of(taken);
    double slowest = no_rate;
    for (const auto& [offer, way] : taken) {
        placement.nodes.push_back({offer->node, way.set});
        placement.broken += way.broken;
        shape.gpus += way.set.size();
        shape.most_per_node = std::max(shape.most_per_node, way.set.size());
        slowest = std::min(slowest, way.rate);
        if (shape.nodes > 1) shape.network_share = std::min(shape.network_share, way.network);
    }
    shape.slowest_gbps = slowest == no_rate ? 0 : slowest;
    placement.step_time = step_time(shape);
    placement.cost =
        std::log(placement.step_time) + options.fragmentation_weight * placement.broken;
    placement.fastest_step_time = placement.step_time;
    placement.fastest_gbps = shape.slowest_gbps;
    return placement;
}

/// Offers that differ in their number alone.
struct NodeClass {
    const BestSets* sets = nullptr;
    GpuSet free;
    std::vector<std::vector<Option>> options;  // for each distinct count
};

/// A bound on options.
struct Least {
    double rate = 0;
    double network = 0;
};

/// A part of the network: its offers, by position.
struct Pool {
    std::vector<int> offers;
    int hops = 0;
};

/// By which factor the network is slower over several levels of switches, and from GPUs that are
/// far from the ports.
double detour(const PlacementShape& shape) {
    constexpr double per_further_level = 0.25;
    return (1 + per_further_level * std::max(shape.hops - 1, 0)) / shape.network_share;
}

class Search {
  public:
    Search(std::span<const NodeOffer> offers, std::span<const int> counts,
           const StepTimeOf& step_time, const NodeChoiceOptions& options)
        : offers_(offers), counts_(counts), step_time_(step_time), options_(options) {
        for (const int count : counts) {
            const auto known = std::find(sizes_.begin(), sizes_.end(), count);
            size_of_.push_back(static_cast<std::size_t>(known - sizes_.begin()));
            if (known == sizes_.end()) sizes_.push_back(count);
        }
        required_ = std::count_if(offers.begin(), offers.end(),
                                  [](const NodeOffer& each) { return each.required; });
        classify();
    }

    std::optional<NodePlacement> best() {
        std::vector<int> everything;
        for (std::size_t i = 0; i < offers_.size(); ++i) everything.push_back(static_cast<int>(i));
        if (counts_.size() > 1)
            descend(std::move(everything), 0);
        else
            try_pool({std::move(everything), 0});
        if (found_) {
            found_->fastest_step_time = fastest_step_time_;
            found_->fastest_gbps = fastest_gbps_;
        }
        return found_;
    }

  private:
    const NodeOffer& offer(int position) const {
        return offers_[static_cast<std::size_t>(position)];
    }

    void classify() {
        struct Key {
            const BestSets* sets;
            std::uint64_t free;
            bool operator==(const Key&) const = default;
        };
        const auto hash = [](const Key& key) {
            return std::hash<const void*>()(key.sets) ^ key.free * 0x9e3779b97f4a7c15;
        };
        std::unordered_map<Key, int, decltype(hash)> known(64, hash);
        class_of_.reserve(offers_.size());
        for (const NodeOffer& each : offers_) {
            const auto [entry, fresh] =
                known.try_emplace({each.sets, each.free.bits()}, static_cast<int>(classes_.size()));
            class_of_.push_back(entry->second);
            if (!fresh) continue;
            NodeClass made{each.sets, each.free, {}};
            for (const int size : sizes_) {
                made.options.push_back(options_of(*each.sets, each.free, size));
                for (const Option& option : made.options.back()) {
                    rates_.push_back(option.rate);
                    networks_.push_back(option.network);
                }
            }
            classes_.push_back(std::move(made));
        }
        for (auto* const values : {&rates_, &networks_}) {
            std::sort(values->begin(), values->end(), std::greater<>());
            values->erase(std::unique(values->begin(), values->end()), values->end());
        }
    }

    /// Those worth looking at, by what they break.
    std::vector<Option> options_of(const BestSets& sets, GpuSet free, int count) const {
        const auto fastest = sets.best(free, count);
        if (!fastest) return {};
        const bool network = counts_.size() > 1 && sets.network_differs();
        const bool all = options_.trust_model && count > 1;
        if (!all && !network) return {option_of(sets, free, *fastest)};
        auto options = all_options(sets, free, count, *fastest);
        if (!network) {
            for (Option& option : options) option.network = 1;
        }
        drop_dominated(options);
        if (options_.trust_model) return options;
        const auto slower = [this](const Option& a, const Option& b) {
            return time_of(a) < time_of(b) * (1 - rounding);
        };
        return {*std::min_element(options.begin(), options.end(), slower)};
    }

    /// Of the whole job, if it were as fast on all its nodes as with this option.
    double time_of(const Option& option) const {
        PlacementShape shape;
        shape.nodes = static_cast<int>(counts_.size());
        for (const int count : counts_) {
            shape.gpus += count;
            shape.most_per_node = std::max(shape.most_per_node, count);
        }
        shape.slowest_gbps = option.rate == no_rate ? 0 : option.rate;
        shape.network_share = option.network;
        return step_time_(shape);
    }

    /// What breaks least among what is at least so fast; null where nothing is.
    const Option* option(int position, std::size_t size, const Least& least) const {
        const auto place = static_cast<std::size_t>(class_of_[static_cast<std::size_t>(position)]);
        for (const Option& each : classes_[place].options[size]) {
            if (each.rate >= least.rate && each.network >= least.network) return &each;
        }
        return nullptr;
    }

    /// Tries these offers, which share `depth` switches, and each of the parts below them.
    void descend(std::vector<int> offers, std::size_t depth) {
        if (offers.size() < counts_.size()) return;
        std::vector<std::vector<int>> parts;
        std::unordered_map<int, std::size_t> part_of;
        std::set<std::size_t, std::greater<>> lengths;
        for (const int position : offers) {
            const auto& switches = offer(position).switches;
            lengths.insert(switches.size());
            if (switches.size() <= depth) continue;
            const auto [entry, fresh] = part_of.try_emplace(switches[depth], parts.size());
            if (fresh) parts.emplace_back();
            parts[entry->second].push_back(position);
        }
        // How far nodes are apart goes by the deepest of them: without the deepest of all, others
        // may be nearer.
        for (const std::size_t deepest : lengths) {
            std::erase_if(offers,
                          [&](int position) { return offer(position).switches.size() > deepest; });
            const auto within = [&](const std::vector<int>& part) {
                return std::includes(part.begin(), part.end(), offers.begin(), offers.end());
            };
            // What is below one switch is looked at there.
            if (std::none_of(parts.begin(), parts.end(), within))
                try_pool({offers, hops_between(deepest, depth)});
        }
        for (auto& part : parts) descend(std::move(part), depth + 1);
    }

    void try_pool(const Pool& pool) {
        const auto count = static_cast<long>(counts_.size());
        const auto kinds = static_cast<long>(sizes_.size());
        for (const double network : networks_) {
            for (const double rate : rates_) {
                steps_ += static_cast<long>(pool.offers.size()) * kinds;
                if (kinds > 1) steps_ += count * count * count * kinds;
                if (steps_ > options_.most_steps) return;
                if (sizes_.size() == 1)
                    try_equal(pool, {rate, network});
                else
                    try_mixed(pool, {rate, network});
            }
        }
    }

    /// Required ones first, then by what they break, then by number.
    void sort_by_broken(std::vector<std::pair<double, int>>& nodes) const {
        std::sort(nodes.begin(), nodes.end(), [this](const auto& a, const auto& b) {
            const NodeOffer& left = offer(a.second);
            const NodeOffer& right = offer(b.second);
            if (left.required != right.required) return left.required;
            if (a.first != b.first) return a.first < b.first;
            return left.node < right.node;
        });
    }

    std::vector<std::pair<double, int>> able(const Pool& pool, std::size_t size,
                                             const Least& least) const {
        std::vector<std::pair<double, int>> nodes;
        for (const int position : pool.offers) {
            if (const Option* way = option(position, size, least))
                nodes.emplace_back(way->broken, position);
        }
        sort_by_broken(nodes);
        return nodes;
    }

    void try_equal(const Pool& pool, const Least& least) {
        const auto nodes = able(pool, 0, least);
        if (nodes.size() < counts_.size()) return;
        std::vector<std::pair<int, const Option*>> chosen;
        for (std::size_t i = 0; i < counts_.size(); ++i)
            chosen.emplace_back(nodes[i].second, option(nodes[i].second, 0, least));
        weigh(chosen);
    }

    /// The |counts| nodes that break least for each count are enough: were another one used, one of
    /// them is free to take its place.
    void try_mixed(const Pool& pool, const Least& least) {
        std::vector<int> columns;
        for (std::size_t size = 0; size < sizes_.size(); ++size) {
            auto nodes = able(pool, size, least);
            std::size_t taken = 0;
            for (const auto& [broken, position] : nodes) {
                if (taken == counts_.size() && !offer(position).required) break;
                if (!offer(position).required) ++taken;
                if (std::find(columns.begin(), columns.end(), position) == columns.end())
                    columns.push_back(position);
            }
        }
        if (columns.size() < counts_.size()) return;
        std::sort(columns.begin(), columns.end(),
                  [this](int a, int b) { return offer(a).node < offer(b).node; });
        constexpr double impossible = 1e9;
        constexpr double bonus = 1e5;  // for a required node, beyond any sum of what is broken
        const auto column_of_row = assign(
            static_cast<int>(counts_.size()), static_cast<int>(columns.size()),
            [&](int row, int column) {
                const int position = columns[static_cast<std::size_t>(column)];
                const Option* way =
                    option(position, size_of_[static_cast<std::size_t>(row)], least);
                return (way ? way->broken : impossible) - (offer(position).required ? bonus : 0);
            });
        std::vector<std::pair<int, const Option*>> chosen;
        for (std::size_t row = 0; row < counts_.size(); ++row) {
            const int position = columns[static_cast<std::size_t>(column_of_row[row])];
            const Option* way = option(position, size_of_[row], least);
            if (!way) return;
            chosen.emplace_back(position, way);
        }
        weigh(chosen);
    }

    void weigh(std::vector<std::pair<int, const Option*>>& chosen) {
        const auto required = std::count_if(chosen.begin(), chosen.end(), [this](const auto& each) {
            return offer(each.first).required;
        });
        if (required < required_) return;
        std::sort(chosen.begin(), chosen.end());
        Taken taken;
        taken.reserve(chosen.size());
        for (const auto& [position, way] : chosen) taken.emplace_back(&offer(position), *way);
        NodePlacement placement = placement_of(taken, step_time_, options_);
        if (placement.step_time < fastest_step_time_ * (1 - rounding)) {
            fastest_step_time_ = placement.step_time;
            fastest_gbps_ = placement.shape.slowest_gbps;
        }
        if (placement.step_time > options_.most_step_time * (1 + rounding)) return;
        if (!found_ || placement.cost < found_->cost - rounding) found_ = std::move(placement);
    }

    std::span<const NodeOffer> offers_;
    std::span<const int> counts_;
    const StepTimeOf& step_time_;
    const NodeChoiceOptions& options_;
    std::vector<int> sizes_;            // distinct counts
    std::vector<std::size_t> size_of_;  // of each count
    std::vector<NodeClass> classes_;
    std::vector<int> class_of_;  // of each offer
    std::ptrdiff_t required_ = 0;
    std::vector<double> rates_;     // at which options differ, fastest first
    std::vector<double> networks_;  // the same of their shares
    long steps_ = 0;
    double fastest_step_time_ = no_rate;
    double fastest_gbps_ = 0;
    std::optional<NodePlacement> found_;
};

}  // namespace

void set_apart_unknown(std::vector<std::vector<int>>& switches) {
    std::size_t longest = 0;
    int next = 0;
    for (const auto& list : switches) {
        longest = std::max(longest, list.size());
        for (const int number : list) next = std::max(next, number + 1);
    }
    for (auto& list : switches) {
        if (list.empty()) list.assign(longest, next++);
    }
}

double PriorStepTime::operator()(const PlacementShape& shape) const {
    double time = 1;
    if (shape.most_per_node > 1 && shape.slowest_gbps > 0) time += traffic_gb / shape.slowest_gbps;
    if (shape.nodes > 1) time += traffic_gb / network_gbps * detour(shape);
    return time;
}

double ModelStepTime::operator()(const PlacementShape& shape) const {
    StepPlacement placement;
    placement.nodes = shape.nodes;
    placement.gpus = shape.gpus;
    placement.most_on_node = shape.most_per_node;
    placement.local_batch = local_batch;
    placement.in_node_gbps = shape.slowest_gbps;
    placement.network_gbps = reference_network_gbps / detour(shape);
    return step_seconds(model, placement);
}

std::optional<NodePlacement> choose_nodes(std::span<const NodeOffer> offers,
                                          std::span<const int> counts, const StepTimeOf& step_time,
                                          const NodeChoiceOptions& options) {
    if (counts.empty() || offers.size() < counts.size()) return std::nullopt;
    return Search(offers, counts, step_time, options).best();
}

NodePlacement assess(std::span<const NodeOffer> offers, std::span<const GpuSet> sets,
                     const StepTimeOf& step_time, const NodeChoiceOptions& options) {
    Taken taken;
    taken.reserve(offers.size());
    for (std::size_t i = 0; i < offers.size(); ++i)
        taken.emplace_back(&offers[i], option_of(*offers[i].sets, offers[i].free, sets[i]));
    return placement_of(taken, step_time, options);
}

std::vector<std::vector<int>> spreads(int gpus, int per_node, int least_nodes, int most_nodes) {
    std::vector<std::vector<int>> out;
    if (gpus < 1 || per_node < 1) return out;
    const auto add = [&out](std::vector<int> counts) {
        if (std::find(out.begin(), out.end(), counts) == out.end())
            out.push_back(std::move(counts));
    };
    const int fewest = std::max({least_nodes, (gpus + per_node - 1) / per_node, 1});
    for (int nodes = fewest; nodes <= std::min(most_nodes, gpus); ++nodes) {
        std::vector<int> even;
        even.reserve(static_cast<std::size_t>(nodes));
        for (int i = 0; i < nodes; ++i) even.push_back(gpus / nodes + (i < gpus % nodes ? 1 : 0));
        add(std::move(even));
    }
    const int full = gpus / per_node;
    if (fewest <= most_nodes && full > 0 && gpus % per_node != 0 && full + 1 == fewest) {
        std::vector<int> filled(static_cast<std::size_t>(full), per_node);
        filled.push_back(gpus % per_node);
        add(std::move(filled));
    }
    return out;
}

}  // namespace sluice
