// SPDX-License-Identifier: GPL-2.0-or-later
//
// The transportation problem: rows of some kinds on columns of some groups, at least cost.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace sluice {

/// Columns that are alike.
struct ColumnGroup {
    int columns = 0;
    bool first = false;  ///< used before others, whatever they cost
};

/// The cost of a row in a group where it cannot be.
constexpr std::int64_t impossible = std::numeric_limits<std::int64_t>::max();

/// Gives each row a column, no column twice, so that as many columns of `first` groups as possible
/// are used and, of all such ways, at least cost. rows[k] is the number of rows of kind k,
/// cost[g * rows.size() + k] what one of them costs in group g: whole numbers, so that equal sums
/// are equal, from 0 to 2^50 (or impossible). Returns how many rows of kind k are in group g, in
/// the same order; of equal groups those that come earlier are filled first. Nothing where a row
/// finds no column, or where `steps`, to which it adds its own, goes beyond `most_steps`.
///
/// Successive shortest paths (Ahuja, Magnanti and Orlin, Network Flows, 1993, section 9.7) over the
/// kinds, each for as many rows as it has room for: O(kinds^2 groups) steps for a path, at most a
/// path for each row.
std::optional<std::vector<int>> distribute(std::span<const int> rows,
                                           std::span<const ColumnGroup> groups,
                                           std::span<const std::int64_t> cost, long& steps,
                                           long most_steps);

}  // namespace sluice
