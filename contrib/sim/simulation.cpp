// SPDX-License-Identifier: GPL-2.0-or-later
#include "contrib/sim/simulation.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <unordered_map>

#include "common/base/text.hpp"
#include "contrib/sim/stock_starts.hpp"

namespace sluice::sim {
namespace {

struct ActiveJob {
    TrainingJob training;
    const WorkloadJob* asked = nullptr;
    JobResult result;
    double restart_s = 0;
    double limit_s = 0;  ///< at the size that was asked for
    std::vector<NodeShare> held{};
    double limit_end_s = 0;
    double since_s = 0;               ///< it has had these GPUs, or none
    double waited_s = 0;              ///< before it got them
    int asks = 0;                     ///< GPUs, while it waits
    int last_gpus = 0;                ///< that it has had
    std::vector<double> resized_s{};  ///< when, in the last hour
    bool over = false;
};

/// How long the job runs as it was asked for, on as few nodes of a type as can be.
double duration_as_asked(const TrainingJob& job, const WorkloadJob& asked, const Nodes& nodes) {
    const Application& application = job.application();
    const double batch = batch_of(asked, application.first_batch());
    return application.total_progress() /
           job.rate_on(filled(asked.gpus, nodes.gpus), nodes.type,
                       split_batch(application.limits(nodes.type), asked.gpus, batch));
}

bool shares_network(const ActiveJob& job, const std::vector<int>& spread_jobs) {
    return job.held.size() > 1 &&
           std::any_of(job.held.begin(), job.held.end(),
                       [&](const NodeShare& share) { return spread_jobs[share.node] > 1; });
}

class Run {
  public:
    Run(const std::vector<WorkloadJob>& workload, const std::vector<Application>& applications,
        const std::vector<Nodes>& nodes, const Policy& policy, Knowledge& knowledge,
        const SimulationOptions& options);

    Result<SimulationResult> go();

  private:
    Status start_until(double end);
    double next_change(double end) const;
    void live_until(double end);
    double live(ActiveJob& job, double until_s, double slowdown);
    std::vector<int> spread_jobs() const;
    std::vector<double> node_failures_until(double end);
    Status take_arrivals();
    void decide();
    void start_stock(const std::vector<bool>& named);
    std::vector<AloneTime> times_alone(const ActiveJob& job) const;
    JobView view_of(std::size_t number);
    void give(ActiveJob& job, std::vector<NodeShare> shares);
    void note_held(double since_s, int gpus);
    void note_all_held();
    int held() const;

    const std::vector<WorkloadJob>& workload_;
    std::unordered_map<std::string_view, const Application*> applications_;
    const std::vector<Nodes>& nodes_;
    const Policy& policy_;
    Knowledge& knowledge_;
    const SimulationOptions& options_;

    NodeFailures failures_;
    ClusterView view_;
    std::vector<int> gpus_of_nodes_;  // while they are up
    std::vector<ActiveJob> jobs_;     // that have come
    std::vector<std::size_t> active_;
    double now_ = 0;
    SimulationResult result_;
};

Run::Run(const std::vector<WorkloadJob>& workload, const std::vector<Application>& applications,
         const std::vector<Nodes>& nodes, const Policy& policy, Knowledge& knowledge,
         const SimulationOptions& options)
    : workload_(workload),
      nodes_(nodes),
      policy_(policy),
      knowledge_(knowledge),
      options_(options),
      failures_(std::accumulate(nodes.begin(), nodes.end(), std::size_t{0},
                                [](std::size_t sum, const Nodes& group) {
                                    return sum + static_cast<std::size_t>(group.count);
                                }),
                options.failures) {
    for (const Application& each : applications) applications_.emplace(each.name(), &each);
    for (const Nodes& group : nodes) {
        result_.gpus += group.count * group.gpus;
        for (int i = 0; i < group.count; ++i)
            view_.nodes.push_back(
                {"n" + std::to_string(view_.nodes.size()), group.gpus, group.type});
        gpus_of_nodes_.resize(view_.nodes.size(), group.gpus);
    }
    view_.options.interval_s = options.round_s;
    view_.options.may_stop = options.may_stop;
    view_.options.cooldown_s = options.may_stop ? options.round_s : options.cooldown_s;
    jobs_.reserve(workload.size());
}

Result<SimulationResult> Run::go() {
    while (jobs_.size() < workload_.size() || !active_.empty()) {
        if (active_.empty()) {
            // nothing happens until the round before the next one comes
            const double rounds =
                std::ceil(workload_[jobs_.size()].arrival_s / options_.round_s) - 1;
            now_ = std::max(now_, rounds * options_.round_s);
        }
        if (now_ > workload_.back().arrival_s + options_.longest_s)
            return {ErrorCode::not_found, std::to_string(active_.size()) +
                                              (active_.size() == 1 ? " job is" : " jobs are") +
                                              " not over " + format_number(options_.longest_s) +
                                              " s after the last has come"};
        const double end = now_ + options_.round_s;
        if (!options_.may_stop)
            if (const Status started = start_until(end); !started) return started.error();
        live_until(end);
        if (options_.on_round) options_.on_round(now_, jobs_.size() - active_.size());
        if (const Status taken = take_arrivals(); !taken) return taken.error();
        if (!active_.empty()) decide();
    }
    for (ActiveJob& job : jobs_) {
        job.result.gpu_s = job.training.attained_gpu_s();
        job.result.useful_gpu_s = job.training.useful_gpu_s();
        job.result.restarts = std::max(0, job.training.starts() - 1);
        result_.makespan_s = std::max(result_.makespan_s, job.result.end_s);
        result_.jobs.push_back(std::move(job.result));
    }
    return std::move(result_);
}

/// Slurm starts who fits as they ask, when they come and when GPUs become free; what the policy
/// wants of them comes with the next round.
Status Run::start_until(double end) {
    for (double at = next_change(end); at < end; at = next_change(end)) {
        live_until(at);
        if (const Status taken = take_arrivals(); !taken) return taken;
        start_stock(std::vector<bool>(jobs_.size()));
        note_all_held();
    }
    return {};
}

/// When the next job comes or, where some wait, the first one is over.
double Run::next_change(double end) const {
    constexpr double surely_s = 1e-6;  // behind the end of a job, whatever was rounded
    double at = end;
    if (jobs_.size() < workload_.size())
        at = std::min(at, std::max(now_, workload_[jobs_.size()].arrival_s));
    if (std::all_of(active_.begin(), active_.end(),
                    [&](std::size_t number) { return jobs_[number].training.running(); }))
        return at;
    for (const std::size_t number : active_) {
        TrainingJob job = jobs_[number].training;
        const double lived = job.advance(at - now_);
        if (job.complete()) at = std::min(at, now_ + lived + surely_s);
    }
    return at;
}

/// Jobs run on with what they hold.
void Run::live_until(double end) {
    struct Freed {
        double at_s;
        int gpus;
    };
    std::vector<Freed> freed;
    const std::vector<double> fails_at = node_failures_until(end);
    const std::vector<int> spread = options_.interference > 0 ? spread_jobs() : std::vector<int>();
    for (const std::size_t number : active_) {
        ActiveJob& job = jobs_[number];
        double until = std::numeric_limits<double>::infinity();
        if (!fails_at.empty())
            for (const NodeShare& share : job.held) until = std::min(until, fails_at[share.node]);
        const bool fails = until <= end;
        const bool slowed = !spread.empty() && shares_network(job, spread);
        const double lived = live(job, std::min(until, end), slowed ? options_.interference : 0);
        if (job.training.complete()) {
            job.over = true;
            job.result.end_s = now_ + lived;
            freed.push_back({job.result.end_s, job.training.gpus()});
        } else if (fails) {
            freed.push_back({until, job.training.gpus()});
            job.training.fail();
            job.held.clear();
            job.since_s = until;
            ++job.result.failures;
        }
    }
    std::stable_sort(freed.begin(), freed.end(),
                     [](const Freed& a, const Freed& b) { return a.at_s < b.at_s; });
    for (const Freed& each : freed) note_held(each.at_s, held() - each.gpus);
    now_ = end;
    std::erase_if(active_, [&](std::size_t number) { return jobs_[number].over; });
}

/// Writes the last checkpoint that is due on the way. Returns for how long it lived.
double Run::live(ActiveJob& job, double until_s, double slowdown) {
    double lived = 0;
    if (options_.failures.mtbf_s > 0 && job.training.running()) {
        const double every_s = options_.failures.checkpoint_every_s;
        const double last_s = job.since_s + std::floor((until_s - job.since_s) / every_s) * every_s;
        if (last_s > now_) {
            lived = job.training.advance(last_s - now_, slowdown);
            if (job.training.complete()) return lived;
            job.training.checkpoint();
        }
    }
    return lived + job.training.advance(until_s - now_ - lived, slowdown);
}

/// On each node, jobs that have GPUs of others too.
std::vector<int> Run::spread_jobs() const {
    std::vector<int> jobs(view_.nodes.size());
    for (const std::size_t number : active_) {
        const std::vector<NodeShare>& held = jobs_[number].held;
        if (held.size() < 2) continue;
        for (const NodeShare& share : held) ++jobs[share.node];
    }
    return jobs;
}

/// Nodes go and come. Returns when each has failed first; empty where none has.
std::vector<double> Run::node_failures_until(double end) {
    std::vector<double> fails_at;
    for (const NodeFailures::Event& event : failures_.next(end)) {
        view_.nodes[event.node].gpus = event.fails ? 0 : gpus_of_nodes_[event.node];
        if (!event.fails) continue;
        if (fails_at.empty())
            fails_at.assign(view_.nodes.size(), std::numeric_limits<double>::infinity());
        fails_at[event.node] = std::min(fails_at[event.node], event.at_s);
    }
    return fails_at;
}

Status Run::take_arrivals() {
    while (jobs_.size() < workload_.size() && workload_[jobs_.size()].arrival_s <= now_) {
        const WorkloadJob& asked = workload_[jobs_.size()];
        const auto application = applications_.find(asked.application);
        if (application == applications_.end())
            return {ErrorCode::bad_input, "job " + printable(asked.name) +
                                              ": there are no tables for application " +
                                              printable(asked.application)};
        ActiveJob job{.training = TrainingJob(*application->second,
                                              knowledge_.batch_rule(*application->second, asked)),
                      .asked = &asked,
                      .result = {.name = asked.name,
                                 .application = asked.application,
                                 .gpus = asked.gpus,
                                 .arrival_s = asked.arrival_s},
                      .since_s = asked.arrival_s,
                      .asks = asked.gpus};
        const auto restart = options_.restart_of_s.find(asked.application);
        job.restart_s =
            restart == options_.restart_of_s.end() ? options_.restart_s : restart->second;
        const double seconds = duration_as_asked(job.training, asked, nodes_.front());
        if (!(seconds <= options_.longest_job_s))
            return {ErrorCode::not_found, "job " + printable(asked.name) + " would take " +
                                              format_number(seconds) + " s as it was asked for, " +
                                              format_number(options_.longest_job_s) +
                                              " s are the most that is simulated"};
        job.limit_s = asked.limit_s > 0 ? asked.limit_s : options_.limit_factor * seconds;
        job.result.alone = times_alone(job);
        active_.push_back(jobs_.size());
        jobs_.push_back(std::move(job));
    }
    return {};
}

/// On 1, 2, 4 and so on to the GPUs that were asked for; rigid: on these.
std::vector<AloneTime> Run::times_alone(const ActiveJob& job) const {
    const Application& application = job.training.application();
    const double batch = batch_of(*job.asked, application.first_batch());
    const double start_s = options_.first_start_costs ? job.restart_s : 0;
    const int asked = job.asked->gpus;
    std::vector<AloneTime> times;
    for (int gpus = knowledge_.malleable(*job.asked) ? 1 : asked;;
         gpus = std::min(2 * gpus, asked)) {
        double speed = 0;
        for (const Nodes& group : nodes_) {
            const BatchSplit split = split_batch(application.limits(group.type), gpus, batch);
            const double seconds =
                job.training.steps_left(split.batch(gpus)) *
                job.training.step_seconds_on(filled(gpus, group.gpus), group.type, split);
            speed += double(group.count) * group.gpus / result_.gpus / seconds;
        }
        times.push_back({gpus, start_s + 1 / speed});
        if (gpus == asked) return times;
    }
}

JobView Run::view_of(std::size_t number) {
    ActiveJob& job = jobs_[number];
    std::erase_if(job.resized_s, [&](double time) { return time <= now_ - 3600; });
    JobView seen;
    seen.id = static_cast<std::uint32_t>(number);
    seen.running = job.training.running();
    seen.requested = job.asked->gpus;
    seen.current = seen.running ? job.training.gpus() : job.asks;
    seen.sizes = knowledge_.sizes(job.training, *job.asked);
    seen.resizable = knowledge_.malleable(*job.asked);
    seen.held = job.held;
    seen.work = knowledge_.forecast(job.training, *job.asked);
    knowledge_.show_curve(job.training, *job.asked, seen);
    seen.attained_gpu_s = job.training.attained_gpu_s();
    seen.restart_cost_s = job.restart_s;
    seen.age_s = now_ - job.asked->arrival_s;
    seen.resizes = std::max(0, job.training.starts() - 1);
    seen.resizes_last_hour = static_cast<int>(job.resized_s.size());
    seen.since_resize_s = now_ - job.since_s;
    seen.waited_s = seen.running ? job.waited_s : now_ - job.since_s;
    return seen;
}

void Run::give(ActiveJob& job, std::vector<NodeShare> shares) {
    if (!job.training.running()) {
        job.waited_s = now_ - job.since_s;
        job.result.longest_wait_s = std::max(job.result.longest_wait_s, job.waited_s);
    }
    job.since_s = now_;
    job.held = std::move(shares);
    std::vector<int> gpus;
    for (const NodeShare& share : job.held) gpus.push_back(share.gpus);
    const std::size_t type = job.held.empty() ? 0 : view_.nodes[job.held.front().node].type;
    const bool starts_free = job.training.starts() == 0 && !options_.first_start_costs;
    job.training.place(std::move(gpus), type, starts_free ? 0 : job.restart_s);
    job.limit_end_s = now_ + job.limit_s;
    if (!job.training.running()) return;
    if (job.training.starts() == 1)
        job.result.first_start_s = now_;
    else if (job.training.gpus() != job.last_gpus) {
        ++job.result.resizes;
        job.resized_s.push_back(now_);
    }
    job.last_gpus = job.training.gpus();
}

void Run::decide() {
    view_.jobs.clear();
    for (const std::size_t number : active_) view_.jobs.push_back(view_of(number));
    Plan plan = policy_.plan(view_);
    std::vector<bool> named(jobs_.size());
    // who gives up GPUs comes first
    for (const Decision& decision : plan.decisions) {
        ActiveJob& job = jobs_[decision.job];
        if (decision.gpus > 0 && decision.shares.empty()) {  // starts where there is room
            job.asks = decision.gpus;
            if (job.training.running()) give(job, {});
            continue;
        }
        named[decision.job] = true;
        if (decision.gpus == 0) give(job, {});
    }
    for (Decision& decision : plan.decisions)
        if (!decision.shares.empty()) give(jobs_[decision.job], std::move(decision.shares));
    start_stock(named);
    note_all_held();
}

void Run::note_all_held() {
    int all = 0;
    for (const std::size_t number : active_) all += jobs_[number].training.gpus();
    note_held(now_, all);
}

/// Waiting jobs that the policy has said nothing of, or no place.
void Run::start_stock(const std::vector<bool>& named) {
    std::vector<StockJob> others;
    std::vector<std::size_t> numbers;
    for (const std::size_t number : active_) {
        const ActiveJob& job = jobs_[number];
        if (!job.training.running() && named[number]) continue;
        others.push_back({job.training.running(),
                          job.training.running() ? job.training.gpus() : job.asks, job.limit_end_s,
                          job.limit_s, job.held});
        numbers.push_back(number);
    }
    for (StockStart& start : stock_starts(view_.nodes, others, now_))
        give(jobs_[numbers[start.job]], std::move(start.shares));
}

int Run::held() const {
    return result_.held.empty() ? 0 : result_.held.back().gpus;
}

void Run::note_held(double since_s, int gpus) {
    if (gpus != held()) result_.held.push_back({since_s, gpus});
}

}  // namespace

void Knowledge::show_curve(const TrainingJob&, const WorkloadJob&, JobView&) {}

bool Knowledge::malleable(const WorkloadJob&) {
    return true;
}

Result<SimulationResult> simulate(const std::vector<WorkloadJob>& workload,
                                  const std::vector<Application>& applications,
                                  const std::vector<Nodes>& nodes, const Policy& policy,
                                  Knowledge& knowledge, const SimulationOptions& options) {
    return Run(workload, applications, nodes, policy, knowledge, options).go();
}

}  // namespace sluice::sim
