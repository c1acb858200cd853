// SPDX-License-Identifier: GPL-2.0-or-later
//
// The tables against the definitions in the headers, tried out one permutation at a time.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "common/placement/best_sets.hpp"
#include "common/placement/set_bandwidth.hpp"
#include "tests/unit/by_definition.hpp"
#include "tests/unit/test_data.hpp"

namespace sluice {
namespace {

GpuGraph read_file(const std::string& name) {
    auto graph = read_topology(test_data("topology/" + name), name);
    EXPECT_TRUE(graph.ok()) << graph.error().message;
    return graph ? *graph : GpuGraph();
}

std::shared_ptr<const BestSets> compile(const GpuGraph& graph) {
    auto sets = BestSets::compile(graph);
    EXPECT_TRUE(sets.ok()) << sets.error().message;
    return *sets;
}

/// Remembers, so that a whole table can be checked.
class Naive {
  public:
    explicit Naive(const GpuGraph& graph) : graph_(graph) {}

    SetBandwidth bandwidth(GpuSet set) {
        const auto [entry, fresh] = bandwidth_.try_emplace(set.bits());
        if (fresh) entry->second = by_definition(graph_, set);
        return entry->second;
    }

    double left(GpuSet free) {
        double sum = 0;
        for (int j = 2; j <= free.size(); ++j)
            sum += packed(free, j) * (j == 2 || j == 4 || j == 8 || j == 16 ? 1 : 0.25);
        return sum;
    }

    GpuSet best(GpuSet free, int count) {
        std::optional<GpuSet> best;
        for (const GpuSet set : subsets(free)) {
            if (set.size() == count && (!best || better(set, *best, free))) best = set;
        }
        return *best;
    }

  private:
    /// The largest sum of totals of disjoint sets of `size`.
    double packed(GpuSet free, int size) {
        const auto [entry, fresh] = packed_.try_emplace({free.bits(), size}, 0);
        if (!fresh) return entry->second;
        double most = 0;
        for (const GpuSet set : subsets(free)) {
            if (set.size() != size) continue;
            most = std::max(most, bandwidth(set).total_gbps + packed(free - set, size));
        }
        return packed_[{free.bits(), size}] = most;
    }

    static std::vector<GpuSet> subsets(GpuSet set) {
        std::vector<GpuSet> out;
        for (std::uint64_t bits = set.bits(); bits != 0; bits = (bits - 1) & set.bits())
            out.emplace_back(bits);
        return out;
    }

    bool better(GpuSet a, GpuSet b, GpuSet free) {
        if (graph_.mixed(a) != graph_.mixed(b)) return graph_.mixed(b);
        if (bandwidth(a) != bandwidth(b)) return bandwidth(a) > bandwidth(b);
        if (left(free - a) != left(free - b)) return left(free - a) > left(free - b);
        return a.indices() < b.indices();
    }

    const GpuGraph& graph_;
    std::map<std::uint64_t, SetBandwidth> bandwidth_;
    std::map<std::pair<std::uint64_t, int>, double> packed_;
};

void expect_bandwidth(const GpuGraph& graph, GpuSet set, SetBandwidth expected) {
    const SetBandwidth found = set_bandwidth(graph, set);
    EXPECT_EQ(found.bottleneck_gbps, expected.bottleneck_gbps)
        << to_string(set) << " of " << fingerprint(graph);
    EXPECT_EQ(found.total_gbps, expected.total_gbps)
        << to_string(set) << " of " << fingerprint(graph);
}

GpuGraph random_graph(std::mt19937& random, int count, unsigned most_links, bool switched = false) {
    GpuGraph graph(count);
    for (int a = 0; a < count; ++a) {
        for (int b = 0; b < a; ++b) {
            GpuLink link;
            link.links = static_cast<int>(random() % (most_links + 1));
            link.link_gbps = link.links * default_link_gbps;
            link.path = static_cast<PciPath>(random() % 6);
            graph.set_link(a, b, link);
        }
    }
    graph.set_switched(switched);
    return graph;
}

// --- whole tables

class WholeTable : public testing::TestWithParam<const char*> {};

TEST_P(WholeTable, IsTheDefinition) {
    const GpuGraph graph = read_file(GetParam());
    const auto table = compile(graph);
    Naive naive(graph);
    for (std::uint64_t bits = 0; bits < std::uint64_t{1} << graph.size(); ++bits) {
        const GpuSet free(bits);
        EXPECT_EQ(table->bandwidth(free), naive.bandwidth(free)) << to_string(free);
        EXPECT_EQ(set_bandwidth(graph, free), naive.bandwidth(free)) << to_string(free);
        for (int k = 1; k <= free.size(); ++k) {
            EXPECT_EQ(to_string(*table->best(free, k)), to_string(naive.best(free, k)))
                << k << " of " << to_string(free);
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Machines, WholeTable,
                         testing::Values("dgx1-v100.topo-m.txt", "nvlink-pairs8.topo-m.txt",
                                         "dgx-a100.topo-m.txt", "hgx-h100.topo-m.txt",
                                         "pcie8.topo-m.txt", "cliques8.topo-m.txt",
                                         "power8-4p100.hwloc3.xml", "power8-4p100.hwloc1.xml",
                                         "gres.conf"));

// U11: six GPUs of one model and two of another, no links but between the two models.
TEST(BestSets, NeverMixesModelsUnlessItHasTo) {
    GpuGraph graph(8);
    for (int a = 0; a < 8; ++a) {
        graph.gpu(a).model = a < 6 ? "p100" : "rtx";
        for (int b = 0; b < a; ++b)
            graph.set_link(a, b, {a == 6 && b < 6 ? 4 : 0, 100, PciPath::sys});
    }
    const auto table = compile(graph);
    Naive naive(graph);
    for (std::uint64_t bits = 1; bits < 256; ++bits) {
        const GpuSet free(bits);
        for (int k = 1; k <= free.size(); ++k) {
            const GpuSet best = *table->best(free, k);
            EXPECT_EQ(to_string(best), to_string(naive.best(free, k)))
                << k << " of " << to_string(free);
            const bool possible =
                (free & GpuSet(0x3f)).size() >= k || (free & GpuSet(0xc0)).size() >= k;
            EXPECT_EQ(table->mixed(best), !possible) << k << " of " << to_string(free);
            EXPECT_EQ(table->mixed(*table->thriftiest(free, k)), !possible);
            EXPECT_EQ(rank_sets(*table, free, k, GpuSet(), 1)->front().set, best);
        }
    }
    EXPECT_EQ(explain(graph, *rank_sets(*table, GpuSet(0b11000001), 2, GpuSet(), 2)),
              "GPUs 6-7 are joined at 6 GB/s over SYS; the next best, 0,6, mixes models");
    EXPECT_EQ(
        explain(graph, *rank_sets(*table, GpuSet(0b10000001), 2, GpuSet(), 2)),
        "GPUs 0,7 are joined at 6 GB/s over SYS; they are of different models; no other set is "
        "possible");
}

TEST(BestSets, RandomGraphsOfUpToSevenGpus) {
    std::mt19937 random(20220503);
    for (int round = 0; round < 40; ++round) {
        const int count = 2 + round % 6;
        const unsigned most_links = count == 7 ? 1 : count == 6 ? 2 : 3;
        const GpuGraph graph = random_graph(random, count, most_links, round % 9 == 8);
        const auto table = compile(graph);
        Naive naive(graph);
        for (std::uint64_t bits = 1; bits < std::uint64_t{1} << count; ++bits) {
            const GpuSet free(bits);
            expect_bandwidth(graph, free, naive.bandwidth(free));
            EXPECT_EQ(table->bandwidth(free), naive.bandwidth(free));
            for (int k = 1; k <= free.size(); ++k) {
                EXPECT_EQ(to_string(*table->best(free, k)), to_string(naive.best(free, k)))
                    << k << " of " << to_string(free) << " of " << fingerprint(graph);
            }
        }
    }
}

// Wide links between few GPUs: many rings, and edges with more links than rings.
TEST(SetBandwidth, ManyRingsOverFewGpus) {
    std::mt19937 random(7);
    for (int round = 0; round < 200; ++round) {
        const GpuGraph graph = random_graph(random, 3 + round % 2, 9);
        const GpuSet all = GpuSet::first(graph.size());
        expect_bandwidth(graph, all, by_definition(graph, all));
    }
}

TEST(BestSets, SamplesOfSixteenGpus) {
    std::mt19937 random(16);
    GpuGraph hives(16);  // two hives of eight, each GPU linked to all of its hive
    for (int a = 0; a < 16; ++a) {
        for (int b = 0; b < a; ++b) {
            const bool same = a / 8 == b / 8;
            hives.set_link(a, b, {same ? 1 : 0, same ? 25.0 : 0.0, PciPath::sys});
        }
    }
    const GpuGraph graphs[] = {read_file("dgx2.hwloc3.xml"), read_file("pcie16.topo-m.txt"), hives,
                               random_graph(random, 16, 2)};
    for (const GpuGraph& graph : graphs) {
        const auto table = compile(graph);
        Naive naive(graph);
        for (int sample = 0; sample < 12; ++sample) {
            GpuSet free;
            while (free.size() < 6) free.insert(static_cast<int>(random() % 16));
            for (int k = 1; k <= 6; ++k) {
                EXPECT_EQ(to_string(*table->best(free, k)), to_string(naive.best(free, k)))
                    << k << " of " << to_string(free) << " of " << fingerprint(graph);
            }
        }
    }
}

// --- what is known of machines

TEST(SetBandwidth, Dgx1HasTheThreeRingsOfItsSixLinks) {
    const GpuGraph graph = read_file("dgx1-v100.topo-m.txt");
    expect_bandwidth(graph, GpuSet::first(8), {50, 75});
    expect_bandwidth(graph, GpuSet::first(4), {25, 50});
    expect_bandwidth(graph, GpuSet(0b1001), {50, 50});
    expect_bandwidth(graph, GpuSet(0b100001), {6, 6});
    expect_bandwidth(graph, GpuSet(1), {0, 0});
    expect_bandwidth(graph, GpuSet(), {0, 0});
    expect_bandwidth(graph, GpuSet(0b100000001), {0, 0});  // no GPU 8
}

// A complete graph of n has floor((n - 1) / 2) disjoint rings (Walecki, 1892).
TEST(SetBandwidth, CompleteGraphs) {
    for (int count = 3; count <= 16; ++count) {
        GpuGraph graph(count);
        for (int a = 0; a < count; ++a) {
            for (int b = 0; b < a; ++b) graph.set_link(a, b, {1, 25, PciPath::sys});
        }
        const int rings = (count - 1) / 2;
        expect_bandwidth(graph, GpuSet::first(count), {25, rings * 25.0});
    }
}

// Five GPUs each linked to the three others of a bipartite half have no ring: K(3,5).
TEST(SetBandwidth, NoRingOfLinksFallsBackToPaths) {
    GpuGraph graph(8);
    for (int a = 0; a < 8; ++a) {
        for (int b = 0; b < a; ++b) {
            const bool linked = (a < 3) != (b < 3);
            graph.set_link(a, b, {linked ? 2 : 0, linked ? 50.0 : 0.0, PciPath::node});
        }
    }
    expect_bandwidth(graph, GpuSet::first(8), {8, 8});
    expect_bandwidth(graph, GpuSet::first(6), {50, 75});
}

TEST(SetBandwidth, LinksOfDifferentRates) {
    GpuGraph graph(3);
    graph.set_link(0, 1, {1, 50, PciPath::sys});  // one link, twice as fast
    graph.set_link(1, 2, {2, 50, PciPath::sys});
    graph.set_link(0, 2, {4, 100, PciPath::sys});
    expect_bandwidth(graph, GpuSet::first(3), {50, 50});
    graph.set_link(0, 1, {1, 40, PciPath::sys});
    expect_bandwidth(graph, GpuSet::first(3), {40, 40});
}

TEST(SetBandwidth, MoreThanSixteenGpusByTheirTree) {
    GpuGraph graph(20);
    for (int a = 0; a < 20; ++a) {
        for (int b = 0; b < a; ++b) {
            const bool linked = b == a - 1;
            graph.set_link(a, b, {linked ? 1 : 0, linked ? 25.0 : 0.0, PciPath::sys});
        }
    }
    expect_bandwidth(graph, GpuSet::first(20), {25, 25});
    expect_bandwidth(graph, GpuSet::first(20) - GpuSet(1 << 9), {6, 6});
    const auto table = BestSets::compile(graph);
    ASSERT_FALSE(table.ok());
    EXPECT_EQ(table.error().code, ErrorCode::not_found);
    EXPECT_EQ(table.error().message,
              "no table of the best sets for a node of 20 GPUs: it is made for 1 to 16");
    EXPECT_FALSE(BestSets::compile(GpuGraph(0)).ok());
}

// U1: pairs with links are free, so one of them is the answer.
TEST(BestSets, PairsWithLinksFirst) {
    const auto table = compile(read_file("nvlink-pairs8.topo-m.txt"));
    EXPECT_EQ(to_string(*table->best(GpuSet::first(8), 2)), "0,2");
    EXPECT_EQ(to_string(*table->best(GpuSet(0b11111110), 2)), "1,3");
    // With 1 taken as well, both whole pairs are on the other socket.
    EXPECT_EQ(to_string(*table->best(GpuSet(0b11111100), 2)), "4,6");
    // A single GPU is taken from a broken pair.
    EXPECT_EQ(to_string(*table->best(GpuSet(0b11111110), 1)), "2");
}

TEST(BestSets, InterleavedCliquesAreKeptWhole) {
    const auto table = compile(read_file("cliques8.topo-m.txt"));
    EXPECT_EQ(to_string(*table->best(GpuSet::first(8), 2)), "0,2");
    EXPECT_EQ(to_string(*table->best(GpuSet::first(8), 3)), "0,2,4");
    EXPECT_EQ(to_string(*table->best(GpuSet::first(8), 4)), "0,2,4,6");
    EXPECT_EQ(to_string(*table->best(GpuSet(0b10111111), 4)), "1,3,5,7");
}

// U5: core groups 0..3 sit at GPUs (4,5), (2,3), (6,7), (0,1); two jobs of half a node each.
TEST(BestSets, HalvesFollowTheNumaNodes) {
    const auto graph = graph_of_gres({{"", "48-63", ""},
                                      {"", "48-63", ""},
                                      {"", "16-31", ""},
                                      {"", "16-31", ""},
                                      {"", "0-15", ""},
                                      {"", "0-15", ""},
                                      {"", "32-47", ""},
                                      {"", "32-47", ""}});
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    const auto table = compile(*graph);
    const GpuSet first = *table->best(GpuSet::first(8), 4);
    const GpuSet second = *table->best(GpuSet::first(8) - first, 4);
    for (const GpuSet half : {first, second}) {
        for (const int gpu : half.indices()) {
            EXPECT_TRUE(half.contains(gpu ^ 1)) << "a NUMA node is split by " << to_string(half);
        }
    }
    EXPECT_EQ(graph->gpu(4).numa, 0);
    EXPECT_EQ(graph->gpu(0).numa, 3);
}

// U3: nothing known, so the lowest indices.
TEST(BestSets, UnknownLinksMeanLowestIndices) {
    const auto table = compile(*graph_of_gres(std::vector<GresDevice>(8)));
    for (int k = 1; k <= 4; ++k) {
        EXPECT_EQ(*table->best(GpuSet::first(8), k), GpuSet::first(k));
        EXPECT_EQ(*table->best(GpuSet(0b11110000), k), GpuSet(GpuSet::first(k).bits() << 4));
    }
}

// U12, as far as one node decides: ones and twos break one island, a four finds the other whole.
TEST(BestSets, SmallJobsKeepAnIslandWhole) {
    const auto table = compile(read_file("cliques8.topo-m.txt"));
    for (const std::vector<int>& jobs :
         {std::vector<int>{1, 2, 1}, {2, 1, 1}, {1, 1, 2}, {1, 1, 1, 1}, {2, 2}}) {
        GpuSet free = GpuSet::first(8);
        for (const int count : jobs) free = free - *table->best(free, count);
        ASSERT_EQ(free.size(), 4);
        EXPECT_EQ(table->bandwidth(free), table->bandwidth(GpuSet(0b01010101))) << to_string(free);
    }
    // An island comes back whole: a two of before ends, the next one goes where the other ones are.
    const GpuSet two = *table->best(GpuSet::first(8), 2);
    const GpuSet one = *table->best(GpuSet::first(8) - two, 1);
    const GpuSet next = *table->best(GpuSet::first(8) - one, 2);
    EXPECT_TRUE(GpuSet((one.bits() & 0x55) != 0 ? 0x55 : 0xaa).contains(one | next))
        << to_string(one) << " and " << to_string(next);
}

// U16, as far as one node decides: random begins and ends; no GPU is given twice, all are free at
// the end.
TEST(BestSets, RandomJobsNeverShareAGpu) {
    std::mt19937 random(16);
    for (const char* machine : {"dgx1-v100.topo-m.txt", "pcie16.topo-m.txt"}) {
        const auto table = compile(read_file(machine));
        const GpuSet all = GpuSet::first(table->size());
        GpuSet free = all;
        std::vector<GpuSet> jobs;
        for (int step = 0; step < 5000; ++step) {
            if (!jobs.empty() && random() % 2 == 0) {
                std::swap(jobs[random() % jobs.size()], jobs.back());
                ASSERT_TRUE((free & jobs.back()).empty());
                free = free | jobs.back();
                jobs.pop_back();
            } else {
                const int count = 1 + static_cast<int>(random() % 4);
                const auto set = table->best(free, count);
                ASSERT_EQ(set.has_value(), free.size() >= count);
                if (!set) continue;
                ASSERT_TRUE(free.contains(*set) && set->size() == count);
                free = free - *set;
                jobs.push_back(*set);
            }
            GpuSet owned = free;
            for (const GpuSet job : jobs) {
                ASSERT_TRUE((owned & job).empty());
                owned = owned | job;
            }
            ASSERT_TRUE(owned == all);
        }
    }
}

// U4: the two GPUs of two sockets; which cores are near is known of each.
TEST(BestSets, GpusOfTwoSocketsKnowTheirCores) {
    const auto graph = graph_of_gres({{"", "0-63", ""}, {"", "64-127", ""}});
    ASSERT_TRUE(graph.ok());
    EXPECT_EQ(*compile(*graph)->best(GpuSet::first(2), 2), GpuSet::first(2));
    EXPECT_EQ(graph->gpu(0).numa, 0);
    EXPECT_EQ(graph->gpu(1).numa, 1);
    EXPECT_EQ(graph->link(0, 1).path, PciPath::sys);
}

TEST(BestSets, RefusesWhatTheNodeLacks) {
    const auto table = compile(read_file("dgx1-v100.topo-m.txt"));
    EXPECT_FALSE(table->best(GpuSet::first(8), 9));
    EXPECT_FALSE(table->best(GpuSet::first(8), 0));
    EXPECT_FALSE(table->best(GpuSet::first(8), -1));
    EXPECT_FALSE(table->best(GpuSet(), 1));
    EXPECT_FALSE(table->best(GpuSet(0b100000001), 1));
    EXPECT_EQ(table->bandwidth(GpuSet(0b100000001)), SetBandwidth{});
    EXPECT_EQ(table->size(), 8);
}

// --- for people

TEST(RankSets, AgreesWithTheTable) {
    const GpuGraph graph = read_file("dgx1-v100.topo-m.txt");
    const auto table = compile(graph);
    std::mt19937 random(3);
    for (int sample = 0; sample < 200; ++sample) {
        const GpuSet free(random() & 0xff);
        for (int k = 1; k <= free.size(); ++k) {
            const auto ranked = rank_sets(*table, free, k, GpuSet(), 3);
            ASSERT_TRUE(ranked.ok()) << ranked.error().message;
            EXPECT_EQ(ranked->front().set, *table->best(free, k));
            EXPECT_LE(ranked->size(), 3U);
        }
    }
}

TEST(RankSets, MustIsInEverySet) {
    const auto table = compile(read_file("dgx1-v100.topo-m.txt"));
    const auto ranked = rank_sets(*table, *parse_gpu_set("0,2,4,5"), 2, *parse_gpu_set("4"), 10);
    ASSERT_TRUE(ranked.ok());
    ASSERT_EQ(ranked->size(), 3U);
    EXPECT_EQ(to_string((*ranked)[0].set), "0,4");
    EXPECT_EQ(to_string((*ranked)[1].set), "4-5");
    EXPECT_EQ(to_string((*ranked)[2].set), "2,4");
}

TEST(RankSets, ErrorsSayWhatCannotBe) {
    const auto table = compile(read_file("dgx1-v100.topo-m.txt"));
    const auto error = [&](const char* free, int count, const char* must) {
        const auto ranked = rank_sets(*table, *parse_gpu_set(free), count, *parse_gpu_set(must), 1);
        return ranked ? "no error" : ranked.error().message;
    };
    EXPECT_EQ(error("0-3", 5, ""), "5 GPUs wanted, 4 free (0-3)");
    EXPECT_EQ(error("0-3", 0, ""), "0 GPUs cannot be chosen: ask for 1 to 8");
    EXPECT_EQ(error("0-9", 2, ""), "GPUs 8-9 do not exist: the node has GPUs 0-7");
    EXPECT_EQ(error("0-3", 2, "4"),
              "GPU 4 has to be in the set, but is not among the free ones 0-3");
    EXPECT_EQ(error("0-3", 2, "4,6"),
              "GPUs 4,6 have to be in the set, but are not among the free ones 0-3");
    EXPECT_EQ(error("0-3", 1, "1,2"), "2 GPUs have to be in a set of 1");
}

TEST(Explain, SaysWhatDecided) {
    const auto why = [](const GpuGraph& graph, const char* free, int count) {
        const auto table = compile(graph);
        return explain(graph, *rank_sets(*table, *parse_gpu_set(free), count, GpuSet(), 6));
    };
    const GpuGraph dgx1 = read_file("dgx1-v100.topo-m.txt");
    EXPECT_EQ(why(dgx1, "0-7", 2),
              "GPUs 0,3 are joined at 50 GB/s by 2 direct links; 1-2 is as good, the lower indices "
              "decide");
    EXPECT_EQ(why(dgx1, "0,2,4,5", 2),
              "GPUs 0,4 are joined at 50 GB/s by 2 direct links; the next best, 0,2, carries 25 "
              "GB/s");
    EXPECT_EQ(why(dgx1, "0-4", 4),
              "the best ring over GPUs 0-3 carries 25 GB/s on its slowest edge, all its rings 50 "
              "GB/s; the next best, 0-2,4, carries 6 GB/s");
    EXPECT_EQ(why(dgx1, "0,5", 2),
              "GPUs 0,5 are joined at 6 GB/s over SYS; no other set is possible");
    EXPECT_EQ(why(read_file("nvlink-pairs8.topo-m.txt"), "1-7", 1),
              "one GPU needs no link; 1 is as fast but leaves less for the next jobs");
    EXPECT_EQ(
        why(read_file("dgx-a100.topo-m.txt"), "0-1", 2),
        "GPUs 0-1 are joined at 300 GB/s by 12 direct links through a switch; no other set is "
        "possible");
    EXPECT_EQ(why(*graph_of_gres(std::vector<GresDevice>(4)), "0-3", 2),
              "the topology says nothing about links, so the lowest indices are as good as any");
}

}  // namespace
}  // namespace sluice
