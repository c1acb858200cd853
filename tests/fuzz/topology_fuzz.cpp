// SPDX-License-Identifier: GPL-2.0-or-later
//
// The readers of topologies, chosen by the first byte: '0' nvidia-smi topo -m, '1' hwloc XML, '2'
// devices as slurmctld hands them over (a line each: links|cores|type), '3' a gres.conf, '4'
// Sluice's own text. What they let through has to be a sound graph that its text gives back, and
// small ones have to compile.
#include <cmath>
#include <cstdint>

#include "common/base/text.hpp"
#include "common/placement/best_sets.hpp"
#include "common/topology/gpu_graph.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace {

using namespace sluice;

constexpr int most_gpus_to_compile = 6;

Result<GpuGraph> read_devices(std::string_view text) {
    std::vector<GresDevice> devices;
    for (const std::string_view line : split(text, '\n')) {
        const auto fields = split(line, '|');
        GresDevice device;
        device.links = fields[0];
        if (fields.size() > 1) device.cores = fields[1];
        if (fields.size() > 2) device.type = fields[2];
        devices.push_back(device);
    }
    return graph_of_gres(devices);
}

Result<GpuGraph> read(char kind, std::string_view text) {
    switch (kind & 7) {
        case 0:
            return read_topo_matrix(text, "f");
        case 1:
            return read_hwloc_xml(text, "f");
        case 2:
            return read_devices(text);
        case 4:
            return read_topology_text(text, "f");
        default:
            return read_gres_conf(text, "f");
    }
}

void check(const GpuGraph& graph) {
    demand(graph.size() <= GpuSet::max_gpus);
    for (int a = 0; a < graph.size(); ++a) {
        demand(graph.gpu(a).numa >= -1);
        for (int b = 0; b < a; ++b) {
            const GpuLink& link = graph.link(a, b);
            demand(link.links >= 0 && std::isfinite(link.gbps()) && link.gbps() > 0);
            demand(graph.link(b, a).gbps() == link.gbps());
        }
    }
    demand(!fingerprint(graph).empty());
    const auto again = read_topology(to_text(graph), "f");
    demand(graph.size() == 0 ? !again.ok() : again.ok() && *again == graph);
    demand(nic_affinity(graph, GpuSet::first(graph.size())).nics <=
           static_cast<int>(graph.nics().size()));
    if (graph.size() > most_gpus_to_compile) return;
    const auto sets = BestSets::compile(graph);
    if (!sets) return;
    for (int k = 1; k <= graph.size(); ++k)
        demand((*sets)->best(GpuSet::first(graph.size()), k)->size() == k);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const auto graph = read(text[0], text.substr(1));
    if (graph)
        check(*graph);
    else
        demand(!graph.error().message.empty());
    return 0;
}
