// SPDX-License-Identifier: GPL-2.0-or-later
#include "plugins/job_submit/decider.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "common/base/file.hpp"
#include "common/base/text.hpp"
#include "plugins/job_submit/views.hpp"
#include "plugins/slurm/conf.hpp"
#include "plugins/slurm/guard.hpp"
#include "plugins/slurm/log.hpp"
#include "plugins/slurm/thread.hpp"

namespace sluice::slurm {
namespace {

constexpr int plans_until_forgotten = 3;
constexpr int most_store_attempts = 30;  // one a second
constexpr std::time_t dropped_records_told_every_s = 600;

std::string job_name(std::uint32_t id) {
    return "job " + std::to_string(id) + ": ";
}

std::string from_to(int from, int to) {
    return std::to_string(from) + " to " + gpus_text(to);
}

/// Of a job that is told now; the clock's seconds are whole, and the job gets no less.
std::time_t end_of_grace(const CheckpointSignal& signal) {
    return std::time(nullptr) + signal.grace.count() + 1;
}

void add_resize(Summary& summary, SummaryResize resize) {
    summary.resizes.push_back(std::move(resize));
    ++summary.resize_count;
}

// GPUs that are free now, node by node, less what pending jobs are about to take. A running job is
// only sent away to grow when what it will ask for is there: it must not wait for what another one
// has yet to give up.
class FreeNow {
  public:
    explicit FreeNow(const ClusterFacts& facts) {
        for (const NodeFacts& node : facts.nodes) free_.push_back(node.usable ? node.gpus : 0);
        for (const JobFacts& job : facts.jobs) {
            for (const HeldGpus& held : job.held) free_[held.node] -= held.gpus;
        }
        for (const JobFacts& job : facts.jobs) {
            if (job.state == JobState::pending && job.held.empty() && job.eligible)
                take({}, job.gpus, job.node_count == 1);
        }
    }

    /// Takes `gpus` beside giving back `held`; false, and nothing taken, where they are not there.
    bool take(const std::vector<HeldGpus>& held, int gpus, bool one_node) {
        std::vector<int> after = free_;
        for (const HeldGpus& share : held) after[share.node] += share.gpus;
        if (one_node) {
            const auto most = std::max_element(after.begin(), after.end());
            if (most == after.end() || *most < gpus) return false;
            // Best fit: the fullest node that has room.
            auto best = most;
            for (auto node = after.begin(); node != after.end(); ++node) {
                if (*node >= gpus && *node < *best) best = node;
            }
            *best -= gpus;
        } else {
            for (int& free : after) {
                const int taken = std::clamp(free, 0, gpus);
                free -= taken;
                gpus -= taken;
            }
            if (gpus > 0) return false;
        }
        free_ = std::move(after);
        return true;
    }

  private:
    std::vector<int> free_;
};

}  // namespace

Decider::Decider(std::string conf_path)
    : conf_path_(std::move(conf_path)), config_(std::make_shared<const Config>()) {
    reload_config();
    thread_ = make_thread("sluice_decide", [this] { run(); });
}

std::shared_ptr<const Config> Decider::config() const {
    const std::lock_guard lock(mutex_);
    return config_;
}

void Decider::run() {
    for (;;) {
        std::this_thread::sleep_for(std::chrono::seconds(1));
        if (!paused_) guarded("deciding thread", [this] { tick(std::time(nullptr)); });
    }
}

// A backup that has given up control, or a primary that starts: what is known of jobs is read anew
// when this one is in control, and until then is another's to read and write.
void Decider::stand_by() {
    tracker_.reset();
    store_attempts_ = 0;
    learned_.close();
    next_plan_ = 0;
    absent_.clear();
    advised_.clear();
    inbox_.take();
}

void Decider::tick(std::time_t now) {
    if (!in_control()) {
        stand_by();
        return;
    }
    reload_config();
    if (!tracker_ && !open_store()) return;
    learn();
    std::vector<std::uint32_t> under_way;
    for (const auto& [id, job] : tracker_->jobs()) {
        if (job.resize) under_way.push_back(id);
    }
    // One job's failure is not the others'.
    for (const std::uint32_t id : under_way)
        guarded("restart under way", [&] { carry_on(id, now); });
    if (now < next_plan_) return;
    next_plan_ = now + config_->interval.count();
    plan(now);
}

void Decider::reload_config() {
    const std::string seen = file_version(conf_path_);
    const bool first = !configured_;
    if (!first && seen == conf_seen_) return;
    configured_ = true;
    conf_seen_ = seen;

    Result<Config> read = read_config_file(conf_path_);
    if (!read && read.error().code == ErrorCode::not_found && !first) {
        log_error(conf_path_ + " is gone; the configuration before stays in force");
        return;
    }
    if (!read && read.error().code != ErrorCode::not_found) {
        log_error(read.error().message + (first ? "; until it is right Sluice only advises"
                                                : "; the configuration before stays in force"));
        if (!first) return;
        // What it was meant to forbid cannot be known.
        Config careful;
        careful.advise_only = true;
        read = careful;
    }
    Config next = read ? *std::move(read) : Config();
    auto policy = make_policy(next.policy);
    if (!policy) {
        log_error(conf_path_ + ":" + std::to_string(next.policy_line) +
                  ": Policy: " + policy.error().message);
        if (!first) return;
        next.advise_only = true;
        policy = make_policy(Config().policy);
        if (!policy) return;
    }
    policy_ = *std::move(policy);
    log_info("policy " + std::string(policy_->name()) + " every " +
             std::to_string(next.interval.count()) + " s" +
             (next.advise_only ? ", advise only: nothing is changed" : ""));
    if (const std::string note = note_on(next); !note.empty()) log_info(note);
    const std::lock_guard lock(mutex_);
    config_ = std::make_shared<const Config>(next);
}

bool Decider::open_store() {
    const std::string directory = state_dir(*config_);
    auto journal = Journal::open(directory, "jobs");
    // The slurmctld that was in control before may still be about to end.
    if (!journal && journal.error().code == ErrorCode::busy &&
        ++store_attempts_ < most_store_attempts) {
        if (store_attempts_ == 1) log_info(journal.error().message + "; waiting for it");
        return false;
    }
    if (!journal)
        log_error(journal.error().message + "; what is learned is lost when slurmctld ends");
    tracker_ = std::make_unique<Tracker>(journal ? *std::move(journal) : nullptr);
    if (tracker_->damaged() > 0)
        log_error(directory + "/jobs: " + std::to_string(tracker_->damaged()) +
                  " damaged entries left out");
    if (!tracker_->jobs().empty())
        log_info(std::to_string(tracker_->jobs().size()) + " jobs known from before");
    learned_.open(directory);
    return true;
}

void Decider::store(std::uint32_t id) {
    const Status stored = tracker_->store(id);
    if (!stored.ok() && !disk_failed_)
        log_error(stored.error().message + "; kept in memory, tried again with the next change");
    disk_failed_ = !stored.ok();
}

void Decider::learn() {
    for (const Inbox::Item& item : inbox_.take()) {
        tracker_->at(item.job).learn(item.record);
        store(item.job);
        if (item.in_summary) continue;
        update_summary(item.job, [&item](Summary& summary) { summary.record = item.record; });
    }
}

// Whoever sends nonsense may do so often; the log says so seldom.
void Decider::tell_dropped_records(std::time_t now) {
    const Inbox::Counters counts = inbox_.counters();
    if (counts.dropped() == dropped_told_ || now < next_dropped_) return;
    dropped_told_ = counts.dropped();
    next_dropped_ = now + dropped_records_told_every_s;
    log_info("records of training jobs since the start: " + std::to_string(counts.accepted) +
             " taken; left out: " + std::to_string(counts.malformed) + " malformed, " +
             std::to_string(counts.foreign) + " not from the job's owner, " +
             std::to_string(counts.over_budget) +
             " beyond MinSampleInterval or MaxRecordsPerSecond");
}

void Decider::plan(std::time_t now) {
    tell_dropped_records(now);
    const Result<ClusterFacts> read = read_cluster();
    if (!read) return;
    const ClusterFacts& facts = *read;
    forget_ended(facts);
    see_requests(facts);
    learned_.see(facts, tracker_->jobs());
    learned_.keep(now);
    unstick(facts, now);
    std::map<std::uint32_t, const JobFacts*> by_id;
    for (const JobFacts& job : facts.jobs) by_id[job.id] = &job;

    const Experience experience{
        learned_.runs(),
        [this](std::uint32_t user, const std::string& model, const std::string& gpu_type) {
            return learned_.steps(user, model, gpu_type);
        }};
    FreeNow free(facts);
    for (const PartitionFacts& partition : facts.partitions) {
        const auto& wanted = config_->partitions;
        if (!wanted.empty() &&
            std::find(wanted.begin(), wanted.end(), partition.name) == wanted.end())
            continue;
        const ClusterView view =
            partition_view(facts, partition, tracker_->jobs(), experience, *config_, now);
        for (const Decision& decision : policy_->plan(view).decisions) {
            const auto job = by_id.find(decision.job);
            if (job == by_id.end()) continue;
            const JobFacts& facts_of_job = *job->second;
            if (facts_of_job.state == JobState::running && decision.gpus > facts_of_job.gpus &&
                !free.take(facts_of_job.held, decision.gpus, facts_of_job.node_count == 1))
                continue;
            carry_out(decision, facts_of_job, now);
        }
    }
}

void Decider::see_requests(const ClusterFacts& facts) {
    for (const JobFacts& job : facts.jobs) {
        if (!job.spec || job.spec->sizes.empty() || !job.changeable || !job.request_resizable)
            continue;
        TrackedJob& tracked = tracker_->at(job.id);
        const bool pending = job.state == JobState::pending;
        if (!pending) tracked.waits = 0;
        if (tracked.resize || (!pending && tracked.requested != 0)) continue;
        if (tracked.see_request(job.gpus)) store(job.id);
    }
}

// Policies see GPUs, not cores, memory, limits or what a partition allows. A job that Sluice gave
// its size and that does not start with it goes back to the one before.
void Decider::unstick(const ClusterFacts& facts, std::time_t now) {
    for (const JobFacts& job : facts.jobs) {
        TrackedJob* tracked = tracker_->find(job.id);
        if (!tracked || tracked->resize || !job.spec || job.state != JobState::pending) continue;
        // Without --train-gpus there is no size to go back to.
        if (job.spec->sizes.empty()) continue;
        if (tracked->asked != job.gpus || job.gpus <= job.spec->sizes.front()) continue;
        if (!job.refused && (!job.due || ++tracked->waits < TrackedJob::most_waits)) continue;
        guarded("job that does not start", [&] { fall_back(job, now); });
    }
}

void Decider::fall_back(const JobFacts& job, std::time_t now) {
    TrackedJob& tracked = tracker_->at(job.id);
    const int least = job.spec->sizes.front();
    const int to = tracked.before > 0 && tracked.before < job.gpus ? tracked.before : least;
    const Status sized = set_requested_gpus(job.id, to, job.refused);
    if (!sized.ok()) {
        log_info(sized.error().message);
        return;
    }
    tracked.ask(to);
    tracked.too_large = job.gpus;
    tracked.too_large_until = now + TrackedJob::too_large_s;
    store(job.id);
    log_info(job_name(job.id) + "does not start with " + gpus_text(job.gpus) + ": asks for " +
             std::to_string(to) + " again");
}

void Decider::carry_out(const Decision& decision, const JobFacts& job, std::time_t now) {
    if (!job.spec) return;
    const std::string what = from_to(job.gpus, decision.gpus) + ": " + decision.reason;
    if (config_->advise_only || job.spec->advise) {
        const std::string advice = "would go from " + what;
        if (std::exchange(advised_[job.id], advice) == advice) return;
        log_info(job_name(job.id) + advice);
        update_summary(job.id, [&](Summary& summary) { summary.advice = advice; });
        return;
    }
    if (job.state == JobState::running) {
        start_restart(decision, job);
        return;
    }
    const Status sized = set_requested_gpus(job.id, decision.gpus);
    if (!sized.ok()) {
        log_info(sized.error().message + "; its request stays as it is");
        return;
    }
    tracker_->at(job.id).ask(decision.gpus);
    store(job.id);
    log_info(job_name(job.id) + "asks for " + gpus_text(decision.gpus) + " instead of " +
             std::to_string(job.gpus) + ": " + decision.reason);
    if (job.restarts == 0) return;
    update_summary(job.id, [&](Summary& summary) {
        add_resize(summary, {now, job.gpus, decision.gpus, decision.reason});
    });
}

void Decider::start_restart(const Decision& decision, const JobFacts& job) {
    const CheckpointSignal& signal = job.spec->signal;
    Resize resize;
    resize.from = job.gpus;
    resize.to = decision.gpus;
    resize.restarts = job.restarts;
    resize.deadline = end_of_grace(signal);
    resize.reason = decision.reason;
    // Remembered before the signal goes out: a slurmctld that dies in between still finishes what
    // it began.
    tracker_->at(job.id).resize = resize;
    store(job.id);
    const Status sent = signal_checkpoint(job.id, signal);
    if (!sent.ok()) {
        give_up(job.id, sent.error());
        return;
    }
    // What was waited for the disk and for Slurm's locks is not the job's time.
    tracker_->at(job.id).resize->deadline = end_of_grace(signal);
    log_info(job_name(job.id) + "restart from " + from_to(resize.from, resize.to) + ": " +
             resize.reason + "; told to checkpoint");
    update_summary(job.id, [&](Summary& summary) { summary.pending_target = resize.to; });
}

void Decider::carry_on(std::uint32_t id, std::time_t now) {
    TrackedJob& tracked = tracker_->at(id);
    Resize& resize = *tracked.resize;
    const auto job = read_job(id);
    if (!job) {
        give_up(id, job.error());
        return;
    }
    if (job->suspended) {
        // Who is stopped can write no checkpoint: its time begins when it is resumed.
        if (job->spec) resize.deadline = end_of_grace(job->spec->signal);
        return;
    }
    const bool again = job->restarts > resize.restarts;
    if (!again && job->state == JobState::completing) return;  // it is ending: wait how
    if (job->state == JobState::finished) {
        // A slurmctld that was killed right after the requeue may not remember it, and finds the
        // job ended by it.
        const bool asks_for_more = !again && job->ended_by_itself &&
                                   (resize.phase == Resize::Phase::requeued ||
                                    job->exit_status != 0 || resize.checkpointed);
        if (!asks_for_more) {
            give_up(id, {ErrorCode::not_found, "it ended"});
            return;
        }
    }
    if (!again) {
        const bool ready = resize.phase == Resize::Phase::requeued || resize.checkpointed ||
                           now >= resize.deadline || job->state == JobState::finished;
        if (!ready) return;
        const Status requeued = requeue(id);
        if (!requeued.ok()) {
            give_up(id, requeued.error());
            return;
        }
        log_info(
            job_name(id) + "requeued, " +
            (resize.checkpointed ? "its checkpoint is written" : "without word of a checkpoint"));
    }
    if (resize.phase == Resize::Phase::signalled) {
        resize.phase = Resize::Phase::requeued;
        store(id);
    }
    if (!again || job->state == JobState::completing) return;  // the next tick looks again
    if (job->on_hold) {
        give_up(id, {ErrorCode::not_found, "it is held, and keeps its size"});
        return;
    }
    if (job->state == JobState::pending) {
        const Status sized = set_requested_gpus(id, resize.to);
        if (!sized.ok()) {
            note_resize(tracked, now);
            give_up(id, sized.error());
            return;
        }
        tracked.ask(resize.to, resize.from);
    }
    finish_restart(id, now);
}

void Decider::finish_restart(std::uint32_t id, std::time_t now) {
    TrackedJob& tracked = tracker_->at(id);
    Resize done = *tracked.resize;
    if (!done.checkpointed) done.reason += " (without word of a checkpoint)";
    tracked.resize.reset();
    note_resize(tracked, now);
    store(id);
    log_info(job_name(id) + "resized from " + from_to(done.from, done.to) + ": " + done.reason);
    update_summary(id, [&](Summary& summary) {
        summary.pending_target = 0;
        add_resize(summary, {now, done.from, done.to, done.reason});
    });
}

void Decider::note_resize(TrackedJob& tracked, std::time_t now) {
    tracked.last_resize = now;
    std::erase_if(tracked.resize_times, [now](std::time_t time) { return time <= now - 3600; });
    tracked.resize_times.push_back(now);
}

void Decider::give_up(std::uint32_t id, const Error& why) {
    // Whoever is in control next goes on with it; a job that is busy is asked again in a second.
    if (why.code == ErrorCode::unreachable || why.code == ErrorCode::busy) return;
    TrackedJob& tracked = tracker_->at(id);
    const Resize left = *tracked.resize;
    tracked.resize.reset();
    store(id);
    log_info(job_name(id) + "restart from " + from_to(left.from, left.to) +
             " given up: " + why.message);
    update_summary(id, [](Summary& summary) { summary.pending_target = 0; });
}

void Decider::forget_ended(const ClusterFacts& facts) {
    std::set<std::uint32_t> present;
    for (const JobFacts& job : facts.jobs) present.insert(job.id);
    std::erase_if(advised_, [&](const auto& advice) { return !present.contains(advice.first); });
    std::vector<std::uint32_t> gone;
    for (const auto& [id, job] : tracker_->jobs()) {
        // Right after its start slurmctld may not know its jobs yet: only who is missed several
        // times is gone.
        if (present.contains(id)) {
            absent_.erase(id);
            continue;
        }
        const int plans = ++absent_[id];
        if (plans == 1 && job.record) {
            const auto ended = read_job(id);
            if (ended && ended->state == JobState::finished) learned_.remember(*ended, *job.record);
        }
        if (plans >= plans_until_forgotten) gone.push_back(id);
    }
    for (const std::uint32_t id : gone) {
        absent_.erase(id);
        inbox_.forget(id);
        const Status forgotten = tracker_->forget(id);
        if (!forgotten.ok() && !disk_failed_) log_error(forgotten.error().message);
    }
}

}  // namespace sluice::slurm
