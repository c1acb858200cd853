// SPDX-License-Identifier: GPL-2.0-or-later
//
// How much of a job is left, and how fast it goes where.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "common/allocator/steps_forecast.hpp"

namespace sluice {
namespace {

TEST(RemainingWork, QuantilesAreThoseOfALognormal) {
    const auto totals = total_quantiles({1000, 0.6}, 0, 5);
    ASSERT_EQ(totals.size(), 5u);
    EXPECT_NEAR(totals[2], 1000, 1);
    EXPECT_NEAR(std::log(totals[3] / 1000), 0.6 * 0.5244, 1e-3) << "z of 0.7";
    EXPECT_TRUE(std::is_sorted(totals.begin(), totals.end()));
    EXPECT_EQ(total_quantiles({1000, 0}, 10), std::vector<double>{1000});
    EXPECT_EQ(total_quantiles({1000, 0}, 2000), std::vector<double>{2000});
}

TEST(RemainingWork, WhatIsDoneIsKnown) {
    for (const double done : {1.0, 500.0, 1000.0, 5000.0, 1e6})
        for (const double total : total_quantiles({1000, 0.6}, done)) EXPECT_GT(total, done);
    // beyond what was expected there is more to come, the more the further
    const auto left = [](double done) {
        const auto totals = total_quantiles({1000, 0.6}, done);
        return std::accumulate(totals.begin(), totals.end(), 0.0) / 5 - done;
    };
    EXPECT_LT(left(500), left(1));
    EXPECT_GT(left(20000), left(5000));
}

TEST(RemainingWork, ExpectedFromEarlierRuns) {
    EXPECT_EQ(expected_work({}).total, 0);
    EXPECT_EQ(expected_work({0, -1, std::nan("")}).total, 0);
    const ExpectedWork one = expected_work({500});
    EXPECT_EQ(one.total, 500);
    EXPECT_NEAR(one.log_sd, 0.49, 0.01) << "one run tells little of the next";
    const ExpectedWork many = expected_work(std::vector<double>(50, 500));
    EXPECT_EQ(many.log_sd, 0.2) << "the least";
    EXPECT_EQ(expected_work({100, 400, 900}).total, 400);
    EXPECT_NEAR(expected_work({100, 400}).total, 200, 1e-9);
    EXPECT_GT(expected_work({1, 1e3, 1e6}).log_sd, 3);
}

LossCurve falling() {
    LossCurve curve;  // 1 / (0.001 k + 0.2) + 1
    curve.b0 = 0.001;
    curve.b1 = 0.2;
    curve.b2 = 1;
    curve.first_loss = 6;
    curve.last_step = 100;
    curve.last_loss = curve.at(100);
    return curve;
}

TEST(StepsLeft, ByTargetThenEarlierRunsThenTheCurve) {
    Target steps;
    steps.kind = Target::Kind::steps;
    steps.steps = 1000;
    EXPECT_EQ(steps_left(steps, falling(), {77, 0.2}, 400), std::vector<double>{600});
    EXPECT_EQ(steps_left(steps, {}, {}, 4000), std::vector<double>{1});

    Target loss;
    loss.kind = Target::Kind::loss;
    loss.loss = 2;  // at 800
    const auto until = steps_left(loss, falling(), {77, 0.2}, 100);
    ASSERT_EQ(until.size(), 5u);
    EXPECT_NEAR(until[2], 700, 1);
    loss.loss = 0.5;  // never
    const auto earlier = steps_left(loss, falling(), {1000, 0.2}, 100);
    EXPECT_NEAR(earlier[2], 900, 5);

    const auto flat = steps_left({}, falling(), {}, 100);
    ASSERT_EQ(flat.size(), 5u);
    EXPECT_GT(flat[0], 0);
    const auto as_many_again = steps_left({}, {}, {}, 300);
    ASSERT_EQ(as_many_again.size(), 5u);
    EXPECT_NEAR(as_many_again[2], 300, 1);
    EXPECT_TRUE(steps_left({}, {}, {}, 0).empty());
}

TEST(StepsForecast, RatesAreThoseOfTheModelOrTheSizes) {
    const StepsForecast sizes({100, 300}, SpeedModel{1, 0.1});
    EXPECT_DOUBLE_EQ(sizes.remaining(), 200);
    EXPECT_DOUBLE_EQ(sizes.rate(step_placement(std::vector<int>{2, 2}, 1), 0), 1 / 0.35);

    StepTimeModel model;
    model[StepTerm::compute_s] = 0.1;
    model[StepTerm::sample_s] = 0.01;
    const StepsForecast modelled({100}, model, 32);
    EXPECT_NEAR(modelled.rate(step_placement(std::vector<int>{4}, 1), 0), 1 / 0.18, 1e-9);
}

}  // namespace
}  // namespace sluice
