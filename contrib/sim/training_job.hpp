// SPDX-License-Identifier: GPL-2.0-or-later
//
// A job as it really goes: an Application on the GPUs that it holds, in virtual time. The rules are
// those of Pollux's simulator (Qiao et al., OSDI 2021; simulator.py): progress = gain / seconds of
// a step, both of the epoch and the batch of the moment.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "common/model/goodput.hpp"
#include "contrib/sim/application.hpp"

namespace sluice::sim {

/// GPUs on each node, `most_on_node` on all but the last.
std::vector<int> filled(int gpus, int most_on_node);

class TrainingJob {
  public:
    /// Where a job chooses its batch itself: asked whenever its GPUs or its epoch change.
    using BatchRule = std::function<BatchSplit(const TrainingJob& job)>;

    TrainingJob(const Application& application, BatchRule rule)
        : application_(&application), rule_(std::move(rule)) {}

    /// GPUs on each node, all of one type; empty: it waits. Whoever gets GPUs first spends
    /// `restart_s` without progress. Writes a checkpoint.
    void place(std::vector<int> gpus_on_nodes, std::size_t type, double restart_s);

    /// Lives on for so long; `slowdown` (0 to 1) is the share of progress that others take from
    /// it. Returns how long of that it lived: less once it is complete.
    double advance(double seconds, double slowdown = 0);

    /// What it has done so far is safe.
    void checkpoint() { saved_ = {epoch_, progress_, useful_gpu_s_}; }
    /// It has no GPUs any more, and is where its last checkpoint is.
    void fail();

    const Application& application() const { return *application_; }
    bool complete() const { return epoch_ >= application_->epochs(); }
    bool running() const { return gpus_ > 0; }
    int gpus() const { return gpus_; }
    const std::vector<int>& placement() const { return placement_; }
    std::size_t type() const { return type_; }
    int epoch() const { return epoch_; }
    const BatchSplit& split() const { return split_; }
    double progress() const { return progress_; }
    double remaining() const { return application_->total_progress() - progress_; }
    double attained_gpu_s() const { return attained_gpu_s_; }
    double useful_gpu_s() const {
        return useful_gpu_s_;
    }                                             ///< of it, without restarts and what was lost
    int most_gpus() const { return most_gpus_; }  ///< that it has ever had
    int starts() const { return starts_; }        ///< restarts included

    /// Steps that are left with this batch to the end.
    double steps_left(double batch) const;
    /// Seconds of a step on these GPUs.
    double step_seconds_on(std::span<const int> gpus_on_nodes, std::size_t type,
                           const BatchSplit& split) const;
    /// Progress a second on other GPUs, with the batch that `split` makes there, in this epoch.
    double rate_on(std::span<const int> gpus_on_nodes, std::size_t type,
                   const BatchSplit& split) const;

  private:
    void choose_batch() { split_ = rule_(*this); }

    const Application* application_;
    BatchRule rule_;
    std::vector<int> placement_;
    std::size_t type_ = 0;
    int gpus_ = 0;
    BatchSplit split_;
    int epoch_ = 0;
    double progress_ = 0;
    double without_progress_s_ = 0;
    double attained_gpu_s_ = 0;
    double useful_gpu_s_ = 0;
    struct Saved {
        int epoch = 0;
        double progress = 0;
        double useful_gpu_s = 0;
    };
    Saved saved_;
    int most_gpus_ = 0;
    int starts_ = 0;
};

}  // namespace sluice::sim
