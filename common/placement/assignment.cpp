// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/placement/assignment.hpp"

#include <algorithm>

namespace sluice {
namespace {

constexpr std::size_t none = std::numeric_limits<std::size_t>::max();

class Distribution {
  public:
    Distribution(std::span<const int> rows, std::span<const ColumnGroup> groups,
                 std::span<const std::int64_t> cost)
        : kinds_(rows.size()), rows_(rows), groups_(groups), cost_(cost), taken_(cost.size(), 0) {
        for (const ColumnGroup& group : groups) left_.push_back(group.columns);
        for (std::size_t kind = 0; kind < kinds_; ++kind) {
            std::vector<std::size_t> order;
            for (std::size_t group = 0; group < groups.size(); ++group) {
                if (at(group, kind) != impossible) order.push_back(group);
            }
            std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
                if (groups_[a].first != groups_[b].first) return groups_[a].first;
                return at(a, kind) < at(b, kind);
            });
            cheapest_.push_back(std::move(order));
        }
        next_.assign(kinds_, 0);
        is_used_.assign(groups.size(), false);
    }

    bool run(long& steps, long most_steps) {
        for (std::size_t kind = 0; kind < kinds_; ++kind) {
            for (int need = rows_[kind]; need > 0;) {
                steps += static_cast<long>(kinds_);
                find_detours(kind, steps);
                if (steps > most_steps) return false;
                const int placed = augment(kind, need);
                if (placed == 0) return false;
                need -= placed;
            }
        }
        return true;
    }

    std::vector<int> taken() && { return std::move(taken_); }

  private:
    /// One row of `kind` takes the place of one of the next kind in `group`, and so on.
    struct Detour {
        std::int64_t cost = impossible;
        std::size_t from = none;  // the kind before
        std::size_t group = none;
    };

    std::int64_t at(std::size_t group, std::size_t kind) const {
        return cost_[group * kinds_ + kind];
    }

    /// What it costs at least to have one row fewer of each kind and one more of `start`, on the
    /// columns that are used. Bellman and Ford: some moves save, but no circle of them does.
    void find_detours(std::size_t start, long& steps) {
        detours_.assign(kinds_, {});
        detours_[start].cost = 0;
        for (std::size_t round = 1; round < kinds_; ++round) {
            bool changed = false;
            steps += static_cast<long>(2 * kinds_ * used_.size());
            for (const std::size_t group : used_) {
                std::size_t from = none;
                std::int64_t least = impossible;
                for (std::size_t kind = 0; kind < kinds_; ++kind) {
                    if (detours_[kind].cost == impossible || at(group, kind) == impossible)
                        continue;
                    const std::int64_t cost = detours_[kind].cost + at(group, kind);
                    if (cost >= least) continue;
                    least = cost;
                    from = kind;
                }
                if (from == none) continue;
                for (std::size_t kind = 0; kind < kinds_; ++kind) {
                    if (kind == from || taken_[group * kinds_ + kind] == 0) continue;
                    const std::int64_t cost = least - at(group, kind);
                    if (cost >= detours_[kind].cost) continue;
                    detours_[kind] = {cost, from, group};
                    changed = true;
                }
            }
            if (!changed) break;
        }
    }

    /// Places up to `need` rows of `start`; returns how many.
    int augment(std::size_t start, int need) {
        std::size_t last = none;
        std::size_t target = none;
        std::int64_t least = impossible;
        for (std::size_t kind = 0; kind < kinds_; ++kind) {
            const auto& order = cheapest_[kind];
            while (next_[kind] < order.size() && left_[order[next_[kind]]] == 0) ++next_[kind];
            if (detours_[kind].cost == impossible || next_[kind] == order.size()) continue;
            const std::size_t group = order[next_[kind]];
            const std::int64_t cost = detours_[kind].cost + at(group, kind);
            if (target != none) {
                const bool first = groups_[group].first;
                if (first != groups_[target].first ? !first : cost >= least) continue;
            }
            last = kind;
            target = group;
            least = cost;
        }
        if (target == none) return 0;
        int room = std::min(need, left_[target]);
        for (std::size_t kind = last; kind != start; kind = detours_[kind].from)
            room = std::min(room, taken_[detours_[kind].group * kinds_ + kind]);
        for (std::size_t kind = last; kind != start; kind = detours_[kind].from) {
            const Detour& detour = detours_[kind];
            taken_[detour.group * kinds_ + kind] -= room;
            taken_[detour.group * kinds_ + detour.from] += room;
        }
        taken_[target * kinds_ + last] += room;
        left_[target] -= room;
        if (!is_used_[target]) used_.push_back(target);
        is_used_[target] = true;
        return room;
    }

    std::size_t kinds_;
    std::span<const int> rows_;
    std::span<const ColumnGroup> groups_;
    std::span<const std::int64_t> cost_;
    std::vector<int> taken_;                          // as cost_
    std::vector<int> left_;                           // columns of each group
    std::vector<std::vector<std::size_t>> cheapest_;  // groups for each kind, first ones first
    std::vector<std::size_t> next_;                   // in cheapest_; those before are full
    std::vector<std::size_t> used_;                   // groups
    std::vector<bool> is_used_;
    std::vector<Detour> detours_;  // of each kind
};

}  // namespace

std::optional<std::vector<int>> distribute(std::span<const int> rows,
                                           std::span<const ColumnGroup> groups,
                                           std::span<const std::int64_t> cost, long& steps,
                                           long most_steps) {
    steps += static_cast<long>(cost.size());
    if (steps > most_steps) return std::nullopt;
    Distribution distribution(rows, groups, cost);
    if (!distribution.run(steps, most_steps)) return std::nullopt;
    return std::move(distribution).taken();
}

}  // namespace sluice
