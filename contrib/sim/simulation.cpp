// SPDX-License-Identifier: GPL-2.0-or-later
#include "contrib/sim/simulation.hpp"

#include <algorithm>
#include <cmath>

#include "common/base/text.hpp"
#include "contrib/sim/stock_starts.hpp"

namespace sluice::sim {
namespace {

struct ActiveJob {
    TrainingJob training;
    const WorkloadJob* asked;
    JobResult result;
    double restart_s = 0;
    double limit_s = 0;  ///< at the size that was asked for
    std::vector<NodeShare> held;
    double limit_end_s = 0;
    double since_s = 0;   ///< it has had these GPUs, or none
    double waited_s = 0;  ///< before it got them
    bool over = false;
};

/// How long the job runs as it was asked for, on as few nodes as can be.
double duration_as_asked(const TrainingJob& job, const WorkloadJob& asked, int gpus_of_node) {
    const Application& application = job.application();
    const double batch = batch_of(asked, application.first_batch());
    return application.total_progress() /
           job.rate_on(filled(asked.gpus, gpus_of_node), 0,
                       split_batch(application.limits(0), asked.gpus, batch));
}

const Application* find(const std::vector<Application>& applications, const std::string& name) {
    const auto found =
        std::find_if(applications.begin(), applications.end(),
                     [&](const Application& application) { return application.name() == name; });
    return found == applications.end() ? nullptr : &*found;
}

}  // namespace

bool Knowledge::malleable(const WorkloadJob&) {
    return true;
}

Result<SimulationResult> simulate(const std::vector<WorkloadJob>& workload,
                                  const std::vector<Application>& applications,
                                  const std::vector<Nodes>& nodes, const Policy& policy,
                                  Knowledge& knowledge, const SimulationOptions& options) {
    ClusterView view;
    std::vector<std::size_t> type_of_node;
    for (const Nodes& group : nodes) {
        for (int i = 0; i < group.count; ++i) {
            view.nodes.push_back({"n" + std::to_string(view.nodes.size()), group.gpus, group.type});
            type_of_node.push_back(group.type);
        }
    }
    view.options.interval_s = options.round_s;
    view.options.cooldown_s = options.round_s;
    view.options.may_stop = options.may_stop;

    SimulationResult result;
    std::vector<ActiveJob> jobs;
    jobs.reserve(workload.size());
    std::vector<std::size_t> active;
    std::size_t arrived = 0;
    for (double now = 0; arrived < workload.size() || !active.empty();) {
        if (active.empty()) {
            // nothing happens until the round before the next one comes
            const double rounds = std::ceil(workload[arrived].arrival_s / options.round_s) - 1;
            now = std::max(now, rounds * options.round_s);
        }
        if (now > workload.back().arrival_s + options.longest_s)
            return {ErrorCode::not_found, std::to_string(active.size()) +
                                              (active.size() == 1 ? " job is" : " jobs are") +
                                              " not over " + format_number(options.longest_s) +
                                              " s after the last has come"};
        for (const std::size_t number : active) {
            ActiveJob& job = jobs[number];
            const double lived = job.training.advance(options.round_s);
            if (!job.training.complete()) continue;
            job.over = true;
            job.result.end_s = now + lived;
        }
        now += options.round_s;
        std::erase_if(active, [&](std::size_t number) { return jobs[number].over; });
        for (; arrived < workload.size() && workload[arrived].arrival_s <= now; ++arrived) {
            const WorkloadJob& asked = workload[arrived];
            const Application* application = find(applications, asked.application);
            if (!application)
                return {ErrorCode::bad_input, "job " + printable(asked.name) +
                                                  ": there are no tables for application " +
                                                  printable(asked.application)};
            const auto restart = options.restart_of_s.find(asked.application);
            const double restart_s =
                restart == options.restart_of_s.end() ? options.restart_s : restart->second;
            active.push_back(jobs.size());
            jobs.push_back({TrainingJob(*application, knowledge.batch_rule(*application, asked)),
                            &asked,
                            {asked.name, asked.application, asked.arrival_s, 0, 0, 0, 0},
                            restart_s,
                            0,
                            {},
                            0,
                            asked.arrival_s,
                            0,
                            false});
            ActiveJob& job = jobs.back();
            const double seconds = duration_as_asked(job.training, asked, nodes.front().gpus);
            if (!(seconds <= options.longest_job_s))
                return {ErrorCode::not_found,
                        "job " + printable(asked.name) + " would take " + format_number(seconds) +
                            " s as it was asked for, " + format_number(options.longest_job_s) +
                            " s are the most that is simulated"};
            job.limit_s = options.limit_factor * seconds;
        }
        if (active.empty()) continue;

        view.jobs.clear();
        for (const std::size_t number : active) {
            const ActiveJob& job = jobs[number];
            JobView seen;
            seen.id = static_cast<std::uint32_t>(number);
            seen.running = job.training.running();
            seen.requested = job.asked->gpus;
            seen.current = job.training.gpus();
            seen.sizes = knowledge.sizes(job.training, *job.asked);
            seen.resizable = knowledge.malleable(*job.asked);
            seen.held = job.held;
            seen.work = knowledge.forecast(job.training, *job.asked);
            seen.attained_gpu_s = job.training.attained_gpu_s();
            seen.restart_cost_s = job.restart_s;
            seen.age_s = now - job.asked->arrival_s;
            seen.resizes = std::max(0, job.training.starts() - 1);
            seen.since_resize_s = now - job.since_s;
            seen.waited_s = seen.running ? job.waited_s : now - job.since_s;
            view.jobs.push_back(std::move(seen));
        }
        const auto give = [&](ActiveJob& job, std::vector<NodeShare> shares) {
            if (!job.training.running()) job.waited_s = now - job.since_s;
            job.since_s = now;
            job.held = std::move(shares);
            std::vector<int> gpus;
            for (const NodeShare& share : job.held) gpus.push_back(share.gpus);
            const std::size_t type = job.held.empty() ? 0 : type_of_node[job.held.front().node];
            job.training.place(std::move(gpus), type, job.restart_s);
            job.limit_end_s = now + job.limit_s;
            if (job.training.running() && job.training.starts() == 1)
                job.result.first_start_s = now;
        };
        Plan plan = policy.plan(view);
        std::vector<bool> named(jobs.size());
        // who gives up GPUs comes first
        for (Decision& decision : plan.decisions) {
            named[decision.job] = true;
            if (decision.gpus == 0) give(jobs[decision.job], {});
        }
        for (Decision& decision : plan.decisions)
            if (decision.gpus > 0) give(jobs[decision.job], std::move(decision.shares));

        std::vector<StockJob> others;
        std::vector<std::size_t> numbers;
        for (const std::size_t number : active) {
            const ActiveJob& job = jobs[number];
            if (!job.training.running() && named[number]) continue;
            others.push_back({job.training.running(),
                              job.training.running() ? job.training.gpus() : job.asked->gpus,
                              job.limit_end_s, job.limit_s, job.held});
            numbers.push_back(number);
        }
        for (StockStart& start : stock_starts(view.nodes, others, now))
            give(jobs[numbers[start.job]], std::move(start.shares));
    }
    for (ActiveJob& job : jobs) {
        job.result.gpu_s = job.training.attained_gpu_s();
        job.result.restarts = std::max(0, job.training.starts() - 1);
        result.makespan_s = std::max(result.makespan_s, job.result.end_s);
        result.jobs.push_back(std::move(job.result));
    }
    return result;
}

}  // namespace sluice::sim
