// SPDX-License-Identifier: GPL-2.0-or-later
#include "contrib/sim/sacct_workload.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <unordered_map>

#include "common/base/text.hpp"
#include "common/report/sacct_report.hpp"
#include "common/report/tres.hpp"

namespace sluice::sim {
namespace {

enum Column {
    job_id,
    job_name,
    user,
    submit,
    start,
    end,
    elapsed,
    state,
    alloc_tres,
    req_tres,
    time_limit,
    column_count
};
constexpr std::array<std::string_view, column_count> column_names{
    "JobIDRaw",   "JobName", "User",      "Submit",  "Start",       "End",
    "ElapsedRaw", "State",   "AllocTRES", "ReqTRES", "TimelimitRaw"};
constexpr std::array needed{job_id, submit, elapsed, state, alloc_tres};

constexpr std::size_t max_warnings = 10;
constexpr std::size_t nowhere = std::numeric_limits<std::size_t>::max();
constexpr std::int64_t max_elapsed_s = 1'000'000'000;
constexpr std::int64_t max_gpus = 65536;

using Fields = std::array<std::string_view, column_count>;

/// All records of a job.
struct Job {
    std::size_t line = 0;  ///< of the first record
    std::int64_t submit_s = 0;
    std::int64_t first_start_s = 0;
    std::int64_t last_start_s = 0;
    std::int64_t gpus = 0;  ///< of the first start; before one, asked for
    std::int64_t gpu_s = 0;
    double limit_s = 0;
    int starts = 0;
    bool asked_gpus = false;
    std::string state{};  ///< of the last record
};

class Reader {
  public:
    Reader(std::string_view text, const std::string& name) : text_(text), name_(name) {}

    Result<SacctWorkload> read();

  private:
    Status read_header(std::string_view line);
    std::optional<Fields> split_fields(std::string_view line) const;
    /// What is wrong with it; "" for nothing.
    std::string add(const Fields& fields);
    Result<SacctWorkload> finish();

    std::string_view text_;
    const std::string& name_;
    std::array<std::size_t, column_count> places_{};
    std::size_t width_ = 0;
    std::size_t line_ = 0;
    std::unordered_map<std::string_view, std::size_t> numbers_;  // in jobs_
    std::vector<std::pair<std::string_view, Job>> jobs_;
    SacctWorkload out_;
};

Status Reader::read_header(std::string_view line) {
    const std::vector<std::string_view> names = split(line, '|');
    width_ = names.size();
    for (std::size_t i = 0; i < places_.size(); ++i) {
        const auto found = std::find(names.begin(), names.end(), column_names[i]);
        places_[i] =
            found == names.end() ? nowhere : static_cast<std::size_t>(found - names.begin());
    }
    for (const Column column : needed)
        if (places_[column] == nowhere)
            return {ErrorCode::bad_input,
                    name_ + ", line 1: the header has no column \"" +
                        std::string(column_names[column]) +
                        "\": make the file with sacct -a -X -D --parsable2 --noconvert --format=" +
                        sacct_workload_format()};
    return {};
}

/// Nothing for another number of cells than the header has: but a "|" may be in a job's name.
std::optional<Fields> Reader::split_fields(std::string_view line) const {
    const std::vector<std::string_view> cells = split(line, '|');
    const std::size_t more = cells.size() - width_;
    if (cells.size() < width_ || (more > 0 && places_[job_name] == nowhere)) return std::nullopt;
    Fields fields;
    for (std::size_t i = 0; i < places_.size(); ++i) {
        if (places_[i] == nowhere) continue;
        const bool behind = places_[job_name] != nowhere && places_[i] > places_[job_name];
        fields[i] = cells[places_[i] + (behind ? more : 0)];
    }
    return fields;
}

std::string Reader::add(const Fields& fields) {
    const auto wrong = [&](Column column, const char* needs) {
        return std::string(column_names[column]) + " is \"" + printable(fields[column], 60) +
               "\": " + needs + " is needed";
    };
    const std::string_view id = fields[job_id];
    if (id.find('.') != id.npos) return "";  // a step
    const auto number = parse_integer(id);
    if (!number || *number < 0) return wrong(job_id, "the number of a job");
    const auto submitted = parse_sacct_time(fields[submit]);
    if (!submitted || *submitted == 0)
        return wrong(submit, "YYYY-MM-DDTHH:MM:SS or seconds since 1970");
    const auto started = parse_sacct_time(fields[start]);
    if (!started) return wrong(start, "a time, Unknown or None");
    const auto seconds = parse_integer(fields[elapsed]);
    if (!seconds || *seconds < 0 || *seconds > max_elapsed_s)
        return wrong(elapsed, "a number of seconds");
    if (fields[state].empty()) return wrong(state, "the state of a job");
    const auto allocated = parse_tres(fields[alloc_tres]);
    if (!allocated || allocated->count > max_gpus)
        return wrong(alloc_tres, "gres/gpu=N, N from 0 to 65536,");
    const auto asked = parse_tres(fields[req_tres]);
    if (!asked || asked->count > max_gpus) return wrong(req_tres, "gres/gpu=N, N from 0 to 65536,");

    const auto [at, is_new] = numbers_.try_emplace(id, jobs_.size());
    if (is_new) jobs_.push_back({id, {.line = line_}});
    Job& job = jobs_[at->second].second;
    job.submit_s = job.submit_s == 0 ? *submitted : std::min(job.submit_s, *submitted);
    job.asked_gpus = job.asked_gpus || asked->count > 0 || allocated->count > 0;
    const std::int64_t gpus = allocated->named ? allocated->count : asked->count;
    if (*seconds == 0 || gpus == 0) {
        if (job.starts == 0) job.state = fields[state];
        return "";
    }
    if (job.starts == 0 || *started < job.first_start_s) {
        job.first_start_s = *started;
        job.gpus = gpus;
    }
    if (job.starts == 0 || *started >= job.last_start_s) {
        job.last_start_s = *started;
        job.state = fields[state];
    }
    job.gpu_s += gpus * *seconds;
    ++job.starts;
    // UNLIMITED and Partition_Limit say nothing
    if (const auto minutes = parse_integer(fields[time_limit]); minutes && *minutes > 0)
        job.limit_s = 60 * static_cast<double>(*minutes);
    return "";
}

Result<SacctWorkload> Reader::finish() {
    std::int64_t first_s = std::numeric_limits<std::int64_t>::max();
    for (const auto& [id, job] : jobs_)
        if (job.starts > 0) first_s = std::min(first_s, job.submit_s);
    for (const auto& [id, job] : jobs_) {
        if (job.starts == 0) {
            ++(job.asked_gpus ? out_.never_started : out_.without_gpus);
            continue;
        }
        out_.requeued += job.starts > 1;
        const bool runs = job.state.starts_with("RUNNING") || job.state.starts_with("SUSPENDED");
        out_.still_running += runs;
        out_.cut_short += !runs && !job.state.starts_with("COMPLETED");
        WorkloadJob out;
        out.name = out.application = id;
        out.arrival_s = static_cast<double>(job.submit_s - first_s);
        out.line = job.line;
        out.gpus = static_cast<int>(job.gpus);
        out.runs_s = static_cast<double>(job.gpu_s) / static_cast<double>(job.gpus);
        out.limit_s = job.limit_s;
        out_.jobs.push_back(std::move(out));
    }
    if (out_.jobs.empty())
        return {ErrorCode::bad_input,
                name_ + ": has no job that has run on GPUs: " + std::to_string(out_.without_gpus) +
                    " without GPUs, " + std::to_string(out_.never_started) + " never started, " +
                    std::to_string(out_.unreadable) + " unreadable lines" +
                    (out_.warnings.empty() ? "" : "; " + out_.warnings.front())};
    number_by_arrival(out_.jobs);
    return std::move(out_);
}

Result<SacctWorkload> Reader::read() {
    std::string_view header;
    for (std::size_t at = 0; at < text_.size();) {
        const std::size_t stop = std::min(text_.find('\n', at), text_.size());
        std::string_view line = text_.substr(at, stop - at);
        at = stop + 1;
        ++line_;
        if (line.ends_with('\r')) line.remove_suffix(1);
        if (line_ == 1) {
            if (const Status known = read_header(line); !known) return known.error();
            header = line;
            continue;
        }
        if (line.empty() || line == header) continue;  // of a second file behind the first
        const auto fields = split_fields(line);
        const std::string what = fields ? add(*fields)
                                        : std::to_string(split(line, '|').size()) +
                                              " cells where the header has " +
                                              std::to_string(width_) + ": " + printable(line);
        if (what.empty()) continue;
        ++out_.unreadable;
        if (out_.warnings.size() < max_warnings)
            out_.warnings.push_back(name_ + ", line " + std::to_string(line_) + ": " + what);
    }
    if (line_ == 0)
        return {ErrorCode::bad_input, name_ + ": is empty, the header of sacct is needed"};
    return finish();
}

}  // namespace

std::string sacct_workload_format() {
    std::string out;
    for (const std::string_view name : column_names) (out += out.empty() ? "" : ",") += name;
    return out;
}

Result<SacctWorkload> read_sacct_workload(std::string_view text, const std::string& name) {
    return Reader(text, name).read();
}

}  // namespace sluice::sim
