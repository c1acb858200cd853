// SPDX-License-Identifier: GPL-2.0-or-later
#include "contrib/sluice/node_classes.hpp"

#include <algorithm>
#include <cstdint>

namespace sluice::cli {
namespace {

/// Without what differs between nodes of one class.
GpuGraph without_names(const GpuGraph& graph) {
    GpuGraph out(graph.size());
    out.set_switched(graph.switched());
    for (int a = 0; a < graph.size(); ++a) {
        out.gpu(a) = graph.gpu(a);
        out.gpu(a).pci_bus_id.clear();
        for (int b = 0; b < a; ++b) out.set_link(a, b, graph.link(a, b));
    }
    std::vector<Nic> nics = graph.nics();
    std::stable_sort(nics.begin(), nics.end(), [](const Nic& a, const Nic& b) {
        return a.numa != b.numa ? a.numa < b.numa : a.paths > b.paths;
    });
    for (std::size_t i = 0; i < nics.size(); ++i) {
        nics[i].name = "nic" + std::to_string(i);
        nics[i].pci_bus_id.clear();
        out.add_nic(std::move(nics[i]));
    }
    return out;
}

/// FNV-1a (Fowler, Noll, Vo), its lower 48 bits: for names, not against forgery.
std::string hash_of(const std::string& text) {
    std::uint64_t hash = 0xcbf29ce484222325;
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    std::string out;
    for (int shift = 44; shift >= 0; shift -= 4) out += "0123456789abcdef"[hash >> shift & 15];
    return out;
}

/// "Tesla V100-SXM2-16GB" -> "tesla-v100-sxm2-16gb"
std::string slug(const std::string& model) {
    std::string out;
    for (const char c : model.substr(0, 40)) {
        const bool upper = c >= 'A' && c <= 'Z';
        const bool other = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (upper || other)
            out += upper ? static_cast<char>(c - 'A' + 'a') : c;
        else if (!out.empty() && out.back() != '-')
            out += '-';
    }
    while (out.ends_with('-')) out.pop_back();
    return out.empty() ? "gpu" : out;
}

std::string file_name(const GpuGraph& graph, const std::string& text) {
    std::vector<std::string> models;
    std::string out;
    for (int i = 0; i < graph.size(); ++i) {
        const std::string model = slug(graph.gpu(i).model);
        if (std::find(models.begin(), models.end(), model) != models.end()) continue;
        models.push_back(model);
        int count = 0;
        for (int j = i; j < graph.size(); ++j) count += slug(graph.gpu(j).model) == model ? 1 : 0;
        if (models.size() <= 3) out += std::to_string(count) + "x-" + model + "-";
    }
    return out + hash_of(text) + ".topo";
}

}  // namespace

std::vector<NodeClass> classes_of(const std::map<std::string, GpuGraph>& graphs) {
    struct Members {
        std::vector<std::string> nodes;
        const GpuGraph* first = nullptr;
        bool same_names = true;
    };
    std::map<std::string, Members> by_key;
    for (const auto& [node, graph] : graphs) {
        Members& members = by_key[to_text(without_names(graph))];
        if (members.first == nullptr) members.first = &graph;
        members.same_names = members.same_names && graph == *members.first;
        members.nodes.push_back(node);
    }
    std::vector<NodeClass> classes;
    for (auto& [key, members] : by_key) {
        NodeClass made;
        made.text = members.same_names ? to_text(*members.first) : key;
        made.file = file_name(*members.first, made.text);
        made.nodes = std::move(members.nodes);
        classes.push_back(std::move(made));
    }
    std::sort(classes.begin(), classes.end(),
              [](const NodeClass& a, const NodeClass& b) { return a.file < b.file; });
    return classes;
}

}  // namespace sluice::cli
