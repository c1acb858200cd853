// SPDX-License-Identifier: GPL-2.0-or-later
//
// A training program as it was measured: what the simulator takes for the truth. The form is that
// of Pollux's public tables (petuum/adaptdl, branch osdi21-artifact, simulator/traces/APP), which
// Sia's (siasosp23/artifacts, sia-simulator/traces) share:
//
//     placements*.csv     placement,local_bsz,step_time,sync_time          up to 4 nodes
//     scalability*.csv    num_nodes,num_replicas,local_bsz,step_time,sync_time
//     validation-B.csv    progress,iteration,metric,grad_sqr,grad_var     a row an epoch, batch B
//
// Times are seconds. Progress is counted in steps of the smallest batch that was measured, and
// rises in every epoch.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/base/result.hpp"
#include "common/model/goodput.hpp"
#include "common/samples/loss_point.hpp"

namespace sluice::sim {

struct StepSeconds {
    double step = 0;  ///< one step, gradients exchanged
    double sync = 0;  ///< of it; the rest is what each further accumulated batch costs
};

struct MeasuredStep {
    StepPlacement placement;
    StepSeconds seconds;
};

/// Step times of one application on one type of nodes.
class StepTable {
  public:
    /// `scalability` may be empty: no such file.
    static Result<StepTable> read(const std::string& placements, const std::string& scalability);

    /// No measurements but a rule: a step takes a second on `gpus`, and (gpus / k)^exponent seconds
    /// on k, wherever they are and whatever the batch. Batches from 1 to `most_local_batch`.
    static StepTable by_rule(int gpus, double exponent, double most_local_batch);

    /// For GPUs on nodes (zeros do not count) and samples per GPU. Where the placement was
    /// measured, linear between local batches. Otherwise linear, at equal GPUs per node, between
    /// the counts of nodes that were measured, and between the counts of GPUs on these. Beyond
    /// what was measured: the nearest.
    StepSeconds at(std::span<const int> gpus_on_nodes, double local_batch) const;

    /// The least that any placement of so many GPUs, on at most `nodes` nodes of `most_on_node`,
    /// takes for a step of this split: with at() of each, and with what at() makes of placements
    /// that were not measured.
    double fastest(int gpus, int most_on_node, int nodes, const BatchSplit& split) const;

    /// What was measured: placements, and beyond four nodes the counts that have no placement.
    std::vector<MeasuredStep> measured() const;

    double least_local_batch() const { return least_local_; }
    double most_local_batch() const { return most_local_; }

  private:
    struct Row {
        double local_batch = 0;
        StepSeconds seconds;
    };
    using Line = std::vector<Row>;  // by local batch
    static StepSeconds on_line(const Line& line, double local_batch);
    StepSeconds on_nodes(const std::map<int, Line>& sizes, double gpus, double local_batch) const;
    /// Of a placement that was not measured.
    StepSeconds by_counts(int nodes, int gpus, double local_batch) const;

    std::map<std::vector<int>, Line> placements_;  // the smallest rotation
    std::map<int, std::map<int, Line>> by_nodes_;  // nodes, GPUs
    std::size_t most_placed_nodes_ = 0;
    double least_local_ = 0;
    double most_local_ = 0;
    struct Rule {
        int gpus = 1;
        double exponent = 0;
    };
    std::optional<Rule> rule_;
};

struct GradientNoise {
    double square = 0;    ///< |g|^2
    double variance = 0;  ///< of the gradient of the smallest batch
};

/// What the tables do not say.
struct ApplicationOptions {
    double most_local_batch = 0;  ///< 0, or more than they say: as they do
    double slower = 1;            ///< factor on all step times
};

class Application {
  public:
    /// Files are looked for in FOLDER/NAME of each folder, in this order. `types`: what stands
    /// behind "placements-" and "scalability-" in the files' names, one for each type of nodes; ""
    /// for "placements.csv".
    static Result<Application> read(const std::string& name,
                                    const std::vector<std::string>& folders,
                                    const std::vector<std::string>& types,
                                    const ApplicationOptions& options = {});

    /// A job that nobody has measured: it runs `seconds` on `gpus`, and on k of 1 to twice as many
    /// (gpus / k)^exponent times as long, the same on each of `types`. One epoch, one batch.
    static Application by_rule(const std::string& name, int gpus, double seconds, double exponent,
                               std::size_t types);

    const std::string& name() const { return name_; }
    /// Seconds of a step on nodes of a type.
    StepSeconds step(std::size_t type, std::span<const int> gpus_on_nodes,
                     double local_batch) const;
    std::vector<MeasuredStep> measured(std::size_t type) const;
    /// As StepTable::fastest().
    double fastest_step(std::size_t type, int gpus, int most_on_node, int nodes,
                        const BatchSplit& split) const {
        return options_.slower * steps_[type].fastest(gpus, most_on_node, nodes, split);
    }
    std::size_t types() const { return steps_.size(); }

    double first_batch() const { return curves_.begin()->first; }
    double most_batch() const { return curves_.rbegin()->first; }
    /// On nodes of a type; what is true on all of them.
    BatchLimits limits(std::size_t type) const;
    int least_local_batch() const;
    int epochs() const { return epochs_; }

    /// Progress at which `epoch` epochs are complete (the least over batches).
    double progress_after(int epoch) const {
        return progress_[static_cast<std::size_t>(std::clamp(epoch, 0, epochs_))];
    }
    double total_progress() const { return progress_after(epochs_); }
    /// After each epoch with the first batch, by progress; nan where the tables have no metric.
    std::vector<LossPoint> losses() const;
    GradientNoise noise(double batch, int epoch) const;
    /// Progress of one step at `batch`, relative to one of first_batch(): Pollux's
    /// (variance + square) / (variance / scale + square), scale = batch / first_batch().
    double gain(double batch, int epoch) const;

  private:
    struct Epoch {
        double progress = 0;
        GradientNoise noise;
        double metric = 0;  ///< nan: not said
    };

    /// From the first folder that has any.
    Status read_curves(const std::string& folder);

    std::string name_;
    std::vector<StepTable> steps_;
    std::map<double, std::vector<Epoch>> curves_;  // by batch
    std::vector<double> progress_{0};              // by epochs that are complete
    int epochs_ = 0;
    ApplicationOptions options_;
};

}  // namespace sluice::sim
