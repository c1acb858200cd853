// SPDX-License-Identifier: GPL-2.0-or-later
//
// assess_sets TOPOLOGY: reads a line a placement on nodes of this topology, "0,3" or "0-7;0-7" (a
// set a node), and prints for each what is predicted of it, in a line:
//
//     GB/s of its slowest set (0: no set of two GPUs)    step time by PriorStepTime
#include <iostream>
#include <string>
#include <vector>

#include "common/base/text.hpp"
#include "common/placement/node_choice.hpp"

using namespace sluice;

int main(int argc, char** argv) {
    if (argc != 2) {
        std::cerr << "usage: assess_sets TOPOLOGY < PLACEMENTS\n";
        return 2;
    }
    const auto graph = read_topology_file(argv[1]);
    const auto table = graph ? BestSets::compile(*graph) : graph.error();
    if (!table) {
        std::cerr << argv[1] << ": " << table.error().message << '\n';
        return 3;
    }
    const GpuSet all = GpuSet::first((*table)->size());
    std::string line;
    while (std::getline(std::cin, line)) {
        std::vector<NodeOffer> offers;
        std::vector<GpuSet> sets;
        for (const auto text : split(line, ';')) {
            const auto set = parse_gpu_set(text);
            if (!set || set->empty() || !all.contains(*set)) {
                std::cerr << "'" << line << "': sets of GPUs 0 to " << all.size() - 1
                          << " are needed, such as 0,3;4-7\n";
                return 3;
            }
            offers.push_back({static_cast<int>(offers.size()), table->get(), all, false, {}});
            sets.push_back(*set);
        }
        const NodePlacement placement = assess(offers, sets, PriorStepTime());
        std::cout << placement.shape.slowest_gbps << ' ' << placement.step_time << '\n';
    }
    return 0;
}
