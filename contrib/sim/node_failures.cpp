// SPDX-License-Identifier: GPL-2.0-or-later
#include "contrib/sim/node_failures.hpp"

#include <cmath>

#include "contrib/sim/random.hpp"

namespace sluice::sim {

NodeFailures::NodeFailures(std::size_t nodes, const FailureOptions& options)
    : options_(options), drawn_(nodes) {
    if (options.mtbf_s > 0)
        for (std::size_t node = 0; node < nodes; ++node) draw(node, 0);
}

std::vector<NodeFailures::Event> NodeFailures::next(double until_s) {
    std::vector<Event> events;
    while (!coming_.empty() && coming_.top().at_s <= until_s) {
        const Event event = coming_.top();
        coming_.pop();
        if (event.fails)
            coming_.push({event.at_s + options_.repair_s, event.node, false});
        else
            draw(event.node, event.at_s);
        events.push_back(event);
    }
    return events;
}

void NodeFailures::draw(std::size_t node, double from_s) {
    // 24 bits for the failures of a node
    const std::uint64_t number = static_cast<std::uint64_t>(node) << 24 | drawn_[node]++;
    coming_.push(
        {from_s - options_.mtbf_s * std::log(uniform(options_.seed, number, 3)), node, true});
}

}  // namespace sluice::sim
