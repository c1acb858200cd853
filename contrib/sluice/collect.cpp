// SPDX-License-Identifier: GPL-2.0-or-later
//
// sluice topo collect: sluice topo discover on many nodes at once, and a file for each class of
// them.
//
// The files of classes are named after their content and never change, so the set is the one file
// that ties them to nodes: it is replaced last and at once.
#include <algorithm>
#include <climits>
#include <cstdio>
#include <filesystem>
#include <map>
#include <set>

#include "common/base/config.hpp"
#include "common/base/file.hpp"
#include "common/base/text.hpp"
#include "contrib/sluice/command.hpp"
#include "contrib/sluice/node_classes.hpp"
#include "contrib/sluice/node_report.hpp"
#include "contrib/sluice/run_program.hpp"

namespace sluice::cli {
namespace {

constexpr const char* name = "topo collect";
constexpr const char* set_file = "classes.conf";
constexpr std::size_t most_bytes = std::size_t{256} << 20;
constexpr std::chrono::seconds sinfo_limit{60};

struct Request {
    std::string directory;  // absolute
    std::string nodelist;
    std::string partition;
    std::chrono::seconds timeout{120};
    bool dry_run = false;
    std::vector<std::string> srun_options;
};

/// Who is asked, and who is not and why.
struct Asked {
    std::vector<std::string> nodes;
    std::map<std::string, std::string> left_out;
};

/// What the directory holds.
struct Present {
    std::map<std::string, std::string> file_of;  // node -> name of its class file
    std::map<std::string, GpuGraph> graphs;      // by file
};

/// What is to be said of a node.
struct Outcome {
    std::map<std::string, GpuGraph> graphs;      // of all nodes that have a class from now on
    std::map<std::string, std::string> without;  // no GPUs to choose from, by node
    std::map<std::string, std::string> failed;
    std::map<std::string, std::string> notes;
};

Result<Request> parse(const Arguments& arguments) {
    const auto dashes = std::find(arguments.begin(), arguments.end(), "--");
    const auto options = Options::parse(Arguments(arguments.begin(), dashes),
                                        {{"--directory", true},
                                         {"--nodelist", true, "-w"},
                                         {"--partition", true, "-p"},
                                         {"--timeout", true},
                                         {"--dry-run", false}},
                                        0);
    if (!options) return options.error();
    Request request;
    if (dashes != arguments.end()) request.srun_options.assign(dashes + 1, arguments.end());
    request.directory = options->value("--directory");
    if (request.directory.empty())
        return {ErrorCode::usage, "--directory DIR is needed: the TopologyDir of sluice.conf"};
    std::error_code error;
    request.directory =
        std::filesystem::absolute(request.directory, error).lexically_normal().string();
    if (request.directory.size() > 1 && request.directory.ends_with('/'))
        request.directory.pop_back();
    request.nodelist = options->value("--nodelist");
    request.partition = options->value("--partition");
    const std::string timeout = options->value("--timeout", "120");
    const auto seconds = parse_integer(timeout);
    if (!seconds || *seconds < 1 || *seconds > 3600) {
        return {ErrorCode::usage,
                "--timeout " + printable(timeout) + ": write 1 to 3600 (seconds)"};
    }
    request.timeout = std::chrono::seconds(*seconds);
    request.dry_run = options->has("--dry-run");
    return request;
}

/// The nodes with GPUs that can start something now.
Result<Asked> nodes_of_slurm(const Request& request) {
    std::vector<std::string> words{"sinfo", "--noheader", "--Node", "--format=%N|%T|%G"};
    if (!request.partition.empty()) words.push_back("--partition=" + request.partition);
    const auto output = run_program(words, {}, most_bytes, sinfo_limit);
    if (!output) return output.error();
    if (output->timed_out) return {ErrorCode::unreachable, "sinfo: does not answer"};
    if (output->exit_status != 0) return failure("sinfo", *output);
    std::set<std::string> nodes;
    Asked asked;
    for (const std::string_view line : split(output->out, '\n')) {
        const auto fields = split(line, '|');
        if (fields.size() != 3 || fields[2].find("gpu") == std::string_view::npos) continue;
        const std::string node(fields[0]);
        if (fields[1] == "idle" || fields[1] == "mixed")
            nodes.insert(node);
        else
            asked.left_out[node] = fields[1];
    }
    asked.nodes.assign(nodes.begin(), nodes.end());
    return asked;
}

Result<Asked> nodes_to_ask(const Request& request) {
    if (request.nodelist.empty()) return nodes_of_slurm(request);
    auto nodes = expand_hostlist(request.nodelist);
    if (!nodes) return {ErrorCode::usage, "--nodelist: " + nodes.error().message};
    std::sort(nodes->begin(), nodes->end());
    nodes->erase(std::unique(nodes->begin(), nodes->end()), nodes->end());
    return Asked{*std::move(nodes), {}};
}

Result<std::map<std::string, NodeReport>> ask(const Request& request, const Asked& asked) {
    std::error_code error;
    const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
    if (error) return {ErrorCode::unreachable, "/proc/self/exe: " + error.message()};
    const std::string count = std::to_string(asked.nodes.size());
    const std::string seconds = std::to_string(request.timeout.count());
    const std::string minutes = std::to_string(request.timeout.count() / 60 + 1);
    std::vector<std::string> words{"srun",
                                   "--nodes=" + count,
                                   "--ntasks=" + count,
                                   "--ntasks-per-node=1",
                                   "--nodelist=" + compress_hostlist(asked.nodes),
                                   "--label",
                                   "--mpi=none",
                                   "--kill-on-bad-exit=0",
                                   "--job-name=sluice-topo",
                                   "--immediate=" + seconds,
                                   "--time=" + minutes};
    if (!request.partition.empty()) words.push_back("--partition=" + request.partition);
    words.insert(words.end(), request.srun_options.begin(), request.srun_options.end());
    for (const char* word : {self.c_str(), "topo", "discover", "--report"}) words.push_back(word);
    const auto output = run_program(words, {}, most_bytes, request.timeout);
    if (!output) return output.error();
    auto reports = read_reports(output->out);
    if (reports.empty()) {
        if (output->timed_out) {
            return {ErrorCode::unreachable,
                    "srun: no node answered within " + seconds + " seconds (--timeout)"};
        }
        return failure("srun", *output);
    }
    return reports;
}

Result<Present> read_present(const std::string& directory) {
    Present present;
    const auto config = read_config_file(directory + "/" + set_file);
    if (!config) {
        if (config.error().code == ErrorCode::not_found) return present;
        return {ErrorCode::bad_input, config.error().message + "; remove the file to begin anew"};
    }
    for (const NodeClassLine& line : config->node_classes) {
        const std::string path =
            line.file.starts_with('/') ? line.file : config->topology_dir + "/" + line.file;
        // A class whose file is broken is as good as none: its nodes are new.
        const auto graph = read_topology_file(path);
        if (!graph) {
            std::fprintf(stderr, "sluice %s: %s\n", name, graph.error().message.c_str());
            continue;
        }
        present.graphs.emplace(line.file, *graph);
        for (const std::string& node : line.nodes) present.file_of[node] = line.file;
    }
    return present;
}

Outcome sort_out(const Asked& asked, std::map<std::string, NodeReport>& reports,
                 const Present& present) {
    Outcome outcome;
    for (const auto& [node, file] : present.file_of)
        outcome.graphs.emplace(node, present.graphs.at(file));
    for (const std::string& node : asked.nodes) {
        const auto report = reports.find(node);
        if (report == reports.end()) {
            outcome.failed[node] = "did not answer";
            continue;
        }
        NodeReport& told = report->second;
        if (!told.note.empty()) outcome.notes[node] = told.note;
        if (told.graph) {
            outcome.graphs.insert_or_assign(node, *std::move(told.graph));
        } else if (told.graph.error().code == ErrorCode::not_found) {
            outcome.without[node] = told.graph.error().message;
            outcome.graphs.erase(node);
        } else {
            outcome.failed[node] = told.graph.error().message;
        }
    }
    for (const auto& [node, report] : reports) {
        if (!std::binary_search(asked.nodes.begin(), asked.nodes.end(), node))
            outcome.notes[printable(node)] = "answered, but was not asked: skipped";
    }
    return outcome;
}

// --- saying

/// "n[1-4]: why", the nodes with the same sentence together.
void say_grouped(const char* head, const std::map<std::string, std::string>& sentences) {
    std::map<std::string, std::vector<std::string>> nodes;
    for (const auto& [node, sentence] : sentences) nodes[sentence].push_back(node);
    for (const auto& [sentence, who] : nodes)
        std::printf("%s%s: %s\n", head, compress_hostlist(who).c_str(), sentence.c_str());
}

/// With the class that each node stays in.
std::map<std::string, std::string> with_classes(std::map<std::string, std::string> sentences,
                                                const Present& present) {
    for (auto& [node, sentence] : sentences) {
        if (const auto old = present.file_of.find(node); old != present.file_of.end())
            sentence += " (stays in " + old->second + ")";
    }
    return sentences;
}

/// What differs from what is there. False where nothing does.
bool say_changes(const std::vector<NodeClass>& classes, const Outcome& outcome,
                 const Present& present) {
    bool changed = false;
    std::map<std::string, std::string> moved;
    std::set<std::string> used;
    for (const NodeClass& each : classes) {
        used.insert(each.file);
        const bool fresh = !present.graphs.contains(each.file);
        changed = changed || fresh;
        std::printf("%s  %s%s\n", each.file.c_str(), compress_hostlist(each.nodes).c_str(),
                    fresh ? "  (new)" : "");
        for (const std::string& node : each.nodes) {
            const auto before = present.file_of.find(node);
            if (before == present.file_of.end())
                moved[node] = "new, now " + each.file;
            else if (before->second != each.file)
                moved[node] = "was " + before->second + ", now " + each.file;
        }
    }
    for (const auto& [node, file] : present.file_of) {
        if (!outcome.graphs.contains(node)) moved[node] = "was " + file + ", now in no class";
    }
    say_grouped("  ", moved);
    for (const auto& [file, graph] : present.graphs) {
        if (!used.contains(file)) {
            std::printf("no longer used: %s (remove it when sluice.conf no longer names it)\n",
                        file.c_str());
            changed = true;
        }
    }
    return changed || !moved.empty();
}

// --- writing

std::string set_text(const std::string& directory, const std::vector<NodeClass>& classes) {
    std::string out =
        "# By sluice topo collect, and replaced by its next run. The lines belong into "
        "sluice.conf.\n"
        "TopologyDir=\"" +
        directory + "\"\n";
    for (const NodeClass& each : classes)
        out += "Topology=" + each.file + " Nodes=" + compress_hostlist(each.nodes) + "\n";
    return out;
}

Status write_set(const std::string& directory, const std::vector<NodeClass>& classes) {
    std::error_code error;
    const bool made = std::filesystem::create_directory(directory, error);
    if (error) return {ErrorCode::unreachable, directory + ": " + error.message()};
    std::vector<std::string> written;
    const auto take_back = [&](const Status& status) {
        for (const std::string& path : written) std::filesystem::remove(path, error);
        if (made) std::filesystem::remove(directory, error);
        return status;
    };
    const std::string set = set_text(directory, classes);
    // slurmctld has to be able to read it as it will be.
    if (const auto config = parse_config(set, set_file); !config) return take_back(config.error());
    for (const NodeClass& each : classes) {
        const std::string path = directory + "/" + each.file;
        const auto there = read_file(path, most_bytes);
        if (there && *there == each.text) continue;
        if (Status status = write_file(path, each.text); !status) return take_back(status);
        if (!there) written.push_back(path);
    }
    if (Status status = write_file(directory + "/" + set_file, set); !status)
        return take_back(status);
    return {};
}

}  // namespace

int topo_collect(const Arguments& arguments) {
    const auto request = parse(arguments);
    if (!request) return fail(name, request.error());
    const auto present = read_present(request->directory);
    if (!present) return fail(name, present.error());
    const auto asked = nodes_to_ask(*request);
    if (!asked) return fail(name, asked.error());
    std::map<std::string, NodeReport> reports;
    if (!asked->nodes.empty()) {
        auto answered = ask(*request, *asked);
        if (!answered) return fail(name, answered.error());
        reports = *std::move(answered);
    } else if (asked->left_out.empty()) {
        return fail(name, {ErrorCode::not_found, "sinfo shows no node with GPUs"});
    }
    const Outcome outcome = sort_out(*asked, reports, *present);
    const std::vector<NodeClass> classes = classes_of(outcome.graphs);
    const bool changed = say_changes(classes, outcome, *present);
    say_grouped("no GPUs    ", outcome.without);
    say_grouped("note       ", outcome.notes);
    say_grouped("not asked  ", with_classes(asked->left_out, *present));
    say_grouped("FAILED     ", with_classes(outcome.failed, *present));
    const std::string set_path = request->directory + "/" + set_file;
    if (request->dry_run) {
        std::printf("nothing written (--dry-run)\n");
    } else if (!changed) {
        std::printf("nothing has changed\n");
    } else {
        if (Status status = write_set(request->directory, classes); !status)
            return fail(name, status.error());
        std::printf("%s has the lines for sluice.conf; then: scontrol reconfigure\n",
                    set_path.c_str());
    }
    return outcome.failed.empty() ? 0 : static_cast<int>(ErrorCode::unreachable);
}

}  // namespace sluice::cli
