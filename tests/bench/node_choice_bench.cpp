// SPDX-License-Identifier: GPL-2.0-or-later
//
// What a choice costs: inside a node, over all nodes of a cluster, and to load what it looks up.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <malloc.h>

#include "common/base/config.hpp"
#include "common/placement/best_sets.hpp"
#include "common/placement/node_choice.hpp"

namespace {

using namespace sluice;
namespace fs = std::filesystem;
using Table = std::shared_ptr<const BestSets>;

constexpr unsigned seed = 20261130;
constexpr int classes = 20;
constexpr int tries = 21;
// What a pass of the scheduler, and a start of slurmctld, can afford.
constexpr double most_lookup_us = 1;
constexpr double most_loading_s = 2;

// Of the CPU: other work on the machine hardly matters.
double seconds_since(std::clock_t start) {
    return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

/// The median of so many calls.
template <typename Call>
double median_seconds(int calls, const Call& call) {
    std::vector<double> times;
    for (int i = 0; i < calls; ++i) {
        const auto start = std::clock();
        call();
        times.push_back(seconds_since(start));
    }
    std::nth_element(times.begin(), times.begin() + calls / 2, times.end());
    return times[static_cast<std::size_t>(calls) / 2];
}

/// What `nvidia-smi topo -m` would print: a ring of links that no two classes share, random further
/// links, and the rest over PCIe or between two sockets.
std::string random_matrix(int gpus, std::mt19937& dice) {
    const auto size = static_cast<std::size_t>(gpus);
    std::vector<std::vector<std::string>> cell(size, std::vector<std::string>(size));
    for (std::size_t a = 0; a < size; ++a) {
        for (std::size_t b = a + 1; b < size; ++b) {
            const bool near = (a < size / 2) == (b < size / 2);
            const unsigned roll = dice() % 4;
            cell[a][b] = roll == 0 ? "NV1" : roll == 1 ? "NV2" : near ? "PIX" : "SYS";
            cell[b][a] = cell[a][b];
        }
    }
    std::string text;
    for (std::size_t a = 0; a < size; ++a) text += "\tGPU" + std::to_string(a);
    text += "\tCPU Affinity\tNUMA Affinity\n";
    for (std::size_t a = 0; a < size; ++a) {
        text += "GPU" + std::to_string(a);
        for (std::size_t b = 0; b < size; ++b) text += "\t" + (a == b ? " X " : cell[a][b]);
        text += a < size / 2 ? "\t0-19\t0\n" : "\t20-39\t1\n";
    }
    return text;
}

Table compile(const std::string& matrix) {
    const auto graph = read_topo_matrix(matrix, "bench");
    if (!graph) return nullptr;
    auto table = BestSets::compile(*graph);
    return table ? *table : nullptr;
}

double heap_kb() {
    return static_cast<double>(mallinfo2().uordblks + mallinfo2().hblkhd) / 1024;
}

void time_compiling(int gpus, const std::string& matrix, const char* what) {
    const auto graph = read_topo_matrix(matrix, what);
    Table table;
    const double before = heap_kb();
    const double seconds = median_seconds(gpus > 8 ? 3 : tries, [&] {
        table.reset();
        if (auto made = BestSets::compile(*graph)) table = *made;
    });
    std::printf("compiling %2d GPUs, %-14s %10.2f ms %10.0f KB\n", gpus, what, seconds * 1e3,
                heap_kb() - before);
}

bool time_lookups(const BestSets& table) {
    constexpr int lookups = 1 << 20;
    std::mt19937 dice(seed);
    std::vector<std::pair<GpuSet, int>> questions;
    for (int i = 0; i < 4096; ++i) {
        const GpuSet free = GpuSet(dice()) & GpuSet::first(table.size());
        questions.emplace_back(free, 1 + static_cast<int>(dice() % 8));
    }
    double sum = 0;  // so that nothing is optimized away
    const double seconds = median_seconds(5, [&] {
        for (int i = 0; i < lookups; ++i) {
            const auto& [free, count] = questions[static_cast<std::size_t>(i) % questions.size()];
            if (const auto best = table.best(free, count)) sum += table.bandwidth(*best).total_gbps;
        }
    });
    const double microseconds = seconds / lookups * 1e6;
    std::printf("a choice in a node of %2d GPUs   %7.4f us   (%.0f)\n", table.size(), microseconds,
                sum > 0 ? 1.0 : 0.0);
    return microseconds <= most_lookup_us;
}

/// "8+4", "63x8+4"
std::string name_of(const std::vector<int>& shape) {
    std::string name;
    for (auto next = shape.begin(); next != shape.end();) {
        const auto end = std::find_if(next, shape.end(), [&](int each) { return each != *next; });
        if (!name.empty()) name += "+";
        if (end - next > 2) name += std::to_string(end - next) + "x";
        name += std::to_string(*next);
        if (end - next == 2) name += "+" + std::to_string(*next);
        next = end;
    }
    return name;
}

/// With `racks`, 40 nodes to a switch and 10 of those to the next.
void time_choices(const std::vector<Table>& tables, int nodes, bool racks, bool trust_model,
                  const std::vector<std::vector<int>>& shapes) {
    std::mt19937 dice(seed);
    std::vector<std::vector<int>> switches;
    for (int i = 0; i < nodes; ++i)
        switches.push_back(racks ? std::vector<int>{0, i / 400, i / 40} : std::vector<int>());
    std::vector<NodeOffer> offers;
    for (int i = 0; i < nodes; ++i) {
        const Table& table = tables[dice() % tables.size()];
        GpuSet free = GpuSet(dice()) & GpuSet::first(table->size());
        // A third of the nodes is idle.
        if (i % 3 == 0) free = GpuSet::first(table->size());
        offers.push_back({i, table.get(), free, false, switches[static_cast<std::size_t>(i)]});
    }
    NodeChoiceOptions options;
    options.trust_model = trust_model;
    for (const auto& shape : shapes) {
        std::optional<NodePlacement> found;
        const double seconds = median_seconds(
            tries, [&] { found = choose_nodes(offers, shape, PriorStepTime(), options); });
        std::printf("over %5d nodes of %2zu classes%s, %-19s %-9s %10.1f us%s\n", nodes,
                    tables.size(), racks ? " in racks" : "", name_of(shape).c_str(),
                    trust_model ? "by model" : "", seconds * 1e6, found ? "" : "   (none)");
    }
}

/// As the select plugin does it when slurmctld starts.
bool time_loading(const std::vector<std::string>& matrices, int nodes) {
    const fs::path folder =
        fs::temp_directory_path() / ("sluice-bench-" + std::to_string(::getpid()));
    fs::create_directories(folder);
    const fs::path conf = folder / "sluice.conf";
    {
        std::ofstream lines(conf);
        lines << "TopologyDir=" << folder.string() << "\n";
        for (std::size_t i = 0; i < matrices.size(); ++i) {
            const std::string name = "class" + std::to_string(i) + ".topo.txt";
            std::ofstream(folder / name) << matrices[i];
            lines << "Topology=" << name << " Nodes=c" << i << "n[1-"
                  << static_cast<std::size_t>(nodes) / matrices.size() << "]\n";
        }
    }
    std::size_t known = 0;
    const double seconds = median_seconds(5, [&] {
        std::map<std::string, Table> by_fingerprint;
        std::map<std::string, Table, std::less<>> by_node;
        const auto config = read_config_file(conf.string());
        if (!config) return;
        for (const NodeClassLine& line : config->node_classes) {
            const auto graph = read_topology_file(config->topology_dir + "/" + line.file);
            if (!graph) return;
            Table& table = by_fingerprint[fingerprint(*graph)];
            if (!table) {
                auto compiled = BestSets::compile(*graph);
                if (!compiled) return;
                table = *compiled;
            }
            for (const std::string& node : line.nodes) by_node[node] = table;
        }
        known = by_node.size();
    });
    std::printf("loading %zu nodes of %zu classes   %.3f s\n", known, matrices.size(), seconds);
    fs::remove_all(folder);
    return known == static_cast<std::size_t>(nodes) && seconds <= most_loading_s;
}

std::string uniform_matrix(int gpus, const std::string& cell) {
    std::string text;
    for (int i = 0; i < gpus; ++i) text += "\tGPU" + std::to_string(i);
    text += "\n";
    for (int a = 0; a < gpus; ++a) {
        text += "GPU" + std::to_string(a);
        for (int b = 0; b < gpus; ++b) text += "\t" + (a == b ? " X " : cell);
        text += "\n";
    }
    return text;
}

}  // namespace

int main() {
    std::mt19937 dice(seed);
    const std::string irregular8 = random_matrix(8, dice);
    const std::string irregular16 = random_matrix(16, dice);
    const std::string switched16 = uniform_matrix(16, "NV6");
    time_compiling(8, irregular8, "irregular");
    time_compiling(8, uniform_matrix(8, "NV12"), "NVSwitch");
    time_compiling(16, irregular16, "irregular");
    time_compiling(16, switched16, "NVSwitch");
    time_compiling(16, uniform_matrix(16, "PIX"), "PCIe");

    std::vector<std::string> matrices;
    while (matrices.size() < classes) matrices.push_back(random_matrix(8, dice));
    std::vector<Table> tables;
    for (const std::string& matrix : matrices) tables.push_back(compile(matrix));

    bool kept = time_lookups(*tables.front());
    kept &= time_lookups(*compile(switched16));
    for (const bool trust_model : {false, true}) {
        for (const int nodes : {1'000, 10'000})
            time_choices(tables, nodes, false, trust_model, {{1}, {2}, {4}, {8}, {8, 8}, {8, 4}});
    }
    std::vector<int> full(64, 8);
    full.back() = 4;
    std::vector<int> sizes;
    for (const int size : {8, 4, 2, 1}) sizes.insert(sizes.end(), 16, size);
    for (const int nodes : {1'000, 20'000}) {
        for (const auto& kinds : {std::vector<Table>{tables.front()}, tables})
            time_choices(kinds, nodes, true, false, {{2}, {8, 8}, full, sizes});
    }
    kept &= time_loading(matrices, 10'000);
    // Two of the classes with 16 GPUs: an NVSwitch and a PCIe machine.
    matrices[0] = switched16;
    matrices[1] = uniform_matrix(16, "PIX");
    kept &= time_loading(matrices, 10'000);
    std::printf("%s\n", kept ? "lookup and loading within 1 us and 2 s"
                             : "FAILED: lookup or loading takes longer than 1 us or 2 s");
    return kept ? 0 : 1;
}
