// SPDX-License-Identifier: GPL-2.0-or-later
//
// The three forms of a Report.
#include <algorithm>
#include <array>

#include "common/base/json.hpp"
#include "common/base/text.hpp"
#include "common/report/sacct_report.hpp"

namespace sluice {
namespace {

double gpu_hours(std::int64_t gpu_seconds) {
    return static_cast<double>(gpu_seconds) / 3600;
}

std::optional<double> placement_of(const JobReport& job) {
    return job.summary ? placement_ratio(*job.summary) : std::nullopt;
}

std::optional<int> resizes_of(const JobReport& job) {
    return job.summary ? std::optional(job.summary->resize_count) : std::nullopt;
}

std::string duration(std::int64_t seconds) {
    const auto two = [](std::int64_t number) {
        return (number < 10 ? "0" : "") + std::to_string(number);
    };
    return std::to_string(seconds / 3600) + ':' + two(seconds / 60 % 60) + ':' + two(seconds % 60);
}

// --- table

constexpr std::size_t columns = 11;
using Row = std::array<std::string, columns>;
constexpr std::array<bool, columns> is_text{true,  true,  true,  true,  false, false,
                                            false, false, false, false, false};

Row table_row(const JobReport& job) {
    const auto placement = placement_of(job);
    const auto resizes = resizes_of(job);
    const auto& loss = job.loss_per_gpu_hour;
    return {job.id,
            printable(job.user, 16),
            printable(job.name, 24),
            printable(job.state, 16),
            std::to_string(job.max_gpus),
            format_fixed(gpu_hours(job.gpu_seconds), 2),
            duration(job.wait_s),
            std::to_string(job.records),
            resizes ? std::to_string(*resizes) : "-",
            placement ? format_fixed(*placement, 2) + "x" : "-",
            loss ? format_fixed(*loss, 4) : "-"};
}

std::string totals_line(const Report& report) {
    double wait_s = 0;
    std::int64_t resizes = 0;
    double ratios = 0;
    int placed = 0;
    for (const JobReport& job : report.jobs) {
        wait_s += static_cast<double>(job.wait_s);
        resizes += resizes_of(job).value_or(0);
        if (const auto ratio = placement_of(job)) {
            ratios += *ratio;
            ++placed;
        }
    }
    const double jobs = std::max(1.0, static_cast<double>(report.jobs.size()));
    std::string out = std::to_string(report.jobs.size()) +
                      (report.jobs.size() == 1 ? " job, " : " jobs, ") +
                      format_fixed(gpu_hours(report.gpu_seconds), 2) + " GPU-hours, mean wait " +
                      duration(static_cast<std::int64_t>(wait_s / jobs)) + ", " +
                      std::to_string(resizes) + (resizes == 1 ? " resize" : " resizes");
    if (placed > 0)
        out += ", mean placement " + format_fixed(ratios / placed, 2) + "x the bandwidth of stock";
    return out + '\n';
}

std::string notes(const Report& report) {
    std::string out;
    if (report.jobs.empty() && report.skipped_lines == 0) {
        out +=
            "sacct names no job of that time (-S: by default today); it may hear of one some "
            "seconds after its submission\n";
    } else if (report.has_tres && !report.tres_has_gpus) {
        out +=
            "no record names gres/gpu: either no job had GPUs, or AccountingStorageTRES in "
            "slurm.conf lacks gres/gpu\n";
    }
    if (report.skipped_lines > 0) {
        out += std::to_string(report.skipped_lines) + " of sacct's lines skipped:\n";
        for (const std::string& warning : report.warnings) out += "  " + warning + '\n';
        if (report.skipped_lines > report.warnings.size()) out += "  ...\n";
    }
    return out;
}

// --- JSON and CSV: the same members, an unknown one is null or empty

Json optional_number(const std::optional<double>& value) {
    return value ? json_number(*value) : json_none();
}

Json job_value(const JobReport& job) {
    const auto resizes = resizes_of(job);
    Json out = json_object();
    json_put(out, "id", json_text(job.id));
    json_put(out, "user", json_text(job.user));
    json_put(out, "name", json_text(job.name));
    json_put(out, "state", json_text(job.state));
    json_put(out, "submit", job.submit != 0 ? json_integer(job.submit) : json_none());
    json_put(out, "wait_s", json_integer(job.wait_s));
    json_put(out, "elapsed_s", json_integer(job.elapsed_s));
    json_put(out, "max_gpus", json_integer(job.max_gpus));
    json_put(out, "gpu_seconds", json_integer(job.gpu_seconds));
    json_put(out, "records", json_integer(job.records));
    json_put(out, "resizes", resizes ? json_integer(*resizes) : json_none());
    json_put(out, "placement_ratio", optional_number(placement_of(job)));
    json_put(out, "loss_per_gpu_hour", optional_number(job.loss_per_gpu_hour));
    return out;
}

std::string csv_text(const std::string& text) {
    std::string out = "\"";
    if (!text.empty() && std::string_view("=+-@\t\r").find(text[0]) != std::string_view::npos)
        out += '\'';
    for (const char c : text) {
        if (c == '"') out += '"';
        out += c;
    }
    return out + '"';
}

std::string csv_number(const std::optional<double>& value) {
    return value ? format_number(*value) : "";
}

}  // namespace

std::string to_table(const Report& report) {
    std::vector<Row> rows{{"JOB", "USER", "NAME", "STATE", "GPUS", "GPU-HOURS", "WAIT", "RECORDS",
                           "RESIZES", "PLACEMENT", "LOSS/GPU-H"}};
    for (const JobReport& job : report.jobs) rows.push_back(table_row(job));
    std::array<std::size_t, columns> widths{};
    for (const Row& row : rows) {
        for (std::size_t i = 0; i < columns; ++i) widths[i] = std::max(widths[i], row[i].size());
    }
    std::string out;
    for (const Row& row : rows) {
        std::string line;
        for (std::size_t i = 0; i < columns; ++i) {
            const std::string padding(widths[i] - row[i].size(), ' ');
            line += is_text[i] ? row[i] + padding : padding + row[i];
            if (i + 1 < columns) line += "  ";
        }
        out += line + '\n';
    }
    return out + totals_line(report) + notes(report);
}

std::string to_json(const Report& report) {
    Json jobs = json_array();
    for (const JobReport& job : report.jobs) json_add(jobs, job_value(job));
    Json warnings = json_array();
    for (const std::string& warning : report.warnings) json_add(warnings, json_text(warning));
    Json out = json_object();
    json_put(out, "jobs", std::move(jobs));
    json_put(out, "gpu_seconds", json_integer(report.gpu_seconds));
    json_put(out, "tres_has_gpus", json_bool(report.tres_has_gpus));
    json_put(out, "skipped_lines", json_integer(static_cast<std::int64_t>(report.skipped_lines)));
    json_put(out, "warnings", std::move(warnings));
    return json_line(out.get()) + '\n';
}

std::string to_csv(const Report& report) {
    std::string out =
        "id,user,name,state,submit,wait_s,elapsed_s,max_gpus,gpu_seconds,records,resizes,"
        "placement_ratio,loss_per_gpu_hour\n";
    for (const JobReport& job : report.jobs) {
        const auto resizes = resizes_of(job);
        for (const std::string& text : {job.id, job.user, job.name, job.state})
            out += csv_text(text) + ',';
        if (job.submit != 0) out += std::to_string(job.submit);
        for (const std::int64_t number : {job.wait_s, job.elapsed_s, std::int64_t{job.max_gpus},
                                          job.gpu_seconds, std::int64_t{job.records}})
            out += ',' + std::to_string(number);
        out += ',' + (resizes ? std::to_string(*resizes) : "");
        out += ',' + csv_number(placement_of(job));
        out += ',' + csv_number(job.loss_per_gpu_hour) + "\n";
    }
    return out;
}

}  // namespace sluice
