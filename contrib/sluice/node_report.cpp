// SPDX-License-Identifier: GPL-2.0-or-later
#include "contrib/sluice/node_report.hpp"

#include <algorithm>

#include "common/base/text.hpp"

namespace sluice::cli {
namespace {

constexpr std::string_view begin_key = "SluiceNode=";
constexpr std::string_view error_key = "SluiceError=";
constexpr std::string_view note_key = "SluiceNote=";
constexpr std::string_view end_key = "SluiceEnd=";

/// What one task has printed.
struct Task {
    std::string node;  // of the report that is open
    std::string text;
    std::string error;
    std::string note;
};

ErrorCode code_of(std::string_view text) {
    const auto code = parse_integer(text);
    for (const ErrorCode known : {ErrorCode::not_found, ErrorCode::usage, ErrorCode::bad_input,
                                  ErrorCode::unreachable, ErrorCode::busy}) {
        if (code && *code == static_cast<int>(known)) return known;
    }
    return ErrorCode::bad_input;
}

Result<GpuGraph> outcome(const Task& task) {
    if (task.error.empty()) return read_topology_text(task.text, "its report");
    const std::size_t blank = std::min(task.error.find(' '), task.error.size());
    return Error{code_of(std::string_view(task.error).substr(0, blank)),
                 printable(trim(std::string_view(task.error).substr(blank)), 500)};
}

NodeReport broken(const std::string& why) {
    return {Result<GpuGraph>(ErrorCode::bad_input, why), {}};
}

}  // namespace

std::string report_text(const std::string& node, const NodeReport& report) {
    std::string out = std::string(begin_key) + node + "\n";
    if (report.graph) {
        out += to_text(*report.graph);
    } else {
        const Error& error = report.graph.error();
        out += std::string(error_key) + std::to_string(static_cast<int>(error.code)) + " " +
               printable(error.message, 500) + "\n";
    }
    if (!report.note.empty()) out += std::string(note_key) + printable(report.note, 500) + "\n";
    return out + std::string(end_key) + node + "\n";
}

std::map<std::string, NodeReport> read_reports(std::string_view labelled) {
    std::map<std::string, NodeReport> reports;
    std::map<std::int64_t, Task> tasks;
    for (const std::string_view raw : split(labelled, '\n')) {
        const std::size_t colon = raw.find(':');
        const auto number = parse_integer(trim(raw.substr(0, colon)));
        if (colon == std::string_view::npos || !number || *number < 0) continue;
        std::string_view line = raw.substr(colon + 1);
        if (line.starts_with(' ')) line.remove_prefix(1);
        Task& task = tasks[*number];
        if (line.starts_with(begin_key)) {
            task = {std::string(line.substr(begin_key.size())), {}, {}, {}};
        } else if (task.node.empty()) {
            continue;
        } else if (line.starts_with(end_key)) {
            NodeReport report{outcome(task), task.note};
            if (line.substr(end_key.size()) != task.node) report = broken("its report has no end");
            if (reports.contains(task.node)) report = broken("two reports under this name");
            reports.insert_or_assign(task.node, std::move(report));
            task = {};
        } else if (line.starts_with(error_key)) {
            task.error = line.substr(error_key.size());
        } else if (line.starts_with(note_key)) {
            task.note = printable(line.substr(note_key.size()), 500);
        } else {
            task.text.append(line).append("\n");
        }
    }
    for (const auto& [number, task] : tasks) {
        if (!task.node.empty())
            reports.insert_or_assign(task.node, broken("its report has no end"));
    }
    return reports;
}

}  // namespace sluice::cli
