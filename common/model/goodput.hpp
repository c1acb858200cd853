// SPDX-License-Identifier: GPL-2.0-or-later
//
// Training progress a second of a job that may choose its batch, by where it runs (Pollux, Qiao et
// al., OSDI 2021, sections 3.1 and 3.2):
//
//     goodput(P, m, s) = gain(M) / (s T_grad(P, m) + T(P, m)),      M = K m (s + 1)
//     gain(M) = (phi + M0) M / ((phi + M) M0)
//
// for K GPUs, m samples on each, gradients added up over s batches before the last. A step of M
// samples is worth gain(M) steps of M0, the first batch: M / M0 as long as the gradient's noise
// phi (in samples, Pollux's PGNS) is large, 1 where there is none. T and T_grad are
// step_time.hpp's.
#pragma once

#include <functional>

#include "common/model/step_time.hpp"

namespace sluice {

/// Samples of a step, all GPUs together, and on one GPU at once.
struct BatchLimits {
    double first = 1;  ///< M0: the batch that progress is counted in
    double most = 1;
    int least_local = 1;
    int most_local = 1;
};

struct Goodput {
    StepTimeModel steps;
    double noise_scale = 0;  ///< phi
    BatchLimits limits;
};

/// A step: `local` samples on each GPU, `accumulated` times more before gradients are exchanged.
struct BatchSplit {
    int local = 1;
    int accumulated = 0;

    double batch(int gpus) const { return double(gpus) * local * (accumulated + 1); }
    bool operator==(const BatchSplit&) const = default;
};

/// `batch` samples evenly over `gpus`, rounded up, in as few pieces as fit, but not above the
/// largest batch. One GPU alone takes two pieces for more than the first batch: a single one tells
/// nothing of the noise.
BatchSplit split_batch(const BatchLimits& limits, int gpus, double batch);

double batch_gain(double noise_scale, double first, double batch);

struct BestBatch {
    double rate = 0;  ///< steps of the first batch, a second; 0: no batch can be split so far
    BatchSplit split;
};

/// The best of 50 batches from the least that `placement` allows to the largest, by equal factors,
/// as Pollux tries them; the local batch of `placement` is not read. Some 5 us.
BestBatch best_batch(const Goodput& goodput, StepPlacement placement);

/// The same with any `rate` of a BatchSplit: steps of the first batch a second.
BestBatch best_batch(const BatchLimits& limits, int gpus,
                     const std::function<double(const BatchSplit&)>& rate);

}  // namespace sluice
