// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/topology/gres_join.hpp"

#include <algorithm>

#include "common/base/text.hpp"

namespace sluice {
namespace {

/// Where the GPU of this minor stands, or -1.
int index_of(const GpuGraph& graph, int minor) {
    for (int i = 0; i < graph.size(); ++i) {
        if (graph.gpu(i).minor == minor) return i;
    }
    return -1;
}

std::string device_file(int minor) {
    return "/dev/nvidia" + std::to_string(minor);
}

JoinedGraph in_order(const GpuGraph& graph, const std::string& why) {
    return {graph, JoinRule::by_order, "joined by order: " + why};
}

}  // namespace

bool same_pci_bus_id(std::string_view a, std::string_view b) {
    const auto without_zeros = [](std::string_view id) {
        return id.substr(std::min(id.find_first_not_of('0'), id.find(':')));
    };
    if (a.find(':') == std::string_view::npos || b.find(':') == std::string_view::npos)
        return false;
    return equal_ignoring_case(without_zeros(a), without_zeros(b));
}

GpuGraph reordered(const GpuGraph& graph, const std::vector<int>& order) {
    GpuGraph out(graph.size());
    out.set_switched(graph.switched());
    for (int a = 0; a < graph.size(); ++a) {
        const int old = order[static_cast<std::size_t>(a)];
        out.gpu(a) = graph.gpu(old);
        for (int b = 0; b < a; ++b)
            out.set_link(a, b, graph.link(old, order[static_cast<std::size_t>(b)]));
    }
    for (Nic nic : graph.nics()) {
        const std::vector<PciPath> paths = nic.paths;
        for (std::size_t i = 0; i < order.size(); ++i)
            nic.paths[i] = paths[static_cast<std::size_t>(order[i])];
        out.add_nic(std::move(nic));
    }
    return out;
}

Result<JoinedGraph> join_gres(const GpuGraph& graph, const std::vector<int>& devices) {
    const auto refuse = [](const std::string& what) {
        return Error{ErrorCode::not_found, what + ": collect the node's topology anew"};
    };
    if (static_cast<int>(devices.size()) != graph.size()) {
        return refuse("Slurm has " + gpus_text(static_cast<int>(devices.size())) +
                      ", the topology " + std::to_string(graph.size()));
    }
    for (std::size_t i = 0; i < devices.size(); ++i) {
        if (devices[i] < 0) return in_order(graph, "Slurm's device files have no numbers");
        if (std::count(devices.begin(), devices.end(), devices[i]) > 1)
            return refuse("Slurm has " + device_file(devices[i]) + " twice");
    }
    if (index_of(graph, -1) >= 0) return in_order(graph, "the topology knows no device minors");
    std::vector<int> order;
    for (const int device : devices) {
        const int gpu = index_of(graph, device);
        if (gpu < 0)
            return refuse("Slurm has " + device_file(device) + ", which the topology has not");
        order.push_back(gpu);
    }
    return JoinedGraph{reordered(graph, order), JoinRule::by_minor, "joined by device minor"};
}

}  // namespace sluice
