// SPDX-License-Identifier: GPL-2.0-or-later
//
// Which GPU of a topology is which of Slurm's: Slurm numbers a node's GPUs in the order of their
// device files (File=/dev/nvidiaN in gres.conf(5)), a topology source in that of PCI bus ids or of
// its own.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.hpp"
#include "common/topology/gpu_graph.hpp"

namespace sluice {

/// True where both name one PCI function: case and the length of the domain do not count
/// ("00000000:06:00.0" of NVML is "0000:06:00.0" of Linux). An empty one equals nothing.
bool same_pci_bus_id(std::string_view a, std::string_view b);

/// The graph with its GPUs in another order, order[new] = old: each index of the graph once.
GpuGraph reordered(const GpuGraph& graph, const std::vector<int>& order);

enum class JoinRule {
    by_minor,  ///< the N of each device file is the minor of one GPU of the topology
    by_order,  ///< one side has no numbers: the first is the first
};

struct JoinedGraph {
    GpuGraph graph;  ///< in Slurm's order
    JoinRule rule = JoinRule::by_order;
    std::string why;  ///< for a log: "joined by device minor", "joined by order: ..."
};

/// `devices`: the N of each of Slurm's device files in Slurm's order, -1 where its name has none.
/// not_found where the two cannot be the same GPUs: another count, a device number twice or one
/// that no GPU of the topology has. A node that lost a GPU is refused too: after its next boot the
/// driver may number the others anew, so a file for all of them says nothing about those left.
Result<JoinedGraph> join_gres(const GpuGraph& graph, const std::vector<int>& devices);

}  // namespace sluice
