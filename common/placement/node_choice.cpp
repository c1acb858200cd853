// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/placement/node_choice.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <set>
#include <unordered_map>

#include "common/placement/assignment.hpp"

namespace sluice {
namespace {

constexpr double rounding = 1e-12;                                   // of costs and times
constexpr double no_rate = std::numeric_limits<double>::infinity();  // one GPU sends nothing

std::ptrdiff_t offset(std::size_t places) {
    return static_cast<std::ptrdiff_t>(places);
}

/// What is broken, as whole numbers.
constexpr double units = 1e12;

std::int64_t in_units(double broken) {
    return std::llround(broken * units);
}

double cost_of(double step_time, double broken, const NodeChoiceOptions& options) {
    return std::log(step_time) + options.fragmentation_weight * broken;
}

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
    placement.cost = cost_of(placement.step_time, placement.broken, options);
    placement.fastest_step_time = placement.step_time;
    placement.fastest_gbps = shape.slowest_gbps;
    return placement;
}

/// Offers that differ in their number alone.
struct NodeClass {
    const BestSets* sets = nullptr;
    GpuSet free;
    bool required = false;
    std::vector<std::vector<Option>> options;  // for each distinct count
    bool serves = false;                       // any count
};

/// A bound on options, by positions in the lists of values at which they differ, fastest first.
struct Least {
    std::size_t network = 0;
    std::size_t rate = 0;
    bool operator==(const Least&) const = default;
};

/// Offers of a class within a pool, by place in its list.
struct Run {
    std::size_t node_class = 0;
    int first = 0;
    int count = 0;
};

/// A part of the network.
struct Pool {
    std::vector<int> offers;  // by position, in that order
    std::vector<Run> runs;
    int hops = 0;  // the most that two of its nodes are apart
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
            if (known == sizes_.end()) {
                sizes_.push_back(count);
                rows_.push_back(1);
            } else {
                ++rows_[static_cast<std::size_t>(known - sizes_.begin())];
            }
        }
        required_ = static_cast<int>(std::count_if(
            offers.begin(), offers.end(), [](const NodeOffer& each) { return each.required; }));
    }

    std::optional<NodePlacement> best() {
        if (sizes_.size() > GpuSet::max_gpus) return std::nullopt;  // more than nodes can differ in
        classify();
        std::vector<int> all(nodes_.size());
        std::iota(all.begin(), all.end(), 0);
        if (counts_.size() > 1)
            descend(std::move(all), 0);
        else
            add_pool(all, 0);
        if (pools_.empty()) return std::nullopt;
        if (!find_fastest()) return std::nullopt;
        improve();
        if (!found_) return std::nullopt;  // too slow
        found_->fastest_step_time = fastest_step_time_;
        found_->fastest_gbps = fastest_gbps_;
        found_->steps = steps_;
        return found_;
    }

  private:
    using Chosen = std::vector<std::pair<int, const Option*>>;

    const NodeOffer& offer(int position) const {
        return *nodes_[static_cast<std::size_t>(position)];
    }

    std::size_t class_of(int position) const {
        return class_of_[static_cast<std::size_t>(position)];
    }

    void classify() {
        struct Key {
            const BestSets* sets;
            std::uint64_t free;
            bool required;
            bool operator==(const Key&) const = default;
        };
        const auto hash = [](const Key& key) {
            return std::hash<const void*>()(key.sets) ^
                   (key.free * 2 + key.required) * 0x9e3779b97f4a7c15;
        };
        std::unordered_map<Key, std::size_t, decltype(hash)> known(64, hash);
        std::vector<std::size_t> class_of;
        class_of.reserve(offers_.size());
        for (const NodeOffer& each : offers_) {
            const auto [entry, fresh] =
                known.try_emplace({each.sets, each.free.bits(), each.required}, classes_.size());
            class_of.push_back(entry->second);
            if (!fresh) continue;
            NodeClass made{each.sets, each.free, each.required, {}, false};
            for (const int size : sizes_) {
                made.options.push_back(options_of(*each.sets, each.free, size));
                for (const Option& option : made.options.back()) {
                    made.serves = true;
                    // Single GPUs bound nothing where others send.
                    if (option.rate != no_rate) rates_.push_back(option.rate);
                    networks_.push_back(option.network);
                }
            }
            classes_.push_back(std::move(made));
        }
        if (rates_.empty()) rates_.push_back(no_rate);
        for (auto* const values : {&rates_, &networks_}) {
            std::sort(values->begin(), values->end(), std::greater<>());
            values->erase(std::unique(values->begin(), values->end()), values->end());
        }
        sort_by_class(class_of);
    }

    /// Leaves out those that cannot serve.
    void sort_by_class(const std::vector<std::size_t>& class_of) {
        std::vector<int> begin(classes_.size() + 1, 0);
        for (const std::size_t each : class_of) begin[each + 1] += classes_[each].serves ? 1 : 0;
        std::partial_sum(begin.begin(), begin.end(), begin.begin());
        nodes_.resize(static_cast<std::size_t>(begin.back()));
        class_of_.resize(nodes_.size());
        std::vector<int> next = begin;
        for (std::size_t i = 0; i < offers_.size(); ++i) {
            if (!classes_[class_of[i]].serves) continue;
            const auto place = static_cast<std::size_t>(next[class_of[i]]++);
            nodes_[place] = &offers_[i];
            class_of_[place] = class_of[i];
        }
        const auto by_number = [](const NodeOffer* a, const NodeOffer* b) {
            return a->node < b->node;
        };
        for (std::size_t i = 0; i < classes_.size(); ++i) {
            const auto first = nodes_.begin() + begin[i], end = nodes_.begin() + begin[i + 1];
            if (!std::is_sorted(first, end, by_number)) std::stable_sort(first, end, by_number);
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
            return time_of(a.rate, a.network, 0) < time_of(b.rate, b.network, 0) * (1 - rounding);
        };
        return {*std::min_element(options.begin(), options.end(), slower)};
    }

    /// Of the whole job, if this is its slowest rate and its least share of the network.
    double time_of(double rate, double network, int hops) const {
        PlacementShape shape;
        shape.nodes = static_cast<int>(counts_.size());
        for (std::size_t kind = 0; kind < sizes_.size(); ++kind) {
            shape.gpus += sizes_[kind] * rows_[kind];
            shape.most_per_node = std::max(shape.most_per_node, sizes_[kind]);
        }
        shape.slowest_gbps = rate == no_rate ? 0 : rate;
        shape.network_share = network;
        shape.hops = hops;
        return step_time_(shape);
    }

    double time_of(const Least& least, int hops) const {
        return time_of(rates_[least.rate], networks_[least.network], hops);
    }

    /// That keeps nothing out.
    Least loosest() const { return {networks_.size() - 1, rates_.size() - 1}; }

    /// What breaks least among what is at least so fast; null where nothing is.
    const Option* option(std::size_t node_class, std::size_t kind, const Least& least) const {
        for (const Option& each : classes_[node_class].options[kind]) {
            if (each.rate >= rates_[least.rate] && each.network >= networks_[least.network])
                return &each;
        }
        return nullptr;
    }

    /// Adds these offers, which share `depth` switches, and each of the parts below them.
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
                add_pool(offers, hops_between(deepest, depth));
        }
        // In the order of the offers, which decides between equal ones.
        const auto earliest = [&](const std::vector<int>& part) {
            return *std::min_element(part.begin(), part.end(),
                                     [&](int a, int b) { return &offer(a) < &offer(b); });
        };
        std::vector<std::pair<const NodeOffer*, std::size_t>> order;
        for (std::size_t i = 0; i < parts.size(); ++i)
            order.emplace_back(&offer(earliest(parts[i])), i);
        std::sort(order.begin(), order.end());
        for (const auto& [first, i] : order) descend(std::move(parts[i]), depth + 1);
    }

    void add_pool(const std::vector<int>& offers, int hops) {
        if (offers.size() < counts_.size()) return;
        steps_ += static_cast<long>(offers.size());
        Pool pool{offers, {}, hops};
        int required = 0;
        for (std::size_t place = 0; place < offers.size(); ++place) {
            const std::size_t node_class = class_of(offers[place]);
            if (pool.runs.empty() || pool.runs.back().node_class != node_class)
                pool.runs.push_back({node_class, static_cast<int>(place), 0});
            ++pool.runs.back().count;
            required += offer(offers[place]).required;
        }
        if (required == required_) pools_.push_back(std::move(pool));
    }

    int node_at(const Pool& pool, int place) const {
        return pool.offers[static_cast<std::size_t>(place)];
    }

    /// By number.
    bool before(int a, int b) const {
        const NodeOffer *left = &offer(a), *right = &offer(b);
        return left->node != right->node ? left->node < right->node : left < right;
    }

    /// Whether the pool has a placement that is so fast.
    bool possible(const Pool& pool, const Least& least) {
        const std::size_t kinds = sizes_.size();
        std::vector<std::pair<std::uint64_t, bool>> able;  // to give which counts, and if required
        std::vector<ColumnGroup> columns;
        steps_ += static_cast<long>(pool.runs.size() * kinds);
        for (const Run& run : pool.runs) {
            std::pair<std::uint64_t, bool> here{0, classes_[run.node_class].required};
            for (std::size_t kind = 0; kind < kinds; ++kind)
                here.first |= std::uint64_t{option(run.node_class, kind, least) != nullptr} << kind;
            const auto known = std::find(able.begin(), able.end(), here);
            const auto place = static_cast<std::size_t>(known - able.begin());
            if (known == able.end()) {
                able.push_back(here);
                columns.push_back({0, here.second});
            }
            columns[place].columns += run.count;
        }
        std::vector<std::int64_t> cost;
        for (const auto& [kinds_able, required] : able) {
            for (std::size_t kind = 0; kind < kinds; ++kind)
                cost.push_back((kinds_able >> kind & 1) != 0 ? 0 : impossible);
        }
        const auto taken = distribute(rows_, columns, cost, steps_, no_limit);
        return taken && uses_required(*taken, columns);
    }

    bool uses_required(const std::vector<int>& taken,
                       const std::vector<ColumnGroup>& columns) const {
        int used = 0;
        for (std::size_t i = 0; i < taken.size(); ++i) {
            if (columns[i / sizes_.size()].first) used += taken[i];
        }
        return used == required_;
    }

    /// Runs of a pool whose nodes are alike to all counts.
    struct Groups {
        std::vector<const Run*> runs;    // a group's together
        std::vector<std::size_t> begin;  // of each group in them, and the end
        std::vector<ColumnGroup> columns;
        std::vector<std::int64_t> cost;
    };

    /// By what they break; without `by_cost` by which counts they can give.
    Groups groups_of(const Pool& pool, const Least& least, bool by_cost) {
        const std::size_t kinds = sizes_.size();
        steps_ += static_cast<long>(pool.runs.size() * kinds);
        struct Row {
            bool required;
            std::int64_t first_cost;
            int lowest;  // position
            const Run* run;
            std::size_t costs;  // begin there
        };
        std::vector<std::int64_t> cost;
        cost.reserve(pool.runs.size() * kinds);
        std::vector<Row> rows;
        rows.reserve(pool.runs.size());
        for (const Run& run : pool.runs) {
            bool able = false;
            const std::size_t begin = cost.size();
            for (std::size_t kind = 0; kind < kinds; ++kind) {
                const Option* way = option(run.node_class, kind, least);
                able = able || way;
                cost.push_back(!way ? impossible : by_cost ? in_units(way->broken) : 0);
            }
            if (able)
                rows.push_back({classes_[run.node_class].required, cost[begin],
                                node_at(pool, run.first), &run, begin});
            else
                cost.resize(begin);
        }
        const auto costs = [&](const Row& row) {
            return std::span(cost).subspan(row.costs, kinds);
        };
        const auto alike = [&](const Row& a, const Row& b) {
            return a.required == b.required && std::ranges::equal(costs(a), costs(b));
        };
        std::sort(rows.begin(), rows.end(), [&](const Row& a, const Row& b) {
            if (a.required != b.required) return a.required;
            if (a.first_cost != b.first_cost) return a.first_cost < b.first_cost;
            for (std::size_t kind = 1; kind < kinds; ++kind) {
                const std::int64_t left = cost[a.costs + kind], right = cost[b.costs + kind];
                if (left != right) return left < right;
            }
            return before(a.lowest, b.lowest);
        });
        std::vector<std::pair<std::size_t, std::size_t>> ranges;
        for (std::size_t i = 0; i < rows.size(); ++i) {
            if (i == 0 || !alike(rows[i - 1], rows[i])) ranges.emplace_back(i, i);
            ++ranges.back().second;
        }
        // What costs the same to one kind may differ for another: lower numbers first.
        if (kinds > 1) {
            std::sort(ranges.begin(), ranges.end(), [&](const auto& a, const auto& b) {
                return before(rows[a.first].lowest, rows[b.first].lowest);
            });
        }
        Groups groups;
        for (const auto& [first, end] : ranges) {
            groups.begin.push_back(groups.runs.size());
            groups.columns.push_back({0, rows[first].required});
            for (const std::int64_t each : costs(rows[first])) groups.cost.push_back(each);
            for (std::size_t i = first; i < end; ++i) {
                groups.runs.push_back(rows[i].run);
                groups.columns.back().columns += rows[i].run->count;
            }
        }
        groups.begin.push_back(groups.runs.size());
        return groups;
    }

    /// How many nodes of each group give each count.
    struct Plan {
        Groups groups;
        std::vector<int> taken;  // as groups.cost
        double broken = 0;
    };

    /// The one of nodes that are so fast which breaks least; without `by_cost` any. Nothing where
    /// there is none or steps_ would exceed the limit.
    std::optional<Plan> plan(const Pool& pool, const Least& least, bool by_cost, long limit) {
        Plan made{groups_of(pool, least, by_cost), {}, 0};
        auto taken = distribute(rows_, made.groups.columns, made.groups.cost, steps_, limit);
        if (!taken || !uses_required(*taken, made.groups.columns)) return std::nullopt;
        made.taken = *std::move(taken);
        std::int64_t broken = 0;
        for (std::size_t i = 0; i < made.taken.size(); ++i) {
            if (made.taken[i] > 0) broken += made.taken[i] * made.groups.cost[i];
        }
        made.broken = static_cast<double>(broken) / units;
        return made;
    }

    /// Its nodes and their sets.
    Chosen carry_out(const Plan& plan, const Pool& pool, const Least& least) {
        const std::size_t kinds = sizes_.size();
        Chosen chosen;
        chosen.reserve(counts_.size());
        steps_ += static_cast<long>(counts_.size());
        for (std::size_t group = 0; group < plan.groups.columns.size(); ++group) {
            const auto shares = plan.taken.begin() + offset(group * kinds);
            const int used = std::accumulate(shares, shares + offset(kinds), 0);
            if (used == 0) continue;
            const std::vector<int> nodes = lowest_of(pool, plan.groups, group, used);
            auto next = nodes.begin();
            for (std::size_t kind = 0; kind < kinds; ++kind) {
                for (int i = 0; i < shares[offset(kind)]; ++i, ++next)
                    chosen.emplace_back(*next, option(class_of(*next), kind, least));
            }
        }
        return chosen;
    }

    /// So many of a group.
    std::vector<int> lowest_of(const Pool& pool, const Groups& groups, std::size_t group,
                               int used) const {
        std::vector<int> nodes;
        for (std::size_t i = groups.begin[group]; i < groups.begin[group + 1]; ++i) {
            const auto first = pool.offers.begin() + groups.runs[i]->first;
            nodes.insert(nodes.end(), first, first + std::min(used, groups.runs[i]->count));
        }
        const auto by_number = [this](int a, int b) { return before(a, b); };
        std::nth_element(nodes.begin(), nodes.begin() + (used - 1), nodes.end(), by_number);
        nodes.resize(static_cast<std::size_t>(used));
        std::sort(nodes.begin(), nodes.end(), by_number);
        return nodes;
    }

    /// The fastest rate down to `slowest` at which the pool has a placement, at this share of the
    /// network; rates_.size() where it has none.
    std::size_t fastest_rate(const Pool& pool, std::size_t network, std::size_t slowest) {
        std::size_t low = impossible_rates_[network];
        if (!possible(pool, {network, slowest})) {
            if (is_whole(pool)) impossible_rates_[network] = slowest + 1;
            return rates_.size();
        }
        for (std::size_t high = slowest; low < high;) {
            const std::size_t middle = low + (high - low) / 2;
            if (possible(pool, {network, middle}))
                high = middle;
            else
                low = middle + 1;
        }
        if (is_whole(pool)) impossible_rates_[network] = low;
        return low;
    }

    /// The end of the rates, at this share of the network, that may be possible and have a step
    /// time that is `good`; 0 where there is none. All that are faster than a good one are good.
    template <typename Good>
    std::size_t end_of_rates(std::size_t network, int hops, const Good& good) const {
        const auto is_good = [&](std::size_t rate) { return good(time_of({network, rate}, hops)); };
        std::size_t low = impossible_rates_[network];
        if (low == rates_.size() || !is_good(low)) return 0;
        ++low;
        for (std::size_t high = rates_.size(); low < high;) {
            const std::size_t middle = low + (high - low) / 2;
            if (is_good(middle))
                low = middle + 1;
            else
                high = middle;
        }
        return low;
    }

    bool is_whole(const Pool& pool) const { return &pool == &pools_.front(); }

    /// Finds the fastest placement, and so whether there is one. By what is possible alone, which
    /// takes no assignment of nodes.
    bool find_fastest() {
        impossible_rates_.assign(networks_.size(), 0);
        const Pool* where = nullptr;
        Least at;
        double fastest = 0;
        const auto faster = [&](double time) { return !where || time < fastest * (1 - rounding); };
        for (const Pool& pool : pools_) {
            for (std::size_t network = 0; network < networks_.size(); ++network) {
                const std::size_t end = end_of_rates(network, pool.hops, faster);
                if (end == 0) continue;
                const std::size_t rate = fastest_rate(pool, network, end - 1);
                if (rate == rates_.size()) continue;
                where = &pool;
                at = {network, rate};
                fastest = time_of(at, pool.hops);
            }
        }
        if (!where) return false;
        auto made = plan(*where, at, true, steps_ + options_.most_steps);
        if (made) weighed_ = {where, at};
        // Too many nodes that differ: any that are as fast.
        if (!made) made = plan(*where, at, false, no_limit);
        if (made) weigh(carry_out(*made, *where, at));
        return true;
    }

    /// Looks for less cost than that of the fastest: at each rate and share of the network from the
    /// fastest on, as long as the least that any placement of the pool breaks leaves room for it.
    void improve() {
        const long limit = steps_ + options_.most_steps;
        if (pools_.size() == 1 && weighed_.pool && weighed_.least == loosest()) return;
        double broken_by_any = 0;
        for (const Pool& pool : pools_) {
            if (!worth_a_look(pool, broken_by_any)) continue;
            const auto thriftiest = plan(pool, loosest(), true, limit);
            if (steps_ > limit) return;
            if (!thriftiest) continue;
            if (is_whole(pool)) broken_by_any = thriftiest->broken;
            improve_in(pool, *thriftiest, limit);
        }
    }

    void improve_in(const Pool& pool, const Plan& thriftiest, long limit) {
        for (std::size_t network = 0; network < networks_.size(); ++network) {
            const std::size_t end = end_of_rates(network, pool.hops, [&](double time) {
                return may_serve(time, thriftiest.broken);
            });
            if (end == 0) continue;
            for (std::size_t rate = fastest_rate(pool, network, end - 1); rate < end; ++rate) {
                const Least least{network, rate};
                const double time = time_of(least, pool.hops);
                if (!may_serve(time, thriftiest.broken)) break;
                if (weighed_.pool == &pool && weighed_.least == least) continue;
                const auto made =
                    least == loosest() ? std::optional(thriftiest) : plan(pool, least, true, limit);
                if (steps_ > limit) return;
                // One that is faster than asked for has its turn where that is asked for.
                if (made && may_serve(time, made->broken)) weigh(carry_out(*made, pool, least));
            }
        }
    }

    bool worth_a_look(const Pool& pool, double broken) const {
        for (std::size_t network = 0; network < networks_.size(); ++network) {
            const std::size_t rate = impossible_rates_[network];
            if (rate < rates_.size() && may_serve(time_of({network, rate}, pool.hops), broken))
                return true;
        }
        return false;
    }

    /// Whether a placement that takes so long and breaks so much would be the best so far.
    bool may_serve(double time, double broken) const {
        return !too_slow(time) &&
               (!found_ || cost_of(time, broken, options_) < found_->cost - rounding);
    }

    bool too_slow(double time) const { return time > options_.most_step_time * (1 + rounding); }

    void weigh(const Chosen& chosen) {
        Taken taken;
        taken.reserve(chosen.size());
        for (const auto& [position, way] : chosen) taken.emplace_back(&offer(position), *way);
        std::sort(taken.begin(), taken.end(),
                  [](const auto& a, const auto& b) { return a.first < b.first; });
        NodePlacement placement = placement_of(taken, step_time_, options_);
        if (placement.step_time < fastest_step_time_ * (1 - rounding)) {
            fastest_step_time_ = placement.step_time;
            fastest_gbps_ = placement.shape.slowest_gbps;
        }
        if (too_slow(placement.step_time)) return;
        if (!found_ || placement.cost < found_->cost - rounding) found_ = std::move(placement);
    }

    static constexpr long no_limit = std::numeric_limits<long>::max();

    std::span<const NodeOffer> offers_;
    std::span<const int> counts_;
    const StepTimeOf& step_time_;
    const NodeChoiceOptions& options_;
    std::vector<int> sizes_;  // distinct counts
    std::vector<int> rows_;   // how often each
    std::vector<NodeClass> classes_;
    // Offers that can serve: a class together, lower numbers first. Positions are places here.
    std::vector<const NodeOffer*> nodes_;
    std::vector<std::size_t> class_of_;  // of each
    int required_ = 0;
    std::vector<double> rates_;                  // at which options differ, fastest first
    std::vector<double> networks_;               // the same of their shares
    std::vector<Pool> pools_;                    // the first is all of it
    std::vector<std::size_t> impossible_rates_;  // at least so many, for each network share
    struct {
        const Pool* pool = nullptr;
        Least least;
    } weighed_;  // by find_fastest()
    long steps_ = 0;
    double fastest_step_time_ = std::numeric_limits<double>::infinity();
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
