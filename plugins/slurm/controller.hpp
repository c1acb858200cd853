// SPDX-License-Identifier: GPL-2.0-or-later
//
// slurmctld from the inside, for a thread of ours that holds no lock of Slurm's: copies of what it
// knows, and the few things that Sluice does to a job. Every action takes the locks itself, looks
// again whether it still makes sense, and goes through Slurm's own functions with the authority of
// the job's owner, so limits and permissions are Slurm's.
#pragma once

#include <cstdint>
#include <ctime>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/base/result.hpp"
#include "common/jobspec/jobspec.hpp"
#include "common/report/summary.hpp"

namespace sluice::slurm {

struct NodeFacts {
    std::string name;
    int gpus = 0;
    bool usable = false;  ///< up, not drained and not reserved: new jobs may start here
};

struct HeldGpus {
    std::size_t node = 0;  ///< index into ClusterFacts::nodes
    int gpus = 0;
};

enum class JobState { pending, running, completing, finished };

struct JobFacts {
    std::uint32_t id = 0;
    std::uint32_t owner = 0;  ///< user id
    JobState state = JobState::pending;
    int restarts = 0;
    std::uint32_t exit_status = 0;  ///< as waitpid() tells, where finished
    bool ended_by_itself =
        false;  ///< finished: the batch script ended; not cancelled, timed out or lost
    std::string partition;
    std::uint32_t priority = 0;
    std::time_t submitted = 0;
    std::time_t start = 0;  ///< of the run that is on
    std::time_t end = 0;    ///< of a finished job
    /// Pending: waits for room and for nothing else, on any node of its partition. Jobs that wait
    /// for certain nodes, features, licences, limits or reservations do not: making room may not
    /// help them. A requeued job that only waits for its old credential to expire counts.
    bool eligible = true;
    /// Pending: its time has come and nobody holds it.
    bool due = true;
    /// Pending: its owner or an administrator holds it.
    bool on_hold = false;
    /// Pending: Slurm has set it aside because it cannot run as it asks (BadConstraints).
    bool refused = false;
    bool suspended = false;
    bool changeable = true;  ///< pending: one plain job, no array or heterogeneous component
    bool batch = false;      ///< what srun and salloc have asked for, their steps go on to ask for
    bool requeueable = false;  ///< a batch job that may be requeued
    /// Its GPU request has a form that Sluice can change, and it holds what it asks for: who has
    /// nodes alone holds all of their GPUs.
    bool request_resizable = false;
    int gpus = 0;        ///< pending: asked for in all; else held
    int node_count = 0;  ///< nodes it is spread over evenly, 0: any
    std::vector<HeldGpus> held;
    std::string gpu_type;  ///< of those held, as gres.conf calls it
    std::optional<JobSpec> spec;
    std::string admin_comment;  ///< of a job with a spec
    std::string account;        ///< the same; empty without accounting
};

struct PartitionFacts {
    std::string name;
    std::vector<std::size_t> nodes;
};

struct ClusterFacts {
    std::vector<NodeFacts> nodes;
    std::vector<JobFacts> jobs;  ///< those that hold or want GPUs, and those with a spec
    std::vector<PartitionFacts> partitions;
};

/// True while this slurmctld has read its state and is the one in charge. It is not while it
/// starts, ends, or stands by as a backup: then it knows no jobs, or those of another time.
/// Everything below asks again under its locks, and is `unreachable` then.
bool in_control();

/// Copies under the read locks; nothing of Slurm's is referred to.
Result<ClusterFacts> read_cluster();
/// One job; not_found when slurmctld does not know it.
Result<JobFacts> read_job(std::uint32_t id);

/// Asks for `gpus` in all; only while the job is pending. Limits apply as if its owner had called
/// scontrol update.
/// With `release`, a job that Slurm has set aside may be tried again.
Status set_requested_gpus(std::uint32_t id, int gpus, bool release = false);

/// The checkpoint signal of a running job: to the batch shell alone, or to the processes of its
/// steps and, through its agent, to those below the batch shell that catch it. The agent is told by
/// SIGURG, which is ignored by whoever does not know it.
Status signal_checkpoint(std::uint32_t id, const CheckpointSignal& signal);

/// Requeues a running job, or one that ended within its resize, as its owner could.
Status requeue(std::uint32_t id);

/// Changes the summary in the job record, where it is ours to write.
void update_summary(std::uint32_t id, const std::function<void(Summary&)>& change);

}  // namespace sluice::slurm
