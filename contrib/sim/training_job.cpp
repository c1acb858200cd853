// SPDX-License-Identifier: GPL-2.0-or-later
#include "contrib/sim/training_job.hpp"

#include <algorithm>
#include <numeric>

namespace sluice::sim {
namespace {

double step_of(const Application& application, std::span<const int> gpus, std::size_t type,
               const BatchSplit& split) {
    const StepSeconds step = application.step(type, gpus, split.local);
    return step.step + split.accumulated * (step.step - step.sync);
}

}  // namespace

std::vector<int> filled(int gpus, int most_on_node) {
    std::vector<int> nodes;
    for (int left = gpus; left > 0; left -= nodes.back())
        nodes.push_back(std::min(left, most_on_node));
    return nodes;
}

void TrainingJob::place(std::vector<int> gpus_on_nodes, std::size_t type, double restart_s) {
    checkpoint();
    placement_ = std::move(gpus_on_nodes);
    type_ = type;
    gpus_ = std::accumulate(placement_.begin(), placement_.end(), 0);
    if (gpus_ == 0) return;
    without_progress_s_ = restart_s;
    ++starts_;
    most_gpus_ = std::max(most_gpus_, gpus_);
    choose_batch();
}

void TrainingJob::fail() {
    placement_.clear();
    gpus_ = 0;
    epoch_ = saved_.epoch;
    progress_ = saved_.progress;
    useful_gpu_s_ = saved_.useful_gpu_s;
}

double TrainingJob::steps_left(double batch) const {
    double steps = 0;
    double from = progress_;
    for (int epoch = epoch_; epoch < application_->epochs(); ++epoch) {
        const double to = application_->progress_after(epoch + 1);
        steps += (to - from) / application_->gain(batch, epoch);
        from = to;
    }
    return steps;
}

double TrainingJob::step_seconds_on(std::span<const int> gpus_on_nodes, std::size_t type,
                                    const BatchSplit& split) const {
    return step_of(*application_, gpus_on_nodes, type, split);
}

double TrainingJob::rate_on(std::span<const int> gpus_on_nodes, std::size_t type,
                            const BatchSplit& split) const {
    const int gpus = std::accumulate(gpus_on_nodes.begin(), gpus_on_nodes.end(), 0);
    return application_->gain(split.batch(gpus), epoch_) /
           step_of(*application_, gpus_on_nodes, type, split);
}

double TrainingJob::advance(double seconds, double slowdown) {
    if (!running() || complete()) return complete() ? 0 : seconds;
    const double delay = std::min(without_progress_s_, seconds);
    without_progress_s_ -= delay;
    double lived = delay;
    while (lived < seconds && !complete()) {
        const double left = seconds - lived;
        const double rate = rate_on(placement_, type_, split_) * (1 - slowdown);
        const double next = application_->progress_after(epoch_ + 1);
        if (progress_ + rate * left < next) {
            progress_ += rate * left;
            lived = seconds;
        } else {
            lived += std::clamp((next - progress_) / rate, 0.0, left);
            progress_ = next;
            ++epoch_;
        }
        if (!complete()) choose_batch();
    }
    attained_gpu_s_ += lived * gpus_;
    useful_gpu_s_ += (lived - delay) * gpus_;
    return lived;
}

}  // namespace sluice::sim
