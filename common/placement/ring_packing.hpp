// SPDX-License-Identifier: GPL-2.0-or-later
//
// How many rings fit into a graph of parallel links at once: the largest number of Hamiltonian
// cycles of a multigraph such that no link is in two of them. (NP-hard in general; here a handful
// of vertices and at most nine rings.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sluice {

struct LinkCounts {
    int size = 0;                      ///< vertices, 3..16
    std::vector<std::uint8_t> counts;  ///< [a * size + b], symmetric, 0 on the diagonal

    std::uint8_t& at(int a, int b) { return counts[place(a, b)]; }
    std::uint8_t at(int a, int b) const { return counts[place(a, b)]; }

  private:
    std::size_t place(int a, int b) const {
        return static_cast<std::size_t>(a) * static_cast<std::size_t>(size) +
               static_cast<std::size_t>(b);
    }
};

/// `links` has at least one Hamiltonian cycle. The search tries at most `most_steps` extensions of
/// a ring for each number of rings, from the largest conceivable one downwards, and is exact when
/// it does not run out of them.
int most_rings(const LinkCounts& links, long most_steps);

}  // namespace sluice
