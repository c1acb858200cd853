// SPDX-License-Identifier: GPL-2.0-or-later
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <limits>
#include <random>

#include "common/base/text.hpp"
#include "common/model/loss_curve.hpp"
#include "common/model/record.hpp"
#include "common/model/speed.hpp"
#include "tests/unit/test_data.hpp"

namespace sluice {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

using Points = std::vector<LossPoint>;

struct Truth {
    double b0 = 0.002;
    double b1 = 0.2;
    double b2 = 2;

    double at(double step) const { return 1 / (b0 * step + b1) + b2; }
};

Points points_of(const Truth& truth, int count, std::int64_t stride) {
    Points points;
    for (int i = 0; i < count; ++i) {
        const std::int64_t step = i * stride;
        points.push_back({step, truth.at(static_cast<double>(step))});
    }
    return points;
}

/// A random curve of 50 to 1,500 points with noise; with spikes, 3% of the points are far above.
struct Synthetic {
    Truth truth;
    Points points;
    double last = 0;
    double height = 0;  ///< of the curve at its begin over its limit
    double noise = 0;
};

Synthetic synthetic(std::mt19937_64& random, bool spikes) {
    // the library's own distributions differ from one to the next
    const auto uniform = [&random] { return static_cast<double>(random() >> 11) * 0x1p-53; };
    const auto normal = [&uniform] {
        return std::sqrt(-2 * std::log(1 - uniform())) * std::cos(2 * M_PI * uniform());
    };
    Synthetic out;
    const int count = 50 + static_cast<int>(uniform() * 1450);
    const std::int64_t stride = 1 + static_cast<std::int64_t>(uniform() * 100);
    out.last = static_cast<double>((count - 1) * stride);
    out.height = 0.5 + 10 * uniform();
    const double half_life = out.last * std::pow(10, -2 + 2 * uniform());
    out.truth = {1 / (out.height * half_life), 1 / out.height, 4 * uniform() * uniform()};
    out.noise = out.height * std::pow(10, -3 + 1.7 * uniform());
    for (LossPoint point : points_of(out.truth, count, stride)) {
        point.loss += normal() * out.noise;
        if (spikes && uniform() < 0.03) point.loss += 20 * out.height * uniform();
        out.points.push_back(point);
    }
    return out;
}

TEST(LossCurve, RecoversAnExactCurve) {
    const Truth truth;
    const auto curve = fit_loss_curve(points_of(truth, 200, 50));
    ASSERT_TRUE(curve.ok()) << curve.error().message;
    EXPECT_NEAR(curve->b0, truth.b0, 1e-5 * truth.b0);
    EXPECT_NEAR(curve->b1, truth.b1, 1e-4 * truth.b1);
    EXPECT_NEAR(curve->b2, truth.b2, 1e-5 * truth.b2);
    EXPECT_EQ(curve->last_step, 199 * 50);
    EXPECT_EQ(curve->points, 200);
    EXPECT_NEAR(curve->last_loss, truth.at(199 * 50), 1e-5);
    EXPECT_LT(curve->residual, 1e-4);
    const Forecast later = forecast_loss(*curve, 100000);
    EXPECT_NEAR(later.value, truth.at(100000), 1e-4);
    EXPECT_LE(later.low, later.value);
    EXPECT_GE(later.high, later.value);
}

TEST(LossCurve, RecoversParametersThroughNoiseAndSpikes) {
    std::mt19937_64 random(11);
    for (int round = 0; round < 60; ++round) {
        const Synthetic s = synthetic(random, round % 2 == 1);
        const auto curve = fit_loss_curve(s.points);
        ASSERT_TRUE(curve.ok()) << round << ": " << curve.error().message;
        EXPECT_GE(curve->b0, 0);
        EXPECT_GE(curve->b1, 0);
        EXPECT_GE(curve->b2, 0);
        EXPECT_NEAR(curve->at(s.last), s.truth.at(s.last), s.noise) << round;
        EXPECT_NEAR(curve->at(s.last / 2), s.truth.at(s.last / 2), s.noise) << round;
        EXPECT_NEAR(curve->residual, s.noise, 0.6 * s.noise) << round;
    }
}

// A form that has held is not expected to fail, and thinning is no failure.
TEST(LossCurve, ExactPointsLeaveLittleOpen) {
    for (const double exponent : {0.5, 1.0, std::numeric_limits<double>::infinity()}) {
        LossCurve truth;
        truth.exponent = exponent;
        truth.b1 = 1 / 3.0;
        truth.b0 = truth.b1 / 400;
        truth.b2 = 2;
        Points points;
        for (std::int64_t step = 0; step < 3000; step += 10)
            points.push_back({step, truth.at(static_cast<double>(step))});
        const auto curve = fit_loss_curve(points);
        ASSERT_TRUE(curve.ok());
        const Forecast later = forecast_loss(*curve, 6000);
        EXPECT_NEAR(later.value, truth.at(6000), 0.01) << exponent;
        EXPECT_GT(later.low, truth.at(6000) - 0.05) << exponent;
        EXPECT_LT(later.high, truth.at(6000) + 0.05) << exponent;
    }
}

// Real losses leave their curves, these do not: without that part of the interval.
TEST(LossCurve, ItsIntervalsHoldAsOftenAsTheySay) {
    LossCurveOptions options;
    options.drift = 0;
    for (const bool spikes : {false, true}) {
        std::mt19937_64 random(5);
        int now = 0;
        int twice = 0;
        int four_times = 0;
        constexpr int curves = 300;
        for (int i = 0; i < curves; ++i) {
            const Synthetic s = synthetic(random, spikes);
            const auto curve = fit_loss_curve(s.points, options);
            ASSERT_TRUE(curve.ok()) << curve.error().message;
            const auto covers = [&](double step) {
                const Forecast forecast = forecast_loss(*curve, step);
                const double truth = s.truth.at(step);
                return forecast.low <= truth && truth <= forecast.high ? 1 : 0;
            };
            now += covers(s.last);
            twice += covers(2 * s.last);
            four_times += covers(4 * s.last);
        }
        for (const int covered : {now, twice, four_times}) {
            EXPECT_GE(covered, curves * 70 / 100) << (spikes ? "with spikes" : "without spikes");
            EXPECT_LE(covered, curves * 90 / 100) << (spikes ? "with spikes" : "without spikes");
        }
    }
}

/// The sum of so many uniform numbers, of standard deviation 1.
double bell(std::mt19937_64& random) {
    double sum = 0;
    for (int i = 0; i < 12; ++i) sum += static_cast<double>(random() >> 11) * 0x1p-53;
    return sum - 6;
}

Points noisy(const Decay& decay, double limit, int count, double noise, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    Points points;
    for (int k = 0; k < count; ++k) {
        points.push_back({k, decay.at(k) + limit + noise * bell(random)});
    }
    return points;
}

TEST(LossCurve, EveryFamilyIsRecognised) {
    const struct {
        double exponent;
        const char* family;
    } cases[] = {{1.0 / 3, "power"},
                 {0.5, "power"},
                 {1, "hyperbola"},
                 {2, "power"},
                 {infinity, "exponential"}};
    for (const auto& each : cases) {
        // falls by a half or more within the points, but not to its limit
        const double rate = each.exponent < 1 ? 0.3 : each.exponent > 1 ? 0.002 : 0.01;
        const Decay truth{rate / 4, 0.25, each.exponent};
        const auto curve = fit_loss_curve(noisy(truth, 1.5, 2000, 0.002, 7));
        ASSERT_TRUE(curve.ok()) << curve.error().message;
        EXPECT_EQ(curve->exponent, each.exponent);
        EXPECT_STREQ(curve->family(), each.family);
        EXPECT_NEAR(curve->at(2000), truth.at(2000) + 1.5, 0.01) << each.exponent;
        EXPECT_NEAR(curve->at(8000), truth.at(8000) + 1.5, 0.05) << each.exponent;
        const Forecast later = forecast_loss(*curve, 8000);
        EXPECT_LE(later.low, truth.at(8000) + 1.5) << each.exponent;
        EXPECT_GE(later.high, truth.at(8000) + 1.5) << each.exponent;
    }
}

TEST(LossCurve, ExponentsBetweenTheFamiliesAreForetoldToo) {
    for (const double exponent : {0.2, 0.4, 0.7, 1.4}) {
        const Decay truth{exponent < 1 ? 0.05 : 0.001, 0.25, exponent};
        const auto curve = fit_loss_curve(noisy(truth, 2, 2000, 0.01, 8));
        ASSERT_TRUE(curve.ok()) << curve.error().message;
        EXPECT_NEAR(curve->at(2000), truth.at(2000) + 2, 0.02) << exponent;
        EXPECT_NEAR(curve->at(8000), truth.at(8000) + 2, 0.15) << exponent;
    }
}

// Nothing is hidden from it, and the truth goes on as before: an interval for real losses, which
// leave their curves, is wider than that.
TEST(LossCurve, IntervalsExpectMoreThanNoise) {
    Points points;
    for (std::int64_t k = 0; k < 4000; ++k) {
        // a learning rate that is taken back and forth: no family holds
        const double x = static_cast<double>(k);
        points.push_back({k, 2 + 40 / (x + 20) + 0.05 * std::sin(x / 300)});
    }
    LossCurveOptions options;
    options.drift = 0;
    const auto narrow = fit_loss_curve(points, options);
    const auto wide = fit_loss_curve(points);
    ASSERT_TRUE(narrow.ok() && wide.ok());
    EXPECT_EQ(narrow->at(8000), wide->at(8000));
    const Forecast forecast = forecast_loss(*wide, 8000);
    EXPECT_LT(forecast.low, 0.85 * forecast.value);
    EXPECT_LT(forecast.low, forecast_loss(*narrow, 8000).low);
}

TEST(LossCurve, JumpsAreJoined) {
    const struct {
        const char* what;
        double height;
    } cases[] = {{"another batch size after a resize", 0.4}, {"a lower learning rate", -0.4}};
    for (const auto& each : cases) {
        std::mt19937_64 random(12);
        const Truth truth;
        Points points;
        for (std::int64_t k = 0; k < 3000; ++k) {
            const double level = k < 1800 ? 0 : each.height;
            points.push_back({k, truth.at(static_cast<double>(k)) + level + 0.02 * bell(random)});
        }
        const auto curve = fit_loss_curve(points);
        ASSERT_TRUE(curve.ok()) << each.what;
        EXPECT_NEAR(curve->at(2999), truth.at(2999) + each.height, 0.02) << each.what;
        EXPECT_NEAR(curve->at(9000), truth.at(9000) + each.height, 0.08) << each.what;
        EXPECT_NEAR(curve->residual, 0.02, 0.005) << each.what;
    }
}

TEST(LossCurve, NoJumpIsSeenInNoiseOrInASteepBegin) {
    std::mt19937_64 random(17);
    for (int round = 0; round < 100; ++round) {
        const Synthetic s = synthetic(random, false);
        CurveReservoir reservoir;
        for (const LossPoint& point : s.points) reservoir.add(point);
        CurveSamples samples = reservoir.samples();
        EXPECT_EQ(join_segments(samples), 0) << round;
    }
}

TEST(LossCurve, TheReservoirIsBounded) {
    CurveReservoir reservoir;
    std::mt19937_64 random(13);
    const Truth truth{0.00002, 0.2, 2};
    for (std::int64_t k = 0; k < 300000; ++k) {
        double loss = truth.at(static_cast<double>(k)) + 0.1 * bell(random);
        if (k % 1000 == 7) loss = 1000;
        if (k % 1000 == 9) loss = nan;
        reservoir.add({k, loss});
        if (k % 1000 == 0) {
            ASSERT_LE(reservoir.samples().size(), CurveReservoir::max_samples);
        }
    }
    double count = 0;
    double before = -1;
    for (const CurveSample& sample : reservoir.samples()) {
        EXPECT_GT(sample.step, before);
        EXPECT_LE(sample.step, sample.last);
        before = sample.last;
        count += sample.count;
    }
    EXPECT_EQ(count, 300000 - 300);
    EXPECT_EQ(reservoir.samples().back().last, 299999);
    const auto curve = fit_loss_curve(reservoir);
    ASSERT_TRUE(curve.ok());
    EXPECT_EQ(curve->points, 300000 - 300);
    EXPECT_NEAR(curve->at(299999), truth.at(299999), 0.01);
    EXPECT_NEAR(curve->at(600000), truth.at(600000), 0.03);
    EXPECT_NEAR(curve->residual, 0.1, 0.03);
    // a restart far back
    for (std::int64_t k = 150000; k < 150100; ++k) reservoir.add({k, 7.0});
    EXPECT_EQ(reservoir.samples().back().last, 150099);
    EXPECT_LE(reservoir.samples().size(), CurveReservoir::max_samples);
}

TEST(LossCurve, DegenerateLossesAreNoTrouble) {
    for (const double size : {1e-300, 1e-30, 1e30, 1e99}) {
        Points points = points_of(Truth(), 200, 50);
        for (LossPoint& point : points) point.loss *= size;
        const auto curve = fit_loss_curve(points);
        if (!curve.ok()) continue;
        for (const double step : {0.0, 1e4, 1e15}) {
            const Forecast forecast = forecast_loss(*curve, step);
            EXPECT_TRUE(std::isfinite(forecast.value)) << size;
            EXPECT_LE(forecast.low, forecast.value) << size;
            EXPECT_GE(forecast.high, forecast.value) << size;
        }
        if (size > 1e-50) {
            EXPECT_NEAR(curve->at(20000) / size, Truth().at(20000), 1e-3) << size;
        }
    }
    EXPECT_FALSE(fit_loss_curve({{0, 1e300}, {1, 1e300}, {2, 1e300}, {3, 1e300}, {4, 1e300}}).ok());
    EXPECT_FALSE(fit_loss_curve({{std::int64_t{1} << 62, 1.0}}).ok());
}

TEST(Forecast, FlatIsWhereTwiceTheStepsBringLittle) {
    const Truth truth;
    const auto curve = fit_loss_curve(points_of(truth, 200, 50));
    ASSERT_TRUE(curve.ok());
    const auto flat = forecast_flat(*curve, 0.01);
    ASSERT_TRUE(flat.has_value());
    const double step = flat->value;
    EXPECT_NEAR((truth.at(step) - truth.at(2 * step)) / (curve->first_loss - truth.at(step)), 0.01,
                1e-4);
    EXPECT_LE(flat->low, step);
    EXPECT_GE(flat->high, step);
    EXPECT_GT(forecast_flat(*curve, 0.001)->value, step);
    EXPECT_FALSE(forecast_flat(*curve, 0).has_value());
    // slow at the begin, which is not flat yet
    LossCurve late;
    late.b0 = 1e-4;
    late.b1 = 1;
    late.b2 = 1;
    late.first_loss = 8;  // a warm-up that is no part of the curve
    late.last_step = 100000;
    ASSERT_TRUE(forecast_flat(late, 0.01).has_value());
    EXPECT_GT(forecast_flat(late, 0.01)->value, 10000);
    EXPECT_FALSE(forecast_flat(LossCurve{0, 1, 1, 1, {}, {}, 0, 10, 2, 2, 5}, 0.1).has_value());
}

TEST(LossCurve, IsTheSameInOtherUnits) {
    std::mt19937_64 random(3);
    const Synthetic s = synthetic(random, true);
    Points scaled = s.points;
    for (LossPoint& point : scaled) {
        *point.step *= 8;
        point.loss *= 1024;
    }
    const auto a = fit_loss_curve(s.points);
    const auto b = fit_loss_curve(scaled);
    ASSERT_TRUE(a.ok() && b.ok());
    EXPECT_NEAR(b->b0 * 8 * 1024 / a->b0, 1, 0.02);
    EXPECT_NEAR(b->b1 * 1024 / a->b1, 1, 0.02);
    EXPECT_NEAR(b->at(8 * s.last) / 1024 / a->at(s.last), 1, 1e-3);
}

TEST(LossCurve, IsDeterministic) {
    std::mt19937_64 random(4);
    const Synthetic s = synthetic(random, true);
    const auto a = fit_loss_curve(s.points);
    const auto b = fit_loss_curve(s.points);
    ASSERT_TRUE(a.ok() && b.ok());
    EXPECT_EQ(a->b0, b->b0);
    EXPECT_EQ(a->below, b->below);
    EXPECT_EQ(a->above, b->above);
}

TEST(LossCurve, ARestartReplacesWhatCameAfterIt) {
    const Truth truth;
    Points points = points_of(truth, 100, 10);
    for (std::int64_t step = 600; step <= 1000; step += 10) {
        // the first run had gone wrong there
        if (step / 10 < 100) points[static_cast<std::size_t>(step / 10)].loss += 3;
    }
    for (std::int64_t step = 600; step <= 1500; step += 10) {
        points.push_back({step, truth.at(static_cast<double>(step))});
    }
    const auto curve = fit_loss_curve(points);
    ASSERT_TRUE(curve.ok());
    EXPECT_EQ(curve->last_step, 1500);
    EXPECT_EQ(curve->points, 151);
    EXPECT_NEAR(curve->at(1500), truth.at(1500), 1e-3);
}

TEST(LossCurve, PointsWithoutAStepAreNumbered) {
    const Truth truth;
    Points points = points_of(truth, 100, 1);
    for (LossPoint& point : points) point.step.reset();
    const auto curve = fit_loss_curve(points);
    ASSERT_TRUE(curve.ok());
    EXPECT_EQ(curve->last_step, 99);
    EXPECT_NEAR(curve->at(99), truth.at(99), 1e-3);
    // a few among many with a step have no place
    points = points_of(truth, 100, 10);
    points.insert(points.begin() + 50, {std::nullopt, 77.0});
    const auto mixed = fit_loss_curve(points);
    ASSERT_TRUE(mixed.ok());
    EXPECT_EQ(mixed->points, 100);
}

// Times in nanoseconds, or somebody's -1: a double does not hold them, nor does a record.
TEST(LossCurve, WhatIsNoStepIsNumbered) {
    const Truth truth;
    for (const std::int64_t offset :
         {std::numeric_limits<std::int64_t>::max() - 99, max_step + 1, std::int64_t{-1000}}) {
        Points points = points_of(truth, 100, 1);
        for (LossPoint& point : points) *point.step += offset;
        const auto curve = fit_loss_curve(points);
        ASSERT_TRUE(curve.ok()) << offset;
        EXPECT_EQ(curve->last_step, 99) << offset;
    }
}

TEST(LossCurve, NanAndInfAreLeftOut) {
    const Truth truth;
    Points points = points_of(truth, 100, 10);
    points[3].loss = nan;
    points[40].loss = infinity;
    points[99].loss = -infinity;
    points[98].loss = 1e300;
    const auto curve = fit_loss_curve(points);
    ASSERT_TRUE(curve.ok());
    EXPECT_EQ(curve->points, 96);
    EXPECT_EQ(curve->last_step, 970);
    EXPECT_NEAR(curve->at(970), truth.at(970), 1e-3);
}

TEST(LossCurve, AWarmUpIsSkipped) {
    const Truth truth;
    Points points;
    for (std::int64_t step = 0; step < 20; ++step) {
        points.push_back({step, 2.5 + 0.1 * static_cast<double>(step)});
    }
    for (std::int64_t step = 20; step < 1000; ++step) {
        points.push_back({step, truth.at(static_cast<double>(step))});
    }
    const auto curve = fit_loss_curve(points);
    ASSERT_TRUE(curve.ok());
    EXPECT_NEAR(curve->at(999), truth.at(999), 1e-3);
    EXPECT_NEAR(curve->at(5000), truth.at(5000), 1e-2);
}

TEST(LossCurve, ARisingLossIsALevelCurveWhereItIsNow) {
    std::mt19937_64 random(5);
    std::normal_distribution<double> normal;
    for (const double noise : {0.0, 0.05}) {
        Points points;
        for (std::int64_t step = 0; step < 100; ++step)
            points.push_back({step, 2 + 0.01 * static_cast<double>(step) + noise * normal(random)});
        const auto curve = fit_loss_curve(points);
        ASSERT_TRUE(curve.ok());
        EXPECT_FALSE(curve->falls());
        EXPECT_EQ(curve->at(0), curve->at(99));
        const Forecast now = forecast_loss(*curve, 99);
        EXPECT_NEAR(now.value, 2.88, 0.05);
        EXPECT_LT(now.low, 2.99);
        EXPECT_GT(now.high, 2.99);
        EXPECT_FALSE(forecast_step(*curve, 1).has_value());
        EXPECT_FALSE(forecast_flat(*curve, 0.01).has_value());
    }
}

TEST(LossCurve, NoiseAloneIsLevelWhereAllOfItIs) {
    std::mt19937_64 random(6);
    std::normal_distribution<double> normal;
    for (int round = 0; round < 20; ++round) {
        Points points;
        for (std::int64_t step = 0; step < 400; ++step)
            points.push_back({step, 2 + 0.1 * normal(random)});
        const auto curve = fit_loss_curve(points);
        ASSERT_TRUE(curve.ok());
        EXPECT_NEAR(curve->at(399), 2, 0.03) << round;
    }
}

TEST(LossCurve, SaysThatItCannotSayYet) {
    const auto reason = [](const Points& points) {
        const auto curve = fit_loss_curve(points);
        if (curve.ok()) return std::string("fitted");
        EXPECT_EQ(curve.error().code, ErrorCode::not_found);
        EXPECT_EQ(curve.error().message.find("cannot say yet: "), 0u);
        return curve.error().message;
    };
    const auto has = [](const std::string& text, const char* part) {
        return text.find(part) != std::string::npos;
    };
    EXPECT_TRUE(has(reason({}), "no finite loss"));
    EXPECT_TRUE(has(reason({{1, nan}, {2, infinity}}), "no finite loss"));
    EXPECT_TRUE(has(reason({{1, 3.0}, {2, 2.0}, {3, 1.5}}), "different steps: 3, needed: 5"));
    // one step again and again
    EXPECT_TRUE(has(reason(Points(100, {7, 3.0})), "different steps: 1, needed: 5"));
    Points zeros = points_of(Truth(), 50, 10);
    for (std::int64_t step = 500; step < 600; step += 10) zeros.push_back({step, 0.0});
    EXPECT_TRUE(has(reason(zeros), "exactly 0"));
    Points constant;
    for (std::int64_t step = 0; step < 50; ++step) constant.push_back({step, 2.5});
    EXPECT_TRUE(has(reason(constant), "exactly 2.5"));
    Points negative;
    for (std::int64_t step = 0; step < 50; ++step) {
        negative.push_back({step, -static_cast<double>(step)});
    }
    EXPECT_TRUE(has(reason(negative), "not above 0"));
}

TEST(LossCurve, RefusesOptionsWithoutMeaning) {
    LossCurveOptions options;
    std::string why;
    EXPECT_TRUE(options.is_valid(&why));
    options.min_points = 3;
    EXPECT_FALSE(options.is_valid(&why));
    EXPECT_NE(why.find("min_points"), std::string::npos);
    EXPECT_EQ(fit_loss_curve(points_of(Truth(), 50, 1), options).error().code, ErrorCode::usage);
    options = {};
    options.huber_sigmas = nan;
    EXPECT_FALSE(options.is_valid(nullptr));
    options = {};
    options.max_points = 4;
    EXPECT_FALSE(options.is_valid(&why));
}

TEST(LossCurve, StaysFiniteWithWhatEverComes) {
    std::mt19937_64 random(99);
    int fitted = 0;
    for (int round = 0; round < 300; ++round) {
        Points points;
        const std::size_t count = random() % 60;
        for (std::size_t i = 0; i < count; ++i) {
            LossPoint point;
            if (random() % 8 != 0) {
                point.step = static_cast<std::int64_t>(random() >>
                                                       (round % 3 == 0 ? 11 : 40 + random() % 20));
            }
            point.loss = std::ldexp(static_cast<double>(random() % 1000),
                                    static_cast<int>(random() % 600) - 300);
            if (random() % 20 == 0) point.loss = nan;
            if (round % 2 == 0) point.loss = static_cast<double>(random() % 5);
            points.push_back(point);
            if (round % 5 == 0 && point.step) points.back().step = static_cast<std::int64_t>(i);
        }
        const auto curve = fit_loss_curve(points);
        if (!curve.ok()) continue;
        ++fitted;
        for (const double value : {curve->b0, curve->b1, curve->b2}) {
            EXPECT_TRUE(std::isfinite(value) && value >= 0) << round;
        }
        for (std::size_t i = 0; i < LossCurve::octaves.size(); ++i) {
            EXPECT_TRUE(std::isfinite(curve->below[i]) && std::isfinite(curve->above[i])) << round;
        }
        for (const double step : {0.0, 1.0, 1e6, 1e15}) {
            const Forecast forecast = forecast_loss(*curve, step);
            EXPECT_TRUE(std::isfinite(forecast.value)) << round;
            EXPECT_LE(forecast.low, forecast.value);
            EXPECT_GE(forecast.high, forecast.value);
        }
        Record record;
        record.points = 1;
        record.curve = *curve;
        EXPECT_TRUE(parse_record(to_text(record)).ok()) << to_text(record);
    }
    EXPECT_GT(fitted, 50);
}

TEST(Forecast, TheStepIsTheInverseOfTheLoss) {
    std::mt19937_64 random(21);
    for (int round = 0; round < 40; ++round) {
        const Synthetic s = synthetic(random, false);
        const auto curve = fit_loss_curve(s.points);
        ASSERT_TRUE(curve.ok());
        const double loss = curve->at(1.5 * s.last);
        const auto step = forecast_step(*curve, loss);
        if (curve->b0 == 0) continue;
        ASSERT_TRUE(step.has_value());
        EXPECT_NEAR(step->value / (1.5 * s.last), 1, 1e-6);
        EXPECT_LE(step->low, step->value);
        EXPECT_GE(step->high, step->value);
        EXPECT_NEAR(forecast_loss(*curve, step->low).low, loss, 1e-3 * loss);
        if (std::isfinite(step->high)) {
            EXPECT_NEAR(forecast_loss(*curve, step->high).high, loss, 1e-3 * loss);
        }
        EXPECT_FALSE(forecast_step(*curve, curve->b2).has_value());
        EXPECT_EQ(forecast_step(*curve, curve->at(0) + 1)->value, 0);
    }
}

TEST(Forecast, TheIntervalOfTheLimitHoldsIt) {
    double all = 0;
    double least = 1;
    int cells = 0;
    for (const double exponent :
         {1.0 / 3, 0.5, 1.0, 2.0, std::numeric_limits<double>::infinity()}) {
        for (const double noise : {0.06, 0.3}) {
            constexpr int rounds = 40;
            int held = 0;
            for (int round = 0; round < rounds; ++round) {
                const Decay decay{1.0 / 600, 1.0 / 3, exponent};
                const auto curve =
                    fit_loss_curve(noisy(decay, 2, 1000, noise, static_cast<std::uint64_t>(round)));
                ASSERT_TRUE(curve.ok());
                const double last = static_cast<double>(curve->last_step);
                const Forecast limit = forecast_limit(*curve);
                EXPECT_EQ(limit.value, curve->falls() ? curve->b2 : curve->at(0));
                EXPECT_LE(limit.low, limit.value);
                EXPECT_GE(limit.high, limit.value);
                EXPECT_LE(limit.high, forecast_loss(*curve, last).high);
                if (limit.low <= 2 && limit.high >= 2) ++held;
            }
            const double share = static_cast<double>(held) / rounds;
            all += share;
            ++cells;
            least = std::min(least, share);
        }
    }
    EXPECT_GE(all / cells, 0.8);
    EXPECT_GE(least, 0.7);
    std::printf("the limit was held in %.0f%% of all, %.0f%% at least\n", 100 * all / cells,
                100 * least);
}

TEST(Forecast, WidensAheadAndNeverRises) {
    std::mt19937_64 random(22);
    for (int round = 0; round < 40; ++round) {
        const Synthetic s = synthetic(random, false);
        const auto curve = fit_loss_curve(s.points);
        ASSERT_TRUE(curve.ok());
        Forecast before = forecast_loss(*curve, s.last);
        for (int i = 1; i < 12; ++i) {
            const Forecast forecast = forecast_loss(*curve, std::pow(1.5, i) * s.last);
            EXPECT_LE(forecast.value, before.value);
            EXPECT_LE(forecast.high, before.high + 1e-9);
            EXPECT_GE(forecast.low, 0);
            before.value = forecast.value;
        }
    }
}

TEST(Speed, RecoversAnExactLaw) {
    const SpeedModel truth{2.0, 0.1};
    std::vector<SpeedSample> samples;
    for (const int gpus : {1, 2, 4, 8}) samples.push_back({gpus, truth.steps_per_second(gpus), 10});
    const auto model = fit_speed(samples);
    ASSERT_TRUE(model.has_value());
    EXPECT_NEAR(model->t0_s, 2.0, 1e-9);
    EXPECT_NEAR(model->t1_s, 0.1, 1e-9);
}

TEST(Speed, SplitsOneSizeAsThePriorSays) {
    const auto model = fit_speed({{4, 2.0, 1}, {4, 2.0, 7}});
    ASSERT_TRUE(model.has_value());
    EXPECT_NEAR(model->steps_per_second(4), 2.0, 1e-12);
    EXPECT_NEAR(model->t1_s / (model->t0_s + model->t1_s), 0.05, 1e-12);
}

TEST(Speed, NeverGoesBelowZero) {
    // more GPUs were slower: nothing divides
    const auto slower = fit_speed({{1, 2.0, 1}, {2, 1.5, 1}, {4, 1.0, 1}});
    ASSERT_TRUE(slower.has_value());
    EXPECT_EQ(slower->t0_s, 0);
    EXPECT_GT(slower->t1_s, 0);
    // faster than in proportion: all of it divides
    const auto faster = fit_speed({{1, 1.0, 1}, {2, 2.5, 1}, {4, 6.0, 1}});
    ASSERT_TRUE(faster.has_value());
    EXPECT_GT(faster->t0_s, 0);
    EXPECT_EQ(faster->t1_s, 0);
}

TEST(Speed, LeavesOutWhatIsNoMeasurement) {
    EXPECT_FALSE(fit_speed({}).has_value());
    EXPECT_FALSE(fit_speed({{0, 1.0, 1},
                            {4, 0.0, 1},
                            {4, nan, 1},
                            {4, infinity, 1},
                            {4, 1.0, 0},
                            {4, 1.0, -1},
                            {-3, 1.0, 1}})
                     .has_value());
    const auto model = fit_speed({{4, 2.0, 1}, {8, nan, 1}});
    ASSERT_TRUE(model.has_value());
    EXPECT_NEAR(model->steps_per_second(4), 2.0, 1e-12);
}

Record full_record() {
    Record record;
    record.restarts = 1;
    record.step = 1200;
    record.loss = 2.3125;
    record.points = 87;
    record.gpus = 4;
    record.steps_per_second = 3.5;
    LossCurve curve;
    curve.b0 = 0.00125;
    curve.b1 = 0.25;
    curve.b2 = 2;
    curve.exponent = 0.5;
    curve.below = {0.0625, 0.25, 0.5, 0.75, 1};
    curve.above = {0.03125, 0.125, 0.25, 0.375, 0.5};
    curve.residual = 0.0625;
    curve.first_loss = 6;
    curve.last_step = 1190;
    curve.last_loss = curve.at(1190);
    curve.points = 86;
    record.curve = curve;
    return record;
}

void expect_same(const Record& a, const Record& b) {
    EXPECT_EQ(a.restarts, b.restarts);
    EXPECT_EQ(a.step, b.step);
    ASSERT_EQ(a.loss.has_value(), b.loss.has_value());
    if (a.loss) {
        EXPECT_EQ(format_number(*a.loss), format_number(*b.loss));
    }
    EXPECT_EQ(a.points, b.points);
    EXPECT_EQ(a.steps_per_second, b.steps_per_second);
    EXPECT_EQ(a.gpus, b.gpus);
    EXPECT_EQ(a.checkpointed, b.checkpointed);
    EXPECT_EQ(a.ended, b.ended);
    EXPECT_EQ(a.no_loss, b.no_loss);
    ASSERT_EQ(a.curve.has_value(), b.curve.has_value());
    if (!a.curve) return;
    EXPECT_EQ(a.curve->b0, b.curve->b0);
    EXPECT_EQ(a.curve->b1, b.curve->b1);
    EXPECT_EQ(a.curve->b2, b.curve->b2);
    EXPECT_EQ(a.curve->exponent, b.curve->exponent);
    EXPECT_EQ(a.curve->below, b.curve->below);
    EXPECT_EQ(a.curve->above, b.curve->above);
    EXPECT_EQ(a.curve->residual, b.curve->residual);
    EXPECT_EQ(a.curve->first_loss, b.curve->first_loss);
    EXPECT_EQ(a.curve->last_loss, b.curve->last_loss);
    EXPECT_EQ(a.curve->last_step, b.curve->last_step);
    EXPECT_EQ(a.curve->points, b.curve->points);
}

TEST(Record, ReadsTheExampleOfItsFormat) {
    const std::string page = test_data("../../doc/formats/record-v1.txt");
    const std::size_t begin = page.find("    sluice1:{");
    ASSERT_NE(begin, std::string::npos);
    const std::string example = page.substr(begin + 4, page.find('\n', begin) - begin - 4);
    const auto record = parse_record(example);
    ASSERT_TRUE(record.ok()) << record.error().message;
    expect_same(*record, full_record());
    EXPECT_EQ(to_text(*record), example);
}

TEST(Record, ReadsACovarianceInPlaceOfIntervals) {
    const std::string page = test_data("../../doc/formats/record-v1.txt");
    const std::size_t begin = page.rfind("    sluice1:{");
    ASSERT_NE(begin, std::string::npos);
    const auto record = parse_record(page.substr(begin + 4, page.find('\n', begin) - begin - 4));
    ASSERT_TRUE(record.ok()) << record.error().message;
    ASSERT_TRUE(record->curve.has_value());
    const LossCurve& curve = *record->curve;
    EXPECT_EQ(curve.exponent, 1);
    EXPECT_STREQ(curve.family(), "hyperbola");
    EXPECT_EQ(curve.at(1190), 1 / (0.00125 * 1190 + 0.25) + 2);
    // g = (-1190 v^2, -v^2, 1), v = 1 / (0.00125 * 1190 + 0.25)
    const double v = 1 / (0.00125 * 1190 + 0.25);
    const double by_b0 = -1190 * v * v;
    const double by_b1 = -v * v;
    const double variance = by_b0 * by_b0 * 1e-10 + 2 * by_b0 * by_b1 * -2e-9 + 2 * by_b0 * 1e-8 +
                            by_b1 * by_b1 * 1e-6 + 2 * by_b1 * -2e-6 + 1e-4;
    EXPECT_NEAR(curve.below[0], 1.28155 * std::sqrt(variance), 1e-5);
    EXPECT_EQ(curve.below, curve.above);
    EXPECT_GT(curve.below[2], 1.28 * 2 * 0.015625);
}

TEST(Record, ComesBackAsItWas) {
    Record record;
    expect_same(*parse_record(to_text(record)), record);
    record.ended = true;
    expect_same(*parse_record(to_text(record)), record);
    record.checkpointed = true;
    record.no_loss = "train.log; keys seen: \"a\", b\\c";
    expect_same(*parse_record(to_text(record)), record);
    for (const double loss : {nan, infinity, -infinity, 0.1, -3.0, 1e-300}) {
        record.loss = loss;
        expect_same(*parse_record(to_text(record)), record);
    }
    record = full_record();
    record.curve->b0 = 0.1 + 0.2;
    record.curve->last_loss = record.curve->at(1190);
    expect_same(*parse_record(to_text(record)), record);
}

TEST(Record, StaysWithinItsBound) {
    Record record = full_record();
    record.ended = record.checkpointed = true;
    record.step = record.points = std::int64_t{1} << 53;
    record.restarts = record.gpus = 1'000'000;
    record.loss = record.steps_per_second = -1.2345678901234567e-300;
    LossCurve& curve = *record.curve;
    curve.below.fill(1.2345678901234567e-300);
    curve.above.fill(1.2345678901234567e-300);
    curve.exponent = 1.2345678901234567;
    curve.b0 = curve.b1 = curve.b2 = curve.residual = 1.2345678901234567e-300;
    curve.first_loss = -1.2345678901234567e-300;
    curve.last_step = curve.points = std::int64_t{1} << 53;
    EXPECT_LE(to_text(record).size(), Record::max_bytes);
    record.points = 0;
    record.no_loss = std::string(5000, '"');
    EXPECT_LE(to_text(record).size(), Record::max_bytes);
    record.steps_per_second.reset();
    const auto back = parse_record(to_text(record));
    ASSERT_TRUE(back.ok()) << back.error().message;
    EXPECT_EQ(back->no_loss.size(), 256u);
}

TEST(Record, IgnoresMembersOfANewerAgent) {
    EXPECT_TRUE(parse_record("sluice1:{\"r\":0,\"n\":0,\"g\":1,\"zz\":[1,{}]}").ok());
}

TEST(Record, RefusesWhatIsOutOfRange) {
    const std::string rest = "\"c\":[0,0,0,0,0,0],\"s\":0,\"f\":1,\"e\":5,\"p\":5}";
    const std::string with_u = "\"u\":[0,0,0,0,0,0,0,0,0,0],\"s\":0,\"f\":1,\"e\":5,\"p\":5}";
    const struct {
        std::string text;
        const char* named;
    } bad[] = {
        {"", "sluice1:"},
        {"sluice2:{}", "sluice1:"},
        {"sluice1:", "JSON"},
        {"sluice1:[]", "no JSON object"},
        {"sluice1:{\"r\":0,\"n\":0,\"g\":1", "JSON"},
        {"sluice1:{\"r\":0,\"r\":0,\"n\":0,\"g\":1}", "JSON"},
        {"sluice1:" + std::string(2000, ' '), "1024"},
        {"sluice1:{\"n\":0,\"g\":1}", "\"r\" is missing"},
        {"sluice1:{\"r\":-1,\"n\":0,\"g\":1}", "\"r\" is -1"},
        {"sluice1:{\"r\":0,\"n\":1.5,\"g\":1}", "\"n\" is 1.5"},
        {"sluice1:{\"r\":0,\"n\":0,\"g\":1000001}", "\"g\" is 1000001"},
        {"sluice1:{\"r\":0,\"n\":0,\"g\":1,\"k\":-5}", "\"k\" is -5"},
        {"sluice1:{\"r\":0,\"n\":0,\"g\":1,\"k\":9007199254740993}", "\"k\""},
        {"sluice1:{\"r\":0,\"n\":0,\"g\":1,\"l\":\"2.5\"}", "\"l\""},
        {"sluice1:{\"r\":0,\"n\":0,\"g\":1,\"l\":null}", "\"l\""},
        {"sluice1:{\"r\":0,\"n\":0,\"g\":1,\"v\":0}", "\"v\" is 0"},
        {"sluice1:{\"r\":0,\"n\":0,\"g\":1,\"v\":1e10}", "\"v\""},
        {"sluice1:{\"r\":0,\"n\":0,\"g\":1,\"v\":\"inf\"}", "\"v\""},
        {"sluice1:{\"r\":0,\"n\":0,\"g\":1,\"d\":2}", "\"d\" is 2"},
        {"sluice1:{\"r\":0,\"n\":0,\"g\":1,\"x\":\"a\\u0001\"}", "\"x\""},
        {"sluice1:{\"r\":0,\"n\":0,\"g\":1,\"x\":\"" + std::string(257, 'a') + "\"}", "\"x\""},
        {"sluice1:{\"r\":0,\"n\":1,\"g\":1,\"b\":[1,1]}", "\"b\""},
        {"sluice1:{\"r\":0,\"n\":1,\"g\":1,\"b\":[1,1,1]}", "\"s\" is missing"},
        {"sluice1:{\"r\":0,\"n\":1,\"g\":1,\"b\":[1,1,1],\"s\":0,\"f\":1,\"e\":5,\"p\":5}",
         "\"c\" is missing"},
        {"sluice1:{\"r\":0,\"n\":1,\"g\":1,\"b\":[1,1,1],\"u\":[0,0],\"s\":0,\"f\":1,\"e\":5,"
         "\"p\":5}",
         "\"u\""},
        {"sluice1:{\"r\":0,\"n\":1,\"g\":1,\"b\":[1,1,1],\"u\":[0,0,0,-1,0,0,0,0,0,0],\"s\":0,"
         "\"f\":1,\"e\":5,\"p\":5}",
         "\"u\""},
        {"sluice1:{\"r\":0,\"n\":1,\"g\":1,\"b\":[1,1,1],\"h\":0," + with_u, "\"h\" is 0"},
        {"sluice1:{\"r\":0,\"n\":1,\"g\":1,\"b\":[1,1,1],\"h\":\"nan\"," + with_u, "\"h\""},
        {"sluice1:{\"r\":0,\"n\":1,\"g\":1,\"b\":[1,0,1],\"h\":2," + with_u, "\"b\""},
        {"sluice1:{\"r\":0,\"n\":1,\"g\":1,\"b\":[-1,1,1]," + rest, "\"b\""},
        {"sluice1:{\"r\":0,\"n\":1,\"g\":1,\"b\":[0,0,1]," + rest, "\"b\""},
        {"sluice1:{\"r\":0,\"n\":1,\"g\":1,\"b\":[0,1,\"nan\"]," + rest, "\"b\""},
        {"sluice1:{\"r\":0,\"n\":1,\"g\":1,\"b\":[0,1,1],\"c\":[0,0,0,-1,0,0],\"s\":0,\"f\":1,"
         "\"e\":5,"
         "\"p\":5}",
         "\"c\""},
        {"sluice1:{\"r\":0,\"n\":1,\"g\":1,\"b\":[0,1,1],\"c\":[0,0,0,0,0,0],\"s\":-1,\"f\":1,"
         "\"e\":5,"
         "\"p\":5}",
         "\"s\" is -1"},
    };
    for (const auto& each : bad) {
        const auto record = parse_record(each.text);
        ASSERT_FALSE(record.ok()) << each.text;
        EXPECT_EQ(record.error().code, ErrorCode::bad_input);
        EXPECT_NE(record.error().message.find(each.named), std::string::npos)
            << each.text << " -> " << record.error().message;
    }
}

}  // namespace
}  // namespace sluice
