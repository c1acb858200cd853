// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/report/scontrol_jobs.hpp"

#include <algorithm>

#include "common/base/text.hpp"
#include "common/report/tres.hpp"

namespace sluice {
namespace {

constexpr std::string_view id_key = "JobId=";

bool is_blank(char c) {
    return c == ' ' || c == '\n';
}

// From `begin` to the next blank.
std::string_view word_at(std::string_view text, std::size_t begin) {
    const std::string_view rest = text.substr(begin);
    return rest.substr(0, rest.find_first_of(" \n"));
}

// Value of the last " KEY=value" before `end`; "" where there is none or Slurm has none to print.
std::string_view field_before(std::string_view text, std::size_t end, std::string_view key) {
    const std::string wanted = " " + std::string(key) + "=";
    const std::size_t at = text.substr(0, end).rfind(wanted);
    if (at == text.npos) return {};
    const std::string_view value = word_at(text, at + wanted.size());
    return value == "(null)" ? std::string_view() : value;
}

int number_or_0(std::string_view text) {
    const auto number = parse_integer(text);
    return number && *number >= 0 && *number <= TresGpus::max_gpus ? static_cast<int>(*number) : 0;
}

Result<Summary> summary_of(std::string_view text) {
    constexpr std::string_view key = "AdminComment=";
    constexpr std::string_view before_it = " WorkDir=";
    std::string_view found;
    std::size_t at = text.find(before_it);
    while (at != text.npos && (at = text.find(key, at + 1)) != text.npos) {
        if (!is_blank(text[at - 1])) continue;
        const std::string_view value = word_at(text, at + key.size());
        if (!has_summary(value) || value == found) continue;
        if (!found.empty()) {
            return {ErrorCode::bad_input,
                    "its summary cannot be told from an imitation in the job's own texts (working "
                    "directory, comment, names of output files)"};
        }
        found = value;
    }
    return parse_summary(found);
}

// GPUs in "gpu:v100:4,gpu:a100:2,shard:8".
int gres_gpus(std::string_view text) {
    std::int64_t sum = 0;
    for (const std::string_view item : split(text, ',')) {
        if (!item.starts_with("gpu:")) continue;
        const auto count = parse_integer(item.substr(item.rfind(':') + 1));
        if (count && *count > 0) sum = std::min(TresGpus::max_gpus, sum + *count);
    }
    return static_cast<int>(sum);
}

ControlJob read_job(std::string_view text) {
    ControlJob out;
    out.id = word_at(text, id_key.size());
    constexpr std::string_view array_key = " ArrayJobId=";
    // Straight after the id, or it is part of a name.
    if (text.substr(id_key.size() + out.id.size()).starts_with(array_key)) {
        const std::size_t begin = id_key.size() + out.id.size() + array_key.size();
        const std::string_view array = word_at(text, begin);
        constexpr std::string_view task_key = " ArrayTaskId=";
        if (text.substr(begin + array.size()).starts_with(task_key)) {
            const std::string task =
                printable(word_at(text, begin + array.size() + task_key.size()), 64);
            const bool several = !parse_integer(task);
            out.array = printable(array, 32) + "_" + (several ? "[" + task + "]" : task);
        }
    }
    const std::size_t end = text.rfind(" WorkDir=");
    out.state = printable(field_before(text, end, "JobState"), 32);
    out.restarts = number_or_0(field_before(text, end, "Restarts"));
    out.nodes = printable(field_before(text, end, "NodeList"), 256);
    // Up to 23.11 TRES, then AllocTRES and, for jobs that wait, ReqTRES.
    for (const std::string_view key : {"AllocTRES", "TRES", "ReqTRES"}) {
        const auto gpus = parse_tres(field_before(text, end, key));
        if (!gpus || !gpus->named) continue;
        out.gpus = static_cast<int>(gpus->count);
        break;
    }
    // Where AccountingStorageTRES lacks gres/gpu no TRES tells; of a job that holds some --details
    // do.
    if (out.gpus == 0) out.gpus = gres_gpus(field_before(text, end, "JOB_GRES"));
    out.summary = summary_of(text);
    return out;
}

}  // namespace

ControlJobs read_scontrol(std::string_view text, const std::set<std::string>& ids) {
    ControlJobs out;
    std::set<std::string> begun;
    std::vector<std::string> order;  // of all lines that begin with an id
    std::size_t begin = text.npos;
    for (std::size_t line = 0; line < text.size();) {
        std::string id;
        if (text.substr(line).starts_with(id_key)) id = word_at(text, line + id_key.size());
        if (ids.contains(id)) {
            if (begun.insert(id).second) {
                if (begin != text.npos)
                    out.jobs.push_back(read_job(text.substr(begin, line - begin)));
                begin = line;
            } else {
                out.doubtful.insert(id);
            }
            order.push_back(std::move(id));
        }
        line = std::min(text.find('\n', line), text.size() - 1) + 1;
    }
    if (begin != text.npos) out.jobs.push_back(read_job(text.substr(begin)));
    const std::set<std::string> repeated = out.doubtful;
    for (std::size_t i = 1; i < order.size(); ++i) {
        if (repeated.contains(order[i])) out.doubtful.insert(order[i - 1]);
    }
    return out;
}

}  // namespace sluice
