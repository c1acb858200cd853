// SPDX-License-Identifier: GPL-2.0-or-later
//
// Who runs where: the search for the best packing, and the policies on top of it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>

#include "common/allocator/goodput.hpp"
#include "common/allocator/packing_search.hpp"
#include "common/allocator/sluice.hpp"

namespace sluice {
namespace {

std::vector<NodeView> nodes_of(std::vector<int> gpus) {
    std::vector<NodeView> nodes;
    for (const int each : gpus) nodes.push_back({"n" + std::to_string(nodes.size()), each});
    return nodes;
}

/// By trying everything: each job nothing, its place, or each shape on each choice of nodes.
class BruteForce {
  public:
    BruteForce(const std::vector<NodeView>& nodes, const std::vector<Shape>& shapes,
               const std::vector<PackingJob>& jobs)
        : shapes_(shapes), jobs_(jobs), spread_(nodes.size()) {
        for (const NodeView& node : nodes) free_.push_back(node.gpus);
        next(0, 0);
    }
    double best() const { return best_; }

  private:
    void next(std::size_t job, double sum) {
        if (job == jobs_.size()) {
            best_ = std::max(best_, sum);
            return;
        }
        next(job + 1, sum);
        if (!jobs_[job].held.empty())
            with(jobs_[job].held, [&] { next(job + 1, sum + jobs_[job].stay_value); });
        for (const PackingOffer& offer : jobs_[job].offers)
            place(shapes_[offer.shape], 0, {}, [&] { next(job + 1, sum + offer.value); });
    }
    void place(const Shape& shape, std::size_t piece, std::vector<NodeShare> shares,
               const std::function<void()>& then) {
        if (piece == shape.pieces.size()) return with(shares, then);
        for (std::size_t node = 0; node < free_.size(); ++node) {
            if (std::any_of(shares.begin(), shares.end(),
                            [&](const NodeShare& share) { return share.node == node; }))
                continue;
            auto more = shares;
            more.push_back({node, shape.pieces[piece]});
            place(shape, piece + 1, std::move(more), then);
        }
    }
    void with(const std::vector<NodeShare>& shares, const std::function<void()>& then) {
        const bool spread = shares.size() > 1;
        for (const NodeShare& share : shares)
            if (free_[share.node] < share.gpus || (spread && spread_[share.node])) return;
        for (const NodeShare& share : shares) {
            free_[share.node] -= share.gpus;
            if (spread) spread_[share.node] = true;
        }
        then();
        for (const NodeShare& share : shares) {
            free_[share.node] += share.gpus;
            if (spread) spread_[share.node] = false;
        }
    }

    const std::vector<Shape>& shapes_;
    const std::vector<PackingJob>& jobs_;
    std::vector<int> free_;
    std::vector<bool> spread_;
    double best_ = 0;
};

/// Holds for every packing: GPUs that are there, shapes that were offered, one spread job a node.
void expect_legal(const std::vector<NodeView>& nodes, const std::vector<Shape>& shapes,
                  const std::vector<PackingJob>& jobs, const std::vector<PackingResult>& results) {
    std::vector<int> used(nodes.size());
    std::vector<int> spread(nodes.size());
    ASSERT_EQ(results.size(), jobs.size());
    for (std::size_t job = 0; job < jobs.size(); ++job) {
        const std::vector<NodeShare>& shares = results[job].shares;
        std::vector<int> gpus;
        for (const NodeShare& share : shares) {
            used[share.node] += share.gpus;
            spread[share.node] += shares.size() > 1;
            gpus.push_back(share.gpus);
            EXPECT_GT(share.gpus, 0);
            EXPECT_EQ(nodes[share.node].type, nodes[shares.front().node].type);
        }
        if (shares.empty()) continue;
        if (results[job].stays) {
            EXPECT_DOUBLE_EQ(results[job].value, jobs[job].stay_value);
            continue;
        }
        const int all = std::accumulate(gpus.begin(), gpus.end(), 0);
        EXPECT_TRUE(std::any_of(jobs[job].offers.begin(), jobs[job].offers.end(),
                                [&](const PackingOffer& offer) {
                                    const Shape& shape = shapes[offer.shape];
                                    auto pieces = gpus;
                                    std::sort(pieces.rbegin(), pieces.rend());
                                    return offer.value == results[job].value &&
                                           shape.placement.gpus == all &&
                                           shape.type == nodes[shares.front().node].type &&
                                           shape.placement.nodes ==
                                               static_cast<int>(shares.size()) &&
                                           (shape.pieces.empty() || shape.pieces == pieces);
                                }))
            << "job " << job << " has what it was not offered";
    }
    for (std::size_t node = 0; node < nodes.size(); ++node) {
        EXPECT_LE(used[node], nodes[node].gpus) << "node " << node;
        EXPECT_LE(spread[node], 1) << "node " << node;
    }
}

TEST(PackingSearch, ComesCloseToTheBestOfAllPackings) {
    std::mt19937 random(3);
    int exact = 0;
    double worst = 1;
    constexpr int rounds = 150;
    for (int round = 0; round < rounds; ++round) {
        std::vector<int> gpus{1 + int(random() % 4), 1 + int(random() % 4), 1 + int(random() % 4)};
        const std::vector<NodeView> nodes = nodes_of(gpus);
        const std::vector<Shape> shapes = shapes_of(nodes, 6);
        std::vector<PackingJob> jobs(4);
        for (std::size_t job = 0; job < jobs.size(); ++job) {
            const double power = 0.3 + double(random() % 70) / 100;
            const double scale = 1 + double(random() % 100) / 10;
            for (std::size_t shape = 0; shape < shapes.size(); ++shape) {
                const StepPlacement& at = shapes[shape].placement;
                jobs[job].offers.push_back(
                    {shape, scale * std::pow(at.gpus, power) * std::pow(0.8, at.nodes - 1)});
            }
            if (job > 0 || gpus[0] < 2) continue;
            jobs[job].held = {{0, 2}};
            jobs[job].stay_value = scale * std::pow(2, power) + double(random() % 10) / 10;
        }
        const auto results = search_packing(nodes, shapes, jobs, 400);
        expect_legal(nodes, shapes, jobs, results);
        double sum = 0;
        for (const PackingResult& result : results) sum += result.value;
        const double best = BruteForce(nodes, shapes, jobs).best();
        EXPECT_LE(sum, best * (1 + 1e-9));
        exact += sum >= best * (1 - 1e-9);
        worst = std::min(worst, sum / best);
    }
    EXPECT_GE(exact, rounds * 95 / 100);
    EXPECT_GE(worst, 0.97);
}

TEST(PackingSearch, IsLegalOnLargeClustersAndTheSameAgain) {
    std::mt19937 random(5);
    std::vector<NodeView> nodes;
    for (std::size_t node = 0; node < 60; ++node)
        nodes.push_back({"n", int(random() % 9), node < 40 ? 0U : 1U});
    const std::vector<Shape> shapes = shapes_of(nodes, 64);
    std::vector<PackingJob> jobs(120);
    for (PackingJob& job : jobs)
        for (std::size_t shape = 0; shape < shapes.size(); ++shape)
            if (random() % 4 == 0)
                job.offers.push_back(
                    {shape, double(random() % 1000) * std::sqrt(shapes[shape].placement.gpus)});
    const auto results = search_packing(nodes, shapes, jobs, 400);
    expect_legal(nodes, shapes, jobs, results);
    const auto again = search_packing(nodes, shapes, jobs, 400);
    for (std::size_t job = 0; job < jobs.size(); ++job) {
        ASSERT_EQ(results[job].shares.size(), again[job].shares.size());
        EXPECT_EQ(results[job].value, again[job].value);
    }
}

TEST(PackingSearch, EverySizeThatIsAskedForHasAShape) {
    // 36 GPUs on nodes of 4 are 9 nodes, which the usual shapes pass over
    ClusterView cluster{nodes_of(std::vector<int>(16, 4)), {}, {}};
    cluster.options.may_stop = true;
    for (int gpus = 1; gpus <= 64; ++gpus) {
        JobView rigid;
        rigid.id = 1;
        rigid.requested = gpus;
        rigid.sizes = {gpus};
        cluster.jobs = {rigid};
        const Plan plan = SluicePolicy().plan(cluster);
        ASSERT_EQ(plan.decisions.size(), 1u) << gpus;
        EXPECT_EQ(plan.decisions[0].gpus, gpus);
    }
}

TEST(PackingSearch, WithoutNodesNobodyGetsAnything) {
    const std::vector<PackingResult> results =
        search_packing({}, {}, std::vector<PackingJob>(3), 400);
    ASSERT_EQ(results.size(), 3u);
    for (const PackingResult& result : results) EXPECT_TRUE(result.shares.empty());
}

TEST(PackingSearch, UrgentJobsComeFirst) {
    const std::vector<NodeView> nodes = nodes_of({2, 2});
    const std::vector<Shape> shapes = shapes_of(nodes, 4);
    std::vector<PackingJob> jobs(3);
    for (std::size_t job = 0; job < jobs.size(); ++job)
        for (std::size_t shape = 0; shape < shapes.size(); ++shape)
            jobs[job].offers.push_back({shape, 10.0 * shapes[shape].placement.gpus});
    // the last is worth nearly nothing, and takes all or nothing
    std::erase_if(jobs[2].offers, [&](const PackingOffer& offer) {
        return shapes[offer.shape].placement.gpus < 4;
    });
    for (PackingOffer& offer : jobs[2].offers) offer.value = 0.01;
    EXPECT_TRUE(search_packing(nodes, shapes, jobs, 100)[2].shares.empty());
    jobs[2].urgent = true;
    EXPECT_EQ(search_packing(nodes, shapes, jobs, 100)[2].shares.size(), 2u);
}

TEST(ClearingPrices, AreWhereDemandMeetsWhatThereIs) {
    // ten jobs that each want one GPU, worth 1 to 10; four GPUs
    const std::vector<NodeView> nodes = nodes_of({4});
    const std::vector<Shape> shapes = shapes_of(nodes, 1);
    std::vector<PackingJob> jobs(10);
    for (std::size_t job = 0; job < jobs.size(); ++job) jobs[job].offers = {{0, double(job + 1)}};
    const double price = clearing_prices(nodes, shapes, jobs)[0];
    EXPECT_GE(price, 6 * 0.999);
    EXPECT_LE(price, 7);
    jobs.resize(3);
    EXPECT_EQ(clearing_prices(nodes, shapes, jobs)[0], 0) << "enough for all";
}

/// `left` seconds on one GPU; K^power on K GPUs, less on more nodes.
class Work : public WorkForecast {
  public:
    Work(double left, double power, double across = 1)
        : left_(left), power_(power), across_(across) {}
    double remaining() const override { return left_; }
    double rate(const StepPlacement& placement, std::size_t type) const override {
        return std::pow(placement.gpus, power_) * (placement.nodes > 1 ? across_ : 1) *
               (type == 0 ? 1 : 2);
    }

  private:
    double left_;
    double power_;
    double across_;
};

/// Jobs may be stopped.
ClusterView cluster_of(std::vector<int> gpus, std::vector<JobView> jobs) {
    ClusterView cluster{nodes_of(std::move(gpus)), std::move(jobs), {}};
    cluster.options.may_stop = true;
    return cluster;
}
JobView job(std::uint32_t id, double left, double power, int most = 4) {
    JobView view;
    view.id = id;
    view.requested = 1;
    view.resizable = true;
    view.restart_cost_s = 30;
    for (int size = 1; size <= most; ++size) view.sizes.push_back(size);
    view.work = std::make_shared<Work>(left, power);
    return view;
}
void run(JobView& job, std::vector<NodeShare> held) {
    job.running = true;
    job.held = std::move(held);
    job.current = 0;
    for (const NodeShare& share : job.held) job.current += share.gpus;
    job.since_resize_s = 1000;
}
int gpus_in(const Plan& plan, const JobView& job) {
    for (const Decision& decision : plan.decisions)
        if (decision.job == job.id) return decision.gpus;
    return job.running ? job.current : 0;
}

TEST(SluicePolicy, ShortJobsGoFirst) {
    ClusterView cluster = cluster_of({4}, {job(1, 90000, 1), job(2, 300, 1)});
    cluster.jobs[0].sizes = cluster.jobs[1].sizes = {4};
    Plan plan = SluicePolicy().plan(cluster);
    EXPECT_EQ(gpus_in(plan, cluster.jobs[0]), 0);
    EXPECT_EQ(gpus_in(plan, cluster.jobs[1]), 4);

    // one that runs gives way, when the other has much less left
    run(cluster.jobs[0], {{0, 4}});
    plan = SluicePolicy().plan(cluster);
    ASSERT_EQ(plan.decisions.size(), 2u);
    EXPECT_EQ(plan.decisions[0].job, 1u) << "who gives up GPUs comes first";
    EXPECT_EQ(plan.decisions[0].gpus, 0);
    // but not for one that has about as much
    cluster.jobs[1].work = std::make_shared<Work>(80000, 1);
    EXPECT_TRUE(SluicePolicy().plan(cluster).decisions.empty());
}

TEST(SluicePolicy, GpusGoToWhoGainsMostFromThem) {
    ClusterView cluster = cluster_of({8}, {job(1, 9000, 0.3, 8), job(2, 9000, 0.95, 8)});
    const Plan plan = SluicePolicy().plan(cluster);
    EXPECT_GE(gpus_in(plan, cluster.jobs[0]), 1);
    EXPECT_GT(gpus_in(plan, cluster.jobs[1]), gpus_in(plan, cluster.jobs[0]));
    EXPECT_EQ(gpus_in(plan, cluster.jobs[0]) + gpus_in(plan, cluster.jobs[1]), 8);
}

TEST(SluicePolicy, AJobThatIsSlowAcrossNodesGetsOneNode) {
    ClusterView cluster = cluster_of({4, 4}, {job(1, 9000, 0.9, 8), job(2, 9000, 0.9, 8)});
    for (JobView& each : cluster.jobs) each.work = std::make_shared<Work>(9000, 0.9, 0.4);
    const Plan plan = SluicePolicy().plan(cluster);
    ASSERT_EQ(plan.decisions.size(), 2u);
    for (const Decision& decision : plan.decisions) {
        ASSERT_EQ(decision.shares.size(), 1u);
        EXPECT_EQ(decision.gpus, 4);
    }
}

TEST(SluicePolicy, WhoHasWaitedTooLongIsServedAndThenLeftInPeace) {
    ClusterView cluster = cluster_of({4}, {});
    JobView large = job(1, 1e7, 1);
    large.sizes = {4};
    large.waited_s = 7 * 3600;
    cluster.jobs = {large, job(2, 100, 1), job(3, 100, 1), job(4, 100, 1), job(5, 100, 1)};
    EXPECT_EQ(gpus_in(SluicePolicy().plan(cluster), cluster.jobs[0]), 4);
    cluster.jobs[0].waited_s = 0;
    EXPECT_EQ(gpus_in(SluicePolicy().plan(cluster), cluster.jobs[0]), 0);

    run(cluster.jobs[0], {{0, 4}});
    cluster.jobs[0].waited_s = 7 * 3600;
    cluster.jobs[0].since_resize_s = 500;
    EXPECT_TRUE(SluicePolicy().plan(cluster).decisions.empty());
    cluster.jobs[0].since_resize_s = 700;
    EXPECT_EQ(gpus_in(SluicePolicy().plan(cluster), cluster.jobs[0]), 0);
}

TEST(SluicePolicy, NobodyWhoCannotBeStoppedGoesBeforeWhoHasWaitedTooLong) {
    ClusterView cluster = cluster_of({4}, {job(1, 1e7, 1), job(2, 100, 1), job(3, 100, 1)});
    run(cluster.jobs[1], {{0, 1}});
    cluster.jobs[1].resizable = false;
    cluster.jobs[0].sizes = {4};
    cluster.jobs[2].sizes = {1};
    cluster.jobs[2].resizable = false;
    EXPECT_EQ(gpus_in(SluicePolicy().plan(cluster), cluster.jobs[2]), 1);
    cluster.jobs[0].waited_s = 7 * 3600;
    EXPECT_EQ(gpus_in(SluicePolicy().plan(cluster), cluster.jobs[2]), 1);
    cluster.jobs[0].waited_s = 13 * 3600;
    EXPECT_EQ(gpus_in(SluicePolicy().plan(cluster), cluster.jobs[2]), 0);
    cluster.jobs[2].resizable = true;
    EXPECT_EQ(gpus_in(SluicePolicy().plan(cluster), cluster.jobs[2]), 1);
}

TEST(SluicePolicy, WhatCannotBeChangedStays) {
    ClusterView cluster = cluster_of({4}, {job(1, 1e6, 1), job(2, 100, 1)});
    run(cluster.jobs[0], {{0, 3}});
    cluster.jobs[0].resizable = false;
    const Plan plan = SluicePolicy().plan(cluster);
    ASSERT_EQ(plan.decisions.size(), 1u);
    EXPECT_EQ(plan.decisions[0].job, 2u);
    EXPECT_EQ(plan.decisions[0].gpus, 1);
}

TEST(SluicePolicy, OfUnknownWorkNoMoreThanRequested) {
    ClusterView cluster = cluster_of({8}, {job(1, 0, 1, 8)});
    cluster.jobs[0].work = nullptr;
    cluster.jobs[0].requested = 3;
    EXPECT_EQ(gpus_in(SluicePolicy().plan(cluster), cluster.jobs[0]), 3);
}

TEST(SluicePolicy, NodesOfTwoTypes) {
    // the second type is twice as fast: it goes to one, the other takes what is left
    ClusterView cluster = cluster_of({2, 2}, {job(1, 3000, 0.9, 2), job(2, 90000, 0.9, 2)});
    cluster.nodes[1].type = 1;
    const Plan plan = SluicePolicy().plan(cluster);
    ASSERT_EQ(plan.decisions.size(), 2u);
    for (const Decision& decision : plan.decisions) {
        EXPECT_EQ(decision.gpus, 2);
        EXPECT_EQ(decision.shares[0].node, decision.job == 1 ? 1u : 0u) << "job " << decision.job;
    }
}

TEST(GoodputPolicy, SharesFairly) {
    ClusterView cluster = cluster_of({8}, {});
    for (std::uint32_t id = 0; id < 4; ++id) cluster.jobs.push_back(job(id, 100 << 3 * id, 0.8, 8));
    const Plan plan = GoodputPolicy().plan(cluster);
    for (const JobView& each : cluster.jobs) EXPECT_EQ(gpus_in(plan, each), 2);

    // a move that brings little is not worth a restart
    for (std::size_t i = 0; i < 4; ++i) {
        run(cluster.jobs[i], {{0, i == 0 ? 1 : 2}});
        cluster.jobs[i].age_s = 60;
    }
    cluster.jobs[0].work = std::make_shared<Work>(100, 0.1);
    EXPECT_EQ(gpus_in(GoodputPolicy().plan(cluster), cluster.jobs[0]), 1);
}

TEST(SluicePolicy, OnSlurmSizesFollowWorkAndSpeed) {
    // Nobody is stopped there. Of two that run, who is nearly over and scales gets the free GPUs.
    ClusterView cluster = cluster_of({4, 4}, {job(1, 1e6, 0.3), job(2, 2000, 0.95)});
    cluster.options.may_stop = false;
    run(cluster.jobs[0], {{0, 2}});
    run(cluster.jobs[1], {{1, 2}});
    for (JobView& each : cluster.jobs) each.node_count = 1;
    const Plan plan = SluicePolicy().plan(cluster);
    EXPECT_EQ(gpus_in(plan, cluster.jobs[1]), 4);
    ASSERT_FALSE(plan.decisions.empty());
    EXPECT_EQ(plan.decisions.back().reason, "3.55 times the speed of one GPU instead of 1.93");
    EXPECT_GE(gpus_in(plan, cluster.jobs[0]), 1);
}

}  // namespace
}  // namespace sluice
