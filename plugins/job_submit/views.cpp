// SPDX-License-Identifier: GPL-2.0-or-later
#include "plugins/job_submit/views.hpp"

#include <algorithm>
#include <optional>

#include "common/allocator/steps_forecast.hpp"
#include "common/model/step_time_book.hpp"

namespace sluice::slurm {
namespace {

bool may_resize(const JobFacts& job, const TrackedJob* tracked) {
    if (!job.spec || job.spec->sizes.empty() || !job.request_resizable || !job.changeable ||
        !job.batch)
        return false;
    if (tracked && tracked->resize) return false;  // one is under way
    if (job.state != JobState::pending && job.state != JobState::running) return false;
    if (job.suspended) return false;
    switch (job.spec->resize) {
        case ResizeMode::off:
            return false;
        case ResizeMode::start:
            return job.state == JobState::pending;
        case ResizeMode::restart:
        case ResizeMode::live:
            if (job.state == JobState::pending) return true;
            // Without a record from this run there is no agent that would pass on the checkpoint
            // signal.
            return job.requeueable && tracked && tracked->record &&
                   tracked->record->restarts == job.restarts;
    }
    return false;
}

void add_knowledge(JobView& view, const TrackedJob& tracked) {
    if (tracked.record) {
        view.curve = tracked.record->curve;
        if (tracked.record->step) view.step = static_cast<double>(*tracked.record->step);
    }
    std::vector<SpeedSample> samples;
    for (const auto& [gpus, sample] : tracked.speeds) samples.push_back(sample);
    view.speed = fit_speed(samples);
}

RunQuery query_of(const JobFacts& job, const Config& config) {
    RunQuery query;
    query.user = job.owner;
    query.account = job.account;
    query.model = job.spec->model;
    query.gpu_type = job.gpu_type;
    query.batch = job.spec->batch.value_or(0);
    query.sharing = config.share_runs_in_account ? Sharing::account : Sharing::user;
    return query;
}

// What it has not shown itself, from the runs of its model: the nearest one's curve, and the
// speeds of all that had its batch and its GPUs. Then how much is left of it, and how fast it goes.
void add_history(JobView& view, const JobFacts& job, const Experience& experience,
                 const Config& config) {
    if (!job.spec) return;
    std::vector<SpeedSample> samples;
    std::vector<double> totals;  // steps of the runs that came to their end
    if (!job.spec->model.empty()) {
        const RunQuery query = query_of(job, config);
        for (const PastRun* run : experience.runs.find(query)) {
            if (run->batch != query.batch) continue;
            if (!view.curve && run->record.curve) {
                view.curve = run->record.curve;
                if (!view.step) view.step = 0;
            }
            if (run->completed && run->record.step)
                totals.push_back(static_cast<double>(*run->record.step));
            const bool same_gpus = query.gpu_type.empty() || run->gpu_type == query.gpu_type;
            if (same_gpus && run->record.gpus > 0 && run->record.steps_per_second)
                samples.push_back({run->record.gpus, *run->record.steps_per_second});
        }
    }
    if (!view.speed) view.speed = fit_speed(samples);
    const std::vector<double> left =
        steps_left(job.spec->target, view.curve, expected_work(totals), view.step.value_or(0));
    if (left.empty()) return;
    const StepTimeModel* steps = experience.steps(job.owner, job.spec->model, job.gpu_type);
    if (steps)
        view.work = std::make_shared<StepsForecast>(
            left, *steps, static_cast<double>(job.spec->batch.value_or(assumed_batch)));
    else if (view.speed)
        view.work = std::make_shared<StepsForecast>(left, *view.speed);
}

// Of a job that may be resized: those up to `most` that its nodes can hold equal shares of.
std::vector<int> sizes_of(const JobFacts& job, int most) {
    std::vector<int> sizes;
    const int unit = std::max(1, job.node_count);
    std::copy_if(job.spec->sizes.begin(), job.spec->sizes.end(), std::back_inserter(sizes),
                 [=](int size) { return size % unit == 0 && size <= most; });
    if (sizes.empty()) sizes = {std::max(1, job.gpus)};
    return sizes;
}

}  // namespace

ClusterView partition_view(const ClusterFacts& facts, const PartitionFacts& partition,
                           const std::map<std::uint32_t, TrackedJob>& tracked,
                           const Experience& experience, const Config& config, std::time_t now) {
    ClusterView view;
    view.options.interval_s = static_cast<double>(config.interval.count());
    view.options.cooldown_s = static_cast<double>(config.resize_cooldown.count());
    view.options.max_resizes_per_hour = config.max_resizes_per_hour;
    view.options.min_gain = config.min_gain;

    std::vector<std::optional<std::size_t>> position(facts.nodes.size());
    std::vector<int> held_on(facts.nodes.size(), 0);
    for (const JobFacts& job : facts.jobs) {
        for (const HeldGpus& held : job.held) held_on[held.node] += held.gpus;
    }
    for (const std::size_t node : partition.nodes) {
        position[node] = view.nodes.size();
        // On a node that takes no new jobs there is room for those that are there, and no more.
        view.nodes.push_back({facts.nodes[node].name,
                              facts.nodes[node].usable ? facts.nodes[node].gpus : held_on[node]});
    }

    std::vector<const JobFacts*> order;
    for (const JobFacts& job : facts.jobs) {
        const bool waits = job.state == JobState::pending && job.held.empty();
        if (waits && job.partition != partition.name) continue;
        const auto known = tracked.find(job.id);
        const bool returning = known != tracked.end() && known->second.resize;
        if (waits && !job.eligible && !returning) continue;
        if (job.state == JobState::finished) continue;
        order.push_back(&job);
    }
    std::sort(order.begin(), order.end(), [](const JobFacts* a, const JobFacts* b) {
        const bool a_runs = a->state != JobState::pending;
        const bool b_runs = b->state != JobState::pending;
        if (a_runs != b_runs) return a_runs;
        if (a_runs && a->start != b->start) return a->start < b->start;
        if (!a_runs && a->priority != b->priority) return a->priority > b->priority;
        return a->id < b->id;
    });

    for (const JobFacts* job : order) {
        JobView one;
        for (const HeldGpus& held : job->held) {
            if (position[held.node]) one.held.push_back({*position[held.node], held.gpus});
        }
        one.running = job->state != JobState::pending;
        if (one.running && one.held.empty()) continue;
        const auto known = tracked.find(job->id);
        const TrackedJob* known_job = known == tracked.end() ? nullptr : &known->second;
        const bool whole = one.held.size() == job->held.size();
        // A job of another partition that lies wholly on nodes of this one can make room here.
        const bool guest = job->partition != partition.name;
        one.id = job->id;
        one.current = job->gpus;
        if (!whole) one.current = gpus_of(one.held);
        one.requested = one.current;
        one.resizable = whole && may_resize(*job, known_job);
        one.sizes = one.resizable ? sizes_of(*job, guest ? one.current : JobSpec::max_gpus)
                                  : std::vector<int>{std::max(1, one.current)};
        one.node_count = job->node_count;
        if (job->submitted > 0) one.age_s = static_cast<double>(now - job->submitted);
        one.restart_cost_s = static_cast<double>(config.restart_cost.count());
        one.since_resize_s =
            static_cast<double>(now - std::max(job->start, known_job ? known_job->last_resize : 0));
        if (job->spec && job->spec->target && job->spec->target->kind == Target::Kind::loss)
            one.target_loss = job->spec->target->loss;
        if (known_job) {
            if (known_job->requested > 0) one.requested = known_job->requested;
            if (known_job->too_large > 0 && known_job->too_large_until > now &&
                one.sizes.front() < known_job->too_large)
                std::erase_if(one.sizes, [&](int size) { return size >= known_job->too_large; });
            add_knowledge(one, *known_job);
            one.resizes_last_hour = static_cast<int>(
                std::count_if(known_job->resize_times.begin(), known_job->resize_times.end(),
                              [now](std::time_t time) { return time > now - 3600; }));
            // A job on its way back asks for what it was promised.
            if (known_job->resize && job->state == JobState::pending) {
                one.sizes = {known_job->resize->to};
                one.current = one.requested = known_job->resize->to;
            }
        }
        add_history(one, *job, experience, config);
        view.jobs.push_back(std::move(one));
    }
    return view;
}

}  // namespace sluice::slurm
