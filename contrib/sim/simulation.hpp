// SPDX-License-Identifier: GPL-2.0-or-later
//
// A cluster in virtual time: jobs of a workload come, a policy of common/allocator is asked every
// round as the deciding thread of slurmctld asks it, and what it says is done at once. Waiting jobs
// that it says nothing of are started as stock Slurm does (stock_starts.hpp), between two rounds
// only where jobs are not stopped.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/allocator/policy.hpp"
#include "contrib/sim/node_failures.hpp"
#include "contrib/sim/training_job.hpp"
#include "contrib/sim/workload.hpp"

namespace sluice::sim {

struct Nodes {
    int count = 0;
    int gpus = 0;          ///< on each
    std::size_t type = 0;  ///< of the applications' tables
};

struct SimulationOptions {
    double round_s = 60;
    double restart_s = 30;  ///< without progress, at the start and at each change
    std::map<std::string, double> restart_of_s;      ///< of some applications
    bool may_stop = true;                            ///< PolicyOptions::may_stop
    double cooldown_s = PolicyOptions().cooldown_s;  ///< where it is false; else the round
    double longest_s = 30 * 86400.0;       ///< behind the last arrival; then it is given up
    double longest_job_s = 366 * 86400.0;  ///< as it was asked for: more is no measurement
    /// A job's time limit where it says none, relative to how long it runs as it was asked for.
    double limit_factor = 2;
    /// False: what is known of a job's length has its first start in it.
    bool first_start_costs = true;
    FailureOptions failures;  ///< of nodes
    /// The share of its progress that a job loses while it is spread over several nodes and one of
    /// them has another such job, as in Pollux's simulator: they share the node's network.
    double interference = 0;
    /// Told the time and how many jobs are over, every round; may be empty.
    std::function<void(double now_s, std::size_t over)> on_round;
};

/// How long a job takes on an empty cluster with the batch it was asked for with, its start
/// included; with several types of nodes at the mean speed of a GPU.
struct AloneTime {
    int gpus = 1;
    double seconds = 0;
};

struct JobResult {
    std::string name{};
    std::string application{};
    int gpus = 1;  ///< asked for
    double arrival_s = 0;
    double end_s = 0;
    double first_start_s = 0;
    double gpu_s = 0;
    double useful_gpu_s = 0;    ///< of it, with progress
    double longest_wait_s = 0;  ///< without GPUs at a stretch
    int restarts = 0;
    int failures = 0;                ///< of them, those after a node failed under it
    int resizes = 0;                 ///< of them, those to another number of GPUs
    std::vector<AloneTime> alone{};  ///< by GPUs, the last on those asked for

    double completion_s() const { return end_s - arrival_s; }
};

/// From then on.
struct GpusHeld {
    double since_s = 0;
    int gpus = 0;
};

struct SimulationResult {
    std::vector<JobResult> jobs;
    int gpus = 0;  ///< of the cluster
    double makespan_s = 0;
    std::vector<GpusHeld> held;  ///< by time, only changes; 0 before the first
};

/// Who tells a policy what is known of a job.
class Knowledge {
  public:
    virtual ~Knowledge() = default;
    /// How the job chooses its batch.
    virtual TrainingJob::BatchRule batch_rule(const Application& application,
                                              const WorkloadJob& job) = 0;
    /// Nothing: nothing is known. Valid until the job goes on.
    virtual std::shared_ptr<const WorkForecast> forecast(const TrainingJob& job,
                                                         const WorkloadJob& asked) = 0;
    /// Legal sizes of the moment.
    virtual std::vector<int> sizes(const TrainingJob& job, const WorkloadJob& asked) = 0;
    /// Curve, step and speed, where they are known.
    virtual void show_curve(const TrainingJob& job, const WorkloadJob& asked, JobView& view);
    /// Whether it can be stopped and moved while it runs.
    virtual bool malleable(const WorkloadJob& asked);
};

/// bad_input where the workload names an application that is not among these; not_found where jobs
/// are still there longest_s behind the last arrival.
Result<SimulationResult> simulate(const std::vector<WorkloadJob>& workload,
                                  const std::vector<Application>& applications,
                                  const std::vector<Nodes>& nodes, const Policy& policy,
                                  Knowledge& knowledge, const SimulationOptions& options = {});

}  // namespace sluice::sim
