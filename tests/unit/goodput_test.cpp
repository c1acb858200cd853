// SPDX-License-Identifier: GPL-2.0-or-later
//
// Batches: how they are split, what they are worth, which is best.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "common/model/goodput.hpp"

namespace sluice {
namespace {

constexpr BatchLimits limits{8, 64, 4, 16};

Goodput goodput(double noise_scale) {
    Goodput out;
    out.limits = limits;
    out.noise_scale = noise_scale;
    out.steps[StepTerm::compute_s] = 0.1;
    out.steps[StepTerm::sample_s] = 0.02;
    out.steps[StepTerm::network_gb] = 2;
    out.steps[StepTerm::in_node_gb] = 1;
    return out;
}

StepPlacement placed(int gpus, int nodes) {
    StepPlacement placement;
    placement.gpus = gpus;
    placement.nodes = nodes;
    placement.most_on_node = (gpus + nodes - 1) / nodes;
    return placement;
}

TEST(SplitBatch, EvenlyInAsFewPiecesAsFit) {
    EXPECT_EQ(split_batch(limits, 1, 8), (BatchSplit{8, 0}));
    EXPECT_EQ(split_batch(limits, 1, 16), (BatchSplit{8, 1})) << "one GPU needs two for the noise";
    EXPECT_EQ(split_batch(limits, 2, 16), (BatchSplit{8, 0}));
    EXPECT_EQ(split_batch(limits, 2, 64), (BatchSplit{16, 1}));
    EXPECT_EQ(split_batch(limits, 3, 16), (BatchSplit{6, 0})) << "rounded up";
    EXPECT_EQ(split_batch(limits, 5, 64), (BatchSplit{12, 0})) << "13 would be more than 64";
}

TEST(BatchGain, IsWorthItsSamplesWhileThereIsNoise) {
    EXPECT_DOUBLE_EQ(batch_gain(0, 8, 64), 1);
    EXPECT_DOUBLE_EQ(batch_gain(24, 8, 24), 2);
    EXPECT_NEAR(batch_gain(1e12, 8, 64), 8, 1e-6);
}

TEST(BestBatch, IsTheBestOfAllThatCanBe) {
    std::mt19937 random(3);
    for (int round = 0; round < 300; ++round) {
        const Goodput job = goodput(std::exp(double(random() % 100) / 10));
        const int gpus = 1 + static_cast<int>(random() % 16);
        const StepPlacement placement =
            placed(gpus, std::min(gpus, 1 + static_cast<int>(random() % 4)));
        const BestBatch best = best_batch(job, placement);
        double most = 0;
        for (int accumulated = 0; accumulated < 64; ++accumulated) {
            for (int local = limits.least_local; local <= limits.most_local; ++local) {
                const BatchSplit split{local, accumulated};
                const double batch = split.batch(gpus);
                if (batch > limits.most || batch < limits.first) continue;
                if (gpus == 1 && batch > limits.first && accumulated == 0) continue;
                StepPlacement at = placement;
                at.local_batch = local;
                most = std::max(most, batch_gain(job.noise_scale, limits.first, batch) /
                                          (step_seconds(job.steps, at) +
                                           accumulated * compute_seconds(job.steps, at)));
            }
        }
        EXPECT_LE(best.rate, most * (1 + 1e-12));
        EXPECT_GE(best.rate, most * 0.97) << gpus << " GPUs: one batch in 50 is near every other";
    }
}

TEST(BestBatch, NoneWhereTheGpusAreTooMany) {
    EXPECT_EQ(best_batch(goodput(100), placed(17, 5)).rate, 0) << "4 samples on each are over 64";
    EXPECT_GT(best_batch(goodput(100), placed(16, 4)).rate, 0);
}

TEST(BestBatch, MoreNoiseALargerBatch) {
    EXPECT_LT(best_batch(goodput(1), placed(4, 1)).split.batch(4),
              best_batch(goodput(1000), placed(4, 1)).split.batch(4));
}

TEST(ComputeSeconds, IsTheStepWithoutTheExchange) {
    const Goodput job = goodput(0);
    StepPlacement at = placed(1, 1);
    at.local_batch = 8;
    EXPECT_NEAR(compute_seconds(job.steps, at), 0.26, 1e-12);
    EXPECT_NEAR(step_seconds(job.steps, at), 0.26, 1e-12);
    at = placed(4, 2);
    at.local_batch = 8;
    EXPECT_NEAR(compute_seconds(job.steps, at), 0.26, 1e-12);
    EXPECT_GT(step_seconds(job.steps, at), 0.27);
}

}  // namespace
}  // namespace sluice
