// SPDX-License-Identifier: GPL-2.0-or-later
//
// sluice sim: a workload under several policies, in virtual time.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>

#include "common/allocator/fifo.hpp"
#include "common/allocator/las.hpp"
#include "common/allocator/optimus.hpp"
#include "common/allocator/srtf.hpp"
#include "common/base/json.hpp"
#include "common/base/text.hpp"
#include "contrib/sim/knowledge.hpp"
#include "contrib/sim/simulation.hpp"
#include "contrib/sluice/command.hpp"

namespace sluice::cli {
namespace {

using namespace sim;

constexpr const char* policies_known = "fifo, las, srtf-oracle, optimus-oracle";

Error usage(const std::string& message) {
    return {ErrorCode::usage, message};
}

/// A whole number from 1 to `most`.
Result<int> count_of(const Options& options, const char* name, int most) {
    const std::string text = options.value(name);
    const auto value = parse_integer(text);
    if (value && *value >= 1 && *value <= most) return static_cast<int>(*value);
    return usage(std::string(name) +
                 (text.empty() ? " is missing" : " \"" + printable(text) + "\"") +
                 ": a number from 1 to " + std::to_string(most) + " is needed");
}

Result<double> seconds_of(const Options& options, const char* name, double otherwise,
                          double least) {
    if (!options.has(name)) return otherwise;
    const auto value = parse_number(options.value(name));
    if (value && *value >= least && *value <= 1e7) return *value;
    return usage(std::string(name) + " \"" + printable(options.value(name)) + "\": seconds from " +
                 format_number(least) + " to 1e7 are needed");
}

/// "ncf=1,bert=8"
Result<std::map<std::string, int>> by_application(const Options& options, const char* name) {
    std::map<std::string, int> values;
    const std::string text = options.value(name);
    if (text.empty()) return values;
    for (const std::string_view each : split(text, ',')) {
        const std::size_t equals = each.find('=');
        const auto value = equals == std::string_view::npos
                               ? std::nullopt
                               : parse_integer(each.substr(equals + 1));
        if (!value || *value < 1 || *value > 1'000'000 || equals == 0)
            return usage(std::string(name) + " \"" + printable(each) +
                         "\": APPLICATION=NUMBER, more of them behind commas, is needed");
        values[std::string(each.substr(0, equals))] = static_cast<int>(*value);
    }
    return values;
}

struct Run {
    std::string policy;
    SimulationResult result;
};

double quantile(std::vector<double> values, double share) {
    std::sort(values.begin(), values.end());
    const double at = share * static_cast<double>(values.size() - 1);
    const auto low = static_cast<std::size_t>(at);
    const std::size_t high = std::min(low + 1, values.size() - 1);
    return values[low] + (at - std::floor(at)) * (values[high] - values[low]);
}

struct Figures {
    double average_s = 0;
    double median_s = 0;
    double p99_s = 0;
    double gpu_hours = 0;
    double restarts = 0;  ///< of a job
};

Figures figures_of(const SimulationResult& result) {
    Figures figures;
    std::vector<double> completion;
    for (const JobResult& job : result.jobs) {
        completion.push_back(job.completion_s());
        figures.average_s += job.completion_s();
        figures.gpu_hours += job.gpu_s / 3600;
        figures.restarts += job.restarts;
    }
    const auto jobs = static_cast<double>(result.jobs.size());
    figures.average_s /= jobs;
    figures.restarts /= jobs;
    figures.median_s = quantile(completion, 0.5);
    figures.p99_s = quantile(std::move(completion), 0.99);
    return figures;
}

void print_json(const std::vector<Run>& runs) {
    Json all = json_object();
    for (const Run& run : runs) {
        const Figures figures = figures_of(run.result);
        Json one = json_object();
        json_put(one, "jobs", json_integer(static_cast<std::int64_t>(run.result.jobs.size())));
        json_put(one, "avg_jct_s", json_number(figures.average_s));
        json_put(one, "p50_jct_s", json_number(figures.median_s));
        json_put(one, "p99_jct_s", json_number(figures.p99_s));
        json_put(one, "makespan_s", json_number(run.result.makespan_s));
        json_put(one, "gpu_hours", json_number(figures.gpu_hours));
        json_put(one, "restarts_per_job", json_number(figures.restarts));
        Json jobs = json_array();
        for (const JobResult& job : run.result.jobs) {
            Json each = json_object();
            json_put(each, "name", json_text(job.name));
            json_put(each, "application", json_text(job.application));
            json_put(each, "arrival_s", json_number(job.arrival_s));
            json_put(each, "start_s", json_number(job.first_start_s));
            json_put(each, "end_s", json_number(job.end_s));
            json_put(each, "gpu_hours", json_number(job.gpu_s / 3600));
            json_put(each, "restarts", json_integer(job.restarts));
            json_add(jobs, std::move(each));
        }
        json_put(one, "job", std::move(jobs));
        json_put(all, run.policy.c_str(), std::move(one));
    }
    Json out = json_object();
    json_put(out, "policies", std::move(all));
    std::puts(json_line(out.get()).c_str());
}

void print_table(const std::vector<Run>& runs) {
    std::printf("%-16s %6s %10s %10s %10s %10s %10s %9s\n", "POLICY", "JOBS", "AVG JCT", "MEDIAN",
                "99%", "MAKESPAN", "GPU HOURS", "RESTARTS");
    for (const Run& run : runs) {
        const Figures figures = figures_of(run.result);
        std::printf("%-16s %6zu %8.0f s %8.0f s %8.0f s %8.0f s %10.1f %9.2f\n", run.policy.c_str(),
                    run.result.jobs.size(), figures.average_s, figures.median_s, figures.p99_s,
                    run.result.makespan_s, figures.gpu_hours, figures.restarts);
    }
}

Result<SimulationResult> run_policy(const std::string& name,
                                    const std::vector<WorkloadJob>& workload,
                                    const std::vector<Application>& applications,
                                    const std::vector<Nodes>& nodes,
                                    const std::map<std::string, int>& most_gpus,
                                    const SimulationOptions& options) {
    AsAsked as_asked;
    Oracle oracle(most_gpus);
    if (name == "fifo")
        return simulate(workload, applications, nodes, FifoPolicy(), as_asked, options);
    if (name == "las")
        return simulate(workload, applications, nodes, LasPolicy(), as_asked, options);
    if (name == "srtf-oracle")
        return simulate(workload, applications, nodes, SrtfPolicy(), oracle, options);
    if (name == "optimus-oracle")
        return simulate(workload, applications, nodes, OptimusPolicy(), oracle, options);
    return usage("\"" + printable(name) + "\" is no policy: write one of " + policies_known);
}

Result<std::vector<Run>> run_all(const Options& given) {
    for (const char* needed : {"--workload", "--profiles"})
        if (given.value(needed).empty()) return usage(std::string(needed) + " is missing");
    const Result<int> count = count_of(given, "--nodes", 1'000'000);
    if (!count) return count.error();
    const Result<int> gpus = count_of(given, "--gpus-per-node", 64);
    if (!gpus) return gpus.error();
    SimulationOptions options;
    const Result<double> round = seconds_of(given, "--round", options.round_s, 1);
    if (!round) return round.error();
    const Result<double> restart = seconds_of(given, "--restart", options.restart_s, 0);
    if (!restart) return restart.error();
    options.round_s = *round;
    options.restart_s = *restart;
    auto most_gpus = by_application(given, "--most-gpus");
    if (!most_gpus) return most_gpus.error();
    const auto most_local = by_application(given, "--most-local-batch");
    if (!most_local) return most_local.error();
    most_gpus->emplace("", *count * *gpus);

    const auto workload = read_workload(given.value("--workload"));
    if (!workload) return Error{ErrorCode::bad_input, workload.error().message};
    std::set<std::string> names;
    for (const WorkloadJob& job : *workload) {
        if (job.gpus > *count * *gpus)
            return Error{ErrorCode::bad_input, "job " + printable(job.name) + " asks for " +
                                                   gpus_text(job.gpus) + ", the cluster has " +
                                                   std::to_string(*count * *gpus)};
        names.insert(job.application);
    }
    std::vector<Application> applications;
    for (const std::string& name : names) {
        if (name.find('/') != std::string::npos || name.starts_with('.'))
            return Error{ErrorCode::bad_input,
                         "application \"" + printable(name) + "\": the name of a folder is needed"};
        const auto local = most_local->find(name);
        auto application = Application::read(
            given.value("--profiles") + "/" + name, {""},
            {local == most_local->end() ? 0.0 : static_cast<double>(local->second)});
        if (!application) return Error{ErrorCode::bad_input, application.error().message};
        applications.push_back(std::move(*application));
    }
    std::vector<Run> runs;
    const std::string policies = given.value("--policy", "fifo");
    for (const std::string_view policy : split(policies, ',')) {
        auto result = run_policy(std::string(policy), *workload, applications, {{*count, *gpus, 0}},
                                 *most_gpus, options);
        if (!result) return result.error();
        runs.push_back({std::string(policy), std::move(*result)});
    }
    return runs;
}

}  // namespace

int sim(const Arguments& arguments) {
    const auto options = Options::parse(arguments,
                                        {{"--workload", true},
                                         {"--profiles", true},
                                         {"--nodes", true},
                                         {"--gpus-per-node", true},
                                         {"--policy", true},
                                         {"--round", true},
                                         {"--restart", true},
                                         {"--most-gpus", true},
                                         {"--most-local-batch", true},
                                         {"--json", false}},
                                        0);
    if (!options) return fail("sim", options.error());
    const auto runs = run_all(*options);
    if (!runs) return fail("sim", runs.error());
    if (options->has("--json"))
        print_json(*runs);
    else
        print_table(*runs);
    return 0;
}

}  // namespace sluice::cli
