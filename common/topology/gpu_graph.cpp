// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/topology/gpu_graph.hpp"

#include <algorithm>

#include "common/base/text.hpp"

namespace sluice {
namespace {

constexpr int most_ports_of_a_gpu = 18;  // NVLink of H100; B200 has as many
constexpr std::size_t most_file_bytes = std::size_t{16} << 20;

}  // namespace

double path_bandwidth_gbps(PciPath path) {
    switch (path) {
        case PciPath::pix:
            return 12;
        case PciPath::pxb:
            return 11;
        case PciPath::phb:
            return 10;
        case PciPath::node:
            return 8;
        case PciPath::sys:
        case PciPath::unknown:
            break;
    }
    return 6;
}

const char* path_name(PciPath path) {
    switch (path) {
        case PciPath::pix:
            return "PIX";
        case PciPath::pxb:
            return "PXB";
        case PciPath::phb:
            return "PHB";
        case PciPath::node:
            return "NODE";
        case PciPath::sys:
            return "SYS";
        case PciPath::unknown:
            break;
    }
    return "?";
}

GpuGraph::GpuGraph(int count)
    : gpus_(static_cast<std::size_t>(count)), links_(gpus_.size() * gpus_.size()) {}

std::size_t GpuGraph::at(int a, int b) const {
    return static_cast<std::size_t>(a) * gpus_.size() + static_cast<std::size_t>(b);
}

void GpuGraph::set_link(int a, int b, const GpuLink& link) {
    links_[at(a, b)] = link;
    links_[at(b, a)] = link;
}

bool GpuGraph::mixed(GpuSet set) const {
    const std::string* first = nullptr;
    for (const int i : (set & GpuSet::first(size())).indices()) {
        const std::string& model = gpu(i).model;
        if (model.empty()) continue;
        if (first != nullptr && *first != model) return true;
        first = &model;
    }
    return false;
}

bool GpuGraph::informative() const {
    const bool numa =
        std::any_of(gpus_.begin(), gpus_.end(), [](const Gpu& gpu) { return gpu.numa >= 0; });
    return numa || std::any_of(links_.begin(), links_.end(), [](const GpuLink& link) {
               return link.links > 0 || link.path != PciPath::unknown;
           });
}

void complete_graph(GpuGraph& graph) {
    for (int a = 0; a < graph.size(); ++a) {
        int ports = 0;
        for (int b = 0; b < graph.size(); ++b) {
            if (a == b) continue;
            GpuLink link = graph.link(a, b);
            ports += link.links;
            const int numa_a = graph.gpu(a).numa;
            const int numa_b = graph.gpu(b).numa;
            if (link.links > 0 || link.path != PciPath::unknown || numa_a < 0 || numa_b < 0)
                continue;
            link.path = numa_a == numa_b ? PciPath::node : PciPath::sys;
            graph.set_link(a, b, link);
        }
        if (ports > most_ports_of_a_gpu) graph.set_switched(true);
    }
}

NicAffinity nic_affinity(const GpuGraph& graph, GpuSet set) {
    NicAffinity best;
    for (const Nic& nic : graph.nics()) {
        NicAffinity here{PciPath::unknown, 1};
        for (const int gpu : (set & GpuSet::first(graph.size())).indices())
            here.path = std::max(here.path, nic.paths[static_cast<std::size_t>(gpu)]);
        if (here.path == PciPath::unknown) continue;
        if (here.path == best.path)
            ++best.nics;
        else
            best = std::max(best, here);
    }
    return best;
}

Result<GpuGraph> read_topology(std::string_view text, std::string_view name) {
    if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
    if (trim(text.substr(0, 4096)).starts_with('<')) return read_hwloc_xml(text, name);
    for (const std::string_view line : split(text, '\n')) {
        const std::string_view words = trim(line);
        if (words.starts_with('#') || words.find('=') == std::string_view::npos) continue;
        // The legend of a link matrix has '=' too, with a blank before it.
        const std::string_view key = words.substr(0, words.find('='));
        if (equal_ignoring_case(key, "SluiceTopology")) return read_topology_text(text, name);
        if (equal_ignoring_case(key, "Name") || equal_ignoring_case(key, "NodeName") ||
            equal_ignoring_case(key, "AutoDetect"))
            return read_gres_conf(text, name);
    }
    return read_topo_matrix(text, name);
}

Result<GpuGraph> read_topology_file(const std::string& path, FileKind kind) {
    const Result<std::string> text = read_file(path, most_file_bytes, kind);
    if (!text) return text.error();
    return read_topology(*text, path);
}

namespace {

/// The models as numbers in the order of their first GPUs: "0,0,1,1".
std::string models_text(const GpuGraph& graph) {
    std::vector<std::string> models;
    std::string out;
    for (int i = 0; i < graph.size(); ++i) {
        const std::string& model = graph.gpu(i).model;
        const auto known = std::find(models.begin(), models.end(), model);
        out += (i > 0 ? "," : "") + (model.empty() ? "?" : std::to_string(known - models.begin()));
        if (known == models.end() && !model.empty()) models.push_back(model);
    }
    return out;
}

/// A row of paths a NIC, sorted, for their order and names mean nothing. Nothing where all GPUs are
/// alike to each of them.
std::string nics_text(const GpuGraph& graph) {
    std::vector<std::string> rows;
    bool differ = false;
    for (const Nic& nic : graph.nics()) {
        std::string row;
        for (const PciPath path : nic.paths) {
            row.append(row.empty() ? "" : ",").append(path_name(path));
            differ = differ || path != nic.paths.front();
        }
        rows.push_back(std::move(row));
    }
    if (!differ) return {};
    std::sort(rows.begin(), rows.end());
    std::string out;
    for (const std::string& row : rows) out += (out.empty() ? "" : ";") + row;
    return out;
}

}  // namespace

std::string fingerprint(const GpuGraph& graph) {
    std::string out = std::to_string(graph.size()) + (graph.switched() ? " switched" : "");
    for (int a = 0; a + 1 < graph.size(); ++a) {
        out += a == 0 ? ' ' : ';';
        for (int b = a + 1; b < graph.size(); ++b) {
            const GpuLink& link = graph.link(a, b);
            if (b > a + 1) out += ',';
            out += link.links > 0 ? std::to_string(link.links) + "x" + format_number(link.link_gbps)
                                  : path_name(link.path);
        }
    }
    if (graph.mixed(GpuSet::first(graph.size()))) out += " models " + models_text(graph);
    if (const std::string nics = nics_text(graph); !nics.empty()) out += " nics " + nics;
    return out;
}

}  // namespace sluice
