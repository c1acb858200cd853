// SPDX-License-Identifier: GPL-2.0-or-later
//
// The assignment problem: one column for each row, no column twice, at least cost.
#pragma once

#include <functional>
#include <vector>

namespace sluice {

/// cost(row, column) is finite; columns >= rows. Returns the column of each row. Shortest
/// augmenting paths with potentials (Jonker and Volgenant, Computing 38, 1987): O(rows^2 columns).
std::vector<int> assign(int rows, int columns, const std::function<double(int, int)>& cost);

}  // namespace sluice
