// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/base/config.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <system_error>

#include "common/base/file.hpp"
#include "common/base/text.hpp"

namespace sluice {
namespace {

constexpr std::size_t max_file_bytes = std::size_t{1024} * 1024;
constexpr std::size_t max_nodes = 65536;

// --- one reader a kind of value; false: the value is not legal

bool read_integer(std::string_view value, int low, int high, int& out) {
    const auto number = parse_integer(value);
    if (!number || *number < low || *number > high) return false;
    out = static_cast<int>(*number);
    return true;
}

bool read_seconds(std::string_view value, int low, int high, std::chrono::seconds& out) {
    int number = 0;
    if (!read_integer(value, low, high, number)) return false;
    out = std::chrono::seconds(number);
    return true;
}

// `yes` sets `out` to true, `no` to false.
bool read_choice(std::string_view value, std::string_view yes, std::string_view no, bool& out) {
    if (!equal_ignoring_case(value, yes) && !equal_ignoring_case(value, no)) return false;
    out = equal_ignoring_case(value, yes);
    return true;
}

bool is_word(std::string_view value) {
    return !value.empty() && value.size() <= 64 && value.find_first_of(" \t,\"") == value.npos;
}

bool read_policy(std::string_view value, Config& config) {
    config.policy = value;
    return is_word(value);
}

bool read_partitions(std::string_view value, Config& config) {
    for (const std::string_view name : split(value, ',')) {
        if (!is_word(name)) return false;
        config.partitions.emplace_back(name);
    }
    return true;
}

bool read_topology_dir(std::string_view value, Config& config) {
    config.topology_dir = value;
    return !value.empty();
}

bool read_state_dir(std::string_view value, Config& config) {
    config.state_dir = value;
    return !value.empty() && value.front() == '/';
}

bool read_fraction(std::string_view value, double& target) {
    const auto number = parse_number(value);
    if (!number || !(*number >= 0 && *number <= 1)) return false;
    target = *number;
    return true;
}

struct Key {
    ConfigKeyInfo info;
    // Null for Topology and Nodes, which have a meaning only together.
    bool (*read)(std::string_view value, Config& config);
};

constexpr const char* topology_key = "Topology";
constexpr const char* nodes_key = "Nodes";

constexpr std::array keys{
    Key{{"Policy", "the name of a policy, like progress"}, read_policy},
    Key{{"Interval", "1 to 3600 (seconds)"},
        [](std::string_view value, Config& config) {
            return read_seconds(value, 1, 3600, config.interval);
        }},
    Key{{"AdviseOnly", "yes or no"},
        [](std::string_view value, Config& config) {
            return read_choice(value, "yes", "no", config.advise_only);
        }},
    Key{{"Partitions", "names of partitions, separated by commas"}, read_partitions},
    Key{{"TopologyDir", "a folder, absolute or below that of sluice.conf"}, read_topology_dir},
    Key{{topology_key, "Topology=FILE Nodes=LIST on one line"}, nullptr},
    Key{{nodes_key, "Topology=FILE Nodes=LIST on one line"}, nullptr},
    Key{{"StateDir", "an absolute path"}, read_state_dir},
    Key{{"SummaryField", "AdminComment or none"},
        [](std::string_view value, Config& config) {
            return read_choice(value, "AdminComment", "none", config.summary_in_admin_comment);
        }},
    Key{{"ShareRuns", "user or account"},
        [](std::string_view value, Config& config) {
            return read_choice(value, "account", "user", config.share_runs_in_account);
        }},
    Key{{"MinSampleInterval", "1 to 86400 (seconds)"},
        [](std::string_view value, Config& config) {
            return read_seconds(value, 1, 86400, config.min_sample_interval);
        }},
    Key{{"MaxRecordsPerSecond", "1 to 10000"},
        [](std::string_view value, Config& config) {
            return read_integer(value, 1, 10000, config.max_records_per_second);
        }},
    Key{{"ResizeCooldown", "0 to 86400 (seconds)"},
        [](std::string_view value, Config& config) {
            return read_seconds(value, 0, 86400, config.resize_cooldown);
        }},
    Key{{"MaxResizesPerHour", "0 to 3600"},
        [](std::string_view value, Config& config) {
            return read_integer(value, 0, 3600, config.max_resizes_per_hour);
        }},
    Key{{"RestartCost", "0 to 86400 (seconds)"},
        [](std::string_view value, Config& config) {
            return read_seconds(value, 0, 86400, config.restart_cost);
        }},
    Key{{"MinGain", "0 to 1, like 0.05"},
        [](std::string_view value, Config& config) {
            return read_fraction(value, config.min_gain);
        }},
    Key{{"FragmentationWeight", "0 to 1, like 0.1"},
        [](std::string_view value, Config& config) {
            return read_fraction(value, config.fragmentation_weight);
        }},
};

constexpr auto infos = [] {
    std::array<ConfigKeyInfo, keys.size()> out{};
    for (std::size_t i = 0; i < keys.size(); ++i) out[i] = keys[i].info;
    return out;
}();

// --- the text

struct Assignment {
    std::string_view key;
    std::string_view value;
};

std::string_view without_blanks_before(std::string_view text) {
    return text.substr(std::min(text.size(), text.find_first_not_of(" \t\r")));
}

// Takes the next Key=Value off `rest`, as Slurm reads them: blanks around '=' do not count, a value
// with blanks stands in double quotes. not an Assignment: a sentence that says why.
std::optional<Assignment> take_assignment(std::string_view& rest, std::string& why) {
    const std::size_t equals = rest.find('=');
    if (equals == rest.npos) {
        why = "\"" + printable(trim(rest)) + "\" is no Key=Value";
        return std::nullopt;
    }
    Assignment out;
    out.key = trim(rest.substr(0, equals));
    rest = without_blanks_before(rest.substr(equals + 1));
    if (!rest.empty() && rest.front() == '"') {
        const std::size_t close = rest.find('"', 1);
        if (close == rest.npos) {
            why = printable(out.key) + ": a quote is never closed";
            return std::nullopt;
        }
        out.value = rest.substr(1, close - 1);
        rest.remove_prefix(close + 1);
    } else {
        out.value = rest.substr(0, rest.find_first_of(" \t\r"));
        rest.remove_prefix(out.value.size());
    }
    rest = without_blanks_before(rest);
    return out;
}

std::string_view without_comment(std::string_view line) {
    bool quoted = false;
    for (std::size_t i = 0; i < line.size(); ++i) {
        if (line[i] == '"') quoted = !quoted;
        if (line[i] == '#' && !quoted) return line.substr(0, i);
    }
    return line;
}

// Reads line by line into a Config; lives for one parse.
class Parser {
  public:
    explicit Parser(std::string_view name) : name_(printable(name, 256)) {}

    Status read_line(std::string_view line) {
        ++line_;
        std::string_view rest = without_blanks_before(without_comment(line));
        for (const char c : rest) {
            if (static_cast<unsigned char>(c) < 0x20 && c != '\t' && c != '\r')
                return at(line_, "a control character: write text");
        }
        std::optional<std::string> topology;
        while (!rest.empty()) {
            std::string why;
            const auto assignment = take_assignment(rest, why);
            if (!assignment) return at(line_, why + ": write Key=Value, a comment begins with #");
            if (Status status = apply(*assignment, topology); !status) return status;
        }
        if (topology)
            return at(line_, std::string(topology_key) + ": no Nodes: " + both_on_one_line);
        return {};
    }

    /// The whole configuration, after the last line.
    Result<Config> finish() {
        if (first_relative_ != 0 && config_.topology_dir.empty()) {
            return at(first_relative_, std::string(topology_key) +
                                           ": a relative name and no TopologyDir: write an "
                                           "absolute path or set TopologyDir");
        }
        return std::move(config_);
    }

  private:
    static constexpr const char* both_on_one_line = "write Topology=FILE Nodes=LIST on one line";

    Error at(int line, const std::string& what) const {
        return {ErrorCode::bad_input, name_ + ":" + std::to_string(line) + ": " + what};
    }

    Status apply(const Assignment& assignment, std::optional<std::string>& topology) {
        const auto key = std::find_if(keys.begin(), keys.end(), [&](const Key& known) {
            return equal_ignoring_case(assignment.key, known.info.key);
        });
        if (key == keys.end()) {
            std::string known;
            for (const Key& each : keys)
                known += std::string(known.empty() ? "" : ", ") + each.info.key;
            return at(line_, printable(assignment.key) + ": no such key: write one of " + known);
        }
        const std::string name = key->info.key;
        if (name == topology_key) {
            if (assignment.value.empty()) return at(line_, name + ": no file: " + both_on_one_line);
            topology = assignment.value;
            return {};
        }
        if (name == nodes_key) return add_class(assignment.value, topology);
        int& first = lines_[name];
        if (first != 0) {
            return at(line_, name + ": stands in line " + std::to_string(first) +
                                 " already: write it once");
        }
        first = line_;
        if (!key->read(assignment.value, config_)) {
            return at(line_, name + ": \"" + printable(assignment.value) +
                                 "\" is not legal: write " + key->info.legal);
        }
        if (key->read == read_policy) config_.policy_line = line_;
        return {};
    }

    Status add_class(std::string_view hostlist, std::optional<std::string>& topology) {
        const std::string name = nodes_key;
        if (!topology) return at(line_, name + ": no Topology before it: " + both_on_one_line);
        auto nodes = expand_hostlist(hostlist);
        if (!nodes) return at(line_, name + ": " + nodes.error().message);
        if (classes_.size() + nodes->size() > max_nodes)
            return at(line_, name + ": more than " + std::to_string(max_nodes) + " nodes");
        for (const std::string& node : *nodes) {
            const auto [known, fresh] = classes_.emplace(node, line_);
            if (fresh) continue;
            std::string what = name;
            what.append(": ").append(node).append(" has a class already, in line ");
            what += std::to_string(known->second);
            return at(line_, what + ": write each node once");
        }
        if (topology->front() != '/' && first_relative_ == 0) first_relative_ = line_;
        config_.node_classes.push_back({std::move(*topology), std::move(*nodes)});
        topology.reset();
        return {};
    }

    std::string name_;
    Config config_;
    int line_ = 0;
    int first_relative_ = 0;              // line of the first class whose file is below TopologyDir
    std::map<std::string, int> lines_;    // key -> line
    std::map<std::string, int> classes_;  // node -> line
};

}  // namespace

Result<Config> parse_config(std::string_view text, std::string_view name) {
    Parser parser(name);
    for (const std::string_view line : split(text, '\n')) {
        if (const Status status = parser.read_line(line); !status) return status.error();
    }
    return parser.finish();
}

std::string note_on(const Config& config) {
    const std::chrono::seconds horizon = std::max(config.interval, config.resize_cooldown);
    if (config.policy == "fifo" || config.max_resizes_per_hour == 0 ||
        config.restart_cost < horizon)
        return "";
    return "RestartCost=" + std::to_string(config.restart_cost.count()) +
           " is not below the longer of Interval and ResizeCooldown, " +
           std::to_string(horizon.count()) +
           " s, within which a restart has to pay: no running job is given more GPUs";
}

Result<Config> read_config_file(const std::string& path) {
    const auto text = read_file(path, max_file_bytes);
    if (!text) return text.error();
    auto config = parse_config(*text, path);
    if (!config) return config;
    if (!config->topology_dir.empty() && config->topology_dir.front() != '/') {
        std::error_code error;
        const auto absolute = std::filesystem::absolute(path, error);
        if (error) return {ErrorCode::unreachable, path + ": " + error.message()};
        config->topology_dir = absolute.parent_path() / config->topology_dir;
    }
    return config;
}

std::span<const ConfigKeyInfo> config_keys() {
    return infos;
}

}  // namespace sluice
