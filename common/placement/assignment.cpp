// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/placement/assignment.hpp"

#include <limits>

namespace sluice {

std::vector<int> assign(int rows, int columns, const std::function<double(int, int)>& cost) {
    constexpr int none = -1;
    constexpr double infinity = std::numeric_limits<double>::infinity();
    const auto at = [](auto& values, int index) -> auto& {
        return values[static_cast<std::size_t>(index)];
    };
    const auto width = static_cast<std::size_t>(columns);
    std::vector<double> row_price(static_cast<std::size_t>(rows), 0), column_price(width, 0);
    std::vector<int> row_of(width, none);
    for (int next = 0; next < rows; ++next) {
        // Dijkstra from the row over reduced costs to the nearest column that is free.
        std::vector<double> distance(width, infinity);
        std::vector<int> before(width, none);  // the column whose row led here
        std::vector<char> done(width, 0);
        int row = next;
        int last = none;
        double reached = 0;
        int free_column = none;
        while (free_column == none) {
            int nearest = none;
            for (int column = 0; column < columns; ++column) {
                if (at(done, column)) continue;
                const double through =
                    reached + cost(row, column) - at(row_price, row) - at(column_price, column);
                if (through < at(distance, column)) {
                    at(distance, column) = through;
                    at(before, column) = last;
                }
                if (nearest == none || at(distance, column) < at(distance, nearest))
                    nearest = column;
            }
            if (nearest == none) return {};
            at(done, nearest) = 1;
            reached = at(distance, nearest);
            last = nearest;
            if (at(row_of, nearest) == none)
                free_column = nearest;
            else
                row = at(row_of, nearest);
        }
        at(row_price, next) += reached;
        for (int column = 0; column < columns; ++column) {
            if (!at(done, column) || column == free_column) continue;
            const double slack = reached - at(distance, column);
            at(column_price, column) -= slack;
            at(row_price, at(row_of, column)) += slack;
        }
        for (int column = free_column; column != none;) {
            const int previous = at(before, column);
            at(row_of, column) = previous == none ? next : at(row_of, previous);
            column = previous;
        }
    }
    std::vector<int> column_of(static_cast<std::size_t>(rows), none);
    for (int column = 0; column < columns; ++column) {
        if (at(row_of, column) != none) at(column_of, at(row_of, column)) = column;
    }
    return column_of;
}

}  // namespace sluice
