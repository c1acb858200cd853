// SPDX-License-Identifier: GPL-2.0-or-later
//
// The choice over nodes against trying every placement, and its parts.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>

#include "common/placement/assignment.hpp"
#include "common/placement/node_choice.hpp"
#include "tests/unit/test_data.hpp"

namespace sluice {
namespace {

std::shared_ptr<const BestSets> table(const std::string& name) {
    const auto graph = read_topology(test_data("topology/" + name), name);
    EXPECT_TRUE(graph.ok()) << graph.error().message;
    auto sets = BestSets::compile(*graph);
    EXPECT_TRUE(sets.ok());
    return *sets;
}

/// Eight GPUs behind an NVSwitch, a NIC beside each two of them.
constexpr std::string_view switched = R"(SluiceTopology=1 Gpus=8 Nics=4 Switch=yes
Nic=a Paths=PXB,PXB,NODE,NODE,SYS,SYS,SYS,SYS
Nic=b Paths=NODE,NODE,PXB,PXB,SYS,SYS,SYS,SYS
Nic=c Paths=SYS,SYS,SYS,SYS,PXB,PXB,NODE,NODE
Nic=d Paths=SYS,SYS,SYS,SYS,NODE,NODE,PXB,PXB
)";

/// Three GPUs under one PCIe switch, the NIC beside the third and a fourth.
constexpr std::string_view one_nic = R"(SluiceTopology=1 Gpus=4 Nics=1
Pair=0-1 Path=PIX
Pair=0-2 Path=PXB
Pair=1-2 Path=PXB
Pair=0-3 Path=SYS
Pair=1-3 Path=SYS
Pair=2-3 Path=PHB
Nic=a Paths=NODE,NODE,PIX,PIX
)";

std::shared_ptr<const BestSets> table_of_text(std::string text) {
    const bool joined = text.find("Pair=") != std::string::npos;
    const bool named = text.find("Gpu=") != std::string::npos;
    const int gpus = text[text.find("Gpus=") + 5] - '0';
    for (int a = 0; a < gpus; ++a) {
        if (!named) text += "Gpu=" + std::to_string(a) + "\n";
        for (int b = a + 1; b < gpus && !joined; ++b)
            text += "Pair=" + std::to_string(a) + "-" + std::to_string(b) + " Links=12 Gbps=300\n";
    }
    const auto graph = read_topology_text(text, "text");
    EXPECT_TRUE(graph.ok()) << graph.error().message;
    return *BestSets::compile(*graph);
}

/// Least cost over every way to give counts to nodes and, with trust in the model, every set.
class BruteForce {
  public:
    BruteForce(std::span<const NodeOffer> offers, std::vector<int> counts, const StepTimeOf& time,
               const NodeChoiceOptions& options)
        : offers_(offers), time_(time), options_(options) {
        std::sort(counts.begin(), counts.end());
        do {
            spread(counts, 0, {}, {});
        } while (std::next_permutation(counts.begin(), counts.end()));
    }
    double least() const { return least_; }

  private:
    void spread(const std::vector<int>& counts, std::size_t next, std::vector<NodeOffer> nodes,
                std::vector<GpuSet> sets) {
        if (nodes.size() == counts.size()) {
            for (std::size_t i = next; i < offers_.size(); ++i) {
                if (offers_[i].required) return;
            }
            least_ = std::min(least_, assess(nodes, sets, time_, options_).cost);
            return;
        }
        if (next == offers_.size()) return;
        const NodeOffer& offer = offers_[next];
        if (!offer.required) spread(counts, next + 1, nodes, sets);
        const int count = counts[nodes.size()];
        nodes.push_back(offer);
        sets.emplace_back();
        if (!options_.trust_model) {
            const auto best = fastest(offer, counts, count);
            if (!best) return;
            sets.back() = *best;
            return spread(counts, next + 1, nodes, sets);
        }
        for (std::uint64_t bits = offer.free.bits(); bits != 0;
             bits = (bits - 1) & offer.free.bits()) {
            sets.back() = GpuSet(bits);
            if (sets.back().size() == count) spread(counts, next + 1, nodes, sets);
        }
    }

    /// What a job that nothing is known of gets of a node.
    std::optional<GpuSet> fastest(const NodeOffer& offer, const std::vector<int>& counts,
                                  int count) const {
        if (counts.size() == 1 || !offer.sets->network_differs())
            return offer.sets->best(offer.free, count);
        std::optional<GpuSet> found;
        std::pair<double, double> least;
        for (std::uint64_t bits = offer.free.bits(); bits != 0;
             bits = (bits - 1) & offer.free.bits()) {
            const GpuSet set(bits);
            if (set.size() != count) continue;
            PlacementShape shape;
            shape.gpus = std::accumulate(counts.begin(), counts.end(), 0);
            shape.nodes = static_cast<int>(counts.size());
            shape.most_per_node = *std::max_element(counts.begin(), counts.end());
            shape.slowest_gbps = count > 1 ? offer.sets->bandwidth(set).total_gbps : 0;
            shape.network_share = offer.sets->network_share(set);
            const std::pair value{time_(shape), -offer.sets->left_gbps(offer.free - set)};
            if (!found || value < least) {
                found = set;
                least = value;
            }
        }
        return found;
    }

    std::span<const NodeOffer> offers_;
    const StepTimeOf& time_;
    const NodeChoiceOptions& options_;
    double least_ = HUGE_VAL;
};

/// The offers of a placement's nodes, whose numbers are their places in `offers`, and their sets.
std::pair<std::vector<NodeOffer>, std::vector<GpuSet>> taken_of(
    const NodePlacement& placement, const std::vector<NodeOffer>& offers) {
    std::vector<NodeOffer> nodes;
    std::vector<GpuSet> sets;
    for (const NodeShare& share : placement.nodes) {
        nodes.push_back(offers[static_cast<std::size_t>(share.node)]);
        sets.push_back(share.set);
    }
    return {nodes, sets};
}

TEST(NodeChoice, EqualsTheBestOfAllPlacements) {
    const auto dgx1 = table("dgx1-v100.topo-m.txt");
    const auto pairs = table("nvlink-pairs8.topo-m.txt");
    const auto pcie = table("pcie8.topo-m.txt");
    const auto nvswitch = table_of_text(std::string(switched));
    const auto small = table_of_text(std::string(one_nic));
    const BestSets* const classes[] = {dgx1.get(), pairs.get(), pcie.get(), nvswitch.get(),
                                       small.get()};
    const std::vector<int> left{0, 1}, right{0, 2}, other{3, 4}, flat{};
    const std::vector<std::vector<int>> requests{{1},    {2},    {4},       {8},      {2, 2},
                                                 {3, 3}, {2, 1}, {4, 2, 1}, {1, 1, 1}};
    std::mt19937 dice(17);
    int possible = 0;
    for (int round = 0; round < 600; ++round) {
        std::vector<NodeOffer> offers;
        const bool network = round % 2 == 0;
        for (int i = 0; i < 5; ++i) {
            const auto& switches = !network ? flat : *std::array{&left, &right, &other}[dice() % 3];
            // Few free GPUs where every set is tried.
            const std::uint64_t busy = round % 4 < 2 ? 0 : dice();
            const BestSets* const sets = classes[dice() % 5];
            const std::uint64_t all = GpuSet::first(sets->size()).bits();
            offers.push_back({i, sets, GpuSet(dice() & all & ~busy), dice() % 10 == 0, switches});
        }
        const auto& counts = requests[dice() % requests.size()];
        const NodeChoiceOptions options{round % 3 * 0.2, round % 4 >= 2};
        const StepTimeOf time = PriorStepTime{round % 5 * 4.0, 12.5};
        const double least = BruteForce(offers, counts, time, options).least();
        const auto found = choose_nodes(offers, counts, time, options);
        ASSERT_EQ(found.has_value(), least != HUGE_VAL) << "round " << round;
        if (!found) continue;
        ++possible;
        EXPECT_NEAR(found->cost, least, 1e-9) << "round " << round;
        // What it says of itself is so.
        const auto [nodes, sets] = taken_of(*found, offers);
        for (std::size_t i = 0; i < nodes.size(); ++i) EXPECT_TRUE(nodes[i].free.contains(sets[i]));
        EXPECT_NEAR(assess(nodes, sets, time, options).cost, found->cost, 1e-9);
    }
    EXPECT_GT(possible, 200);
}

/// Two GPUs that exchange so much.
std::shared_ptr<const BestSets> pair_of(int gbps) {
    return table_of_text("SluiceTopology=1 Gpus=2\nGpu=0\nGpu=1\nPair=0-1 Links=1 Gbps=" +
                         std::to_string(gbps) + "\n");
}

TEST(NodeChoice, LargeJobsOfDifferentShares) {
    const auto plain = table_of_text("SluiceTopology=1 Gpus=8\n");
    const auto fast = table("dgx1-v100.topo-m.txt");
    for (const std::size_t size : {16U, 63U, 100U, 1000U}) {
        std::vector<NodeOffer> offers;
        for (std::size_t i = 0; i < size + 20; ++i)
            offers.push_back({static_cast<int>(i), plain.get(), GpuSet::first(8), false, {}});
        std::vector<int> counts(size, 8);
        counts.back() = 4;
        const auto found = choose_nodes(offers, counts, PriorStepTime{});
        ASSERT_TRUE(found) << size;
        EXPECT_EQ(found->shape.gpus, static_cast<int>(size) * 8 - 4);
        EXPECT_EQ(found->nodes.back().node, static_cast<int>(size) - 1);
        // Nodes that are alike cost no more because there are many.
        EXPECT_LE(found->steps, 10 * static_cast<long>(size)) << size;
        // Two of another class beside them.
        offers[1].sets = offers[2].sets = fast.get();
        const auto mixed = choose_nodes(offers, counts, PriorStepTime{});
        ASSERT_TRUE(mixed) << size;
        EXPECT_LE(mixed->steps, 20 * static_cast<long>(size)) << size;
    }
}

TEST(NodeChoice, ManyNodesOfManyRates) {
    std::vector<std::shared_ptr<const BestSets>> classes;
    for (int gbps = 25; gbps < 85; ++gbps) classes.push_back(pair_of(gbps));
    std::vector<NodeOffer> offers;
    for (int i = 0; i < 20'000; ++i) {
        const auto place = static_cast<std::size_t>(std::max(59 - i, 0));
        offers.push_back({i, classes[place].get(), GpuSet::first(2), false, {}});
    }
    const auto found = choose_nodes(offers, std::vector<int>(64, 2), PriorStepTime{});
    ASSERT_TRUE(found);
    EXPECT_EQ(found->fastest_gbps, 25);
    EXPECT_LE(found->steps, 100'000);
    const auto few = choose_nodes(offers, std::vector<int>(3, 2), PriorStepTime{});
    EXPECT_EQ(few->shape.slowest_gbps, 82);
    EXPECT_LE(few->steps, 100'000);
}

TEST(NodeChoice, NodesThatAllDifferTakeBoundedSteps) {
    const auto dgx1 = table("dgx1-v100.topo-m.txt");
    const auto pairs = table("nvlink-pairs8.topo-m.txt");
    const auto nvswitch = table_of_text(std::string(switched));
    const BestSets* const classes[] = {dgx1.get(), pairs.get(), nvswitch.get()};
    std::mt19937 dice(31);
    std::vector<std::vector<int>> switches;
    std::vector<NodeOffer> offers;
    for (int i = 0; i < 5'000; ++i) switches.push_back({0, i / 400, i / 40});
    for (int i = 0; i < 5'000; ++i) {
        const GpuSet free = i % 3 == 0 ? GpuSet::first(8) : GpuSet(1 + dice() % 255);
        offers.push_back(
            {i, classes[dice() % 3], free, false, switches[static_cast<std::size_t>(i)]});
    }
    std::vector<int> counts;
    for (int i = 0; i < 400; ++i) counts.push_back(8 - i % 8);
    NodeChoiceOptions options{0.1, true};
    const auto found = choose_nodes(offers, counts, PriorStepTime{}, options);
    ASSERT_TRUE(found);
    EXPECT_LE(found->steps, 3 * options.most_steps);
    // More of them only improve it.
    options.most_steps = 10'000;
    const auto hurried = choose_nodes(offers, counts, PriorStepTime{}, options);
    ASSERT_TRUE(hurried);
    EXPECT_LT(hurried->steps, found->steps);
    EXPECT_LE(found->cost, hurried->cost);
    EXPECT_EQ(found->fastest_step_time, hurried->fastest_step_time);
}

TEST(NodeChoice, TheFastestIsFoundInAnyCase) {
    const auto dgx1 = table("dgx1-v100.topo-m.txt");
    const auto pairs = table("nvlink-pairs8.topo-m.txt");
    const auto small = table_of_text(std::string(one_nic));
    const BestSets* const classes[] = {dgx1.get(), pairs.get(), small.get()};
    const std::vector<std::vector<int>> lists{{}, {0, 1}, {0, 2}, {0, 1, 3}};
    const std::vector<std::vector<int>> requests{{4}, {2, 2}, {2, 1}, {3, 3, 1}, {4, 2, 2, 1}};
    std::mt19937 dice(41);
    int possible = 0;
    for (int round = 0; round < 600; ++round) {
        std::vector<NodeOffer> offers;
        for (int i = 0; i < 5; ++i) {
            const BestSets* const sets = classes[dice() % 3];
            const GpuSet free = GpuSet(dice()) & GpuSet::first(sets->size());
            offers.push_back({i, sets, free, dice() % 8 == 0, lists[dice() % lists.size()]});
        }
        const auto& counts = requests[dice() % requests.size()];
        NodeChoiceOptions options{0, false};
        const StepTimeOf time = PriorStepTime{};
        // Without a weight the least cost is the shortest time.
        const double least = BruteForce(offers, counts, time, options).least();
        options.most_steps = 0;
        const auto found = choose_nodes(offers, counts, time, options);
        ASSERT_EQ(found.has_value(), least != HUGE_VAL) << "round " << round;
        if (!found) continue;
        ++possible;
        EXPECT_NEAR(std::log(found->step_time), least, 1e-9) << "round " << round;
        EXPECT_EQ(found->fastest_step_time, found->step_time);
        options.most_step_time = found->step_time;
        EXPECT_TRUE(choose_nodes(offers, counts, time, options));
        options.most_step_time = found->step_time * 0.999;
        EXPECT_FALSE(choose_nodes(offers, counts, time, options));
    }
    EXPECT_GT(possible, 200);
}

TEST(NodeChoice, SmallJobsLeaveWholeNodesToLargeOnes) {
    const auto dgx1 = table("dgx1-v100.topo-m.txt");
    std::vector<GpuSet> free(3, GpuSet::first(8));
    const auto run = [&](int count) {
        std::vector<NodeOffer> offers;
        for (int i = 0; i < 3; ++i)
            offers.push_back({i, dgx1.get(), free[static_cast<std::size_t>(i)], false, {}});
        const auto found = choose_nodes(offers, std::vector<int>{count}, PriorStepTime{});
        if (!found) return false;
        const NodeShare& share = found->nodes.front();
        auto& rest = free[static_cast<std::size_t>(share.node)];
        rest = rest - share.set;
        return true;
    };
    for (const int count : {1, 2, 1, 1, 2, 1, 2, 1, 1}) EXPECT_TRUE(run(count));
    EXPECT_TRUE(run(8));
    EXPECT_TRUE(run(4));
}

TEST(NodeChoice, AJobThatDoesNotCommunicateTakesWhatIsLeft) {
    const auto pairs = table("nvlink-pairs8.topo-m.txt");
    // 0-2 and 1-3 are pairs; 4 and 5 have lost theirs.
    const std::vector<NodeOffer> offers{{0, pairs.get(), *parse_gpu_set("0-5"), false, {}}};
    const StepTimeOf deaf = [](const PlacementShape&) { return 1.0; };
    const std::vector<int> two{2};
    EXPECT_EQ(to_string(choose_nodes(offers, two, deaf, {0.1, true})->nodes[0].set), "4-5");
    EXPECT_EQ(to_string(choose_nodes(offers, two, deaf, {0.1, false})->nodes[0].set), "0,2");
    EXPECT_EQ(to_string(choose_nodes(offers, two, PriorStepTime{}, {0.1, true})->nodes[0].set),
              "0,2");
}

TEST(NodeChoice, JobsOverSeveralNodesGetGpusNearTheNics) {
    const auto sets = table_of_text(std::string(one_nic));
    EXPECT_TRUE(sets->network_differs());
    // Two NICs away instead of one beside it: 8 and 12 GB/s.
    EXPECT_FLOAT_EQ(static_cast<float>(sets->network_share(*parse_gpu_set("0,1"))), 8.0F / 12);
    EXPECT_EQ(sets->network_share(*parse_gpu_set("0,3")), 1);
    EXPECT_EQ(sets->network_share(GpuSet::first(4)), 1);
    const std::vector<NodeOffer> offers{{0, sets.get(), GpuSet::first(4), false, {}},
                                        {1, sets.get(), GpuSet::first(4), false, {}}};
    const auto given = [&](std::vector<int> counts) {
        return to_string(choose_nodes(offers, counts, PriorStepTime{})->nodes[0].set);
    };
    EXPECT_EQ(given({2}), "0-1");
    EXPECT_EQ(given({2, 2}), "0,2");
    // As near as 2, and the three under the switch stay together.
    EXPECT_EQ(given({1, 1}), "3");
    const auto near = choose_nodes(offers, std::vector<int>{2, 2}, PriorStepTime{});
    EXPECT_EQ(near->shape.network_share, 1);
    EXPECT_EQ(near->fastest_step_time, near->step_time);

    // As many NICs as GPUs can be near to: one of each pair.
    const auto nvswitch = table_of_text(std::string(switched));
    const std::vector<NodeOffer> whole{{0, nvswitch.get(), GpuSet::first(8), false, {}},
                                       {1, nvswitch.get(), GpuSet::first(8), false, {}}};
    const auto four = choose_nodes(whole, std::vector<int>{4, 4}, PriorStepTime{});
    EXPECT_EQ(to_string(four->nodes[0].set), "0,2,4,6");
    // A job on one node has no use for them.
    EXPECT_EQ(to_string(choose_nodes(whole, std::vector<int>{4}, PriorStepTime{})->nodes[0].set),
              "0-3");
}

TEST(NodeChoice, ModelsOfGpuAreNotMixedForThrift) {
    // Links cross the models, and 0 and 1 are worth keeping.
    const auto sets = table_of_text(R"(SluiceTopology=1 Gpus=4
Gpu=0 Model=p100
Gpu=1 Model=p100
Gpu=2 Model=rtx
Gpu=3 Model=rtx
Pair=0-1 Links=2 Gbps=50
Pair=0-2 Path=SYS
Pair=0-3 Path=SYS
Pair=1-2 Path=SYS
Pair=1-3 Path=SYS
Pair=2-3 Links=1 Gbps=25
)");
    const std::vector<NodeOffer> offers{{0, sets.get(), *parse_gpu_set("0-2"), false, {}}};
    const StepTimeOf deaf = [](const PlacementShape&) { return 1.0; };
    EXPECT_EQ(to_string(choose_nodes(offers, std::vector<int>{2}, deaf, {0.1, true})->nodes[0].set),
              "0-1");
}

TEST(NodeChoice, NothingSlowerThanAllowed) {
    const auto dgx1 = table("dgx1-v100.topo-m.txt");
    // The idle node has the faster pair, the other has one left that no larger set needs.
    const std::vector<NodeOffer> offers{{0, dgx1.get(), GpuSet::first(8), false, {}},
                                        {1, dgx1.get(), *parse_gpu_set("0,1"), false, {}}};
    const std::vector<int> two{2};
    NodeChoiceOptions options{1.0};
    const auto thrifty = choose_nodes(offers, two, PriorStepTime{}, options);
    EXPECT_EQ(thrifty->nodes[0].node, 1);
    options.most_step_time = thrifty->step_time - 0.01;
    EXPECT_EQ(choose_nodes(offers, two, PriorStepTime{}, options)->nodes[0].node, 0);
    options.most_step_time = 0.5;
    EXPECT_FALSE(choose_nodes(offers, two, PriorStepTime{}, options));
}

TEST(NodeChoice, NodesUnderOneSwitchGoTogether) {
    const auto dgx1 = table("dgx1-v100.topo-m.txt");
    const std::vector<int> rack1{0, 1}, rack2{0, 2};
    std::vector<NodeOffer> offers;
    for (int i = 0; i < 6; ++i)
        offers.push_back({i, dgx1.get(), GpuSet::first(8), false, i % 2 == 0 ? rack1 : rack2});
    offers[0].free = GpuSet::first(4);
    const auto found = choose_nodes(offers, std::vector<int>{8, 8, 8}, PriorStepTime{});
    ASSERT_TRUE(found);
    EXPECT_EQ(found->nodes[0].node, 1);
    EXPECT_EQ(found->nodes[1].node, 3);
    EXPECT_EQ(found->nodes[2].node, 5);
    EXPECT_EQ(found->shape.hops, 1);
    EXPECT_EQ(choose_nodes(offers, std::vector<int>{8, 8, 8, 8}, PriorStepTime{})->shape.hops, 2);
}

TEST(NodeChoice, EqualsTheBestWhereSwitchListsDifferInLength) {
    const auto dgx1 = table("dgx1-v100.topo-m.txt");
    const auto pairs = table("nvlink-pairs8.topo-m.txt");
    const auto small = table_of_text(std::string(one_nic));
    const BestSets* const classes[] = {dgx1.get(), pairs.get(), small.get()};
    const std::vector<std::vector<int>> lists{{},     {0},       {0, 1},    {0, 2}, {0, 1, 3},
                                              {0, 1}, {0, 2, 4}, {0, 1, 3}, {9},    {9, 8}};
    const std::vector<std::vector<int>> requests{{2, 2}, {1, 1}, {2, 1}, {1, 1, 1}, {3, 2, 1}};
    std::mt19937 dice(23);
    int possible = 0;
    for (int round = 0; round < 1500; ++round) {
        std::vector<NodeOffer> offers;
        for (int i = 0; i < 5; ++i) {
            const BestSets* const sets = classes[dice() % 3];
            const GpuSet free = GpuSet(dice() & dice()) & GpuSet::first(sets->size());
            offers.push_back({i, sets, free, dice() % 12 == 0, lists[dice() % lists.size()]});
        }
        const auto& counts = requests[dice() % requests.size()];
        const NodeChoiceOptions options{round % 3 * 0.2, round % 2 == 1};
        const StepTimeOf time = PriorStepTime{round % 4 * 2.0, 12.5};
        const double least = BruteForce(offers, counts, time, options).least();
        const auto found = choose_nodes(offers, counts, time, options);
        ASSERT_EQ(found.has_value(), least != HUGE_VAL) << "round " << round;
        if (!found) continue;
        ++possible;
        EXPECT_NEAR(found->cost, least, 1e-9) << "round " << round;
        // As far as two of them are apart, and as assess() says.
        const auto [nodes, sets] = taken_of(*found, offers);
        int farthest = 0;
        for (const NodeOffer& a : nodes) {
            for (const NodeOffer& b : nodes) {
                const auto longer = std::max(a.switches.size(), b.switches.size());
                const auto common = std::mismatch(a.switches.begin(), a.switches.end(),
                                                  b.switches.begin(), b.switches.end());
                const auto shared = common.first - a.switches.begin();
                if (longer == 0 || a.node == b.node) continue;
                farthest =
                    std::max(farthest, static_cast<int>(longer) + 1 - static_cast<int>(shared));
            }
        }
        EXPECT_EQ(found->shape.hops, farthest) << "round " << round;
        const NodePlacement again = assess(nodes, sets, time, options);
        EXPECT_EQ(again.shape.hops, farthest);
        EXPECT_NEAR(again.cost, found->cost, 1e-9);
    }
    EXPECT_GT(possible, 500);
}

TEST(NodeChoice, NodesThatTheNetworkLeavesOutAreFarFromAll) {
    std::vector<std::vector<int>> switches{{0, 1}, {}, {0, 2}, {}};
    set_apart_unknown(switches);
    const auto dgx1 = table("dgx1-v100.topo-m.txt");
    std::vector<NodeOffer> offers;
    for (int i = 0; i < 4; ++i)
        offers.push_back(
            {i, dgx1.get(), GpuSet::first(8), false, switches[static_cast<std::size_t>(i)]});
    const auto hops = [&](std::size_t a, std::size_t b) {
        const std::vector<NodeOffer> nodes{offers[a], offers[b]};
        const std::vector<GpuSet> sets(2, GpuSet::first(8));
        return assess(nodes, sets, PriorStepTime{}).shape.hops;
    };
    EXPECT_EQ(hops(0, 2), 2);
    EXPECT_EQ(hops(0, 1), 3);
    EXPECT_EQ(hops(1, 3), 3);
    const auto found = choose_nodes(offers, std::vector<int>{8, 8}, PriorStepTime{});
    EXPECT_EQ(found->nodes[0].node, 0);
    EXPECT_EQ(found->nodes[1].node, 2);

    std::vector<std::vector<int>> unknown(3);
    set_apart_unknown(unknown);
    EXPECT_EQ(unknown, std::vector<std::vector<int>>(3));
}

TEST(NodeChoice, NothingWhereNothingFits) {
    const auto dgx1 = table("dgx1-v100.topo-m.txt");
    std::vector<NodeOffer> offers{{0, dgx1.get(), GpuSet::first(3), false, {}},
                                  {1, dgx1.get(), GpuSet::first(3), false, {}}};
    EXPECT_FALSE(choose_nodes(offers, std::vector<int>{4}, PriorStepTime{}));
    EXPECT_FALSE(choose_nodes(offers, std::vector<int>{2, 2, 2}, PriorStepTime{}));
    EXPECT_FALSE(choose_nodes(offers, std::vector<int>{}, PriorStepTime{}));
    EXPECT_FALSE(choose_nodes({}, std::vector<int>{1}, PriorStepTime{}));
    offers[0].required = offers[1].required = true;
    EXPECT_FALSE(choose_nodes(offers, std::vector<int>{2}, PriorStepTime{}));
    EXPECT_TRUE(choose_nodes(offers, std::vector<int>{2, 1}, PriorStepTime{}));
}

TEST(NodeChoice, WaysToSpread) {
    using Spreads = std::vector<std::vector<int>>;
    EXPECT_EQ(spreads(4, 8, 1, 2), (Spreads{{4}, {2, 2}}));
    EXPECT_EQ(spreads(12, 8, 1, 3), (Spreads{{6, 6}, {4, 4, 4}, {8, 4}}));
    EXPECT_EQ(spreads(5, 4, 2, 2), (Spreads{{3, 2}, {4, 1}}));
    EXPECT_EQ(spreads(16, 8, 1, 1), Spreads{});
    EXPECT_EQ(spreads(2, 8, 3, 4), Spreads{});
    EXPECT_EQ(spreads(0, 8, 1, 4), Spreads{});
}

TEST(Assignment, EqualsTheBestOfAllDistributions) {
    std::mt19937 dice(5);
    int possible = 0;
    for (int round = 0; round < 1000; ++round) {
        std::vector<int> rows(1 + dice() % 3);
        for (int& each : rows) each = static_cast<int>(dice() % 4);
        std::vector<ColumnGroup> groups(1 + dice() % 4);
        std::vector<std::int64_t> cost;
        for (ColumnGroup& group : groups) {
            group = {static_cast<int>(dice() % 4), dice() % 4 == 0};
            for (std::size_t kind = 0; kind < rows.size(); ++kind)
                cost.push_back(dice() % 4 == 0 ? impossible : dice() % 10);
        }
        // One row after the other, in each group that has room: used columns of first groups, cost.
        std::vector<std::size_t> kinds;
        for (std::size_t kind = 0; kind < rows.size(); ++kind)
            kinds.insert(kinds.end(), static_cast<std::size_t>(rows[kind]), kind);
        std::pair<int, std::int64_t> best{1, 0};
        auto left = groups;
        const std::function<void(std::size_t, int, std::int64_t)> try_rest =
            [&](std::size_t row, int firsts, std::int64_t sum) {
                if (row == kinds.size()) {
                    best = std::min(best, {-firsts, sum});
                    return;
                }
                for (std::size_t group = 0; group < groups.size(); ++group) {
                    const std::int64_t here = cost[group * rows.size() + kinds[row]];
                    if (left[group].columns == 0 || here == impossible) continue;
                    --left[group].columns;
                    try_rest(row + 1, firsts + groups[group].first, sum + here);
                    ++left[group].columns;
                }
            };
        try_rest(0, 0, 0);

        long steps = 0;
        const auto taken = distribute(rows, groups, cost, steps, 1'000'000);
        ASSERT_EQ(taken.has_value(), best.first <= 0) << "round " << round;
        if (!taken) continue;
        ++possible;
        std::pair<int, std::int64_t> got{0, 0};
        std::vector<int> placed(rows.size());
        for (std::size_t group = 0; group < groups.size(); ++group) {
            int used = 0;
            for (std::size_t kind = 0; kind < rows.size(); ++kind) {
                const int here = (*taken)[group * rows.size() + kind];
                if (here == 0) continue;
                used += here;
                placed[kind] += here;
                got.second += here * cost[group * rows.size() + kind];
            }
            EXPECT_LE(used, groups[group].columns);
            if (groups[group].first) got.first -= used;
        }
        EXPECT_EQ(placed, rows);
        EXPECT_EQ(got, best) << "round " << round;
    }
    EXPECT_GT(possible, 200);
}

TEST(Assignment, EndsWhenItsStepsAreUsedUp) {
    const std::vector<int> rows{3, 3};
    const std::vector<ColumnGroup> groups{{4, false}, {4, false}};
    const std::vector<std::int64_t> cost{1, 2, 2, 1};
    long steps = 0;
    EXPECT_TRUE(distribute(rows, groups, cost, steps, 1000));
    EXPECT_LE(steps, 100);
    steps = 0;
    EXPECT_FALSE(distribute(rows, groups, cost, steps, 5));
    EXPECT_GT(steps, 5);
}

}  // namespace
}  // namespace sluice
