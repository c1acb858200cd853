// SPDX-License-Identifier: GPL-2.0-or-later
//
// The text form of a topology, NICs, and the join with Slurm's GPUs.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "common/base/text.hpp"
#include "common/topology/gpu_graph.hpp"
#include "common/topology/gres_join.hpp"
#include "common/topology/words.hpp"
#include "tests/unit/test_data.hpp"

namespace sluice {
namespace {

template <typename T>
std::string error_of(const Result<T>& result) {
    return result ? "no error" : result.error().message;
}

GpuGraph read_file(const std::string& name) {
    auto graph = read_topology(test_data("topology/" + name), name);
    EXPECT_TRUE(graph.ok()) << error_of(graph);
    return graph ? *graph : GpuGraph();
}

// --- the text form

TEST(TopologyText, GivesEveryGraphBack) {
    int files = 0;
    for (const auto& file :
         std::filesystem::directory_iterator(std::string(TEST_DATA) + "/topology")) {
        if (file.path().filename() == "README") continue;
        const GpuGraph graph = read_file(file.path().filename());
        const auto again = read_topology(to_text(graph), "again");
        ASSERT_TRUE(again.ok()) << file.path() << error_of(again);
        EXPECT_TRUE(*again == graph) << file.path();
        EXPECT_EQ(to_text(*again), to_text(graph)) << file.path();
        ++files;
    }
    EXPECT_GE(files, 11);
}

TEST(TopologyText, GivesRandomGraphsBack) {
    std::mt19937 random(4);
    for (int round = 0; round < 200; ++round) {
        GpuGraph graph(1 + static_cast<int>(random() % 64));
        graph.set_switched(round % 2 == 0);
        for (int a = 0; a < graph.size(); ++a) {
            Gpu& gpu = graph.gpu(a);
            if (random() % 2 == 0) gpu.minor = a * 3;
            if (random() % 2 == 0) gpu.numa = static_cast<int>(random() % 8);
            if (random() % 2 == 0) gpu.cpus = "0-" + std::to_string(random() % 99) + ",200";
            for (auto i = random() % 9; i > 0; --i)
                gpu.model += static_cast<char>(' ' + random() % ('~' - ' ' + 1));
            for (int b = 0; b < a; ++b) {
                GpuLink link;
                link.links = static_cast<int>(random() % 2);
                link.link_gbps = link.links * (1 + static_cast<double>(random() % 999) / 7);
                link.path = static_cast<PciPath>(random() % 6);
                graph.set_link(a, b, link);
            }
        }
        for (auto i = random() % 4; i > 0; --i) {
            Nic nic{"nic " + std::to_string(i), "0000:0a:00." + std::to_string(i), -1, {}};
            for (int a = 0; a < graph.size(); ++a)
                nic.paths.push_back(static_cast<PciPath>(random() % 6));
            graph.add_nic(nic);
        }
        complete_graph(graph);
        const auto again = read_topology(to_text(graph), "again");
        ASSERT_TRUE(again.ok()) << error_of(again) << "\n" << to_text(graph);
        ASSERT_TRUE(*again == graph) << to_text(graph);
    }
}

/// What stands indented by four blanks in doc/formats/topology-v1.txt, from its head on.
std::string example() {
    std::string out;
    const std::string text = test_data("../../doc/formats/topology-v1.txt");
    for (const std::string_view line : split(text, '\n')) {
        const bool inside = line.starts_with("    SluiceTopology=") ||
                            line.starts_with("    Gpu=") || line.starts_with("    Pair=") ||
                            line.starts_with("    Nic=");
        if (inside) out += std::string(line.substr(4)) + "\n";
    }
    return out;
}

TEST(TopologyText, TheExampleOfTheFormatIsItsOwnText) {
    const auto graph = read_topology(example(), "example");
    ASSERT_TRUE(graph.ok()) << error_of(graph);
    EXPECT_EQ(to_text(*graph), example());
    EXPECT_EQ(graph->gpu(3).minor, 3);
    EXPECT_EQ(graph->gpu(3).model, "Tesla P100-SXM2-16GB");
    EXPECT_DOUBLE_EQ(graph->link(3, 2).gbps(), 40);
    EXPECT_EQ(graph->nics().front().paths[0], PciPath::node);
}

TEST(TopologyText, WhatPeopleWriteByHand) {
    const auto graph = read_topology(
        "# two GPUs on two sockets\r\n\r\n  sluicetopology=1 GPUS=2 # no switch\r\n"
        "Gpu=0 model=\"a \\\"b\\\" \\\\c\" NUMA=0\r\nPair=0-1 Gbps=50 Links=2\r\nGpu=1 Numa=1\r\n",
        "f");
    ASSERT_TRUE(graph.ok()) << error_of(graph);
    EXPECT_EQ(graph->gpu(0).model, "a \"b\" \\c");
    EXPECT_EQ(fingerprint(*graph), "2 2x50");
    // What is not said follows from the NUMA nodes.
    EXPECT_EQ(
        fingerprint(*read_topology("SluiceTopology=1 Gpus=2\nGpu=0 Numa=3\nGpu=1 Numa=3\n", "f")),
        "2 NODE");
}

TEST(TopologyText, BrokenTextsNameTheLine) {
    struct Case {
        const char* text;
        const char* message;
    };
    const Case cases[] = {
        {"SluiceTopology=2 Gpus=1\n", "f:1: SluiceTopology=2: write 1, the version"},
        {"SluiceTopology=1\n", "f:1: no Gpus: write how many there are"},
        {"SluiceTopology=1 Gpus=0\n", "f:1: Gpus=0: write a number from 1 to 64"},
        {"SluiceTopology=1 Gpus=65\n", "f:1: Gpus=65: write a number from 1 to 64"},
        {"SluiceTopology=1 Gpus=1 Switch=perhaps\n", "f:1: Switch=perhaps: write yes or no"},
        {"SluiceTopology=1 Gpus=2\nGpu=0\n", "f: the line Gpu=1 is missing: Gpus=2 are told"},
        {"SluiceTopology=1 Gpus=1\nGpu=0", "f:2: the last line has no end: the text was cut"},
        {"SluiceTopology=1 Gpus=2 Pairs=1\nGpu=0\nGpu=1\n",
         "f: 0 lines Pair=, where Pairs=1 are told"},
        {"SluiceTopology=1 Gpus=1 Nics=2\nGpu=0\nNic=a Paths=PIX\n",
         "f: 1 lines Nic=, where Nics=2 are told"},
        {"SluiceTopology=1 Gpus=2 Pairs=2\n", "f:1: Pairs=2: write a number from 0 to 1"},
        {"SluiceTopology=1 Gpus=1\nGpu=1\n", "f:2: Gpu=1: write 0, GPUs stand in their order"},
        {"SluiceTopology=1 Gpus=1\nGpu=0\nGpu=1\n",
         "f:3: Gpu=1: write no more GPUs than Gpus= has"},
        {"SluiceTopology=1 Gpus=1\nSluiceTopology=1 Gpus=1\n",
         "f:2: SluiceTopology: stands in a line before"},
        {"Gpu=0\nSluiceTopology=1 Gpus=1\n",
         "f:1: write SluiceTopology=1 Gpus=N before everything"},
        {"SluiceTopology=1 Gpus=1\nGpu=0 Colour=red\n",
         "f:2: Colour: no such key here: write one of Gpu, Minor, Bus, Numa, Cpus, Model"},
        {"SluiceTopology=1 Gpus=1\nGpu=0 Numa=0 numa=1\n", "f:2: numa: stands twice"},
        {"SluiceTopology=1 Gpus=1\nNuma=0 Gpu=0\n",
         "f:2: Numa: a line begins with Gpu=, Pair= or Nic="},
        {"SluiceTopology=1 Gpus=1\nGpu=0 red\n", "f:2: \"red\" is no Key=Value"},
        {"SluiceTopology=1 Gpus=1\nGpu=0 Model=\"a b\n", "f:2: Model: a quote is never closed"},
        {"SluiceTopology=1 Gpus=1\nGpu=0 Model=\"a\"b\n", "f:2: Model: a quote is never closed"},
        {"SluiceTopology=1 Gpus=1\nGpu=0 Model=\n",
         "f:2: Model=: write 1 to 256 printable characters"},
        {"SluiceTopology=1 Gpus=1\nGpu=0 Bus=06:00.0\n",
         "f:2: Bus=06:00.0: write a PCI bus id like 0000:06:00.0"},
        {"SluiceTopology=1 Gpus=1\nGpu=0 Cpus=4-1\n",
         "f:2: Cpus=4-1: write processors in rising order like 0-19,40-59"},
        {"SluiceTopology=1 Gpus=2\nGpu=0 Minor=1\nGpu=1 Minor=1\n",
         "f:3: Minor=1: write each device number once"},
        {"SluiceTopology=1 Gpus=2\nGpu=0 Bus=0000:06:00.0\nGpu=1 Bus=0000:06:00.0\n",
         "f:3: Bus=0000:06:00.0: write each PCI bus id once"},
        {"SluiceTopology=1 Gpus=2\nPair=1-0 Path=PIX\n",
         "f:2: Pair=1-0: write two GPUs of 0 to 1, the lower first, like 0-1"},
        {"SluiceTopology=1 Gpus=2\nPair=0-1 Path=NEAR\n",
         "f:2: Path=NEAR: write SYS, NODE, PHB, PXB or PIX"},
        {"SluiceTopology=1 Gpus=2\nPair=0-1 Path=PIX\nPair=0-1 Path=PIX\n",
         "f:3: Pair=0-1: write each pair once"},
        {"SluiceTopology=1 Gpus=2\nPair=0-1 Links=2\n",
         "f:2: Links and Gbps (GB/s of all links together) stand together"},
        {"SluiceTopology=1 Gpus=2\nPair=0-1 Links=2 Gbps=-50\n",
         "f:2: Gbps=-50: write GB/s in one direction of all links together, at most 100000"},
        {"SluiceTopology=1 Gpus=2\nNic=m Paths=PIX\n",
         "f:2: Paths has 1 paths: write one for each of the 2 GPUs"},
        {"SluiceTopology=1 Gpus=1\nNic=m\n",
         "f:2: no Paths: write the path to each GPU, like PIX,SYS"},
        {"SluiceTopology=1 Gpus=1\nNic=m Paths=NV4\n",
         "f:2: Paths=NV4: write SYS, NODE, PHB, PXB, PIX or ? for each GPU"},
        {"SluiceTopology=1 Gpus=1\nNic=m Paths=PIX\nNic=m Paths=PIX\n",
         "f:3: Nic=m: write each name once"},
    };
    for (const Case& each : cases) {
        const auto graph = read_topology_text(each.text, "f");
        EXPECT_EQ(error_of(graph), each.message) << each.text;
        EXPECT_TRUE(!graph && graph.error().code == ErrorCode::bad_input);
    }
    EXPECT_EQ(error_of(read_topology_text("# nothing\n", "f")),
              "f: has no line SluiceTopology=1 Gpus=N");
}

TEST(TopologyText, NoBeginningOfATextIsTakenForTheWhole) {
    for (const std::string& text : {example(), to_text(read_file("hgx-h100.topo-m.txt"))}) {
        for (std::size_t length = 0; length < text.size(); ++length) {
            const auto graph = read_topology_text(text.substr(0, length), "f");
            ASSERT_FALSE(graph.ok()) << text.substr(0, length);
            EXPECT_TRUE(graph.error().message.starts_with("f:"));
        }
    }
}

TEST(Words, ListsAndBusIds) {
    for (const char* good : {"0", "0-19,40-59", "1,3,5-6", "65535"}) EXPECT_TRUE(is_cpu_list(good));
    for (const char* bad : {"", ",", "1-", "-1", "3,1", "2-1", "0,0", "65536", "1-2-3", "a"})
        EXPECT_FALSE(is_cpu_list(bad)) << bad;
    for (const char* good : {"0000:06:00.0", "00000000:AF:1f.7", "10000:01:00.0"})
        EXPECT_TRUE(is_pci_bus_id(good)) << good;
    for (const char* bad :
         {"", "06:00.0", "000:06:00.0", "0000:06:00", "0000:6:00.0", "0000:06:00.00"})
        EXPECT_FALSE(is_pci_bus_id(bad)) << bad;
}

// --- NICs

TEST(Nics, ColumnsOfTheMatrix) {
    const GpuGraph graph = read_file("hgx-h100.topo-m.txt");
    ASSERT_EQ(graph.nics().size(), 10U);
    EXPECT_EQ(graph.nics()[0].paths[0], PciPath::pix);
    EXPECT_EQ(graph.nics()[0].paths[7], PciPath::sys);
    EXPECT_EQ(graph.nics()[9].paths[7], PciPath::sys);
    const auto named = read_topology(
        "GPU0 GPU1 NIC0 mlx5_1\nGPU0 X SYS PIX SYS\nGPU1 SYS X N/A PIX\n"
        "NIC0 PIX SYS X SYS\n\nNIC Legend:\n\n  NIC0: mlx5_0\n  NIC7: mlx5_7\n",
        "f");
    ASSERT_TRUE(named.ok()) << error_of(named);
    EXPECT_EQ(named->nics()[0].name, "mlx5_0");
    EXPECT_EQ(named->nics()[1].name, "mlx5_1");
    EXPECT_EQ(named->nics()[0].paths, (std::vector<PciPath>{PciPath::pix, PciPath::unknown}));
    EXPECT_EQ(error_of(read_topology("GPU0 NIC0 NIC0\nGPU0 X PIX PIX\n", "f")),
              "f:1: NIC0 has two columns");
}

/// Two sockets, on the first a switch with a GPU and a NIC; `device`: what the NIC is.
std::string machine_with_nics(const std::string& version, const std::string& device) {
    const auto gpu = [](const std::string& bus) {
        return R"(<object type="PCIDev" pci_type="0302 [10de:1db8]" pci_busid=")" + bus + R"("/>)";
    };
    return R"(<topology version=")" + version +
           R"("><object type="Machine" nodeset="0x3"><object type="Group" nodeset="0x1"><object type="Bridge"
             bridge_type="0-1"><object type="Bridge" bridge_type="1-1">)" +
           gpu("0000:01:00.0") + R"(<object type="PCIDev" pci_busid="0000:02:00.0">)" + device +
           "</object></object>" + gpu("0000:03:00.0") +
           R"(</object></object><object type="Group" nodeset="0x2"><object type="Bridge" bridge_type="0-1">)" +
           gpu("0000:81:00.0") + "</object></object></object></topology>";
}

TEST(Nics, OsDevicesOfHwloc) {
    const std::string infiniband =
        R"(<object type="OSDev" name="ib0" osdev_type="2"/><object type="OSDev" name="mlx5_0" osdev_type="3"/>)";
    const std::string flags =
        R"(<object type="OSDev" name="ib0" osdev_type="16"/><object type="OSDev" name="mlx5_0" osdev_type="32"/>)";
    for (const std::string& text :
         {machine_with_nics("1.0", infiniband), machine_with_nics("2.0", infiniband),
          machine_with_nics("3.0", flags)}) {
        const auto graph = read_topology(text, "f");
        ASSERT_TRUE(graph.ok()) << error_of(graph);
        ASSERT_EQ(graph->nics().size(), 1U) << text;
        const Nic& nic = graph->nics().front();
        EXPECT_EQ(nic.name, "mlx5_0");
        EXPECT_EQ(nic.pci_bus_id, "0000:02:00.0");
        EXPECT_EQ(nic.numa, 0);
        EXPECT_EQ(nic.paths, (std::vector<PciPath>{PciPath::pix, PciPath::phb, PciPath::sys}));
        EXPECT_EQ(fingerprint(*graph), "3 PHB,SYS;SYS nics PIX,PHB,SYS");
    }
    // Ethernet counts where there is nothing else, disks never do.
    const auto ethernet = read_topology(
        machine_with_nics("2.0", R"(<object type="OSDev" name="eth0" osdev_type="2"/>)"), "f");
    EXPECT_EQ(ethernet->nics().front().name, "eth0");
    const auto disk = read_topology(
        machine_with_nics("2.0", R"(<object type="OSDev" name="sda" osdev_type="0"/>)"), "f");
    EXPECT_TRUE(disk->nics().empty());
    EXPECT_EQ(fingerprint(*disk), "3 PHB,SYS;SYS");
}

TEST(Nics, AffinityOfSets) {
    const GpuGraph graph = read_file("hgx-h100.topo-m.txt");
    EXPECT_EQ(nic_affinity(graph, GpuSet(0b1)), (NicAffinity{PciPath::pix, 1}));
    EXPECT_EQ(nic_affinity(graph, GpuSet(0b10000011)), (NicAffinity{PciPath::pix, 3}));
    EXPECT_EQ(nic_affinity(graph, GpuSet()), NicAffinity());
    EXPECT_EQ(nic_affinity(read_file("dgx1-v100.topo-m.txt"), GpuSet(0b11)), NicAffinity());
    // GPUs 0 and 1 share a NIC, 2 and 3 another: a ring more leaves 0 and 2.
    GpuGraph shared(4);
    shared.add_nic({"a", "", -1, {PciPath::pix, PciPath::pix, PciPath::sys, PciPath::sys}});
    shared.add_nic({"b", "", -1, {PciPath::sys, PciPath::sys, PciPath::pix, PciPath::pix}});
    EXPECT_GT(nic_affinity(shared, GpuSet(0b101)), nic_affinity(shared, GpuSet(0b11)));
    EXPECT_GT(nic_affinity(shared, GpuSet(0b11)), NicAffinity());
}

TEST(Nics, CountInTheFingerprintWhereTheyTellGpusApart) {
    GpuGraph alike(2);
    alike.add_nic({"a", "", 0, {PciPath::node, PciPath::node}});
    EXPECT_EQ(fingerprint(alike), fingerprint(GpuGraph(2)));
    GpuGraph one(2);
    one.add_nic({"a", "", 0, {PciPath::pix, PciPath::sys}});
    one.add_nic({"b", "", 1, {PciPath::sys, PciPath::pix}});
    GpuGraph two(2);
    two.add_nic({"x", "", 0, {PciPath::sys, PciPath::pix}});
    two.add_nic({"y", "", 0, {PciPath::pix, PciPath::sys}});
    EXPECT_EQ(fingerprint(one), fingerprint(two));
    EXPECT_NE(fingerprint(one), fingerprint(alike));
}

// U11: GPUs of two types are no class with GPUs of one.
TEST(Fingerprint, TellsTypesApartWhereThereAreSeveral) {
    GpuGraph graph(4);
    for (int i = 0; i < 4; ++i) graph.gpu(i).model = "V100";
    EXPECT_EQ(fingerprint(graph), fingerprint(GpuGraph(4)));
    EXPECT_FALSE(graph.mixed(GpuSet::first(4)));
    graph.gpu(2).model = "RTX";
    graph.gpu(3).model = "";
    EXPECT_TRUE(fingerprint(graph).ends_with(" models 0,0,1,?"));
    EXPECT_TRUE(graph.mixed(GpuSet(0b0110)));
    EXPECT_FALSE(graph.mixed(GpuSet(0b1100)));
}

// --- the join with Slurm's GPUs

TEST(PciBusIds, AreTheSameInEverySpelling) {
    EXPECT_TRUE(same_pci_bus_id("00000000:06:00.0", "0000:06:00.0"));
    EXPECT_TRUE(same_pci_bus_id("0000:AF:00.0", "0000:af:00.0"));
    EXPECT_TRUE(same_pci_bus_id("000A:01:00.0", "a:01:00.0"));
    EXPECT_FALSE(same_pci_bus_id("0001:06:00.0", "0000:06:00.0"));
    EXPECT_FALSE(same_pci_bus_id("0000:06:00.0", "0000:06:00.1"));
    EXPECT_FALSE(same_pci_bus_id("", ""));
}

/// Minors 2, 0, 1; a link between the first two; a NIC at the third.
GpuGraph three() {
    GpuGraph graph(3);
    for (int i = 0; i < 3; ++i) graph.gpu(i).minor = (i + 2) % 3;
    graph.set_link(0, 1, {1, 25, PciPath::sys});
    graph.add_nic({"a", "", 0, {PciPath::sys, PciPath::sys, PciPath::pix}});
    graph.set_switched(true);
    return graph;
}

TEST(JoinGres, ByDeviceMinor) {
    const auto joined = join_gres(three(), {0, 1, 2});
    ASSERT_TRUE(joined.ok()) << error_of(joined);
    EXPECT_EQ(joined->rule, JoinRule::by_minor);
    EXPECT_EQ(joined->why, "joined by device minor");
    for (int i = 0; i < 3; ++i) EXPECT_EQ(joined->graph.gpu(i).minor, i);
    EXPECT_EQ(joined->graph.link(0, 2).links, 1);
    EXPECT_EQ(joined->graph.link(0, 1).links, 0);
    EXPECT_EQ(joined->graph.nics().front().paths,
              (std::vector<PciPath>{PciPath::sys, PciPath::pix, PciPath::sys}));
    EXPECT_TRUE(joined->graph.switched());
    // Slurm's order need not rise.
    EXPECT_TRUE(join_gres(three(), {2, 0, 1})->graph == three());
}

TEST(JoinGres, ByOrderWhereASideHasNoNumbers) {
    const auto no_files = join_gres(three(), {-1, -1, -1});
    ASSERT_TRUE(no_files.ok());
    EXPECT_EQ(no_files->rule, JoinRule::by_order);
    EXPECT_EQ(no_files->why, "joined by order: Slurm's device files have no numbers");
    EXPECT_TRUE(no_files->graph == three());
    GpuGraph unknown = three();
    unknown.gpu(1).minor = -1;
    EXPECT_EQ(join_gres(unknown, {0, 1, 2})->why,
              "joined by order: the topology knows no device minors");
}

// U16: a node that comes back with 7 of 8 GPUs, among others.
TEST(JoinGres, RefusesWhatCannotBeTheSame) {
    EXPECT_EQ(error_of(join_gres(three(), {0, 1})),
              "Slurm has 2 GPUs, the topology 3: collect the node's topology anew");
    EXPECT_EQ(error_of(join_gres(three(), {0, 1, 1})),
              "Slurm has /dev/nvidia1 twice: collect the node's topology anew");
    EXPECT_EQ(error_of(join_gres(three(), {0, 1, 7})),
              "Slurm has /dev/nvidia7, which the topology has not: collect the node's topology "
              "anew");
    EXPECT_EQ(join_gres(three(), {}).error().code, ErrorCode::not_found);
}

}  // namespace
}  // namespace sluice
