// SPDX-License-Identifier: GPL-2.0-or-later
#include "contrib/sim/training_job.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace sluice::sim {
namespace {

constexpr double rounding = 1e-8;

int ceiling(double value) {
    return static_cast<int>(std::ceil(value - rounding));
}

double step_of(const Application& application, std::span<const int> gpus, std::size_t type,
               const BatchSplit& split) {
    const StepSeconds step = application.steps(type).at(gpus, split.local);
    return step.step + split.accumulated * (step.step - step.sync);
}

}  // namespace

BatchSplit split_batch(const Application& application, int gpus, double batch) {
    BatchSplit split;
    const int local = ceiling(batch / gpus);
    split.accumulated = ceiling(local / application.most_local_batch()) - 1;
    // one GPU alone needs two batches to measure the noise of a gradient
    if (gpus == 1 && batch > application.first_batch())
        split.accumulated = std::max(1, split.accumulated);
    split.local = ceiling(double(local) / (split.accumulated + 1));
    const auto most =
        static_cast<int>(application.most_batch() / (double(gpus) * (split.accumulated + 1)));
    split.local = std::max(1, std::min(split.local, most));
    return split;
}

void TrainingJob::place(std::vector<int> gpus_on_nodes, std::size_t type, double restart_s) {
    placement_ = std::move(gpus_on_nodes);
    type_ = type;
    gpus_ = std::accumulate(placement_.begin(), placement_.end(), 0);
    if (gpus_ == 0) return;
    without_progress_s_ = restart_s;
    ++starts_;
    choose_batch();
}

double TrainingJob::step_seconds(const BatchSplit& split) const {
    return step_of(*application_, placement_, type_, split);
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
    return lived;
}

}  // namespace sluice::sim
