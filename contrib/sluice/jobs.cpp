// SPDX-License-Identifier: GPL-2.0-or-later
//
// sluice status, sluice report: what slurmctld and the accounting know, asked for with scontrol,
// squeue and sacct, a fixed number of calls each.

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <iterator>
#include <limits>
#include <random>
#include <set>

#include "common/base/file.hpp"
#include "common/base/json.hpp"
#include "common/base/text.hpp"
#include "common/model/loss_curve.hpp"
#include "common/report/sacct_report.hpp"
#include "common/report/scontrol_jobs.hpp"
#include "contrib/sluice/command.hpp"
#include "contrib/sluice/controller.hpp"
#include "contrib/sluice/run_program.hpp"

namespace sluice::cli {
namespace {

constexpr std::size_t max_bytes = 256 << 20;
// Jobs of a list that are asked for again, each alone, because another's name imitates them.
constexpr std::size_t max_alone = 32;

// --- status: asking

std::string job_name(const ControlJob& job) {
    return job.array.empty() ? job.id : job.array;
}

// The error of scontrol and squeue.
Error no_answer(const std::string& name, const ProgramOutput& output) {
    const bool no_job = output.err.find("Invalid job id") != std::string::npos;
    return failure(name, output, no_job ? ErrorCode::not_found : ErrorCode::unreachable);
}

// The ids of all jobs, or of one and the tasks of its array.
Result<std::set<std::string>> ask_ids(const std::string& job) {
    std::vector<std::string> words{"squeue", "--noheader", "--all", "--states=all",
                                   "--Format=JobID:24"};
    if (!job.empty()) words.push_back("--jobs=" + job);
    const auto output = run_program(words, {}, max_bytes);
    if (!output) return output.error();
    if (output->exit_status != 0) return no_answer("squeue", *output);
    std::set<std::string> ids;
    for (const std::string_view line : split(output->out, '\n')) {
        if (!trim(line).empty()) ids.emplace(trim(line));
    }
    return ids;
}

// All jobs, or one and the tasks of its array.
Result<ControlJobs> ask(const std::string& job) {
    const auto ids = ask_ids(job);
    if (!ids) return ids.error();
    // A task that the array lacks: squeue names none, and scontrol fails without a word.
    if (!job.empty() && ids->empty()) return ControlJobs();
    std::vector<std::string> words{"scontrol", "--details", "--oneliner", "show", "job"};
    if (!job.empty()) words.push_back(job);
    const auto output = run_program(words, {}, max_bytes);
    if (!output) return output.error();
    if (output->exit_status != 0) return no_answer("scontrol", *output);
    ControlJobs out = read_scontrol(output->out, *ids);
    std::stable_sort(out.jobs.begin(), out.jobs.end(), [](const auto& a, const auto& b) {
        return natural_order(job_name(a)) < natural_order(job_name(b));
    });
    return out;
}

struct AllJobs {
    std::vector<ControlJob> of_sluice;
    int others = 0;  // without a summary; they run and hold GPUs
};

Result<AllJobs> ask_all() {
    auto all = ask("");
    if (!all) return all.error();
    AllJobs out;
    std::size_t alone_left = max_alone;
    std::string left_out;
    for (ControlJob& job : all->jobs) {
        if (all->doubtful.contains(job.id)) {
            if (alone_left == 0) {
                left_out += ' ' + job.id;
                continue;
            }
            --alone_left;
            auto alone = ask(job.id);
            if (!alone || alone->jobs.empty()) continue;  // it has ended meanwhile
            job = std::move(alone->jobs.front());
        }
        if (job.summary || job.summary.error().code != ErrorCode::not_found)
            out.of_sluice.push_back(std::move(job));
        else if (job.state == "RUNNING" && job.gpus > 0)
            ++out.others;
    }
    if (!left_out.empty()) {
        std::fprintf(
            stderr,
            "sluice status: left out, because names of other jobs imitate them:%s; ask for "
            "each by its number\n",
            left_out.c_str());
    }
    return out;
}

// --- status: showing

/// Four significant digits, as a person reads a loss or a speed.
std::string shown(double value) {
    std::array<char, 32> text{};
    const auto end =
        std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::general, 4);
    return {text.data(), end.ptr};
}

// Sluice's own sentences have '_' for blanks in a summary.
std::string sentence(std::string text) {
    std::replace(text.begin(), text.end(), '_', ' ');
    return printable(text, 256);
}

// It is in one of the states that slurmctld leaves a job in for good.
bool has_ended(const ControlJob& job) {
    constexpr std::string_view states[] = {"BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE",
                                           "FAILED",    "NODE_FAIL", "PREEMPTED", "OUT_OF_MEMORY",
                                           "REVOKED",   "TIMEOUT"};
    return std::find(std::begin(states), std::end(states), job.state) != std::end(states);
}

// As many steps again as there were, where the curve is known and there is more to come.
std::optional<std::pair<std::int64_t, Forecast>> forecast_of(const ControlJob& job,
                                                             const Record& record) {
    if (has_ended(job) || !record.curve || record.curve->last_step < 1 ||
        record.curve->last_step > std::numeric_limits<std::int64_t>::max() / 2)
        return std::nullopt;
    const std::int64_t step = 2 * record.curve->last_step;
    return std::pair(step, forecast_loss(*record.curve, static_cast<double>(step)));
}

void print_record(const ControlJob& job, const Record& record) {
    if (record.points == 0) {
        std::printf("  loss      %s\n",
                    record.no_loss.empty()
                        ? (has_ended(job) ? "no loss found" : "no loss found yet")
                        : printable(record.no_loss, 300).c_str());
        return;
    }
    std::printf("  loss     ");
    if (record.loss) std::printf(" %s", shown(*record.loss).c_str());
    if (record.step) std::printf(" at step %lld", static_cast<long long>(*record.step));
    std::printf(", %lld loss%s read", static_cast<long long>(record.points),
                record.points == 1 ? "" : "es");
    if (record.steps_per_second)
        std::printf(", %s steps/s on %s", shown(*record.steps_per_second).c_str(),
                    gpus_text(record.gpus).c_str());
    std::printf("\n");
    if (!record.curve) {
        std::printf("  curve     %s\n",
                    has_ended(job) ? "not known" : "not known yet: more losses are needed");
        return;
    }
    const LossCurve& curve = *record.curve;
    std::printf("  curve     loss(k) = %s\n", formula(curve).c_str());
    if (const auto forecast = forecast_of(job, record)) {
        const auto& [step, loss] = *forecast;
        const Forecast limit = forecast_limit(curve);
        std::printf(
            "  forecast  %s expected at step %lld (80%%: %s to %s), %s in the end (80%%: %s to "
            "%s)\n",
            shown(loss.value).c_str(), static_cast<long long>(step), shown(loss.low).c_str(),
            shown(loss.high).c_str(), shown(limit.value).c_str(), shown(limit.low).c_str(),
            shown(limit.high).c_str());
    }
}

void print_placements(const Summary& summary) {
    const char* title = "placed";
    for (const SummaryPlacement& each : summary.placements) {
        std::printf("  %-8s  %s GPUs %s", title, printable(each.node).c_str(),
                    printable(each.gpus).c_str());
        // A single GPU has no bandwidth to another.
        if (each.gbps > 0) std::printf(", %s GB/s", shown(each.gbps).c_str());
        if (!each.stock_gpus.empty() && each.gbps > 0) {
            std::printf("; stock Slurm: %s, %s GB/s", printable(each.stock_gpus).c_str(),
                        shown(each.stock_gbps).c_str());
            if (each.stock_gbps > 0)
                std::printf(" (%sx)", format_fixed(each.gbps / each.stock_gbps, 2).c_str());
        }
        std::printf("\n");
        title = "";
    }
    if (summary.more_nodes > 0) std::printf("            and %d more nodes\n", summary.more_nodes);
    if (const auto& predicted = summary.prediction) {
        const auto speed = [&](double step, double gbps) {
            return "step " + (predicted->in_seconds ? shown(step) + " s" : format_fixed(step, 2)) +
                   (gbps > 0 ? ", " + shown(gbps) + " GB/s" : std::string());
        };
        std::printf("  predicted %s; stock Slurm%s%s: %s; best that existed: %s\n",
                    speed(predicted->step, predicted->gbps).c_str(),
                    predicted->stock.empty() ? "" : " on ", printable(predicted->stock).c_str(),
                    speed(predicted->stock_step, predicted->stock_gbps).c_str(),
                    speed(predicted->best_step, predicted->best_gbps).c_str());
    }
    if (!summary.forwarded.empty())
        std::printf("  placed    by stock Slurm: %s\n", sentence(summary.forwarded).c_str());
}

void print_job(const ControlJob& job, const Summary& summary) {
    std::printf("job %s: %s", job_name(job).c_str(), job.state.c_str());
    if (job.gpus > 0)
        std::printf(", %s%s", job.state == "PENDING" ? "asks for " : "",
                    gpus_text(job.gpus).c_str());
    if (!job.nodes.empty()) std::printf(" on %s", job.nodes.c_str());
    if (job.restarts > 0) std::printf(", %d restart%s", job.restarts, job.restarts == 1 ? "" : "s");
    std::printf("\n");
    print_placements(summary);
    if (summary.record) {
        print_record(job, *summary.record);
    } else {
        const bool may_come = job.state == "PENDING" || job.state == "RUNNING";
        std::printf("  loss      nothing heard from the job%s\n", may_come ? " yet" : "");
    }
    if (summary.pending_target > 0)
        std::printf("  restart   under way, to %s\n", gpus_text(summary.pending_target).c_str());
    if (summary.resize_count > 0) std::printf("  resizes   %d\n", summary.resize_count);
    for (const SummaryResize& each : summary.resizes) {
        std::printf("            %s  from %d to %d: %s\n", local_time(each.time).c_str(), each.from,
                    each.to, sentence(each.reason).c_str());
    }
    if (!summary.advice.empty()) std::printf("  advice    %s\n", sentence(summary.advice).c_str());
}

// One object on one line: the job, its summary as in summary-v1, the forecast.
void print_json(const ControlJob& job, const Summary& summary) {
    Json out = json_object();
    json_put(out, "job", json_text(job_name(job)));
    json_put(out, "state", json_text(job.state));
    json_put(out, "gpus", json_integer(job.gpus));
    json_put(out, "nodes", json_text(job.nodes));
    json_put(out, "restarts", json_integer(job.restarts));
    if (const auto field = parse_json(with_summary("", summary)))
        json_put(out, "sluice", Json(json_incref(json_object_get(field->get(), "sluice"))));
    const auto forecast = summary.record ? forecast_of(job, *summary.record) : std::nullopt;
    if (forecast) {
        Json value = json_object();
        json_put(value, "step", json_integer(forecast->first));
        json_put(value, "loss", json_number(forecast->second.value));
        json_put(value, "low", json_number(forecast->second.low));
        json_put(value, "high", json_number(forecast->second.high));
        json_put(out, "forecast", std::move(value));
    }
    std::printf("%s\n", json_line(out.get()).c_str());
}

std::string note(const Summary& summary) {
    if (summary.pending_target > 0)
        return "restart to " + gpus_text(summary.pending_target) + " under way";
    if (!summary.advice.empty()) return sentence(summary.advice);
    if (summary.record && summary.record->points == 0 && !summary.record->no_loss.empty())
        return printable(summary.record->no_loss, 100);
    if (!summary.forwarded.empty()) return "placed by stock Slurm: " + sentence(summary.forwarded);
    return "";
}

void print_row(const ControlJob& job) {
    if (!job.summary) {
        std::printf("%-12s  %-10s  %4d  %s\n", job_name(job).c_str(), job.state.c_str(), job.gpus,
                    printable(job.summary.error().message, 200).c_str());
        return;
    }
    const Summary& summary = *job.summary;
    const Record record = summary.record.value_or(Record{});
    const auto ratio = placement_ratio(summary);
    std::printf("%-12s  %-10s  %4d  %10s  %8s  %8s  %9s  %7d  %s\n", job_name(job).c_str(),
                job.state.c_str(), job.gpus,
                record.step ? std::to_string(*record.step).c_str() : "-",
                record.loss ? shown(*record.loss).c_str() : "-",
                record.steps_per_second ? shown(*record.steps_per_second).c_str() : "-",
                ratio ? (format_fixed(*ratio, 2) + "x").c_str() : "-", summary.resize_count,
                note(summary).c_str());
}

// Of jobs that have no summary.
constexpr const char* where_placements_are =
    "which GPUs each got, beside those of stock Slurm, is in slurmctld's log (sluice: job N: ...)";

int status_of_all(bool json) {
    const auto jobs = ask_all();
    if (!jobs) return fail("status", jobs.error());
    if (json) {
        for (const ControlJob& job : jobs->of_sluice) {
            if (job.summary) print_json(job, *job.summary);
        }
        return 0;
    }
    if (jobs->of_sluice.empty())
        std::printf("no job with --train-* options\n");
    else
        std::printf("%-12s  %-10s  %4s  %10s  %8s  %8s  %9s  %7s  %s\n", "JOB", "STATE", "GPUS",
                    "STEP", "LOSS", "STEPS/S", "PLACEMENT", "RESIZES", "NOTE");
    for (const ControlJob& job : jobs->of_sluice) print_row(job);
    if (jobs->others > 0) {
        std::printf(
            "%d job%s with GPUs run%s without --train-* options: %s; in short: sluice status "
            "--controller\n",
            jobs->others, jobs->others == 1 ? "" : "s", jobs->others == 1 ? "s" : "",
            where_placements_are);
    }
    return 0;
}

int status_of_job(const std::string& id, bool json) {
    if (id.empty() || id[0] < '0' || id[0] > '9' ||
        id.find_first_not_of("0123456789_+") != std::string::npos) {
        return fail("status", {ErrorCode::usage, "\"" + printable(id) +
                                                     "\" is no job: write its number like 42, or "
                                                     "40_3 for a task of an array"});
    }
    const auto asked = ask(id);
    if (!asked) {
        Error error = asked.error();
        if (error.code == ErrorCode::not_found)
            error.message = "no job " + id + " (" + error.message + ")";
        return fail("status", error);
    }
    Error none{ErrorCode::not_found, "no job " + id};
    bool found = false;
    for (const ControlJob& job : asked->jobs) {
        if (!job.summary) {
            none = job.summary.error();
            none.message = "job " + job_name(job) + ": " + none.message;
            if (none.code == ErrorCode::not_found)
                none.message +=
                    ": it was submitted without a --train-* option, before Sluice ran, or somebody "
                    "else writes to the AdminComment; " +
                    std::string(where_placements_are);
            continue;
        }
        if (found && !json) std::printf("\n");
        found = true;
        if (json)
            print_json(job, *job.summary);
        else
            print_job(job, *job.summary);
    }
    return found ? 0 : fail("status", none);
}

// --- report

// No user can have put this into a job's name, since it is made up now.
std::string random_delimiter() {
    std::random_device random;
    std::string out = "\x1f";
    for (int i = 0; i < 16; ++i) out += "0123456789abcdef"[random() % 16];
    return out + '\x1f';
}

Result<std::string> ask_sacct(const Options& options) {
    std::vector<std::string> words{"sacct",
                                   "--allocations",
                                   "--duplicates",
                                   "--parsable2",
                                   "--noconvert",
                                   "--delimiter=" + random_delimiter(),
                                   "--format=" + sacct_format()};
    if (options.has("-S")) words.push_back("--starttime=" + options.value("-S"));
    if (options.has("-E")) words.push_back("--endtime=" + options.value("-E"));
    words.push_back(options.has("-u") ? "--user=" + options.value("-u") : "--allusers");
    auto output = run_program(words, {"SLURM_TIME_FORMAT=%s"}, max_bytes);
    if (!output) return output.error();
    if (output->exit_status != 0) return failure("sacct", *output, ErrorCode::unreachable);
    return std::move(output->out);
}

Result<std::string> read_input(const std::string& path) {
    auto text = read_file(path, max_bytes, FileKind::any);
    if (!text) return {ErrorCode::bad_input, printable(text.error().message, 300)};
    return text;
}

Status check_report_options(const Options& options) {
    const std::string format = options.value("--format", "table");
    if (format != "table" && format != "json" && format != "csv") {
        return {ErrorCode::usage, "--format " + printable(format) + ": write table, json or csv"};
    }
    if (!options.has("--from-file")) return {};
    for (const char* name : {"-S", "-E", "-u"}) {
        if (options.has(name)) {
            return {ErrorCode::usage, std::string(name) +
                                          " chooses what sacct is asked for, and --from-file asks "
                                          "nobody: write one of them"};
        }
    }
    return {};
}

}  // namespace

std::string local_time(std::int64_t seconds) {
    const auto time = static_cast<std::time_t>(seconds);
    std::tm parts{};
    std::array<char, 32> text{};
    if (::localtime_r(&time, &parts) == nullptr ||
        std::strftime(text.data(), text.size(), "%F %T", &parts) == 0)
        return std::to_string(seconds);
    return text.data();
}

int status(const Arguments& arguments) {
    const auto options = Options::parse(
        arguments, {{"--json", false}, {"--controller", false}, {"--state-dir", true}}, 1);
    if (!options) return fail("status", options.error());
    const bool json = options->has("--json");
    if (options->has("--controller")) {
        if (!options->operands().empty())
            return fail("status", {ErrorCode::usage,
                                   "--controller is about all jobs: write no job beside it"});
        return status_of_controller(options->value("--state-dir"), json);
    }
    if (options->has("--state-dir"))
        return fail("status", {ErrorCode::usage, "--state-dir goes with --controller"});
    return options->operands().empty() ? status_of_all(json)
                                       : status_of_job(options->operands()[0], json);
}

int report(const Arguments& arguments) {
    const auto options = Options::parse(arguments,
                                        {{"-S", true, "--starttime"},
                                         {"-E", true, "--endtime"},
                                         {"-u", true, "--user"},
                                         {"--from-file", true},
                                         {"--format", true}},
                                        0);
    if (!options) return fail("report", options.error());
    if (const Status checked = check_report_options(*options); !checked)
        return fail("report", checked.error());
    const auto text = options->has("--from-file") ? read_input(options->value("--from-file"))
                                                  : ask_sacct(*options);
    if (!text) return fail("report", text.error());
    const auto now = std::chrono::duration_cast<std::chrono::seconds>(
        std::chrono::system_clock::now().time_since_epoch());
    const auto made = read_sacct(*text, now.count());
    if (!made) {
        Error error = made.error();
        if (options->has("--from-file"))
            error.message = printable(options->value("--from-file"), 200) + ": " + error.message;
        return fail("report", error);
    }
    const std::string format = options->value("--format", "table");
    const std::string out = format == "json"  ? to_json(*made)
                            : format == "csv" ? to_csv(*made)
                                              : to_table(*made);
    std::fwrite(out.data(), 1, out.size(), stdout);
    return 0;
}

}  // namespace sluice::cli
