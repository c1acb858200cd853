// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <queue>
#include <vector>

namespace sluice::sim {

struct FailureOptions {
    double mtbf_s =
        0;  ///< mean time of a node from the beginning, or its repair, to a failure; 0: none
    double repair_s = 3600;          ///< it is away
    double checkpoint_every_s = 60;  ///< of a running job, from its start on
    std::uint32_t seed = 1;
};

/// When nodes fail and are back. Times between are exponential, drawn for each node by itself: the
/// same under each policy.
class NodeFailures {
  public:
    struct Event {
        double at_s = 0;
        std::size_t node = 0;
        bool fails = false;  ///< else it is back
    };

    NodeFailures(std::size_t nodes, const FailureOptions& options);

    /// Up to this time, in order; each once.
    std::vector<Event> next(double until_s);

  private:
    struct Later {
        bool operator()(const Event& a, const Event& b) const {
            return a.at_s != b.at_s ? a.at_s > b.at_s : a.node > b.node;
        }
    };
    void draw(std::size_t node, double from_s);

    FailureOptions options_;
    std::vector<std::uint64_t> drawn_;  // by node
    std::priority_queue<Event, std::vector<Event>, Later> coming_;
};

}  // namespace sluice::sim
