// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/model/goodput.hpp"

#include <algorithm>
#include <cmath>

namespace sluice {
namespace {

constexpr int batches_tried = 50;
constexpr double rounding = 1e-8;

int ceiling(double value) {
    return static_cast<int>(std::ceil(value - rounding));
}

}  // namespace

BatchSplit split_batch(const BatchLimits& limits, int gpus, double batch) {
    BatchSplit split;
    const int local = ceiling(batch / gpus);
    split.accumulated = std::max(0, ceiling(double(local) / limits.most_local) - 1);
    if (gpus == 1 && batch > limits.first + rounding)
        split.accumulated = std::max(1, split.accumulated);
    split.local = ceiling(double(local) / (split.accumulated + 1));
    const double most = limits.most / (double(gpus) * (split.accumulated + 1));
    split.local = std::max(1, std::min(split.local, static_cast<int>(most + rounding)));
    return split;
}

double batch_gain(double noise_scale, double first, double batch) {
    return (noise_scale + first) * batch / ((noise_scale + batch) * first);
}

BestBatch best_batch(const BatchLimits& limits, int gpus,
                     const std::function<double(const BatchSplit&)>& rate) {
    BestBatch best;
    const double least = std::max(limits.first, double(limits.least_local) * gpus);
    if (least > limits.most) return best;
    const double factor = std::pow(limits.most / least, 1.0 / (batches_tried - 1));
    BatchSplit last{0, 0};
    double batch = least;
    for (int i = 0; i < batches_tried; ++i, batch *= factor) {
        const BatchSplit split = split_batch(limits, gpus, std::min(batch, limits.most));
        if (split == last || split.local < limits.least_local) continue;
        last = split;
        if (const double found = rate(split); found > best.rate) best = {found, split};
    }
    return best;
}

BestBatch best_batch(const Goodput& goodput, StepPlacement placement) {
    const int gpus = placement.gpus;
    return best_batch(goodput.limits, gpus, [&](const BatchSplit& split) {
        placement.local_batch = split.local;
        double seconds = step_seconds(goodput.steps, placement);
        if (split.accumulated > 0)
            seconds += split.accumulated * compute_seconds(goodput.steps, placement);
        return batch_gain(goodput.noise_scale, goodput.limits.first, split.batch(gpus)) / seconds;
    });
}

}  // namespace sluice
