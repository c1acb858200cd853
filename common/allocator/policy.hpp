// SPDX-License-Identifier: GPL-2.0-or-later
//
// Deciding who gets how many GPUs. A policy is a pure function from a view of the cluster to a
// plan: no clock, no I/O, no statics, the same input gives the same plan. The plugins build the
// view from slurmctld, the simulator from its model.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.hpp"
#include "common/model/loss_curve.hpp"
#include "common/model/speed.hpp"
#include "common/model/step_time.hpp"

namespace sluice {

struct NodeView {
    std::string name;
    int gpus = 0;          ///< usable GPUs of the node; 0 where it is down or drained
    std::size_t type = 0;  ///< nodes of one type have the same kind of GPU
};

/// GPUs that a running job holds on one node (index into ClusterView::nodes).
struct NodeShare {
    std::size_t node = 0;
    int gpus = 0;
};

/// What is known of a job's work: how much is left, and how fast it goes where. Units are the
/// job's own, the same in both.
class WorkForecast {
  public:
    virtual ~WorkForecast() = default;
    /// Expected work left.
    virtual double remaining() const = 0;
    /// Equally likely values of it, ascending; never empty.
    virtual std::vector<double> remaining_quantiles() const { return {remaining()}; }
    /// Work per second on a placement on nodes of this type, with the batch that is best there; 0:
    /// it cannot run there. The local batch of `placement` is not read.
    virtual double rate(const StepPlacement& placement, std::size_t type) const = 0;
};

struct JobView {
    std::uint32_t id = 0;
    bool running = false;
    int requested = 0;       ///< GPUs the user asked for
    int current = 0;         ///< GPUs held; for a pending job what its request says now
    std::vector<int> sizes;  ///< legal sizes, ascending, never empty; one element: rigid
    bool resizable =
        false;  ///< its size may be changed now: pending with start sizing, or running with restart
    int node_count = 0;           ///< nodes the job is spread over evenly; 0: any number
    std::vector<NodeShare> held;  ///< running jobs
    std::optional<LossCurve> curve;
    std::optional<double> step;  ///< last step reached
    std::optional<SpeedModel> speed;
    std::optional<double> target_loss;  ///< the loss beyond which nothing is gained
    std::shared_ptr<const WorkForecast> work;
    double attained_gpu_s = 0;  ///< GPU-seconds that it has had
    double restart_cost_s = 0;  ///< without progress, when the job is resized while running
    double age_s = 0;           ///< since it came
    double waited_s = 0;        ///< how long it has no GPUs, or had none before it got these
    double since_resize_s = 0;  ///< since start or last resize; compared with the cooldown
    int resizes_last_hour = 0;
    int resizes = 0;  ///< starts after the first included
};

struct PolicyOptions {
    double interval_s = 60;  ///< horizon of the forecast
    double cooldown_s = 600;
    int max_resizes_per_hour = 4;
    double min_gain =
        0.05;  ///< relative gain over the interval's horizon below which nobody is moved
    /// Running jobs may be stopped to wait, and started where the plan says. Not so in slurmctld:
    /// there a job runs until it is over, jobs start in order of priority, on nodes of Slurm's
    /// choice, and the plan is of sizes alone.
    bool may_stop = false;
};

struct ClusterView {
    std::vector<NodeView> nodes;
    std::vector<JobView> jobs;  ///< in order of priority: whoever stands earlier is served first
    PolicyOptions options;
};

struct Decision {
    std::uint32_t job = 0;
    int gpus = 0;  ///< size it should have: running jobs are resized to it, pending jobs ask for
                   ///< it; 0: a running job gives all of them up and waits
    std::string reason;  ///< why, in a few words for people and the job's history; no sizes
    /// Where; empty: wherever that many fit.
    std::vector<NodeShare> shares{};
};

/// Only jobs whose size changes are named. Executed in order: jobs that give up GPUs come first.
struct Plan {
    std::vector<Decision> decisions;
};

class Policy {
  public:
    virtual ~Policy() = default;
    virtual std::string_view name() const = 0;
    virtual Plan plan(const ClusterView& cluster) const = 0;
};

/// usage for an unknown name; the message lists the known ones.
Result<std::unique_ptr<Policy>> make_policy(std::string_view name);
std::vector<std::string> policy_names();

/// GPUs of all of them.
int gpus_of(const std::vector<NodeShare>& shares);

/// GPUs of the node that has most, at least 1.
int gpus_of_largest(const std::vector<NodeView>& nodes);

/// So many GPUs on as few nodes as can be, where nodes of so many are empty.
StepPlacement packed_placement(int gpus_of_node, int gpus);

/// Loss reduction that `gpus` GPUs buy a job within `seconds`, relative to what it still has to
/// fall: (l(k) - l(k + f(gpus) t)) / (l(k) - limit), limit = target or b2. Nothing where curve,
/// step or speed are not known yet.
std::optional<double> relative_gain(const JobView& job, int gpus, double seconds);

}  // namespace sluice
