// SPDX-License-Identifier: GPL-2.0-or-later
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "common/base/text.hpp"
#include "common/model/step_time.hpp"
#include "common/model/step_time_book.hpp"
#include "common/model/step_time_fit.hpp"
#include "tests/unit/test_data.hpp"

namespace sluice {
namespace {

StepPlacement at(std::vector<int> gpus, double local_batch = 32, double in_node = 0) {
    return step_placement(gpus, local_batch, in_node);
}

/// A job that feels the network.
StepTimeModel truth() {
    StepTimeModel model;
    model[StepTerm::compute_s] = 0.05;
    model[StepTerm::sample_s] = 0.004;
    model[StepTerm::in_node_gb] = 0.2;
    model[StepTerm::network_gb] = 0.8;
    model[StepTerm::shared_gb] = 0.4;
    model[StepTerm::pair_gb] = 0.6;
    model[StepTerm::level_s] = 0.004;
    model[StepTerm::node_s] = 0.001;
    model[StepTerm::overlap] = 2;
    model[StepTerm::serial] = 0.2;
    return model;
}

const std::vector<std::vector<int>> shapes{{1},       {2},          {3},       {4},    {8},
                                           {1, 1},    {1, 2},       {2, 2},    {1, 3}, {4, 4},
                                           {1, 1, 1}, {1, 1, 1, 1}, {2, 2, 2}, {8, 8}, {4, 4, 4, 4},
                                           {1, 1, 2}, {2, 2, 2, 2}, {1, 3, 4}};

/// Every shape at some local batches, with noise of this deviation of the logarithm.
std::vector<StepSample> samples_of(const StepTimeModel& model, double noise,
                                   const std::vector<double>& batches, std::uint64_t seed = 1) {
    std::mt19937_64 random(seed);
    const auto uniform = [&random] { return static_cast<double>(random() >> 11) * 0x1p-53; };
    std::vector<StepSample> out;
    for (const auto& shape : shapes) {
        for (const double batch : batches) {
            const double normal =
                std::sqrt(-2 * std::log(1 - uniform())) * std::cos(2 * M_PI * uniform());
            const StepPlacement placement = at(shape, batch);
            out.push_back(
                {placement, step_seconds(model, placement) * std::exp(noise * normal), 1});
        }
    }
    return out;
}

double largest_error(const StepTimeModel& model, const StepTimeModel& truth_model, double batch) {
    double worst = 0;
    for (const auto& shape : shapes) {
        const StepPlacement placement = at(shape, batch);
        worst = std::max(
            worst,
            std::fabs(step_seconds(model, placement) / step_seconds(truth_model, placement) - 1));
    }
    return worst;
}

TEST(StepTime, FollowsItsFormula) {
    StepTimeModel model = truth();
    EXPECT_DOUBLE_EQ(step_seconds(model, at({1})), 0.05 + 32 * 0.004);
    model[StepTerm::host_s] = 0.0005;
    // 1-3: four GPUs on two nodes, three of them share
    const double grad = 0.05 + 32 * (0.004 + 2 * 0.0005);
    const double share = 2.0 / 3;
    const double sync = 0.2 * 2 * share / 10 + 0.004 * 2 + (0.8 + (0.4 + 0.6) * share) / 6.25;
    EXPECT_NEAR(step_seconds(model, at({1, 3})), 0.2 * grad + std::hypot(0.8 * grad, sync), 1e-12);
    const double sync3 = 0.004 * std::log2(3) + 0.8 / 6.25 + 0.001;
    const double alone = 0.05 + 32 * 0.004;
    EXPECT_NEAR(step_seconds(model, at({1, 1, 1})), 0.2 * alone + std::hypot(0.8 * alone, sync3),
                1e-12);
}

TEST(StepTime, TellsShapesOfOneSizeApart) {
    const StepTimeModel model = truth();
    EXPECT_LT(step_seconds(model, at({4})), step_seconds(model, at({1, 1, 1, 1})));
    EXPECT_LT(1.1 * step_seconds(model, at({1, 1, 1, 1})), step_seconds(model, at({2, 2})));
    EXPECT_LT(step_seconds(model, at({1, 1, 2})), step_seconds(model, at({1, 3})));
    EXPECT_LT(step_seconds(model, at({2, 2})), step_seconds(model, at({1, 3})));
    EXPECT_EQ(step_seconds(model, at({1, 3})), step_seconds(model, at({3, 1})));
}

TEST(StepTime, RisesWithLoadAndFallsWithRates) {
    const StepTimeModel model = fit_step_time(samples_of(truth(), 0.2, {32}, 7));
    for (int most = 1; most <= 8; ++most) {
        for (const double batch : {1.0, 32.0, 1000.0}) {
            const StepPlacement here{4, 8 + 3 * most, most, batch, 20, 10};
            const auto slower = [&](const StepPlacement& there) {
                EXPECT_GE(step_seconds(model, there), step_seconds(model, here)) << most;
            };
            StepPlacement there = here;
            there.local_batch *= 1.5;
            slower(there);
            there = here;
            there.most_on_node += 1;
            slower(there);
            there = here;
            there.gpus += 1;
            slower(there);
            there = here;
            there.nodes += 1;
            slower(there);
            there = here;
            there.in_node_gbps /= 2;
            slower(there);
            there = here;
            there.network_gbps /= 2;
            slower(there);
        }
    }
}

TEST(StepTime, GradientIsTheFormulasSlope) {
    StepTimeModel model = truth();
    model[StepTerm::host_s] = 0.0003;
    for (const auto& shape : shapes) {
        const StepPlacement placement = at(shape);
        std::array<double, step_terms> gradient;
        EXPECT_EQ(step_gradient(model, placement, gradient), step_seconds(model, placement));
        for (std::size_t i = 0; i < step_terms; ++i) {
            StepTimeModel above = model;
            StepTimeModel below = model;
            const double h = 1e-5 * model.parameters[i];
            above.parameters[i] += h;
            below.parameters[i] -= h;
            const double slope =
                std::log(step_seconds(above, placement) / step_seconds(below, placement)) / (2 * h);
            EXPECT_NEAR(gradient[i], slope, 1e-5 * (1 + std::fabs(slope))) << i;
        }
    }
}

TEST(StepTime, PlacementsAreChecked) {
    EXPECT_TRUE(usable(at({1, 3})));
    EXPECT_TRUE(usable(at({})));
    EXPECT_EQ(at({0, 3, 0}).nodes, 1);
    EXPECT_EQ(at({2, 3, 1}).most_on_node, 3);
    EXPECT_EQ(at({2, 3, 1}).gpus, 6);
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const double infinity = std::numeric_limits<double>::infinity();
    for (const StepPlacement& bad :
         {StepPlacement{0, 1, 1, 1, 0, 0}, StepPlacement{1, 0, 1, 1, 0, 0},
          StepPlacement{2, 2, 2, 1, 0, 0}, StepPlacement{1, 4, 2, 1, 0, 0},
          StepPlacement{1, 1, 1, 0, 0, 0}, StepPlacement{1, 1, 1, nan, 0, 0},
          StepPlacement{1, 1, 1, infinity, 0, 0}, StepPlacement{1, 1, 1, 1, -1, 0},
          StepPlacement{1, 1, 1, 1, 0, nan}, StepPlacement{1, 1, 1, 1, 1e-9, 0}}) {
        EXPECT_FALSE(usable(bad));
    }
}

TEST(StepTimeFit, RecoversWhatIsMeasured) {
    const StepTimeModel model = fit_step_time(samples_of(truth(), 0, {8, 16, 32, 64, 128}));
    EXPECT_LT(largest_error(model, truth(), 32), 0.02);
    EXPECT_LT(largest_error(model, truth(), 24), 0.02);  // not measured
    EXPECT_NEAR(model[StepTerm::sample_s], 0.004, 0.0004);
    EXPECT_NEAR(step_seconds(model, at({8, 8, 8, 8})) / step_seconds(truth(), at({8, 8, 8, 8})), 1,
                0.05);
    EXPECT_EQ(model.samples, 90);
    EXPECT_EQ(model.most_gpus, 16);
    EXPECT_EQ(model.scale, 0);
    EXPECT_LT(model.noise, 0.03);
}

TEST(StepTimeFit, OutliersDoNotMoveIt) {
    auto samples = samples_of(truth(), 0.03, {8, 16, 32, 64, 128});
    for (std::size_t i = 3; i < samples.size(); i += 11) samples[i].seconds *= 6;
    EXPECT_LT(largest_error(fit_step_time(samples), truth(), 32), 0.12);
}

TEST(StepTimeFit, IntervalsHoldTheirShare) {
    int inside = 0;
    int all = 0;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        const auto samples = samples_of(truth(), 0.1, {16, 32, 64}, seed);
        const StepTimeModel model = fit_step_time(samples);
        for (const StepSample& fresh : samples_of(truth(), 0.1, {16, 32, 64}, 1000 + seed)) {
            const StepTime time = predict_step(model, fresh.placement);
            inside += fresh.seconds >= time.low() && fresh.seconds <= time.high() ? 1 : 0;
            ++all;
        }
    }
    EXPECT_NEAR(static_cast<double>(inside) / all, 0.8, 0.05);
}

TEST(StepTimeFit, IsTheSameEachTime) {
    const auto samples = samples_of(truth(), 0.1, {16, 32, 64});
    EXPECT_EQ(to_text(fit_step_time(samples)), to_text(fit_step_time(samples)));
}

TEST(StepTimeFit, ScalesWithTheUnitOfTime) {
    auto samples = samples_of(truth(), 0.05, {16, 32, 64});
    const StepTimeModel model = fit_step_time(samples);
    for (StepSample& sample : samples) sample.seconds *= 1000;
    const StepTimeModel slow = fit_step_time(samples);
    for (const auto& shape : shapes) {
        EXPECT_NEAR(step_seconds(slow, at(shape)) / step_seconds(model, at(shape)), 1000, 10);
    }
}

TEST(StepTimeFit, NothingMeasuredOrdersByTopology) {
    const StepTimeModel model = fit_step_time({});
    EXPECT_EQ(model.samples, 0);
    EXPECT_LT(step_seconds(model, at({4}, 32, 25)), step_seconds(model, at({4}, 32, 10)));
    EXPECT_LT(step_seconds(model, at({4})), step_seconds(model, at({1, 1, 1, 1})));
    EXPECT_LT(step_seconds(model, at({1, 1, 1, 1})), step_seconds(model, at({2, 2})));
    EXPECT_GT(predict_step(model, at({1})).log_sd, 1.5);  // seconds are not known at all
    const Slowdown shared = slowdown(model, at({2, 2}), at({4}));
    EXPECT_GT(shared.ratio, 1);
    EXPECT_LT(shared.ratio, 2);
    EXPECT_GT(shared.log_sd, 0.1);
    EXPECT_LT(shared.log_sd, 1);
}

TEST(StepTimeFit, OnePlacementIsMet) {
    const StepSample one{at({2, 2}), 0.7, 1};
    const StepTimeModel model = fit_step_time(std::vector{one});
    EXPECT_NEAR(predict_step(model, one.placement).seconds, 0.7, 0.1);
    const StepTimeModel sure = fit_step_time(std::vector(8, one));
    EXPECT_NEAR(predict_step(sure, one.placement).seconds, 0.7, 0.03);
    EXPECT_LT(step_seconds(sure, at({4})), 0.7);
    EXPECT_GT(predict_step(sure, at({8, 8})).log_sd, predict_step(sure, at({2, 2})).log_sd);
}

TEST(StepTimeFit, OneGpuAloneLeavesRoomToScale) {
    const StepTimeModel model = fit_step_time(std::vector(4, StepSample{at({1}), 0.2, 1}));
    EXPECT_NEAR(step_seconds(model, at({1})), 0.2, 0.01);
    EXPECT_LT(step_seconds(model, at({4})), 1.2 * step_seconds(model, at({1})));
    EXPECT_LT(step_seconds(model, at({8, 8})), 2 * step_seconds(model, at({1})));
    EXPECT_GT(step_seconds(model, at({8, 8})), step_seconds(model, at({1})));
}

TEST(StepTimeFit, ASimilarModelStandsIn) {
    const StepTimeModel there = fit_step_time(samples_of(truth(), 0.02, {16, 32, 64}));
    StepTimeModel faster = truth();
    faster[StepTerm::compute_s] /= 3;
    faster[StepTerm::sample_s] /= 3;
    faster[StepTerm::level_s] /= 3;
    faster[StepTerm::node_s] /= 3;

    const StepTimeModel guess = fit_step_time({}, &there);
    EXPECT_NEAR(step_seconds(guess, at({2, 2})) / step_seconds(there, at({2, 2})), 1, 0.01);
    EXPECT_GT(guess.scale, 0.3);

    const StepTimeModel told = similar_step_time(there, 1.0 / 3);
    EXPECT_LT(largest_error(told, faster, 32), 0.1);

    const std::vector<StepSample> one{{at({1}), step_seconds(faster, at({1})), 1}};
    const StepTimeModel with = fit_step_time(one, &there);
    const StepTimeModel without = fit_step_time(one);
    EXPECT_LT(largest_error(with, faster, 32), 0.15);
    EXPECT_GT(largest_error(without, faster, 32), 0.3);
    EXPECT_EQ(with.scale, 0);
}

TEST(StepTimeFit, BatchesBesideTheLine) {
    auto samples = samples_of(truth(), 0.02, {8, 12, 16, 24, 32, 48, 64});
    for (StepSample& sample : samples) {
        if (sample.placement.local_batch == 24) sample.seconds *= 1.3;
    }
    const StepTimeModel model = fit_step_time(samples);
    for (const double batch : {16.0, 24.0, 32.0}) {
        const double factor = batch == 24 ? 1.3 : 1;
        EXPECT_NEAR(step_seconds(model, at({4}, batch)) / step_seconds(truth(), at({4}, batch)),
                    factor, 0.05);
    }
    EXPECT_GT(predict_step(model, at({4}, 20)).log_sd, predict_step(model, at({4}, 16)).log_sd);
}

TEST(StepTimeFit, LeavesOutWhatIsNotASample) {
    auto samples = samples_of(truth(), 0.02, {16, 32});
    const std::string clean = to_text(fit_step_time(samples));
    const double nan = std::numeric_limits<double>::quiet_NaN();
    samples.push_back({at({1}), nan, 1});
    samples.push_back({at({1}), -1, 1});
    samples.push_back({at({1}), 0, 1});
    samples.push_back({at({1}), 1, 0});
    samples.push_back({at({1}), 1, nan});
    samples.push_back({at({1}, -3), 1, 1});
    samples.push_back({at({1}), 1e300, 1});
    EXPECT_EQ(to_text(fit_step_time(samples)), clean);
}

TEST(StepTimeFit, ExtremesStayFinite) {
    for (const double seconds : {1e-9, 1e9}) {
        for (const double batch : {1e-9, 1e12}) {
            const std::vector<StepSample> samples{{at({1}, batch), seconds, 1},
                                                  {at({8, 8}, batch), 1 / seconds, 1}};
            const StepTimeModel model = fit_step_time(samples);
            const StepTime time = predict_step(model, at({2, 2}, batch));
            EXPECT_TRUE(std::isfinite(time.seconds) && time.seconds > 0);
            EXPECT_TRUE(std::isfinite(time.log_sd));
            const auto again = parse_step_time(to_text(model));
            ASSERT_TRUE(again.ok()) << again.error().message;
            EXPECT_EQ(*again, model);
        }
    }
}

TEST(StepTimeSlowdown, ComparesSecondsPerSample) {
    const StepTimeModel model = truth();
    EXPECT_EQ(slowdown(model, at({2, 2}), at({2, 2})).ratio, 1);
    EXPECT_GT(slowdown(model, at({2, 2}), at({4})).ratio, 1.1);
    // a global batch of 64 on one GPU and on four
    const double one = step_seconds(model, at({1}, 64));
    const double four = step_seconds(model, at({4}, 16));
    EXPECT_NEAR(slowdown(model, at({1}, 64), at({4}, 16)).ratio, one / four, 1e-12);

    const Slowdown half = bandwidth_slowdown(model, at({4}), 10, 20);
    EXPECT_NEAR(half.ratio,
                step_seconds(model, at({4}, 32, 10)) / step_seconds(model, at({4}, 32, 20)), 1e-12);
    EXPECT_GT(half.ratio, 1);
    StepTimeModel deaf = model;
    deaf[StepTerm::in_node_gb] = 0;
    EXPECT_EQ(bandwidth_slowdown(deaf, at({4}), 10, 20).ratio, 1);
    EXPECT_EQ(bandwidth_slowdown(model, at({1}), 10, 20).ratio, 1);
}

TEST(StepTimeSlowdown, KnowsMoreOfRatiosThanOfSeconds) {
    const StepTimeModel model = fit_step_time(samples_of(truth(), 0.1, {16, 32, 64}));
    const StepPlacement here = at({2, 2});
    const StepPlacement there = at({4});
    const double apart =
        std::hypot(predict_step(model, here).log_sd, predict_step(model, there).log_sd);
    EXPECT_LT(slowdown(model, here, there).log_sd, 0.7 * apart);
    EXPECT_GT(slowdown(model, here, there).log_sd, 0);
}

TEST(StepTimeText, ComesBack) {
    for (const std::vector<double>& batches :
         {std::vector<double>{32}, std::vector<double>{8, 12, 16, 24, 32, 48, 64, 96, 100.0 / 3}}) {
        const StepTimeModel model = fit_step_time(samples_of(truth(), 0.1, batches));
        const std::string text = to_text(model);
        EXPECT_LE(text.size(), StepTimeModel::max_bytes);
        EXPECT_EQ(text.find('\n'), std::string::npos);
        const auto again = parse_step_time(text);
        ASSERT_TRUE(again.ok()) << again.error().message;
        EXPECT_EQ(*again, model);
        EXPECT_EQ(to_text(*again), text);
    }
}

TEST(StepTimeText, TheExampleOfThePage) {
    const std::string page = test_data("../../doc/formats/step-time-v1.txt");
    const auto begin = page.find("steptime1:");
    ASSERT_NE(begin, std::string::npos);
    const std::string line = page.substr(begin, page.find('\n', begin) - begin);
    const auto model = parse_step_time(line);
    ASSERT_TRUE(model.ok()) << model.error().message;
    EXPECT_EQ((*model)[StepTerm::sample_s], 0.005);
    EXPECT_EQ((*model)[StepTerm::shared_gb], 0.25);
    EXPECT_EQ((*model)[StepTerm::overlap], 2);
    EXPECT_EQ(model->noise, 0.06);
    EXPECT_EQ(to_text(*model), line);
}

TEST(StepTimeText, RefusesWhatIsDamaged) {
    const std::string good = "steptime1:compute_s=0.1,sample_s=0.002,overlap=2";
    ASSERT_TRUE(parse_step_time(good).ok());
    const auto message = [](const std::string& text) {
        const auto model = parse_step_time(text);
        return model.ok() ? std::string("accepted") : model.error().message;
    };
    const auto says = [&message](const std::string& text, const std::string& part) {
        EXPECT_NE(message(text).find(part), std::string::npos) << text << ": " << message(text);
    };
    says("", "does not begin with steptime1:");
    says("steptime2:compute_s=1", "does not begin with steptime1:");
    says("steptime1:", "no NAME=VALUE");
    says(good + ",", "no NAME=VALUE");
    says(good + ",bytes=1", "there is no \"bytes\"");
    says(good + ",overlap=2", "overlap stands twice");
    says(good + ",serial=1", "serial is \"1\", and has to be from 0 to 0.9");
    says("steptime1:compute_s=0.1,overlap=0.5", "has to be from 1 to 10");
    for (const char* value : {"nan", "inf", "+1", " 1", "1 ", "", "1e999", "-1", "0x1", "1,5"}) {
        EXPECT_NE(message(std::string("steptime1:compute_s=") + value), "accepted") << value;
    }
    says("steptime1:network_gb=1", "compute_s and sample_s are 0 together");
    says(good + ",samples=1.5", "samples is \"1.5\"");
    says(good + ",batches=8", "needs LOCAL_BATCH:OFFSET");
    says(good + ",batches=8:0.1/4:0.1", "have to rise");
    says(good + ",batches=1:0/2:0/3:0/4:0/5:0/6:0/7:0/8:0/9:0", "may have 8");
    says(good + ",spread=1/2/3", "spread has 3 numbers, and needs 66");
    says(good + ",noise=" + std::string(StepTimeModel::max_bytes, '0'), "bytes are more than");
}

TEST(StepTimeBook, FallsBackFromOwnToOtherToNone) {
    StepTimeBook book;
    EXPECT_EQ(book.basis("bert", "a100").model().samples, 0);
    for (const StepSample& sample : samples_of(truth(), 0.02, {32})) {
        ASSERT_TRUE(book.add("bert", "v100", sample).ok());
    }
    ASSERT_TRUE(book.add("bert", "t4", {at({1}), 9, 1}).ok());
    const auto basis = book.basis("bert", "a100");
    EXPECT_TRUE(basis.own.empty());
    EXPECT_EQ(basis.other.size(), shapes.size());  // of the type that has most
    EXPECT_GT(basis.model().scale, 0.3);
    EXPECT_NEAR(step_seconds(basis.model(), at({2, 2})) / step_seconds(truth(), at({2, 2})), 1,
                0.1);
    EXPECT_EQ(book.basis("bert", "v100").model().samples, static_cast<int>(shapes.size()));
    EXPECT_TRUE(book.basis("ber", "v100").other.empty());
    EXPECT_TRUE(book.basis("bertha", "v100").other.empty());
}

TEST(StepTimeBook, MergesRepeats) {
    StepTimeBook book;
    ASSERT_TRUE(book.add("m", "t", {at({2}), 1, 1}).ok());
    ASSERT_TRUE(book.add("m", "t", {at({2}), 4, 1}).ok());
    auto own = book.basis("m", "t").own;
    ASSERT_EQ(own.size(), 1U);
    EXPECT_NEAR(own[0].seconds, 2, 1e-12);
    EXPECT_EQ(own[0].weight, 2);
    // what is long past fades
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(book.add("m", "t", {at({2}), 3, 1}).ok());
    own = book.basis("m", "t").own;
    ASSERT_EQ(own.size(), 1U);
    EXPECT_NEAR(own[0].seconds, 3, 0.01);
    EXPECT_EQ(own[0].weight, 8);
}

TEST(StepTimeBook, ForgetsWhatTeachesLeast) {
    StepTimeBookOptions options;
    options.most_samples = 6;
    options.most_keys = 2;
    StepTimeBook book(options);
    for (const double batch : {1.0, 2.0, 3.0, 4.0}) {
        ASSERT_TRUE(book.add("m", "t", {at({2}, batch), 1, 1}).ok());
    }
    for (const std::vector<int>& shape :
         {std::vector{1}, std::vector{4}, std::vector{1, 1}, std::vector{2, 2}}) {
        ASSERT_TRUE(book.add("m", "t", {at(shape), 1, 1}).ok());
    }
    const auto own = book.basis("m", "t").own;
    ASSERT_EQ(own.size(), 6U);
    EXPECT_EQ(own[0].placement.local_batch, 3);  // two of the four batches went, the oldest
    EXPECT_EQ(own[1].placement.local_batch, 4);

    ASSERT_TRUE(book.add("n", "t", {at({2}), 1, 1}).ok());
    ASSERT_TRUE(book.add("m", "t", {at({1}), 1, 1}).ok());
    ASSERT_TRUE(book.add("o", "t", {at({2}), 1, 1}).ok());
    EXPECT_EQ(book.keys(), 2U);
    EXPECT_EQ(book.basis("n", "t").own.size(), 0U);
    EXPECT_EQ(book.samples(), 7U);
}

TEST(StepTimeBook, TextFormAndBack) {
    const std::string page = test_data("../../doc/formats/step-samples-v1.txt");
    const std::size_t start = page.find("sluice step samples 1");
    std::string example;
    for (const std::string_view line : split(std::string_view(page).substr(start), '\n')) {
        if (trim(line).empty()) break;
        example.append(trim(line)).append("\n");
    }
    auto read = parse_step_samples(example);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->damaged, 0U);
    EXPECT_EQ(to_text(read->book), example);
    const auto own = read->book.basis("1000/gpt2", "a100").own;
    ASSERT_EQ(own.size(), 1U);
    EXPECT_EQ(own[0].placement.gpus, 4);
    EXPECT_EQ(own[0].placement.in_node_gbps, 300);
    EXPECT_EQ(own[0].seconds, 0.252);
    EXPECT_EQ(own[0].weight, 3);
    EXPECT_EQ(read->book.basis("1000/gpt2", "").own.size(), 1U);

    // Whatever is cut off or put in, what is whole is read.
    for (std::size_t end = example.find('\n') + 1; end < example.size(); ++end) {
        const auto cut = parse_step_samples(example.substr(0, end));
        ASSERT_TRUE(cut);
        EXPECT_LE(cut->book.samples() + cut->damaged, 2U);
    }
    read = parse_step_samples(example + "a b\nx y 1 1 1 1 0 0 nan 1\nx y 1 -1 1 1 0 0 1 1\n\n");
    ASSERT_TRUE(read);
    EXPECT_EQ(read->damaged, 3U);
    EXPECT_EQ(read->book.samples(), 2U);
    EXPECT_FALSE(parse_step_samples(""));
    EXPECT_FALSE(parse_step_samples("sluice step samples 2\n"));
}

TEST(StepTimeBook, RefusesWhatCannotBe) {
    StepTimeBook book;
    EXPECT_FALSE(book.add("", "t", {at({1}), 1, 1}).ok());
    EXPECT_FALSE(book.add(std::string(81, 'm'), "t", {at({1}), 1, 1}).ok());
    EXPECT_FALSE(book.add("m", std::string(81, 't'), {at({1}), 1, 1}).ok());
    EXPECT_FALSE(book.add("m", "t", {at({1}), 0, 1}).ok());
    EXPECT_FALSE(book.add("m", "t", {{2, 1, 1, 1, 0, 0}, 1, 1}).ok());
    EXPECT_EQ(book.keys(), 0U);
}

}  // namespace
}  // namespace sluice
