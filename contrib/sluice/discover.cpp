// SPDX-License-Identifier: GPL-2.0-or-later
//
// sluice topo discover: the GPUs of the node that it runs on.
//
// hwloc (lstopo) knows the PCI tree, NUMA nodes and NICs, and where it was built with NVML or RSMI
// the links. NVIDIA's driver knows the device numbers, and nvidia-smi the links where hwloc does
// not. All are joined by PCI bus id, and each has to show the same GPUs: within a job whose cgroup
// hides some of them, half a node would be taken for the whole.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "common/base/file.hpp"
#include "common/base/text.hpp"
#include "common/topology/gres_join.hpp"
#include "contrib/sluice/command.hpp"
#include "contrib/sluice/node_report.hpp"
#include "contrib/sluice/run_program.hpp"

namespace sluice::cli {
namespace {

constexpr const char* lstopo = "lstopo-no-graphics";  // in the packages without a display, too
constexpr std::size_t most_bytes = std::size_t{16} << 20;
constexpr std::size_t most_proc_bytes = 65536;
constexpr int most_minors = 65536;
// A driver without its persistence daemon takes seconds a GPU to answer.
constexpr std::chrono::seconds time_limit{60};

struct DriverGpu {
    std::string pci_bus_id;
    int minor = -1;
};

Result<std::string> output_of(const std::vector<std::string>& words,
                              const std::vector<std::string>& environment = {}) {
    auto output = run_program(words, environment, most_bytes, time_limit);
    if (!output) return output.error();
    if (output->timed_out) {
        return {ErrorCode::unreachable, words[0] + ": did not end within " +
                                            std::to_string(time_limit.count()) + " seconds"};
    }
    if (output->exit_status != 0) {
        // nvidia-smi complains on its standard output.
        std::string text(trim(output->err.empty() ? output->out : output->err));
        std::replace(text.begin(), text.end(), '\n', ' ');
        return {ErrorCode::unreachable, words[0] + ": exit status " +
                                            std::to_string(output->exit_status) + ": " +
                                            printable(text, 200)};
    }
    return std::move(output->out);
}

bool in_path(const std::string& program) {
    const char* const path = std::getenv("PATH");
    for (const std::string_view folder : split(path == nullptr ? "" : path, ':')) {
        if (::access((std::string(folder) + "/" + program).c_str(), X_OK) == 0) return true;
    }
    return false;
}

std::vector<std::string> names_in(const std::string& folder) {
    std::vector<std::string> names;
    std::error_code error;
    for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
         entry.increment(error))
        names.push_back(entry->path().filename());
    std::sort(names.begin(), names.end());
    return names;
}

// --- the driver

/// "Device Minor: \t 3" of /proc/driver/nvidia/gpus/BUS/information; -1 where it does not say.
int minor_in(std::string_view information) {
    for (const std::string_view line : split(information, '\n')) {
        const std::size_t colon = line.find(':');
        if (trim(line.substr(0, colon)) != "Device Minor") continue;
        const auto value = parse_integer(trim(line.substr(colon + 1)));
        return value && *value >= 0 && *value < most_minors ? static_cast<int>(*value) : -1;
    }
    return -1;
}

std::vector<DriverGpu> driver_gpus(const std::string& root) {
    const std::string folder = root + "/proc/driver/nvidia/gpus";
    std::vector<DriverGpu> gpus;
    for (const std::string& bus : names_in(folder)) {
        std::string file = folder;
        file.append("/").append(bus).append("/information");
        const auto information = read_file(file, most_proc_bytes);
        gpus.push_back({bus, information ? minor_in(*information) : -1});
    }
    return gpus;
}

/// The device numbers of GPUs that are cut into MIG slices.
std::vector<std::string> cut_gpus(const std::string& root) {
    const std::string folder = root + "/proc/driver/nvidia/capabilities";
    std::vector<std::string> cut;
    for (const std::string& gpu : names_in(folder)) {
        if (!gpu.starts_with("gpu")) continue;
        std::string slices = folder;
        slices.append("/").append(gpu).append("/mig");
        const auto instances = names_in(slices);
        if (std::any_of(instances.begin(), instances.end(),
                        [](const std::string& each) { return each.starts_with("gi"); }))
            cut.push_back(gpu.substr(3));
    }
    return cut;
}

std::string joined(const std::vector<std::string>& words) {
    std::string out;
    for (const std::string& word : words) out += (out.empty() ? "" : ", ") + word;
    return out;
}

/// `others`, for "nvidia-smi", have to be the GPUs of the graph; else an error that names the
/// difference.
Status same_gpus(const GpuGraph& graph, const std::vector<std::string>& others,
                 const std::string& who) {
    std::vector<std::string> missing;
    for (int i = 0; i < graph.size(); ++i) {
        const std::string& bus = graph.gpu(i).pci_bus_id;
        if (std::none_of(others.begin(), others.end(),
                         [&bus](const std::string& other) { return same_pci_bus_id(bus, other); }))
            missing.push_back(bus.empty() ? "one without a PCI bus id" : bus);
    }
    std::vector<std::string> more;
    for (const std::string& other : others) {
        bool known = false;
        for (int i = 0; i < graph.size(); ++i)
            known = known || same_pci_bus_id(graph.gpu(i).pci_bus_id, other);
        if (!known) more.push_back(printable(other, 20));
    }
    if (missing.empty() && more.empty()) return {};
    std::string what = who + " and hwloc show different GPUs";
    if (!missing.empty()) what += "; only hwloc: " + joined(missing);
    if (!more.empty()) what += "; only " + who + ": " + joined(more);
    return {ErrorCode::unreachable,
            what + "; a job sees all GPUs of its node only where it has them all"};
}

/// Device numbers, and Slurm's order by them.
Result<GpuGraph> add_minors(GpuGraph graph, const std::vector<DriverGpu>& driver) {
    std::vector<int> minors;
    for (int i = 0; i < graph.size(); ++i) {
        for (const DriverGpu& each : driver) {
            if (same_pci_bus_id(graph.gpu(i).pci_bus_id, each.pci_bus_id))
                graph.gpu(i).minor = each.minor;
        }
        minors.push_back(graph.gpu(i).minor);
    }
    std::sort(minors.begin(), minors.end());
    if (minors.empty() || minors.front() < 0) return graph;
    auto in_order = join_gres(graph, minors);
    if (!in_order) {
        return {ErrorCode::bad_input,
                "two GPUs have the same device minor in /proc/driver/nvidia/gpus"};
    }
    return std::move(in_order->graph);
}

// --- the links

bool has_links(const GpuGraph& graph) {
    for (int a = 0; a < graph.size(); ++a) {
        for (int b = 0; b < a; ++b) {
            if (graph.link(a, b).links > 0) return true;
        }
    }
    return false;
}

/// What nvidia-smi knows and hwloc does not. The rows of its matrix are the GPUs in its own order.
Result<GpuGraph> add_nvidia_links(GpuGraph graph) {
    const auto listed =
        output_of({"nvidia-smi", "--query-gpu=pci.bus_id", "--format=csv,noheader"});
    if (!listed) return listed.error();
    std::vector<std::string> buses;
    for (const std::string_view line : split(*listed, '\n')) {
        if (!trim(line).empty()) buses.emplace_back(trim(line));
    }
    if (Status same = same_gpus(graph, buses, "nvidia-smi"); !same) return same.error();
    const auto text = output_of({"nvidia-smi", "topo", "-m"});
    if (!text) return text.error();
    const auto matrix = read_topo_matrix(*text, "nvidia-smi topo -m");
    if (!matrix) return matrix.error();
    if (matrix->size() != graph.size() || static_cast<int>(buses.size()) != graph.size()) {
        return {ErrorCode::bad_input, "nvidia-smi topo -m has " + gpus_text(matrix->size()) +
                                          " where nvidia-smi lists " +
                                          std::to_string(buses.size())};
    }
    std::vector<int> row;  // of each GPU
    for (int i = 0; i < graph.size(); ++i) {
        const auto bus = std::find_if(buses.begin(), buses.end(), [&](const std::string& each) {
            return same_pci_bus_id(each, graph.gpu(i).pci_bus_id);
        });
        row.push_back(static_cast<int>(bus - buses.begin()));
    }
    const GpuGraph theirs = reordered(*matrix, row);
    for (int a = 0; a < graph.size(); ++a) {
        if (graph.gpu(a).numa < 0) graph.gpu(a).numa = theirs.gpu(a).numa;
        if (graph.gpu(a).cpus.empty()) graph.gpu(a).cpus = theirs.gpu(a).cpus;
        for (int b = 0; b < a; ++b) {
            GpuLink link = graph.link(a, b);
            link.links = theirs.link(a, b).links;
            link.link_gbps = theirs.link(a, b).link_gbps;
            if (link.path == PciPath::unknown) link.path = theirs.link(a, b).path;
            graph.set_link(a, b, link);
        }
    }
    if (graph.nics().empty()) {
        for (const Nic& nic : theirs.nics()) graph.add_nic(nic);
    }
    graph.set_switched(theirs.switched());
    complete_graph(graph);
    return graph;
}

Result<GpuGraph> discover_gpus(const std::string& root, std::string& note) {
    std::error_code ignored;
    if (!root.empty() && !std::filesystem::is_directory(root, ignored))
        return {ErrorCode::bad_input, "--root " + printable(root, 200) + ": is no folder"};
    std::vector<std::string> environment;
    if (!root.empty()) environment.push_back("HWLOC_FSROOT=" + root);
    // Within a job hwloc would show the job's part of the machine.
    const auto xml = output_of({lstopo, "--disallowed", "--of", "xml", "-"}, environment);
    if (!xml) {
        return {xml.error().code, xml.error().message + (in_path(lstopo) ? "" : ": install hwloc")};
    }
    auto graph = read_hwloc_xml(*xml, lstopo);
    const auto driver = driver_gpus(root);
    if (!graph) {
        if (graph.error().code != ErrorCode::not_found) return graph.error();
        if (!driver.empty()) {
            return {ErrorCode::unreachable,
                    "NVIDIA's driver shows " + gpus_text(static_cast<int>(driver.size())) +
                        ", hwloc none: a job sees all GPUs of its node only where it has them all"};
        }
        return {ErrorCode::not_found,
                "this node has no GPU: neither hwloc nor NVIDIA's driver "
                "shows one"};
    }
    if (const auto cut = cut_gpus(root); !cut.empty()) {
        return {ErrorCode::not_found,
                "MIG: the GPUs with device number " + joined(cut) +
                    " are cut into slices, which have no peer-to-peer links: no set of them is "
                    "better than another"};
    }
    if (driver.empty()) return graph;
    std::vector<std::string> buses;
    buses.reserve(driver.size());
    for (const DriverGpu& each : driver) buses.push_back(each.pci_bus_id);
    if (Status same = same_gpus(*graph, buses, "NVIDIA's driver"); !same) return same.error();
    graph = add_minors(*std::move(graph), driver);
    if (!graph || graph->size() == 1 || has_links(*graph)) return graph;
    if (!in_path("nvidia-smi")) {
        note =
            "no nvidia-smi in PATH, and hwloc shows no links: if there are NVLinks, they are "
            "missing here";
        return graph;
    }
    return add_nvidia_links(*std::move(graph));
}

std::string node_name() {
    if (const char* const name = std::getenv("SLURMD_NODENAME"); name != nullptr && *name != 0)
        return printable(name, 255);
    std::array<char, 256> name{};
    if (::gethostname(name.data(), name.size() - 1) != 0) return "localhost";
    const std::string_view host = name.data();
    return printable(host.substr(0, host.find('.')), 255);
}

}  // namespace

int topo_discover(const Arguments& arguments) {
    const auto options =
        Options::parse(arguments, {{"--output", true}, {"--root", true}, {"--report", false}}, 0);
    if (!options) return fail("topo discover", options.error());
    std::string note;
    const auto graph = discover_gpus(options->value("--root"), note);
    if (!note.empty()) std::fprintf(stderr, "sluice topo discover: %s\n", note.c_str());
    if (options->has("--report")) {
        std::fputs(report_text(node_name(), {graph, note}).c_str(), stdout);
        return 0;
    }
    if (!graph) return fail("topo discover", graph.error());
    std::string text = "# " + node_name() + ", by sluice topo discover\n";
    if (!note.empty()) text += "# " + note + "\n";
    text += to_text(*graph);
    const std::string file = options->value("--output", "-");
    if (file == "-") {
        std::fputs(text.c_str(), stdout);
    } else if (Status status = write_output(file, text); !status) {
        return fail("topo discover", status.error());
    }
    return 0;
}

}  // namespace sluice::cli
