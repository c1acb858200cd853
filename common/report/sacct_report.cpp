// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/report/sacct_report.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <map>

#include "common/base/text.hpp"
#include "common/report/tres.hpp"

namespace sluice {
namespace {

enum Column {
    job_id,
    user,
    state,
    submit,
    eligible,
    start,
    end,
    elapsed,
    alloc_tres,
    admin_comment,
    job_name,
    column_count
};
// In the order of `Column`, as sacct spells them in its header.
constexpr std::array<std::string_view, column_count> column_names{
    "JobID", "User",       "State",     "Submit",       "Eligible", "Start",
    "End",   "ElapsedRaw", "AllocTRES", "AdminComment", "JobName"};

constexpr std::size_t max_delimiter_bytes = 64;
constexpr std::size_t max_warnings = 10;
// Far beyond any real record, and times TresGpus::max_gpus it fits 64 bits.
constexpr std::int64_t max_elapsed_s = 10'000'000'000;

using Fields = std::array<std::string_view, column_count>;

struct SacctRecord {
    std::int64_t start = 0;  // 0: not started
    std::int64_t eligible = 0;
    std::int64_t submit = 0;
    std::int64_t elapsed_s = 0;
    std::int64_t gpus = 0;
};

std::int64_t add_bounded(std::int64_t a, std::int64_t b) {
    std::int64_t sum = 0;
    return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<std::int64_t>::max() : sum;
}

bool is_job_id(std::string_view text) {
    return !text.empty() && text.size() <= 64 && text[0] >= '0' && text[0] <= '9' &&
           text.find_first_not_of("0123456789_[]%-,+") == text.npos;
}

// Elapsed seconds of a record; without the column, from its times.
std::optional<std::int64_t> parse_elapsed(std::string_view text, std::int64_t from,
                                          std::int64_t until, std::int64_t now) {
    std::optional<std::int64_t> out = parse_integer(text);
    if (text.empty()) out = from == 0 ? 0 : std::max<std::int64_t>(0, (until ? until : now) - from);
    if (!out || *out < 0 || *out > max_elapsed_s) return std::nullopt;
    return out;
}

// The delimiter, from a header line that names our columns; "" where it does not.
std::string_view delimiter_of(std::string_view header) {
    if (header.substr(0, column_names[0].size()) != column_names[0]) return {};
    const std::size_t begin = column_names[0].size();
    const std::size_t second = header.find(column_names[1], begin);
    if (second == header.npos || second == begin || second - begin > max_delimiter_bytes) return {};
    const std::string_view delimiter = header.substr(begin, second - begin);
    std::string expected;
    for (const std::string_view name : column_names)
        (expected += expected.empty() ? "" : delimiter) += name;
    return header == expected ? delimiter : std::string_view();
}

// False where the line has too few columns. The last column takes the rest.
bool split_fields(std::string_view line, std::string_view delimiter, Fields& out) {
    for (std::size_t i = 0; i + 1 < column_count; ++i) {
        const std::size_t at = line.find(delimiter);
        if (at == line.npos) return false;
        out[i] = line.substr(0, at);
        line.remove_prefix(at + delimiter.size());
    }
    out[column_count - 1] = line;
    return true;
}

// Collects records into jobs; lives for one text.
class Reader {
  public:
    explicit Reader(std::int64_t now) : now_(now) {}

    void warn(std::size_t line, const std::string& what) {
        ++report_.skipped_lines;
        if (report_.warnings.size() < max_warnings)
            report_.warnings.push_back("line " + std::to_string(line) + ": " + what);
    }

    void add(const Fields& fields, std::size_t line) {
        last_ = nullptr;
        if (!is_job_id(fields[job_id])) {
            // Steps ("42.batch", "42.0") have no GPUs of their own.
            if (const std::size_t dot = fields[job_id].find('.');
                dot == fields[job_id].npos || !is_job_id(fields[job_id].substr(0, dot)))
                warn(line, "\"" + printable(fields[job_id], 40) + "\" is no job id");
            return;
        }
        std::array<std::optional<std::int64_t>, 4> times;
        for (const Column column : {submit, eligible, start, end}) {
            auto& time = times[static_cast<std::size_t>(column - submit)];
            time = parse_sacct_time(fields[column]);
            if (!time) {
                return warn(line, std::string(column_names[column]) + " \"" +
                                      printable(fields[column], 40) + "\" is no time");
            }
        }
        const auto elapsed_s = parse_elapsed(fields[elapsed], *times[2], *times[3], now_);
        if (!elapsed_s) {
            return warn(line, "ElapsedRaw \"" + printable(fields[elapsed], 40) +
                                  "\" is no number of seconds");
        }
        const auto gpus = parse_tres(fields[alloc_tres]);
        if (!gpus) {
            return warn(line, "AllocTRES \"" + printable(fields[alloc_tres], 120) +
                                  "\" has no count of GPUs");
        }
        report_.tres_has_gpus = report_.tres_has_gpus || gpus->named;
        report_.has_tres = report_.has_tres || !trim(fields[alloc_tres]).empty();
        Job& job = jobs_[std::string(fields[job_id])];
        last_ = &job;
        merge(job, fields,
              {*times[2], *times[1] ? *times[1] : *times[0], *times[0], *elapsed_s, gpus->count});
    }

    /// A line end within the name of the job before.
    bool continue_name(std::string_view line) {
        if (last_ == nullptr) return false;
        (last_->report.name += ' ') += line;
        return true;
    }

    Report finish() {
        for (auto& [id, job] : jobs_) {
            finish(job);
            job.report.id = id;
            report_.gpu_seconds = add_bounded(report_.gpu_seconds, job.report.gpu_seconds);
            report_.jobs.push_back(std::move(job.report));
        }
        std::sort(report_.jobs.begin(), report_.jobs.end(), [](const auto& a, const auto& b) {
            return natural_order(a.id) < natural_order(b.id);
        });
        return std::move(report_);
    }

  private:
    struct Job {
        JobReport report;
        std::int64_t first_start = 0;
        std::int64_t first_eligible = 0;
        std::int64_t last_order = std::numeric_limits<std::int64_t>::min();
        std::int64_t summary_order = std::numeric_limits<std::int64_t>::min();
    };

    static void merge(Job& job, const Fields& fields, const SacctRecord& record) {
        JobReport& out = job.report;
        const auto earlier = [](std::int64_t& kept, std::int64_t time) {
            if (time != 0 && (kept == 0 || time < kept)) kept = time;
        };
        earlier(out.submit, record.submit);
        earlier(job.first_eligible, record.eligible);
        earlier(job.first_start, record.start);
        out.gpu_seconds = add_bounded(out.gpu_seconds, record.gpus * record.elapsed_s);
        out.elapsed_s = add_bounded(out.elapsed_s, record.elapsed_s);
        out.max_gpus = std::max(out.max_gpus, static_cast<int>(record.gpus));
        ++out.records;
        // The record that waits for its start is the last one.
        const std::int64_t order =
            record.start != 0 ? record.start : std::numeric_limits<std::int64_t>::max();
        if (order >= job.last_order) {
            job.last_order = order;
            out.user = fields[user];
            out.name = fields[job_name];
            out.state = fields[state].substr(0, fields[state].find(' '));
        }
        if (order >= job.summary_order) {
            if (auto summary = parse_summary(fields[admin_comment])) {
                job.summary_order = order;
                out.summary = std::move(*summary);
            }
        }
    }

    void finish(Job& job) const {
        JobReport& out = job.report;
        const bool waits = job.first_start == 0 && out.state == "PENDING";
        const std::int64_t until = waits ? now_ : job.first_start;
        if (job.first_eligible != 0 && until > job.first_eligible)
            out.wait_s = until - job.first_eligible;
        if (out.summary && out.summary->record && out.summary->record->curve &&
            out.gpu_seconds > 0) {
            const LossCurve& curve = *out.summary->record->curve;
            out.loss_per_gpu_hour = (curve.first_loss - curve.last_loss) /
                                    (static_cast<double>(out.gpu_seconds) / 3600);
        }
    }

    std::int64_t now_;
    Report report_;
    std::map<std::string, Job> jobs_;
    Job* last_ = nullptr;  // of the line before, where that was a record
};

}  // namespace

std::pair<std::vector<std::int64_t>, std::string> natural_order(const std::string& id) {
    std::vector<std::int64_t> numbers;
    std::string_view rest = id;
    while (!rest.empty() && numbers.size() < 4) {
        const std::size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
        numbers.push_back(parse_integer(rest.substr(0, digits)).value_or(-1));
        rest.remove_prefix(std::min(rest.size(), digits + 1));
    }
    return {std::move(numbers), id};
}

std::string sacct_format() {
    std::string out;
    for (const std::string_view name : column_names) (out += out.empty() ? "" : ",") += name;
    return out;
}

std::optional<std::int64_t> parse_sacct_time(std::string_view text) {
    if (text.empty() || text == "Unknown" || text == "None") return 0;
    if (const auto seconds = parse_integer(text)) {
        if (*seconds < 0) return std::nullopt;
        return seconds;
    }
    // YYYY-MM-DDTHH:MM:SS
    constexpr std::string_view shape = "dddd-dd-ddTdd:dd:dd";
    if (text.size() != shape.size()) return std::nullopt;
    for (std::size_t i = 0; i < shape.size(); ++i) {
        const bool digit = text[i] >= '0' && text[i] <= '9';
        if (shape[i] == 'd' ? !digit : text[i] != shape[i]) return std::nullopt;
    }
    const auto number = [&](std::size_t from, std::size_t count) {
        return static_cast<unsigned>(*parse_integer(text.substr(from, count)));
    };
    const std::chrono::year_month_day day{std::chrono::year(static_cast<int>(number(0, 4))),
                                          std::chrono::month(number(5, 2)),
                                          std::chrono::day(number(8, 2))};
    if (!day.ok()) return std::nullopt;
    const auto midnight = std::chrono::sys_days(day).time_since_epoch();
    return std::chrono::duration_cast<std::chrono::seconds>(midnight).count() +
           std::int64_t{3600} * number(11, 2) + std::int64_t{60} * number(14, 2) + number(17, 2);
}

Result<Report> read_sacct(std::string_view text, std::int64_t now) {
    std::vector<std::string_view> lines = split(text, '\n');
    const std::string_view delimiter = delimiter_of(lines[0]);
    if (delimiter.empty()) {
        return {ErrorCode::bad_input,
                "line 1: \"" + printable(lines[0], 120) +
                    "\" is not the header of the columns that are read: make the file with sacct "
                    "-X -D -P --noconvert --format=" +
                    sacct_format()};
    }
    if (text.find('\0') != text.npos)
        return {ErrorCode::bad_input, "a NUL byte: this is no text that sacct printed"};
    Reader reader(now);
    for (std::size_t i = 1; i < lines.size(); ++i) {
        if (lines[i].empty() && i + 1 == lines.size()) break;  // after the last line end
        Fields fields;
        if (split_fields(lines[i], delimiter, fields)) {
            reader.add(fields, i + 1);
        } else if (lines[i].find(delimiter) != lines[i].npos || !reader.continue_name(lines[i])) {
            reader.warn(i + 1, "\"" + printable(lines[i], 40) + "\" has too few columns");
        }
    }
    return reader.finish();
}

std::optional<double> placement_ratio(const Summary& summary) {
    // Where the nodes differ, too, only the whole can be compared.
    if (const auto& predicted = summary.prediction; predicted && !predicted->stock.empty()) {
        if (!(predicted->gbps > 0) || !(predicted->stock_gbps > 0)) return std::nullopt;
        return predicted->gbps / predicted->stock_gbps;
    }
    double sum = 0;
    int count = 0;
    for (const SummaryPlacement& placement : summary.placements) {
        if (placement.stock_gpus.empty() || !(placement.stock_gbps > 0)) continue;
        sum += placement.gbps / placement.stock_gbps;
        ++count;
    }
    if (count == 0) return std::nullopt;
    return sum / count;
}

}  // namespace sluice
