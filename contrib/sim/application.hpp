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
// Times are seconds. Progress is counted in steps of the smallest batch that was measured.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/base/result.hpp"
#include "common/model/goodput.hpp"

namespace sluice::sim {

struct StepSeconds {
    double step = 0;  ///< one step, gradients exchanged
    double sync = 0;  ///< of it; the rest is what each further accumulated batch costs
};

/// Step times of one application on one type of nodes.
class StepTable {
  public:
    /// `scalability` may be empty: no such file.
    static Result<StepTable> read(const std::string& placements, const std::string& scalability);

    /// For GPUs on nodes (zeros do not count) and samples per GPU. Where the placement was
    /// measured, linear between local batches. Otherwise linear, at equal GPUs per node, between
    /// the counts of nodes that were measured, and between the counts of GPUs on these. Beyond
    /// what was measured: the nearest.
    StepSeconds at(std::span<const int> gpus_on_nodes, double local_batch) const;

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

    std::map<std::vector<int>, Line> placements_;  // the smallest rotation
    std::map<int, std::map<int, Line>> by_nodes_;  // nodes, GPUs
    double least_local_ = 0;
    double most_local_ = 0;
};

struct GradientNoise {
    double square = 0;    ///< |g|^2
    double variance = 0;  ///< of the gradient of the smallest batch
};

/// What the tables do not say; 0: as they do.
struct ApplicationLimits {
    double most_local_batch = 0;
};

class Application {
  public:
    /// From `folder`, whose last part is the name. `types`: what stands behind "placements" and
    /// "scalability" in the files' names, one for each type of nodes: "" or "-rtx".
    static Result<Application> read(const std::string& folder,
                                    const std::vector<std::string>& types,
                                    ApplicationLimits limits = {});

    const std::string& name() const { return name_; }
    const StepTable& steps(std::size_t type) const { return steps_[type]; }
    std::size_t types() const { return steps_.size(); }

    double first_batch() const { return curves_.begin()->first; }
    double most_batch() const { return curves_.rbegin()->first; }
    BatchLimits limits() const {
        return {first_batch(), most_batch(), static_cast<int>(least_local_),
                static_cast<int>(most_local_)};
    }
    int epochs() const { return epochs_; }

    /// Progress at which `epoch` epochs are complete (the least over batches).
    double progress_after(int epoch) const {
        return progress_[static_cast<std::size_t>(std::clamp(epoch, 0, epochs_))];
    }
    double total_progress() const { return progress_after(epochs_); }
    GradientNoise noise(double batch, int epoch) const;
    /// Progress of one step at `batch`, relative to one of first_batch(): Pollux's
    /// (variance + square) / (variance / scale + square), scale = batch / first_batch().
    double gain(double batch, int epoch) const;

  private:
    struct Epoch {
        double progress = 0;
        GradientNoise noise;
    };

    std::string name_;
    std::vector<StepTable> steps_;
    std::map<double, std::vector<Epoch>> curves_;  // by batch
    std::vector<double> progress_{0};              // by epochs that are complete
    int epochs_ = 0;
    double least_local_ = 0;
    double most_local_ = 0;
};

}  // namespace sluice::sim
