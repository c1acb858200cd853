// SPDX-License-Identifier: GPL-2.0-or-later
//
// sluice topo FILE, sluice pick: what the controller would choose, with no controller.
#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "common/base/json.hpp"
#include "common/base/text.hpp"
#include "common/placement/best_sets.hpp"
#include "common/placement/node_choice.hpp"
#include "contrib/sluice/command.hpp"

namespace sluice::cli {
namespace {

constexpr std::size_t most_alternatives = 5;

/// A file that is not there or cannot be read is a bad input file to a tool.
Result<GpuGraph> read_input(const std::string& path) {
    auto graph = read_topology_file(path, FileKind::any);
    std::error_code ignored;
    if (!graph &&
        (graph.error().code == ErrorCode::unreachable || !std::filesystem::exists(path, ignored)))
        return {ErrorCode::bad_input, graph.error().message};
    return graph;
}

std::string or_dash(const std::string& text) {
    return text.empty() ? "-" : text;
}

std::string number_or_dash(int number) {
    return number < 0 ? "-" : std::to_string(number);
}

std::string link_name(const GpuLink& link) {
    return link.links > 0 ? std::to_string(link.links) + "x" : path_name(link.path);
}

const char* kind_of(const GpuGraph& graph) {
    if (graph.switched()) return "links through a switch";
    for (int a = 0; a < graph.size(); ++a) {
        for (int b = 0; b < a; ++b) {
            if (graph.link(a, b).links > 0) return "direct links";
        }
    }
    return graph.informative() ? "no direct links" : "links unknown";
}

Json json_set(GpuSet set) {
    Json out = json_array();
    for (const int gpu : set.indices()) json_add(out, json_integer(gpu));
    return out;
}

void put_bandwidth(const Json& object, SetBandwidth bandwidth) {
    json_put(object, "bandwidth_gbps", json_number(bandwidth.bottleneck_gbps));
    json_put(object, "total_gbps", json_number(bandwidth.total_gbps));
}

Json json_text_or_none(const std::string& text) {
    return text.empty() ? json_none() : json_text(text);
}

// --- topo
void print_gpus(const GpuGraph& graph, GpuSet set) {
    std::printf("%-5s%-14s%-7s%-6s%-24s %s\n", "GPU", "PCI bus id", "minor", "NUMA", "CPUs",
                "model");
    for (const int i : set.indices()) {
        const Gpu& gpu = graph.gpu(i);
        std::printf("%-5d%-14s%-7s%-6s%-24s %s\n", i, or_dash(gpu.pci_bus_id).c_str(),
                    number_or_dash(gpu.minor).c_str(), number_or_dash(gpu.numa).c_str(),
                    or_dash(gpu.cpus).c_str(), or_dash(gpu.model).c_str());
    }
}

void print_links(const GpuGraph& graph) {
    std::printf("\nlinks (Nx: N direct links; else the path over PCIe)\n     ");
    for (int b = 0; b < graph.size(); ++b) std::printf("%-6d", b);
    for (int a = 0; a < graph.size(); ++a) {
        std::printf("\n%-5d", a);
        for (int b = 0; b < graph.size(); ++b)
            std::printf("%-6s", a == b ? "X" : link_name(graph.link(a, b)).c_str());
    }
    std::printf("\n");
}

void print_nics(const GpuGraph& graph) {
    if (graph.nics().empty()) return;
    std::printf("\nNICs, and the path from each to GPU\n%-30s", "");
    for (int b = 0; b < graph.size(); ++b) std::printf("%-6d", b);
    for (const Nic& nic : graph.nics()) {
        std::printf("\n%-15s %-13s ", nic.name.c_str(), or_dash(nic.pci_bus_id).c_str());
        for (const PciPath path : nic.paths) std::printf("%-6s", path_name(path));
    }
    std::printf("\n");
}

void print_topology(const GpuGraph& graph, const BestSets* sets) {
    std::printf("%d GPU%s, %s\n\n", graph.size(), graph.size() == 1 ? "" : "s", kind_of(graph));
    print_gpus(graph, GpuSet::first(graph.size()));
    print_links(graph);
    print_nics(graph);
    if (sets != nullptr) {
        std::printf("\nbest set of each size on an empty node (GB/s in one direction)\n");
        std::printf("%-6s%-13s%-11s%s\n", "size", "slowest edge", "all rings", "GPUs");
        for (int k = 1; k <= graph.size(); ++k) {
            const GpuSet best = *sets->best(GpuSet::first(graph.size()), k);
            const SetBandwidth bandwidth = sets->bandwidth(best);
            std::printf("%-6d%-13s%-11s%s\n", k, format_number(bandwidth.bottleneck_gbps).c_str(),
                        format_number(bandwidth.total_gbps).c_str(), to_string(best).c_str());
        }
    }
    std::printf("\nfingerprint %s\n", fingerprint(graph).c_str());
}

Json json_topology(const GpuGraph& graph, const BestSets* sets) {
    Json out = json_object();
    Json gpus = json_array();
    for (int i = 0; i < graph.size(); ++i) {
        const Gpu& gpu = graph.gpu(i);
        Json entry = json_object();
        json_put(entry, "index", json_integer(i));
        json_put(entry, "pci_bus_id", json_text_or_none(gpu.pci_bus_id));
        json_put(entry, "minor", gpu.minor < 0 ? json_none() : json_integer(gpu.minor));
        json_put(entry, "numa", gpu.numa < 0 ? json_none() : json_integer(gpu.numa));
        json_put(entry, "cpus", json_text_or_none(gpu.cpus));
        json_put(entry, "model", json_text_or_none(gpu.model));
        json_add(gpus, std::move(entry));
    }
    Json links = json_array();
    for (int a = 0; a < graph.size(); ++a) {
        for (int b = a + 1; b < graph.size(); ++b) {
            const GpuLink& link = graph.link(a, b);
            Json entry = json_object();
            Json ends = json_array();
            json_add(ends, json_integer(a));
            json_add(ends, json_integer(b));
            json_put(entry, "gpus", std::move(ends));
            json_put(entry, "links", json_integer(link.links));
            json_put(entry, "path",
                     link.path == PciPath::unknown ? json_none() : json_text(path_name(link.path)));
            json_put(entry, "bandwidth_gbps", json_number(link.gbps()));
            json_add(links, std::move(entry));
        }
    }
    Json nics = json_array();
    for (const Nic& nic : graph.nics()) {
        Json entry = json_object();
        json_put(entry, "name", json_text(nic.name));
        json_put(entry, "pci_bus_id", json_text_or_none(nic.pci_bus_id));
        json_put(entry, "numa", nic.numa < 0 ? json_none() : json_integer(nic.numa));
        Json paths = json_array();
        for (const PciPath path : nic.paths)
            json_add(paths, path == PciPath::unknown ? json_none() : json_text(path_name(path)));
        json_put(entry, "paths", std::move(paths));
        json_add(nics, std::move(entry));
    }
    Json best_sets = json_array();
    for (int k = 1; sets != nullptr && k <= graph.size(); ++k) {
        const GpuSet best = *sets->best(GpuSet::first(graph.size()), k);
        Json entry = json_object();
        json_put(entry, "count", json_integer(k));
        json_put(entry, "gpus", json_set(best));
        put_bandwidth(entry, sets->bandwidth(best));
        json_add(best_sets, std::move(entry));
    }
    json_put(out, "gpus", std::move(gpus));
    json_put(out, "switched", json_bool(graph.switched()));
    json_put(out, "informative", json_bool(graph.informative()));
    json_put(out, "links", std::move(links));
    json_put(out, "nics", std::move(nics));
    json_put(out, "best", std::move(best_sets));
    json_put(out, "fingerprint", json_text(fingerprint(graph)));
    return out;
}

// --- pick
Result<GpuSet> set_option(const Options& options, const char* name, GpuSet otherwise) {
    if (!options.has(name)) return otherwise;
    auto set = parse_gpu_set(options.value(name));
    if (!set) return {ErrorCode::usage, std::string(name) + ": " + set.error().message};
    return set;
}

Json json_pci_bus_ids(const GpuGraph& graph, GpuSet set) {
    Json out = json_array();
    for (const int gpu : set.indices()) json_add(out, json_text_or_none(graph.gpu(gpu).pci_bus_id));
    return out;
}

Json json_cpus(const GpuGraph& graph, GpuSet set) {
    Json out = json_array();
    for (const int gpu : set.indices()) json_add(out, json_text_or_none(graph.gpu(gpu).cpus));
    return out;
}

/// Of a job that nothing is known of, relative to computing alone.
double step_on(const BestSets& sets, GpuSet set) {
    PlacementShape shape;
    shape.gpus = shape.most_per_node = set.size();
    shape.nodes = 1;
    shape.slowest_gbps = sets.bandwidth(set).total_gbps;
    return PriorStepTime()(shape);
}

/// What --why sets beside the chosen one.
struct Compared {
    const char* key;
    const char* title;
    GpuSet set;
    GpuSet free;
};

std::vector<Compared> compared(const BestSets& sets, GpuSet free, int count) {
    GpuSet first;
    for (const int gpu : free.indices()) {
        if (first.size() < count) first.insert(gpu);
    }
    const GpuSet all = GpuSet::first(sets.size());
    return {{"first_free", "first free ones", first, free},
            {"idle", "on the idle node", *sets.best(all, count), all}};
}

void print_pick_json(const GpuGraph& graph, const BestSets& sets,
                     const std::vector<RankedSet>& ranked, GpuSet free, const std::string& why,
                     bool in_numbers) {
    const Json out = json_object();
    const auto put_set = [&](const Json& object, GpuSet set, GpuSet of) {
        json_put(object, "gpus", json_set(set));
        put_bandwidth(object, sets.bandwidth(set));
        if (!in_numbers) return;
        json_put(object, "step", json_number(step_on(sets, set)));
        json_put(object, "left", json_number(sets.left_gbps(of - set)));
    };
    const RankedSet& chosen = ranked.front();
    put_set(out, chosen.set, free);
    json_put(out, "pci_bus_ids", json_pci_bus_ids(graph, chosen.set));
    json_put(out, "cpus", json_cpus(graph, chosen.set));
    json_put(out, "mixed", json_bool(chosen.mixed));
    json_put(out, "why", json_text(why));
    Json alternatives = json_array();
    for (std::size_t i = 1; i < ranked.size(); ++i) {
        Json entry = json_object();
        put_set(entry, ranked[i].set, free);
        json_add(alternatives, std::move(entry));
    }
    json_put(out, "alternatives", std::move(alternatives));
    if (in_numbers) {
        for (const Compared& each : compared(sets, free, chosen.set.size())) {
            Json entry = json_object();
            put_set(entry, each.set, each.free);
            json_put(out, each.key, std::move(entry));
        }
    }
    std::puts(json_line(out.get()).c_str());
}

void print_pick(const GpuGraph& graph, const std::vector<RankedSet>& ranked,
                const std::string& why) {
    std::printf("GPUs %s (local indices)\n", to_string(ranked.front().set).c_str());
    print_gpus(graph, ranked.front().set);
    std::printf("why: %s\n", why.c_str());
    if (ranked.size() < 2) return;
    std::printf("\nrunners-up    slowest edge  all rings  (GB/s)\n");
    for (std::size_t i = 1; i < ranked.size(); ++i) {
        std::printf("%-14s%-14s%s\n", to_string(ranked[i].set).c_str(),
                    format_number(ranked[i].bandwidth.bottleneck_gbps).c_str(),
                    format_number(ranked[i].bandwidth.total_gbps).c_str());
    }
}

/// The criteria in numbers, beside what the whole node would give and what taking the first free
/// ones gives.
void print_criteria(const BestSets& sets, const std::vector<RankedSet>& ranked, GpuSet free) {
    const auto row = [&](const char* title, GpuSet set, GpuSet left) {
        const SetBandwidth bandwidth = sets.bandwidth(set);
        std::printf("%-18s%-14s%-14s%-11s%-7s%s\n", title, to_string(set).c_str(),
                    format_number(bandwidth.bottleneck_gbps).c_str(),
                    format_number(bandwidth.total_gbps).c_str(),
                    format_fixed(step_on(sets, set), 2).c_str(),
                    format_fixed(sets.left_gbps(left), 0).c_str());
    };
    std::printf("\n%-18s%-14s%-14s%-11s%-7s%s\n", "", "GPUs", "slowest edge", "all rings", "step",
                "left for others");
    for (const RankedSet& each : ranked)
        row(&each == &ranked.front() ? "chosen" : "runner-up", each.set, free - each.set);
    for (const Compared& each : compared(sets, free, ranked.front().set.size()))
        row(each.title, each.set, each.free - each.set);
    std::printf(
        "step: time of a step, relative to computing alone, of a job that nothing is known of; "
        "left: "
        "GB/s\n");
}

}  // namespace

int topo(const Arguments& arguments) {
    if (!arguments.empty() && arguments.front() == "discover")
        return topo_discover({arguments.begin() + 1, arguments.end()});
    if (!arguments.empty() && arguments.front() == "collect")
        return topo_collect({arguments.begin() + 1, arguments.end()});
    const auto options = Options::parse(arguments, {{"--json", false}}, 1);
    if (!options) return fail("topo", options.error());
    if (options->operands().empty())
        return fail("topo", {ErrorCode::usage,
                             "name a file: sluice topo FILE [--json]; or discover, or collect"});
    const auto graph = read_input(options->operands().front());
    if (!graph) return fail("topo", graph.error());
    const auto sets = BestSets::compile(*graph);  // fails for nodes too large: shown without
    const BestSets* const table = sets ? sets->get() : nullptr;
    if (options->has("--json"))
        std::puts(json_line(json_topology(*graph, table).get()).c_str());
    else
        print_topology(*graph, table);
    return 0;
}

int pick(const Arguments& arguments) {
    const auto options = Options::parse(arguments,
                                        {{"--topology", true},
                                         {"--count", true},
                                         {"--free", true},
                                         {"--must", true},
                                         {"--why", false},
                                         {"--json", false}},
                                        0);
    if (!options) return fail("pick", options.error());
    if (!options->has("--topology") || !options->has("--count"))
        return fail("pick", {ErrorCode::usage, "--topology FILE and --count K are needed"});
    const auto count = parse_integer(options->value("--count"));
    if (!count || *count < 1 || *count > BestSets::max_table_gpus) {
        return fail("pick", {ErrorCode::usage, "--count " + printable(options->value("--count")) +
                                                   ": write a number from 1 to " +
                                                   std::to_string(BestSets::max_table_gpus)});
    }
    const auto graph = read_input(options->value("--topology"));
    if (!graph) return fail("pick", graph.error());
    const auto free = set_option(*options, "--free", GpuSet::first(graph->size()));
    if (!free) return fail("pick", free.error());
    const auto must = set_option(*options, "--must", GpuSet());
    if (!must) return fail("pick", must.error());
    if (*count > graph->size()) {
        return fail("pick",
                    {ErrorCode::not_found, std::to_string(*count) + " GPUs wanted, the node has " +
                                               std::to_string(graph->size())});
    }
    const auto sets = BestSets::compile(*graph);
    if (!sets) return fail("pick", sets.error());
    const auto ranked =
        rank_sets(**sets, *free, static_cast<int>(*count), *must, 1 + most_alternatives);
    if (!ranked) return fail("pick", ranked.error());
    const std::string why = explain(*graph, *ranked);
    if (options->has("--json"))
        print_pick_json(*graph, **sets, *ranked, *free, why, options->has("--why"));
    else
        print_pick(*graph, *ranked, why);
    if (options->has("--why") && !options->has("--json")) print_criteria(**sets, *ranked, *free);
    return 0;
}

}  // namespace sluice::cli
