// SPDX-License-Identifier: GPL-2.0-or-later
#include "plugins/slurm/controller.hpp"

#include <algorithm>
#include <csignal>
#include <map>

#include "plugins/slurm/gpu_request.hpp"
#include "plugins/slurm/gpus.hpp"
#include "plugins/slurm/job.hpp"
#include "plugins/slurm/release.hpp"
#include "plugins/slurm/slurm.hpp"

extern "C" {
#include "src/slurmctld/job_scheduler.h"
#include "src/slurmctld/locks.h"
#include "src/slurmctld/state_save.h"
#undef error
// src/slurmctld/controller.c: 0 while it stands by or reads its state.
extern time_t control_time;
}

namespace sluice::slurm {
namespace {

// Slurm makes a requeued job wait for its old credential: AuthInfo=cred_expire, two minutes by
// default (src/slurmctld/job_mgr.c, batch_requeue_fini).
constexpr std::time_t most_requeue_wait_s = 150;

class Locks {
  public:
    static slurmctld_lock_t reading() {
        return {READ_LOCK, READ_LOCK, READ_LOCK, READ_LOCK, NO_LOCK};
    }
    // What slurmctld itself takes for an update, a signal or a requeue (src/slurmctld/proc_req.c).
    static slurmctld_lock_t writing() {
        return {READ_LOCK, WRITE_LOCK, WRITE_LOCK, READ_LOCK, READ_LOCK};
    }

    explicit Locks(slurmctld_lock_t levels) : levels_(levels) { lock_slurmctld(levels_); }
    ~Locks() { unlock_slurmctld(levels_); }
    Locks(const Locks&) = delete;
    Locks& operator=(const Locks&) = delete;

  private:
    slurmctld_lock_t levels_;
};

// A change of one job, as scontrol update would send it.
class JobUpdate {
  public:
    explicit JobUpdate(std::uint32_t id)
        : request_(static_cast<job_desc_msg_t*>(xmalloc(sizeof(job_desc_msg_t)))) {
        slurm_init_job_desc_msg(request_);
        request_->job_id = id;
    }
    ~JobUpdate() { slurm_free_job_desc_msg(request_); }
    JobUpdate(const JobUpdate&) = delete;
    JobUpdate& operator=(const JobUpdate&) = delete;

    job_desc_msg_t* operator->() const { return request_; }
    /// Under the writing locks. Returns Slurm's error code.
    int apply(uid_t user) const {
        slurm_msg_t message;
        slurm_msg_t_init(&message);
        message.data = request_;
        return update_job(&message, user, false);
    }

  private:
    job_desc_msg_t* request_;
};

Error not_in_control() {
    return {ErrorCode::unreachable, "this slurmctld is not in control"};
}

Status slurm_status(int rc, std::uint32_t id, const char* action) {
    if (rc == SLURM_SUCCESS) return {};
    return {is_changeable_later(rc) ? ErrorCode::busy : ErrorCode::not_found,
            "job " + std::to_string(id) + ": " + action + ": " + slurm_strerror(rc)};
}

JobState state_of(const job_record_t* job) {
    // A requeued job is pending and completing at once until its old run is cleaned up.
    if (IS_JOB_COMPLETING(job)) return JobState::completing;
    if (IS_JOB_PENDING(job)) return JobState::pending;
    if (IS_JOB_RUNNING(job) || IS_JOB_SUSPENDED(job)) return JobState::running;
    return JobState::finished;
}

// Nodes that a request is spread over: fixed by -N, or one where nothing asks for more; 0 where
// Slurm is free.
int fixed_nodes(const job_record_t* job, GpuRequest::Form form) {
    const auto* details = job->details;
    if (details->min_nodes > 0 && details->min_nodes == details->max_nodes)
        return static_cast<int>(details->min_nodes);
    const bool one_task = details->num_tasks <= 1 && details->min_nodes <= 1;
    return form == GpuRequest::Form::per_node && one_task ? 1 : 0;
}

// What the job waits for, by slurmctld's last look at it; a job not looked at yet waits for room.
bool waits_for_room(const job_record_t* job) {
    switch (job->state_reason) {
        case WAIT_NO_REASON:
        case WAIT_PRIORITY:
        case WAIT_RESOURCES:
            return true;
        case WAIT_TIME:
            return job->restart_cnt > 0;
        default:
            return false;
    }
}

// --exclusive, or a partition in which all jobs are alone on their nodes.
bool is_alone_on_its_nodes(const job_record_t* job) {
    return job->details->whole_node == WHOLE_NODE_REQUIRED ||
           (job->part_ptr && job->part_ptr->max_share == 0);
}

bool wants_certain_nodes(const job_record_t* job) {
    const auto* details = job->details;
    return details->req_node_bitmap || details->exc_node_bitmap || details->features ||
           job->resv_name || job->licenses;
}

GpuRequest request_of(const job_record_t* job) {
    return parse_gpu_request(job->tres_per_job, job->tres_per_node, job->tres_per_socket,
                             job->tres_per_task);
}

JobFacts facts_of(const job_record_t* job, const std::map<int, std::size_t>& node_positions,
                  std::time_t now) {
    JobFacts facts;
    facts.id = job->job_id;
    facts.owner = job->user_id;
    facts.state = state_of(job);
    facts.restarts = job->restart_cnt;
    facts.exit_status = job->exit_code;
    facts.ended_by_itself = IS_JOB_COMPLETE(job) || IS_JOB_FAILED(job);
    facts.partition = job->part_ptr && job->part_ptr->name ? job->part_ptr->name : "";
    facts.priority = job->priority;
    facts.submitted = job->details ? job->details->submit_time : 0;
    facts.start = job->start_time;
    if (facts.state == JobState::finished) facts.end = job->end_time;
    facts.suspended = IS_JOB_SUSPENDED(job);
    facts.spec = job_spec(job);
    if (facts.spec && job->admin_comment) facts.admin_comment = job->admin_comment;
    if (facts.spec && job->account) facts.account = job->account;
    facts.batch = job->batch_flag != 0;
    facts.requeueable = facts.batch && job->details && job->details->requeue != 0;
    facts.changeable = !job->array_recs && job->het_job_id == 0;

    if (facts.state == JobState::running || facts.state == JobState::completing) {
        for (const JobHolding& held : job_holding(job)) {
            const auto position = node_positions.find(held.node);
            if (position == node_positions.end()) continue;
            facts.held.push_back({position->second, held.gpus});
            facts.gpus += held.gpus;
            if (!facts.spec || !facts.gpu_type.empty()) continue;
            if (const auto gpus = node_gpus(node_record_table_ptr[held.node]))
                facts.gpu_type = type_name(*gpus, held.indices);
        }
    }
    if (!job->details) return facts;
    const GpuRequest request = request_of(job);
    facts.node_count = fixed_nodes(job, request.form);
    const bool known_form = request.form == GpuRequest::Form::per_job ||
                            (request.form == GpuRequest::Form::per_node && facts.node_count > 0);
    facts.request_resizable = known_form && !is_alone_on_its_nodes(job);
    if (IS_JOB_PENDING(job)) {
        const std::time_t requeue_wait = job->restart_cnt > 0 ? most_requeue_wait_s : 0;
        const time_t begin = job->details->begin_time;
        facts.refused = job->priority == 0 && job->state_reason == FAIL_BAD_CONSTRAINTS;
        facts.on_hold = job->priority == 0 && !facts.refused;
        facts.due = job->priority != 0 && job->state_reason != WAIT_DEPENDENCY && begin <= now;
        facts.eligible = job->priority != 0 && begin <= now + requeue_wait && waits_for_room(job) &&
                         !wants_certain_nodes(job);
        const int nodes = request.form == GpuRequest::Form::per_node
                              ? std::max(1, static_cast<int>(job->details->min_nodes))
                              : 1;
        facts.gpus = request.count * nodes;
    }
    return facts;
}

std::map<int, std::size_t> read_nodes(std::vector<NodeFacts>& nodes) {
    std::map<int, std::size_t> positions;
    for (int i = 0; i < node_record_count; ++i) {
        const node_record_t* node = node_record_table_ptr[i];
        const auto gpus = node_gpus(node);
        if (!gpus) continue;
        const bool usable = !IS_NODE_DOWN(node) && !IS_NODE_DRAIN(node) && !IS_NODE_FAIL(node) &&
                            !IS_NODE_NO_RESPOND(node) && (node->node_state & NODE_STATE_RES) == 0;
        positions.emplace(i, nodes.size());
        nodes.push_back({node->name, gpus->count, usable});
    }
    return positions;
}

}  // namespace

bool in_control() {
    // The last thread that it starts is there from its first reign on, control_time in each; after
    // a reconfiguration that failed, newer releases leave it 0 in a primary that goes on.
    static bool has_been = false;
    if (slurmctld_config.shutdown_time != 0 || slurmctld_config.thread_id_save == 0) return false;
    if (control_time != 0) has_been = true;
    return control_time != 0 || (has_been && slurmctld_primary);
}

Result<ClusterFacts> read_cluster() {
    ClusterFacts facts;
    const std::time_t now = std::time(nullptr);
    const Locks locks(Locks::reading());
    if (!in_control()) return not_in_control();
    const auto positions = read_nodes(facts.nodes);

    auto* jobs = list_iterator_create(job_list);
    while (const auto* job = static_cast<const job_record_t*>(list_next(jobs))) {
        if (job->magic != JOB_MAGIC || (IS_JOB_FINISHED(job) && !IS_JOB_COMPLETING(job))) continue;
        JobFacts job_facts = facts_of(job, positions, now);
        if (job_facts.gpus > 0 || job_facts.spec) facts.jobs.push_back(std::move(job_facts));
    }
    list_iterator_destroy(jobs);

    auto* partitions = list_iterator_create(part_list);
    while (const auto* partition = static_cast<const part_record_t*>(list_next(partitions))) {
        PartitionFacts part;
        part.name = partition->name ? partition->name : "";
        for (const auto& [index, position] : positions) {
            if (partition->node_bitmap && index < bit_size(partition->node_bitmap) &&
                bit_test(partition->node_bitmap, index))
                part.nodes.push_back(position);
        }
        facts.partitions.push_back(std::move(part));
    }
    list_iterator_destroy(partitions);
    return facts;
}

Result<JobFacts> read_job(std::uint32_t id) {
    const Locks locks(Locks::reading());
    if (!in_control()) return not_in_control();
    const job_record_t* job = find_job_record(id);
    if (!job) return {ErrorCode::not_found, "it is gone"};
    return facts_of(job, {}, std::time(nullptr));
}

Status set_requested_gpus(std::uint32_t id, int gpus, bool release) {
    int rc = SLURM_SUCCESS;
    {
        const Locks locks(Locks::writing());
        if (!in_control()) return not_in_control();
        job_record_t* job = find_job_record(id);
        if (!job || !job->details) return slurm_status(ESLURM_INVALID_JOB_ID, id, "resize");
        if (!IS_JOB_PENDING(job) || IS_JOB_COMPLETING(job))
            return slurm_status(ESLURM_JOB_NOT_PENDING, id, "resize");
        const GpuRequest request = request_of(job);
        const int nodes = fixed_nodes(job, request.form);

        const JobUpdate change(id);
        if (request.form == GpuRequest::Form::per_job) {
            change->tres_per_job = xstrdup(with_gpu_count(job->tres_per_job, gpus).c_str());
        } else if (request.form == GpuRequest::Form::per_node && nodes > 0 && gpus % nodes == 0) {
            change->tres_per_node =
                xstrdup(with_gpu_count(job->tres_per_node, gpus / nodes).c_str());
        } else {
            return slurm_status(ESLURM_INVALID_GRES, id, "resize");
        }
        rc = change.apply(job->user_id);
        // "Not available now" tells of a change that was made, after which the job cannot start.
        if (rc == ESLURM_REQUESTED_PART_CONFIG_UNAVAILABLE) rc = SLURM_SUCCESS;
        // Slurm sums the request up when it first tries the job, counts the cores of --cpus-per-gpu
        // by that sum, and makes it anew only where there is none.
        if (rc == SLURM_SUCCESS) FREE_NULL_LIST(job->gres_list_req_accum);
        if (release && rc == SLURM_SUCCESS) {
            // Its owner may not release a job that Slurm holds; it was Sluice that had it ask for
            // what is not there.
            const JobUpdate released(id);
            released->priority = INFINITE;
            rc = released.apply(slurm_conf.slurm_user_id);
        }
    }
    if (rc == SLURM_SUCCESS) {
        schedule_job_save();
        queue_job_scheduler();
    }
    return slurm_status(rc, id, "resize");
}

Status signal_checkpoint(std::uint32_t id, const CheckpointSignal& signal) {
    const Locks locks(Locks::writing());
    if (!in_control()) return not_in_control();
    job_record_t* job = find_job_record(id);
    if (!job) return slurm_status(ESLURM_INVALID_JOB_ID, id, "signal");
    if (!IS_JOB_RUNNING(job)) return slurm_status(ESLURM_JOB_NOT_RUNNING, id, "signal");
    const auto number = static_cast<uint16_t>(signal.number);
    // The agent first: only from then on it listens for an answer.
    const int told = job_signal(job, SIGURG, KILL_FULL_JOB, job->user_id, false);
    const uint16_t whom = signal.batch_only ? KILL_JOB_BATCH : KILL_STEPS_ONLY;
    const int rc = job_signal(job, number, whom, job->user_id, false);
    return slurm_status(told == SLURM_SUCCESS ? rc : told, id, "signal");
}

Status requeue(std::uint32_t id) {
    int rc = SLURM_SUCCESS;
    {
        const Locks locks(Locks::writing());
        if (!in_control()) return not_in_control();
        job_record_t* job = find_job_record(id);
        if (!job) return slurm_status(ESLURM_INVALID_JOB_ID, id, "requeue");
        if (IS_JOB_PENDING(job)) return {};  // it did so itself
        const bool runs = IS_JOB_RUNNING(job);
        const bool ended = IS_JOB_COMPLETE(job) || IS_JOB_FAILED(job);
        if (IS_JOB_COMPLETING(job) || (!runs && !ended))
            return slurm_status(ESLURM_JOB_FINISHED, id, "requeue");
        rc = job_requeue(job->user_id, id, nullptr, false, 0);
    }
    if (rc == SLURM_SUCCESS) schedule_job_save();
    return slurm_status(rc, id, "requeue");
}

void update_summary(std::uint32_t id, const std::function<void(Summary&)>& change) {
    const Locks locks({NO_LOCK, WRITE_LOCK, NO_LOCK, NO_LOCK, NO_LOCK});
    if (!in_control()) return;
    job_record_t* job = find_job_record(id);
    if (!job) return;
    auto summary = job_summary(job);
    if (!summary) return;
    change(*summary);
    set_job_summary(job, *summary);
}

}  // namespace sluice::slurm
