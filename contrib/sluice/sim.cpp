// SPDX-License-Identifier: GPL-2.0-or-later
//
// sluice sim: a workload under several policies, in virtual time.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <optional>
#include <set>

#include "common/allocator/fifo.hpp"
#include "common/allocator/goodput.hpp"
#include "common/allocator/las.hpp"
#include "common/allocator/optimus.hpp"
#include "common/allocator/progress.hpp"
#include "common/allocator/sluice.hpp"
#include "common/allocator/srtf.hpp"
#include "common/base/file.hpp"
#include "common/base/json.hpp"
#include "common/base/text.hpp"
#include "contrib/sim/figures.hpp"
#include "contrib/sim/knowledge.hpp"
#include "contrib/sim/learned.hpp"
#include "contrib/sim/lower_bound.hpp"
#include "contrib/sim/plots.hpp"
#include "contrib/sim/sacct_workload.hpp"
#include "contrib/sim/simulation.hpp"
#include "contrib/sluice/command.hpp"
#include "contrib/sluice/progress_line.hpp"

namespace sluice::cli {
namespace {

using namespace sim;

constexpr const char* policies_known =
    "fifo, las, progress, goodput, sluice, srtf-oracle, optimus-oracle, sluice-oracle";

Error usage(const std::string& message) {
    return {ErrorCode::usage, message};
}

Result<double> number_of(const Options& options, const char* name, double otherwise, double least,
                         double most) {
    if (!options.has(name)) return otherwise;
    const auto value = parse_number(options.value(name));
    if (value && *value >= least && *value <= most) return *value;
    return usage(std::string(name) + " \"" + printable(options.value(name)) + "\": a number from " +
                 format_number(least) + " to " + format_number(most) + " is needed");
}

/// "ncf=1,bert=8": numbers from `least` to `most`. A value without a name stands for "".
Result<std::map<std::string, double>> by_application(const Options& options, const char* name,
                                                     double least, double most, bool others) {
    std::map<std::string, double> values;
    const std::string text = options.value(name);
    if (text.empty()) return values;
    for (const std::string_view each : split(text, ',')) {
        const std::size_t equals = each.find('=');
        const bool named = equals != std::string_view::npos;
        const auto value = parse_number(named ? each.substr(equals + 1) : each);
        if (!value || !(*value >= least && *value <= most) || (named ? equals == 0 : !others))
            return usage(std::string(name) + " \"" + printable(each) +
                         "\": " + (others ? "NUMBER or " : "") + "APPLICATION=NUMBER, from " +
                         format_number(least) + " to " + format_number(most) +
                         ", more of them behind commas, is needed");
        const std::string application(named ? each.substr(0, equals) : std::string_view());
        if (!values.emplace(application, *value).second)
            return usage(std::string(name) + ": " +
                         (named ? printable(application) : "a number without an application") +
                         " is there twice");
    }
    return values;
}

/// The policies that are to be tried, each once.
Result<std::vector<std::string>> policies_of(const Options& options) {
    std::vector<std::string> policies;
    const std::string text = options.value("--policy", "fifo,sluice");
    for (const std::string_view name : split(text, ',')) {
        const std::vector<std::string_view> known = split(policies_known, ',');
        if (std::none_of(known.begin(), known.end(),
                         [&](std::string_view each) { return trim(each) == name; }))
            return usage("\"" + printable(name) + "\" is no policy: write one of " +
                         policies_known);
        if (std::find(policies.begin(), policies.end(), name) != policies.end())
            return usage("--policy: " + std::string(name) + " is there twice");
        policies.emplace_back(name);
    }
    return policies;
}

Error wrong_job(const std::string& path, const WorkloadJob& job, const std::string& what) {
    return {ErrorCode::bad_input, path + ", line " + std::to_string(job.line) + ": " + what};
}

/// What can be said against a job as soon as the tables are read; empty: nothing.
std::string wrong_with(const WorkloadJob& job, const Application& application) {
    const double batch = batch_of(job, application.first_batch());
    if (batch < application.first_batch() || batch > application.most_batch())
        return "batch_size " + format_number(batch) + ": " + application.name() +
               " was measured with " + format_number(application.first_batch()) + " to " +
               format_number(application.most_batch());
    if (batch < job.gpus)
        return gpus_text(job.gpus) + " for a batch of " + format_number(batch) +
               ": a sample for each is needed";
    return {};
}

/// "6x4,2x8:dgx": nodes x GPUs, and the type in the names of the tables.
struct Cluster {
    std::vector<Nodes> nodes;
    std::vector<std::string> types;
    int gpus = 0;
};

Result<Cluster> cluster_of(const std::string& text) {
    Cluster cluster;
    for (const std::string_view each : split(text, ',')) {
        const std::size_t times = each.find('x');
        const std::size_t colon = std::min(each.find(':'), each.size());
        // 0 for what is no number
        const std::int64_t count =
            parse_integer(each.substr(0, std::min(times, colon))).value_or(0);
        const std::int64_t gpus =
            times < colon ? parse_integer(each.substr(times + 1, colon - times - 1)).value_or(0)
                          : 0;
        const std::string type(colon < each.size() ? each.substr(colon + 1) : "");
        if (count < 1 || count > 65536 || gpus < 1 || gpus > 64 ||
            type.find('/') != std::string::npos || cluster.types.size() == 16)
            return usage("--cluster \"" + printable(text) +
                         "\": NODESxGPUS or NODESxGPUS:TYPE, at most 16 of them behind commas, "
                         "nodes from 1 to 65536 and GPUs from 1 to 64, are needed");
        const auto known = std::find(cluster.types.begin(), cluster.types.end(), type);
        const auto number = static_cast<std::size_t>(known - cluster.types.begin());
        if (known == cluster.types.end()) cluster.types.push_back(type);
        cluster.nodes.push_back({static_cast<int>(count), static_cast<int>(gpus), number});
        cluster.gpus += static_cast<int>(count * gpus);
    }
    return cluster;
}

struct Run {
    std::string policy;
    SimulationResult result;
};

struct Runs {
    std::vector<Run> all;
    std::optional<LowerBound> bound;
};

void print_json(const Runs& runs) {
    Json all = json_object();
    for (const Run& run : runs.all) {
        const Figures figures = figures_of(run.result);
        Json one = json_object();
        json_put(one, "jobs", json_integer(static_cast<std::int64_t>(run.result.jobs.size())));
        json_put(one, "avg_jct_s", json_number(figures.average_s));
        json_put(one, "p50_jct_s", json_number(figures.median_s));
        json_put(one, "p99_jct_s", json_number(figures.p99_s));
        json_put(one, "makespan_s", json_number(run.result.makespan_s));
        json_put(one, "gpu_hours", json_number(figures.gpu_hours));
        json_put(one, "restarts_per_job", json_number(figures.restarts));
        json_put(one, "resizes_per_job", json_number(figures.resizes));
        json_put(one, "failures_per_job", json_number(figures.failures));
        json_put(one, "utilisation", json_number(figures.utilisation));
        json_put(one, "useful", json_number(figures.useful));
        json_put(one, "longest_wait_s", json_number(figures.longest_wait_s));
        json_put(one, "rho_median", json_number(figures.rho_median));
        json_put(one, "rho_worst", json_number(figures.rho_worst));
        json_put(one, "rho_above_1", json_number(figures.rho_above_1));
        const std::vector<double> rho = finish_time_fairness(run.result);
        if (runs.bound)
            json_put(one, "of_bound", json_number(figures.average_s / runs.bound->average_s()));
        Json jobs = json_array();
        for (std::size_t i = 0; i < rho.size(); ++i) {
            const JobResult& job = run.result.jobs[i];
            Json each = json_object();
            json_put(each, "name", json_text(job.name));
            json_put(each, "application", json_text(job.application));
            json_put(each, "arrival_s", json_number(job.arrival_s));
            json_put(each, "start_s", json_number(job.first_start_s));
            json_put(each, "end_s", json_number(job.end_s));
            json_put(each, "gpu_hours", json_number(job.gpu_s / 3600));
            json_put(each, "gpus", json_integer(job.gpus));
            json_put(each, "useful_gpu_hours", json_number(job.useful_gpu_s / 3600));
            json_put(each, "longest_wait_s", json_number(job.longest_wait_s));
            json_put(each, "restarts", json_integer(job.restarts));
            json_put(each, "resizes", json_integer(job.resizes));
            json_put(each, "failures", json_integer(job.failures));
            json_put(each, "alone_s", json_number(job.alone.back().seconds));
            json_put(each, "rho", json_number(rho[i]));
            json_add(jobs, std::move(each));
        }
        json_put(one, "job", std::move(jobs));
        json_put(all, run.policy.c_str(), std::move(one));
    }
    Json out = json_object();
    json_put(out, "policies", std::move(all));
    if (runs.bound) {
        Json bound = json_object();
        json_put(bound, "avg_jct_s", json_number(runs.bound->average_s()));
        json_put(bound, "alone_s", json_number(runs.bound->alone_s));
        json_put(bound, "fluid_s", json_number(runs.bound->fluid_s));
        json_put(bound, "priced_s", json_number(runs.bound->priced_s));
        json_put(out, "bound", std::move(bound));
    }
    std::puts(json_line(out.get()).c_str());
}

void print_table(const Runs& runs) {
    std::printf("%-16s %6s %10s %10s %10s %10s %10s %9s%s\n", "POLICY", "JOBS", "AVG JCT", "MEDIAN",
                "99%", "MAKESPAN", "GPU HOURS", "RESTARTS", runs.bound ? "  OF BOUND" : "");
    for (const Run& run : runs.all) {
        const Figures figures = figures_of(run.result);
        std::printf("%-16s %6zu %8.0f s %8.0f s %8.0f s %8.0f s %10.1f %9.2f", run.policy.c_str(),
                    run.result.jobs.size(), figures.average_s, figures.median_s, figures.p99_s,
                    run.result.makespan_s, figures.gpu_hours, figures.restarts);
        if (runs.bound) std::printf(" %9.3f", figures.average_s / runs.bound->average_s());
        std::printf("\n");
    }
    if (runs.bound)
        std::printf("%-16s %6zu %8.0f s\n", "bound", runs.all.front().result.jobs.size(),
                    runs.bound->average_s());
}

/// What the jobs got, behind when they were over.
void print_shares(const std::vector<Run>& runs) {
    std::printf("\n%-16s %8s %8s %10s %9s %7s %14s %8s %8s\n", "POLICY", "UTILISED", "USEFUL",
                "MEDIAN RHO", "WORST RHO", "RHO > 1", "LONGEST WAIT", "RESIZES", "FAILURES");
    for (const Run& run : runs) {
        const Figures figures = figures_of(run.result);
        std::printf("%-16s %6.1f %% %6.1f %% %10.2f %9.2f %5.1f %% %12.0f s %8.2f %8.2f\n",
                    run.policy.c_str(), 100 * figures.utilisation, 100 * figures.useful,
                    figures.rho_median, figures.rho_worst, 100 * figures.rho_above_1,
                    figures.longest_wait_s, figures.resizes, figures.failures);
    }
    std::puts("rho: completion time / the time alone on an equal share of the cluster");
}

void print_jobs(const std::vector<Run>& runs) {
    std::printf("\n%-16s %-22s %5s %11s %10s %10s %9s %5s %7s %6s\n", "POLICY", "JOB", "GPUS",
                "ARRIVAL", "JCT", "WAITED", "GPU HOURS", "RHO", "RESTART", "RESIZE");
    for (const Run& run : runs) {
        const std::vector<double> rho = finish_time_fairness(run.result);
        for (std::size_t i = 0; i < rho.size(); ++i) {
            const JobResult& job = run.result.jobs[i];
            std::printf("%-16s %-22s %5d %9.0f s %8.0f s %8.0f s %9.2f %5.2f %7d %6d\n",
                        run.policy.c_str(), printable(job.name, 19).c_str(), job.gpus,
                        job.arrival_s, job.completion_s(), job.longest_wait_s, job.gpu_s / 3600,
                        rho[i], job.restarts, job.resizes);
        }
    }
}

Status write_svg(const std::vector<Run>& runs, const std::string& path) {
    std::vector<PlottedRun> plotted;
    for (const Run& run : runs) plotted.push_back({run.policy, &run.result});
    return write_output(path, to_svg(plotted));
}

/// All that the options say.
struct Setting {
    Cluster cluster;
    std::vector<WorkloadJob> workload;
    std::vector<Application> applications;
    SimulationOptions options;
    LearnedOptions learned;
    double malleable = 1;

    Result<SimulationResult> run(const Policy& policy, Knowledge& knowledge) const {
        PartlyMalleable partly(knowledge, malleable, learned.seed);
        return simulate(workload, applications, cluster.nodes, policy, partly, options);
    }
};

Result<SimulationResult> run_policy(const std::string& name, const Setting& setting) {
    AsAsked as_asked;
    Oracle oracle(setting.learned.most_gpus);
    LearnedOptions all = setting.learned;
    if (name == "sluice-oracle") {
        all.exact_steps = true;
        all.size_error = 0;
    }
    Learned learned(setting.applications, all);
    if (name == "fifo") return setting.run(FifoPolicy(), as_asked);
    if (name == "las") return setting.run(LasPolicy(), as_asked);
    if (name == "progress") return setting.run(ProgressPolicy(), learned);
    if (name == "goodput") return setting.run(GoodputPolicy(), learned);
    if (name == "sluice" || name == "sluice-oracle") return setting.run(SluicePolicy(), learned);
    if (name == "srtf-oracle") return setting.run(SrtfPolicy(), oracle);
    if (name == "optimus-oracle") return setting.run(OptimusPolicy(), oracle);
    return usage("\"" + printable(name) + "\" is no policy: write one of " + policies_known);
}

Status read_measured(const Options& given, Setting& setting) {
    if (given.has("--scaling"))
        return usage("--scaling is for --from-sacct: measured jobs need no rule");
    const auto most_local = by_application(given, "--most-local-batch", 1, 1e9, false);
    if (!most_local) return most_local.error();
    const auto slower = by_application(given, "--slower", 0.01, 100, true);
    if (!slower) return slower.error();
    const std::string path = given.value("--workload");
    auto workload = read_workload(path);
    if (!workload) return Error{ErrorCode::bad_input, workload.error().message};
    setting.workload = std::move(*workload);
    const auto wrong = [&](const WorkloadJob& job, const std::string& what) {
        return wrong_job(path, job, what);
    };
    std::set<std::string> names;
    for (const WorkloadJob& job : setting.workload) {
        const std::string& name = job.application;
        if (name.find('/') != std::string::npos || name.starts_with('.') || name.size() > 255 ||
            std::any_of(name.begin(), name.end(),
                        [](char c) { return (c >= 0 && c < 32) || c == 127; }))
            return wrong(job,
                         "application \"" + printable(name) + "\": the name of a folder is needed");
        names.insert(name);
    }
    std::vector<std::string> folders;
    const std::string profiles = given.value("--profiles");
    for (const std::string_view folder : split(profiles, ':')) {
        if (folder.empty())
            return usage("--profiles \"" + printable(profiles) + "\": a folder without a name");
        folders.emplace_back(folder);
    }
    const auto of = [](const std::map<std::string, double>& values, const std::string& name,
                       double otherwise) {
        for (const std::string& key : {name, std::string()})
            if (const auto found = values.find(key); found != values.end()) return found->second;
        return otherwise;
    };
    for (const char* option : {"--most-gpus", "--most-local-batch", "--restart", "--slower"}) {
        const std::string text = given.value(option);
        for (const std::string_view each : split(text, ',')) {
            const std::size_t equals = each.find('=');
            if (equals != std::string_view::npos &&
                !names.contains(std::string(each.substr(0, equals))))
                std::fprintf(stderr, "sluice sim: %s: the workload has no job of application %s\n",
                             option, printable(each.substr(0, equals)).c_str());
        }
    }
    for (const std::string& name : names) {
        auto application = Application::read(name, folders, setting.cluster.types,
                                             {of(*most_local, name, 0), of(*slower, name, 1)});
        if (!application) return Error{ErrorCode::bad_input, application.error().message};
        for (std::size_t type = 0; type < application->types(); ++type)
            if (const int least = application->limits(type).least_local;
                of(*most_local, name, 1e9) < least)
                return usage("--most-local-batch " + name + "=" +
                             format_number(of(*most_local, name, 0)) +
                             ": the least that was measured is " + std::to_string(least));
        setting.applications.push_back(std::move(*application));
    }
    for (const WorkloadJob& job : setting.workload) {
        const auto application =
            std::find_if(setting.applications.begin(), setting.applications.end(),
                         [&](const Application& each) { return each.name() == job.application; });
        if (const std::string what = wrong_with(job, *application); !what.empty())
            return wrong(job, "job " + printable(job.name) + ": " + what);
    }
    return {};
}

/// The jobs of a site, which nobody has measured.
Status read_accounting(const Options& given, Setting& setting) {
    for (const char* other :
         {"--workload", "--profiles", "--slower", "--most-local-batch", "--exact-steps"})
        if (given.has(other))
            return usage(std::string(other) +
                         " does not go with --from-sacct: there are no tables");
    if (given.has("--bound"))
        return usage(
            "--bound does not go with --from-sacct: it is for jobs of few applications, and there "
            "each is one of its own");
    const auto scaling = number_of(given, "--scaling", 0, 0, 1);
    if (!scaling) return scaling.error();
    if (!given.has("--scaling")) {
        if (given.has("--malleable"))
            return usage(
                "--malleable needs --scaling, how jobs of --from-sacct run on other sizes");
        setting.malleable = 0;
    }
    const std::string path = given.value("--from-sacct");
    const auto text = read_file(path, max_sacct_bytes, FileKind::any);
    if (!text) return Error{ErrorCode::bad_input, text.error().message};
    auto read = read_sacct_workload(*text, path);
    if (!read) return read.error();
    for (const std::string& warning : read->warnings)
        std::fprintf(stderr, "sluice sim: %s\n", warning.c_str());
    std::fprintf(stderr,
                 "sluice sim: %s: %zu jobs with GPUs; of these requeued or resized %zu, cancelled, "
                 "failed or out of time %zu, still running %zu; left out: without GPUs %zu, never "
                 "started %zu, unreadable lines %zu\n",
                 path.c_str(), read->jobs.size(), read->requeued, read->cut_short,
                 read->still_running, read->without_gpus, read->never_started, read->unreadable);
    setting.workload = std::move(read->jobs);
    double needed_s = 0;  // of the whole cluster
    double longest_s = 0;
    for (const WorkloadJob& job : setting.workload) {
        setting.applications.push_back(Application::by_rule(
            job.application, job.gpus, job.runs_s, *scaling, setting.cluster.types.size()));
        needed_s += job.runs_s * job.gpus / setting.cluster.gpus;
        longest_s = std::max(longest_s, job.runs_s);
    }
    // months of work may come in a day
    setting.options.longest_s += 4 * (needed_s + longest_s);
    // the rule is all that there is to know
    setting.learned.exact_steps = true;
    setting.options.first_start_costs = false;
    return {};
}

Status read_files(const Options& given, Setting& setting) {
    const Status read =
        given.has("--from-sacct") ? read_accounting(given, setting) : read_measured(given, setting);
    if (!read) return read;
    const std::string path = given.value(given.has("--from-sacct") ? "--from-sacct" : "--workload");
    for (const WorkloadJob& job : setting.workload)
        if (job.gpus > setting.cluster.gpus)
            return wrong_job(path, job,
                             "job " + printable(job.name) + " asks for " + gpus_text(job.gpus) +
                                 ", the cluster has " + std::to_string(setting.cluster.gpus));
    return {};
}

Status read_failures(const Options& given, SimulationOptions& options, std::uint32_t seed) {
    for (const char* option : {"--repair", "--checkpoint-every"})
        if (given.has(option) && !given.has("--mtbf"))
            return usage(std::string(option) + " needs --mtbf, how often nodes fail");
    FailureOptions& failures = options.failures;
    const auto mtbf = number_of(given, "--mtbf", 0, 60, 1e12);
    if (!mtbf) return mtbf.error();
    const auto repair = number_of(given, "--repair", failures.repair_s, 0, 1e9);
    if (!repair) return repair.error();
    const auto checkpoint = number_of(given, "--checkpoint-every", options.round_s, 1, 1e9);
    if (!checkpoint) return checkpoint.error();
    failures = {*mtbf, *repair, *checkpoint, seed};
    return {};
}

void show_progress(ProgressLine& line, const std::string& policy,
                   const std::vector<WorkloadJob>& workload, double now_s, std::size_t over) {
    const auto hours = [](double seconds) { return format_fixed(seconds / 3600, 1) + " h"; };
    line.show(policy, over, workload.size(),
              hours(now_s) + " of " + hours(std::max(now_s, workload.back().arrival_s)) + ", " +
                  std::to_string(over) + " of " + std::to_string(workload.size()) + " jobs over");
}

Result<Runs> run_all(const Options& given) {
    for (const char* needed : {"--workload", "--profiles", "--cluster"})
        if (given.value(needed).empty() &&
            (needed == std::string_view("--cluster") || !given.has("--from-sacct")))
            return usage(std::string(needed) + " is missing");
    Setting setting;
    auto cluster = cluster_of(given.value("--cluster"));
    if (!cluster) return cluster.error();
    setting.cluster = std::move(*cluster);
    const Result<double> round = number_of(given, "--round", setting.options.round_s, 1, 86400);
    if (!round) return round.error();
    setting.options.round_s = *round;
    auto restart = by_application(given, "--restart", 0, 86400, true);
    if (!restart) return restart.error();
    if (const auto others = restart->extract("")) setting.options.restart_s = others.mapped();
    setting.options.restart_of_s = std::move(*restart);
    const auto most_gpus = by_application(given, "--most-gpus", 1, 1e6, true);
    if (!most_gpus) return most_gpus.error();
    for (const auto& [name, gpus] : *most_gpus) {
        if (gpus != std::floor(gpus))
            return usage("--most-gpus \"" + format_number(gpus) + "\": a whole number is needed");
        setting.learned.most_gpus[name] = static_cast<int>(gpus);
    }
    setting.learned.most_gpus.emplace("", setting.cluster.gpus);
    if (given.value("--size-error") == "unknown") {
        setting.learned.size_error = -1;
    } else {
        const auto error = number_of(given, "--size-error", setting.learned.size_error, 0, 5);
        if (!error) return error.error();
        setting.learned.size_error = *error;
    }
    const auto malleable = number_of(given, "--malleable", 1, 0, 1);
    if (!malleable) return malleable.error();
    setting.malleable = *malleable;
    const auto interference = number_of(given, "--interference", 0, 0, 0.99);
    if (!interference) return interference.error();
    setting.options.interference = *interference;
    const auto seed = number_of(given, "--seed", 1, 0, 1e9);
    if (!seed) return seed.error();
    if (*seed != std::floor(*seed))
        return usage("--seed \"" + format_number(*seed) + "\": a whole number is needed");
    setting.learned.seed = static_cast<std::uint32_t>(*seed);
    setting.learned.gpus_of_node = setting.cluster.nodes.front().gpus;
    setting.learned.exact_steps = given.has("--exact-steps");
    setting.learned.doubling = given.has("--doubling");
    setting.options.may_stop = !given.has("--never-stop");
    if (given.has("--cooldown") && setting.options.may_stop)
        return usage("--cooldown needs --never-stop: else jobs move in any round");
    const auto cooldown = number_of(given, "--cooldown", setting.options.cooldown_s, 0, 86400);
    if (!cooldown) return cooldown.error();
    setting.options.cooldown_s = *cooldown;
    if (given.has("--bound") && !setting.options.may_stop)
        return usage("--bound does not go with --never-stop: it is for jobs that start in rounds");
    const auto policies = policies_of(given);
    if (!policies) return policies.error();
    if (const Status read = read_failures(given, setting.options, setting.learned.seed); !read)
        return read.error();
    if (const Status read = read_files(given, setting); !read) return read.error();

    Runs runs;
    ProgressLine line;
    for (const std::string& policy : *policies) {
        if (line.wanted())
            setting.options.on_round = [&](double now_s, std::size_t over) {
                show_progress(line, policy, setting.workload, now_s, over);
            };
        auto result = run_policy(policy, setting);
        if (!result) return Error{result.error().code, policy + ": " + result.error().message};
        runs.all.push_back({policy, std::move(*result)});
    }
    if (given.has("--bound")) {
        const auto bound =
            lower_bound(setting.workload, setting.applications, setting.cluster.nodes,
                        setting.learned.most_gpus, setting.options);
        if (!bound) return bound.error();
        runs.bound = *bound;
    }
    return runs;
}

}  // namespace

int sim(const Arguments& arguments) {
    const auto options = Options::parse(arguments,
                                        {{"--workload", true},
                                         {"--from-sacct", true},
                                         {"--scaling", true},
                                         {"--profiles", true},
                                         {"--cluster", true},
                                         {"--policy", true},
                                         {"--round", true},
                                         {"--restart", true},
                                         {"--most-gpus", true},
                                         {"--most-local-batch", true},
                                         {"--slower", true},
                                         {"--size-error", true},
                                         {"--malleable", true},
                                         {"--seed", true},
                                         {"--exact-steps", false},
                                         {"--doubling", false},
                                         {"--bound", false},
                                         {"--never-stop", false},
                                         {"--cooldown", true},
                                         {"--interference", true},
                                         {"--mtbf", true},
                                         {"--repair", true},
                                         {"--checkpoint-every", true},
                                         {"--svg", true},
                                         {"--jobs", false},
                                         {"--json", false}},
                                        0);
    if (!options) return fail("sim", options.error());
    const auto runs = run_all(*options);
    if (!runs) return fail("sim", runs.error());
    if (options->has("--json")) {
        print_json(*runs);
    } else {
        print_table(*runs);
        print_shares(runs->all);
        if (options->has("--jobs")) print_jobs(runs->all);
    }
    // last: what took an hour to compute is not lost with a wrong path
    if (options->has("--svg"))
        if (const Status written = write_svg(runs->all, options->value("--svg")); !written)
            return fail("sim", {ErrorCode::unreachable, "--svg " + written.error().message});
    return 0;
}

}  // namespace sluice::cli
