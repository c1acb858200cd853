// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/placement/ring_packing.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <set>
#include <utility>

namespace sluice {
namespace {

constexpr int most_vertices = 16;
constexpr int most_vertices_for_sets = 8;

// Are there `rings` rings? Depth first, one ring after the other. Each ring goes through an edge
// that some ring has to use or that no further ring uses: so no set of rings is tried in two
// orders.
class Search {
  public:
    Search(const LinkCounts& links, long most_steps) : links_(links), steps_left_(most_steps) {}

    /// The most rings that were in the graph at once, up to `rings`.
    int place(int rings) {
        wanted_ = rings;
        fits(rings);
        return placed_;
    }

  private:
    bool fits(int rings) {
        placed_ = std::max(placed_, wanted_ - rings);
        if (rings == 0) return true;
        std::array<int, most_vertices> degrees{};
        for (int v = 0; v < links_.size; ++v) {
            for (int other = 0; other < links_.size; ++other)
                degrees[static_cast<std::size_t>(v)] += usable(v, other, rings);
        }
        if (!conceivable(rings, degrees) || steps_left_ <= 0 ||
            !tried_.insert({links_.counts, rings}).second)
            return false;
        // The vertex with the fewest links to spare, and its widest edge.
        const auto* const scarcest =
            std::min_element(degrees.cbegin(), degrees.cbegin() + links_.size);
        const auto root = static_cast<int>(scarcest - degrees.cbegin());
        int neighbour = 0;
        for (int other = 1; other < links_.size; ++other) {
            if (usable(root, other, rings) > usable(root, neighbour, rings)) neighbour = other;
        }
        // Either one of the rings uses this edge ...
        add(root, neighbour, -1);
        const bool found = extend(root, neighbour, 1U << root | 1U << neighbour, rings);
        add(root, neighbour, 1);
        if (found) return true;
        // ... or none does, and the root has to spare its links.
        const int spare = *scarcest - 2 * rings;
        if (usable(root, neighbour, rings) > spare) return false;
        const int count = links_.at(root, neighbour);
        add(root, neighbour, -count);
        const bool found_without = fits(rings);
        add(root, neighbour, count);
        return found_without;
    }

    // A ring goes over an edge once, so more links than rings are of no use.
    int usable(int a, int b, int rings) const { return std::min<int>(links_.at(a, b), rings); }

    // Each ring takes two links at every vertex and at least two of every cut. Of its n links at
    // most 2 (n - k) touch the n - k vertices outside of a set of k, so 2 k - n lie within the set.
    bool conceivable(int rings, const std::array<int, most_vertices>& degrees) const {
        const int n = links_.size;
        for (int v = 0; v < n; ++v) {
            if (degrees[static_cast<std::size_t>(v)] < 2 * rings) return false;
        }
        if (n > most_vertices_for_sets) return true;
        std::array<int, 1 << most_vertices_for_sets> within{};
        std::array<int, 1 << most_vertices_for_sets> touching{};
        for (unsigned set = 1; set + 1 < 1U << n; ++set) {
            const int first = std::countr_zero(set);
            const unsigned rest = set & (set - 1);
            within[set] = within[rest];
            for (unsigned others = rest; others != 0; others &= others - 1)
                within[set] += usable(first, std::countr_zero(others), rings);
            touching[set] = touching[rest] + degrees[static_cast<std::size_t>(first)];
            if (touching[set] - 2 * within[set] < 2 * rings) return false;
            if (within[set] < (2 * std::popcount(set) - n) * rings) return false;
        }
        return true;
    }

    // A path from root to `end` over `visited` is taken out of the links already. Vertices with few
    // ways on come first, or they would be left over.
    bool extend(int root, int end, unsigned visited, int rings) {
        if (--steps_left_ <= 0) return false;
        const bool closing = visited == (1U << links_.size) - 1;
        std::array<std::pair<int, int>, most_vertices> nexts;
        std::size_t count = 0;
        for (int next = 0; next < links_.size; ++next) {
            if (links_.at(end, next) == 0) continue;
            if (closing ? next != root : (visited >> next & 1) != 0) continue;
            nexts[count++] = {ways_on(next, visited), next};
        }
        std::sort(nexts.begin(), nexts.begin() + count);
        for (std::size_t i = 0; i < count; ++i) {
            const int next = nexts[i].second;
            add(end, next, -1);
            const bool found =
                closing ? fits(rings - 1) : extend(root, next, visited | 1U << next, rings);
            add(end, next, 1);
            if (found) return true;
        }
        return false;
    }

    int ways_on(int vertex, unsigned visited) const {
        int ways = 0;
        for (int next = 0; next < links_.size; ++next)
            ways += (visited >> next & 1) == 0 ? links_.at(vertex, next) : 0;
        return ways;
    }

    void add(int a, int b, int difference) {
        links_.at(a, b) = static_cast<std::uint8_t>(links_.at(a, b) + difference);
        links_.at(b, a) = links_.at(a, b);
    }

    LinkCounts links_;
    long steps_left_;
    int wanted_ = 0;
    int placed_ = 0;
    std::set<std::pair<std::vector<std::uint8_t>, int>> tried_;
};

}  // namespace

int most_rings(const LinkCounts& links, long most_steps) {
    int conceivable = 0;
    for (int other = 0; other < links.size; ++other) conceivable += links.at(0, other);
    int most = 1;
    for (int rings = conceivable / 2; rings > most; --rings)
        most = std::max(most, Search(links, most_steps).place(rings));
    return most;
}

}  // namespace sluice
