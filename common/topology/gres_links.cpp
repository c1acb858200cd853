// SPDX-License-Identifier: GPL-2.0-or-later
//
// What Slurm itself knows of a node's GPUs: Links= and Cores= of gres.conf(5).
#include <algorithm>
#include <optional>

#include "common/base/config.hpp"
#include "common/base/text.hpp"
#include "common/topology/gpu_graph.hpp"

namespace sluice {
namespace {

constexpr int most_links_of_a_pair = 99;
constexpr std::int64_t most_cores = 65536;

Error bad(const std::string& where, const std::string& what) {
    return {ErrorCode::bad_input, where + ": " + what};
}

Result<std::vector<int>> parse_links(std::string_view text, const std::string& where,
                                     std::size_t gpu, std::size_t count) {
    std::vector<int> links;
    const auto words = split(text, ',');
    if (words.size() != count) {
        return bad(where, "Links=" + printable(text) + " has " + std::to_string(words.size()) +
                              " numbers, write one for each of the " + std::to_string(count) +
                              " GPUs");
    }
    for (const std::string_view word : words) {
        const auto value = parse_integer(trim(word));
        const bool self = links.size() == gpu;
        if (!value || *value > most_links_of_a_pair || *value < (self ? -1 : 0)) {
            return bad(where, "Links=" + printable(text) + ": \"" + printable(word, 20) +
                                  "\" for GPU " + std::to_string(links.size()) +
                                  ": write the number of links, -1 for the GPU itself");
        }
        links.push_back(static_cast<int>(*value));
    }
    return links;
}

/// Sorted and joined, so that "0-3" and "0,1,2,3" are equal.
using CoreRanges = std::vector<std::pair<std::int64_t, std::int64_t>>;

CoreRanges joined(CoreRanges ranges) {
    std::sort(ranges.begin(), ranges.end());
    CoreRanges out;
    for (const auto& range : ranges) {
        if (!out.empty() && range.first <= out.back().second + 1)
            out.back().second = std::max(out.back().second, range.second);
        else
            out.push_back(range);
    }
    return out;
}

Result<CoreRanges> parse_cores(std::string_view text, const std::string& where) {
    CoreRanges ranges;
    for (const std::string_view word : split(text, ',')) {
        const std::size_t dash = word.find('-');
        const auto first = parse_integer(trim(word.substr(0, dash)));
        const auto last =
            dash == std::string_view::npos ? first : parse_integer(trim(word.substr(dash + 1)));
        if (!first || !last || *first < 0 || *last < *first || *last >= most_cores) {
            return bad(where, "Cores=" + printable(text) + ": \"" + printable(word, 20) +
                                  "\" is no core or range of cores: write them like 0-7,16-23");
        }
        ranges.emplace_back(*first, *last);
    }
    return joined(std::move(ranges));
}

/// "a100_1g.5gb": how NVIDIA and Slurm name a MIG slice (compute slices, memory).
bool is_mig_type(std::string_view type) {
    const std::size_t at = type.find("g.");
    if (at == std::string_view::npos || at == 0) return false;
    const auto digit = [type](std::size_t i) {
        return i < type.size() && type[i] >= '0' && type[i] <= '9';
    };
    return digit(at - 1) && digit(at + 2);
}

Error no_peers(const std::string& where) {
    return {ErrorCode::not_found, where +
                                      " is a MIG slice: slices have no peer-to-peer links, so "
                                      "no set of them is better than another"};
}

/// The value of `key` among the KEY=VALUE words of a line, case of the key ignored.
std::optional<std::string_view> value_of(const std::vector<std::string_view>& words,
                                         std::string_view key) {
    for (const std::string_view word : words) {
        const std::size_t equals = word.find('=');
        if (equals != std::string_view::npos && equal_ignoring_case(word.substr(0, equals), key))
            return word.substr(equals + 1);
    }
    return std::nullopt;
}

bool overlap(const CoreRanges& a, const CoreRanges& b) {
    return std::any_of(a.begin(), a.end(), [&b](const auto& mine) {
        return std::any_of(b.begin(), b.end(), [&mine](const auto& other) {
            return mine.first <= other.second && other.first <= mine.second;
        });
    });
}

/// The cores of each NUMA node, by the lowest.
std::vector<CoreRanges> numa_nodes(const std::vector<CoreRanges>& cores) {
    std::vector<CoreRanges> nodes;
    for (CoreRanges node : cores) {
        if (node.empty()) continue;
        for (auto other = nodes.begin(); other != nodes.end();) {
            if (!overlap(node, *other)) {
                ++other;
                continue;
            }
            node.insert(node.end(), other->begin(), other->end());
            nodes.erase(other);
            other = nodes.begin();  // it may reach others now
        }
        nodes.push_back(joined(std::move(node)));
    }
    std::sort(nodes.begin(), nodes.end());
    return nodes;
}

/// `where` begins what is said of a device.
Result<GpuGraph> graph_of(const std::vector<GresDevice>& devices,
                          const std::vector<std::string>& where) {
    const std::size_t count = devices.size();
    if (count > GpuSet::max_gpus) {
        return {ErrorCode::bad_input, std::to_string(count) + " GPUs in one node, at most " +
                                          std::to_string(GpuSet::max_gpus) + " are read"};
    }
    std::vector<std::vector<int>> links(count);
    std::vector<CoreRanges> cores(count);
    for (std::size_t i = 0; i < count; ++i) {
        if (is_mig_type(devices[i].type)) return no_peers(where[i]);
        if (!trim(devices[i].links).empty()) {
            auto row = parse_links(devices[i].links, where[i], i, count);
            if (!row) return row.error();
            links[i] = *std::move(row);
        }
        if (!trim(devices[i].cores).empty()) {
            auto ranges = parse_cores(devices[i].cores, where[i]);
            if (!ranges) return ranges.error();
            cores[i] = *std::move(ranges);
        }
    }
    const std::vector<CoreRanges> nodes = numa_nodes(cores);

    GpuGraph graph(static_cast<int>(count));
    for (std::size_t i = 0; i < count; ++i) {
        Gpu& gpu = graph.gpu(static_cast<int>(i));
        gpu.model = printable(devices[i].type);
        const auto node = std::find_if(nodes.begin(), nodes.end(), [&](const CoreRanges& each) {
            return overlap(each, cores[i]);
        });
        if (node != nodes.end()) gpu.numa = static_cast<int>(node - nodes.begin());
        for (std::size_t j = 0; j < i; ++j) {
            // A device without Links= is joined as the others say.
            if (!links[i].empty() && !links[j].empty() && links[i][j] != links[j][i]) {
                return bad(where[i], "Links= gives " + std::to_string(links[i][j]) + " to GPU " +
                                         std::to_string(j) + ", which gives " +
                                         std::to_string(links[j][i]) +
                                         " back: both have to be equal");
            }
            GpuLink link;
            if (!links[i].empty()) link.links = links[i][j];
            if (!links[j].empty()) link.links = links[j][i];
            link.link_gbps = link.links * default_link_gbps;
            graph.set_link(static_cast<int>(i), static_cast<int>(j), link);
        }
    }
    complete_graph(graph);
    return graph;
}

/// N of /dev/nvidiaN, the name given with '_' for '/'; -1 for another file.
int minor_of(std::string_view file) {
    constexpr std::string_view device = "_dev_nvidia";
    if (!file.starts_with(device)) return -1;
    const auto minor = parse_integer(file.substr(device.size()));
    return minor && *minor >= 0 && *minor < 65536 ? static_cast<int>(*minor) : -1;
}

std::string gpu_name(std::size_t gpu) {
    return "GPU " + std::to_string(gpu);
}

}  // namespace

Result<GpuGraph> graph_of_gres(const std::vector<GresDevice>& devices) {
    std::vector<std::string> where;
    for (std::size_t i = 0; i < devices.size(); ++i) where.push_back(gpu_name(i));
    return graph_of(devices, where);
}

Result<GpuGraph> read_gres_conf(std::string_view text, std::string_view name) {
    std::vector<GresDevice> devices;
    std::vector<int> minors;
    std::vector<std::string> where;
    std::optional<std::string> class_of_nodes;
    bool detected = false;
    int number = 0;
    for (const std::string_view raw : split(text, '\n')) {
        ++number;
        const auto error = [&](const std::string& what) {
            return Error{ErrorCode::bad_input,
                         std::string(name) + ":" + std::to_string(number) + ": " + what};
        };
        std::vector<std::string_view> words;
        std::string line(raw.substr(0, raw.find('#')));
        std::replace(line.begin(), line.end(), '\t', ' ');
        for (const std::string_view word : split(line, ' ')) {
            if (!trim(word).empty()) words.push_back(trim(word));
        }
        const auto detect = value_of(words, "AutoDetect");
        detected = detected || (detect && !equal_ignoring_case(*detect, "off"));
        const auto gres = value_of(words, "Name");
        if (!gres || !equal_ignoring_case(*gres, "gpu")) continue;
        const std::string nodes(value_of(words, "NodeName").value_or(""));
        if (class_of_nodes && *class_of_nodes != nodes) {
            return error("NodeName=" + printable(nodes) + " after NodeName=" +
                         printable(*class_of_nodes) + ": keep one class of nodes in a file");
        }
        class_of_nodes = nodes;
        std::size_t count = 1;
        std::vector<std::string> device_files;
        if (value_of(words, "MultipleFiles")) {
            return no_peers(std::string(name) + ":" + std::to_string(number) + ": the device");
        }
        if (const auto file = value_of(words, "File")) {
            // A list of paths follows the rules for nodes, but for the slashes.
            std::string names(*file);
            std::replace(names.begin(), names.end(), '/', '_');
            auto files = expand_hostlist(names);
            if (!files) {
                return error("File=" + printable(*file) + ": write paths like /dev/nvidia[0-7]");
            }
            count = files->size();
            device_files = *std::move(files);
        } else if (const auto given = value_of(words, "Count")) {
            const auto value = parse_integer(*given);
            if (!value || *value < 1 || *value > GpuSet::max_gpus) {
                return error("Count=" + printable(*given, 20) + ": write a number from 1 to " +
                             std::to_string(GpuSet::max_gpus));
            }
            count = static_cast<std::size_t>(*value);
        } else if (detected) {
            continue;  // it only says what to do with what is found
        }
        if (devices.size() + count > GpuSet::max_gpus) {
            return error("more than " + std::to_string(GpuSet::max_gpus) + " GPUs");
        }
        GresDevice device;
        device.links = value_of(words, "Links").value_or("");
        device.cores = value_of(words, "Cores").value_or("");
        device.type = value_of(words, "Type").value_or("");
        for (std::size_t i = 0; i < count; ++i) {
            where.push_back(std::string(name) + ":" + std::to_string(number) + ": " +
                            gpu_name(devices.size()));
            devices.push_back(device);
            minors.push_back(device_files.empty() ? -1 : minor_of(device_files[i]));
        }
    }
    if (devices.empty() && detected) {
        return {
            ErrorCode::bad_input,
            std::string(name) +
                ": leaves it to AutoDetect which GPUs there are: \"sluice topo discover\" on such "
                "a node describes them"};
    }
    if (devices.empty()) {
        return {ErrorCode::bad_input, std::string(name) + ": has no line Name=gpu"};
    }
    auto graph = graph_of(devices, where);
    for (std::size_t i = 0; graph && i < minors.size(); ++i)
        graph->gpu(static_cast<int>(i)).minor = minors[i];
    return graph;
}

}  // namespace sluice
