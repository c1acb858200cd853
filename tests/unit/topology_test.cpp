// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/topology/gpu_graph.hpp"

#include <gtest/gtest.h>

#include <array>
#include <regex>

#include "common/topology/xml_text.hpp"
#include "tests/unit/test_data.hpp"

namespace sluice {
namespace {

GpuGraph read_file(const std::string& name) {
    auto graph = read_topology(test_data("topology/" + name), name);
    EXPECT_TRUE(graph.ok()) << graph.error().message;
    return graph ? *graph : GpuGraph();
}

std::string error_of(const Result<GpuGraph>& graph) {
    return graph ? "no error" : graph.error().message;
}

std::vector<int> numa_of(const GpuGraph& graph) {
    std::vector<int> out;
    out.reserve(static_cast<std::size_t>(graph.size()));
    for (int i = 0; i < graph.size(); ++i) out.push_back(graph.gpu(i).numa);
    return out;
}

// --- nvidia-smi topo -m

TEST(TopoMatrix, ReadsLinksPathsAndAffinity) {
    const GpuGraph graph = read_file("dgx1-v100.topo-m.txt");
    ASSERT_EQ(graph.size(), 8);
    EXPECT_EQ(graph.link(0, 3).links, 2);
    EXPECT_DOUBLE_EQ(graph.link(0, 3).gbps(), 50);
    EXPECT_EQ(graph.link(0, 1).links, 1);
    EXPECT_EQ(graph.link(0, 5).links, 0);
    EXPECT_EQ(graph.link(5, 0).path, PciPath::sys);
    EXPECT_DOUBLE_EQ(graph.link(0, 5).gbps(), path_bandwidth_gbps(PciPath::sys));
    EXPECT_EQ(graph.gpu(7).numa, 1);
    EXPECT_EQ(graph.gpu(7).cpus, "20-39,60-79");
    EXPECT_EQ(graph.gpu(7).pci_bus_id, "");
    EXPECT_FALSE(graph.switched());
    EXPECT_TRUE(graph.informative());
    const GpuGraph pcie = read_file("pcie8.topo-m.txt");
    EXPECT_EQ(pcie.link(0, 1).path, PciPath::pix);
    EXPECT_EQ(pcie.link(0, 2).path, PciPath::phb);
}

// U3: the map of GPUs to NUMA nodes may be any permutation.
TEST(TopoMatrix, NumaNodesNeedNotRise) {
    EXPECT_EQ(numa_of(read_file("dgx-a100.topo-m.txt")),
              (std::vector<int>{3, 3, 1, 1, 7, 7, 5, 5}));
}

TEST(TopoMatrix, SeesSwitchesByLinksThatNoGpuHas) {
    EXPECT_TRUE(read_file("dgx-a100.topo-m.txt").switched());
    EXPECT_TRUE(read_file("hgx-h100.topo-m.txt").switched());
    EXPECT_FALSE(read_file("cliques8.topo-m.txt").switched());
    // Four GPUs with six links to each other use the 18 of an H100: no switch.
    EXPECT_FALSE(read_topo_matrix("GPU0 GPU1 GPU2 GPU3\nGPU0 X NV6 NV6 NV6\nGPU1 NV6 X NV6 NV6\n"
                                  "GPU2 NV6 NV6 X NV6\nGPU3 NV6 NV6 NV6 X\n",
                                  "f")
                     ->switched());
}

TEST(TopoMatrix, ToleratesNicsEscapesAndDoubledTabs) {
    const GpuGraph graph = read_file("hgx-h100.topo-m.txt");
    ASSERT_EQ(graph.size(), 8);
    EXPECT_EQ(graph.link(0, 7).links, 18);
    EXPECT_EQ(numa_of(graph), (std::vector<int>{0, 0, 0, 0, 1, 1, 1, 1}));
    EXPECT_EQ(graph.gpu(4).cpus, "56-111,168-223");
}

// Every form gives the same graph: 0 and 1 linked, 2 apart, NUMA 1 1 0.
TEST(TopoMatrix, FormsFoundInTheWild) {
    const char* const forms[] = {
        // blanks for tabs
        "        GPU0    GPU1    GPU2    CPU Affinity    NUMA Affinity\n"
        "GPU0     X      NV4     SYS     0-3     1\n"
        "GPU1    NV4      X      SYS     0-3     1\n"
        "GPU2    SYS     SYS      X      4-7     0\n",
        // a prompt before, a prompt behind, CR LF, the escape character lost, upper case only
        "user@host:~$ nvidia-smi topo -m\r\n"
        "\t[4mGPU0\tGPU1\tGPU2\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID[0m\r\n"
        "GPU0\t X \tNV4\tSYS\t0-3\t1\t\tN/A\r\nGPU1\tNV4\t X \tSYS\t0-3\t1\t\tN/A\r\n"
        "GPU2\tSYS\tSYS\t X \t4-7\t0\t\tN/A\r\nuser@host:~$ exit\r\n",
        // the old name of SYS; Mellanox names; rows of NICs between those of GPUs
        "GPU0 GPU1 GPU2 mlx5_0 mlx5_bond_0 CPU Affinity NUMA Affinity\n"
        "mlx5_0 SOC SOC SOC X PIX\n"
        "GPU0 X NV4 SOC PIX PIX 0-3 1\nGPU1 NV4 X SOC PHB PHB 0-3 1\n"
        "GPU2 SOC SOC X SOC SOC 4-7 0\nmlx5_bond_0 SOC SOC SOC PIX X\n",
        // cells of NICs glued together where the terminal broke the line
        "GPU0 GPU1 GPU2 NIC0 NIC1 NIC2 CPU Affinity NUMA Affinity\n"
        "GPU0 X NV4 SYS PIX NODENODE 0-3 1\nGPU1 NV4 X SYS NODEPIXPHB 0-3 1\n"
        "GPU2 SYS SYS X SYS SYS SYS 4-7 0\n",
        // rows in another order
        "GPU0 GPU1 GPU2 CPU Affinity NUMA Affinity\n"
        "GPU2 SYS SYS X 4-7 0\nGPU0 X NV4 SYS 0-3 1\nGPU1 NV4 X SYS 0-3 1\n",
    };
    for (const char* const form : forms) {
        const auto graph = read_topology(form, "f");
        ASSERT_TRUE(graph.ok()) << form << error_of(graph);
        const std::string links = fingerprint(*graph);
        EXPECT_EQ(links.substr(0, links.find(" nics")), "3 4x100,SYS;SYS") << form;
        EXPECT_EQ(numa_of(*graph), (std::vector<int>{1, 1, 0})) << form;
        EXPECT_EQ(graph->gpu(2).cpus, "4-7") << form;
    }
}

TEST(TopoMatrix, AffinityMayBeMissing) {
    const char* const forms[] = {
        "GPU0 GPU1\nGPU0 X NV1\nGPU1 NV1 X\n",
        "GPU0 GPU1 CPU Affinity\nGPU0 X NV1\nGPU1 NV1 X\n",
        "GPU0 GPU1 CPU Affinity NUMA Affinity\nGPU0 X NV1 N/A N/A\nGPU1 NV1 X N/A N/A\n",
        "GPU0 GPU1 CPU Affinity NUMA Affinity GPU NUMA ID\n"
        "GPU0 X NV1 \t\tN/A\t\tN/A\nGPU1 NV1 X \t\tN/A\t\tN/A\n",
    };
    for (const char* const form : forms) {
        const auto graph = read_topo_matrix(form, "f");
        ASSERT_TRUE(graph.ok()) << form << error_of(graph);
        EXPECT_EQ(numa_of(*graph), (std::vector<int>{-1, -1})) << form;
        EXPECT_EQ(graph->gpu(0).cpus, "") << form;
        EXPECT_EQ(graph->link(0, 1).links, 1) << form;
    }
    // Memory of several nodes near to one GPU is no single node.
    EXPECT_EQ(
        read_topo_matrix("GPU0 CPU Affinity NUMA Affinity\nGPU0 X 0-7 0-1\n", "f")->gpu(0).numa,
        -1);
}

// U3: a matrix of zeros says nothing; then NUMA nodes count, and without them nothing does.
TEST(TopoMatrix, ZerosMeanUnknown) {
    const auto by_numa = read_topo_matrix(
        "GPU0 GPU1 GPU2 CPU Affinity NUMA Affinity\nGPU0 0 0 0 0-7 1\nGPU1 0 0 0 0-7 1\n"
        "GPU2 0 0 0 8-15 0\n",
        "f");
    ASSERT_TRUE(by_numa.ok()) << error_of(by_numa);
    EXPECT_EQ(fingerprint(*by_numa), "3 NODE,SYS;SYS");
    EXPECT_TRUE(by_numa->informative());
    const auto nothing = read_topo_matrix("GPU0 GPU1\nGPU0 X N/A\nGPU1 N/A X\n", "f");
    ASSERT_TRUE(nothing.ok()) << error_of(nothing);
    EXPECT_FALSE(nothing->informative());
    EXPECT_EQ(nothing->link(0, 1).path, PciPath::unknown);
    EXPECT_DOUBLE_EQ(nothing->link(0, 1).gbps(), path_bandwidth_gbps(PciPath::sys));
}

TEST(TopoMatrix, BrokenMatricesNameTheLine) {
    struct Case {
        const char* text;
        const char* message;
    };
    const Case cases[] = {
        {"",
         "f: holds no topology: neither hwloc XML, nor the matrix of nvidia-smi topo -m (\"GPU0 "
         "GPU1 ...\"), nor lines of gres.conf (Name=gpu ...), nor SluiceTopology=1"},
        {"GPU0 GPU1\nGPU0 X NV1\n", "f: the row of GPU1 is missing"},
        {"GPU0 GPU1\nGPU0 X NV1\nGPU1 NV1\n", "f:3: GPU1, column GPU1: the row ends before it"},
        {"GPU0 GPU1\nGPU0 X NV1 SYS\nGPU1 NV1 X\n",
         "f:2: GPU0: \"SYS\" is one cell more than the header has columns"},
        {"GPU0 GPU1\nGPU0 X NVx\nGPU1 NV1 X\n",
         "f:2: GPU0, column GPU1: \"NVx\" is no link: write X, NV#, PIX, PXB, PHB, NODE, SYS or "
         "N/A"},
        {"GPU0 GPU1\nGPU0 X NV100\nGPU1 NV100 X\n",
         "f:2: GPU0, column GPU1: \"NV100\" is no link: write X, NV#, PIX, PXB, PHB, NODE, SYS or "
         "N/A"},
        {"GPU0 GPU1\n\nGPU0 X NV1\nGPU1 NV2 X\n",
         "f:4: GPU0 and GPU1 are joined differently in line 3: both have to say the same"},
        {"GPU0 GPU1\nGPU0 NV1 X\nGPU1 NV1 X\n",
         "f:2: GPU0, column GPU0: \"NV1\" where the matrix has X, the GPU itself"},
        {"GPU0 GPU1\nGPU0 X X\nGPU1 NV1 X\n",
         "f:2: GPU0, column GPU1: \"X\" where the matrix has two different GPUs"},
        {"GPU0 GPU1\nGPU0 X NV1\nGPU0 X NV1\n", "f:3: GPU0 has a row already, in line 2"},
        {"GPU0 GPU0\nGPU0 X X\n", "f:1: GPU0 has two columns"},
        {"GPU0 GPU1\nGPU0 X NV1\nGPU7 NV1 X\n",
         "f:3: \"GPU7\" begins no row: the row of GPU1 is still missing"},
        {"GPU0 NIC0 NIC1\nGPU0 X PIX 0-3\n",
         "f:2: GPU0: 1 cells for the 2 columns behind the GPUs"},
        {"GPU0 CPU Affinity NUMA Affinity\nGPU0 X 0-19,40-",
         "f:2: GPU0: \"0-19,40-\" is cut off: the whole output of nvidia-smi topo -m is needed"},
        // nvidia-smi topo -p2p
        {"GPU0 GPU1\nGPU0 X OK\nGPU1 OK X\n",
         "f:2: GPU0, column GPU1: \"OK\" is no link: write X, NV#, PIX, PXB, PHB, NODE, SYS or "
         "N/A"},
    };
    for (const Case& each : cases) {
        const auto graph = read_topology(each.text, "f");
        EXPECT_EQ(error_of(graph), each.message) << each.text;
        EXPECT_TRUE(!graph && graph.error().code == ErrorCode::bad_input);
    }
}

TEST(TopoMatrix, AtMostSixtyFourGpus) {
    std::string text;
    for (int i = 0; i < 65; ++i) text += "GPU" + std::to_string(i) + " ";
    EXPECT_EQ(error_of(read_topo_matrix(text, "f")), "f:1: 65 GPUs, at most 64 are read");
}

// --- hwloc XML

TEST(HwlocXml, ReadsTheFormatsOfHwloc1To3Alike) {
    const GpuGraph three = read_file("power8-4p100.hwloc3.xml");
    const GpuGraph two = read_file("power8-4p100.hwloc2.xml");
    const GpuGraph one = read_file("power8-4p100.hwloc1.xml");
    EXPECT_EQ(fingerprint(three), "4 2x40,SYS,SYS;SYS,SYS;2x40");
    EXPECT_EQ(fingerprint(two), fingerprint(three));
    // hwloc 1 has no link bandwidths.
    EXPECT_EQ(fingerprint(one), "4 NODE,SYS,SYS;SYS,SYS;NODE");
    for (const GpuGraph* graph : {&three, &two, &one}) {
        EXPECT_EQ(numa_of(*graph), (std::vector<int>{0, 0, 1, 1}));
        EXPECT_EQ(graph->gpu(2).pci_bus_id, "000a:01:00.0");
        EXPECT_EQ(graph->gpu(2).model, "Tesla P100-SXM2-16GB");
        EXPECT_EQ(graph->gpu(2).cpus, "80-81,88-89,96-97,104-105");
        // Links to the processors are no links between GPUs.
        EXPECT_EQ(graph->link(0, 2).links, 0);
        EXPECT_FALSE(graph->switched());
    }
}

TEST(HwlocXml, JoinsGpusThroughNvSwitches) {
    const GpuGraph graph = read_file("dgx2.hwloc3.xml");
    ASSERT_EQ(graph.size(), 16);
    EXPECT_TRUE(graph.switched());
    for (int a = 0; a < 16; ++a) {
        for (int b = 0; b < a; ++b) {
            EXPECT_EQ(graph.link(a, b).links, 6);
            EXPECT_DOUBLE_EQ(graph.link(a, b).gbps(), 150);
        }
    }
    EXPECT_EQ(graph.gpu(0).pci_bus_id, "0000:34:00.0");
    EXPECT_EQ(graph.gpu(15).pci_bus_id, "0000:e7:00.0");
    EXPECT_EQ(graph.gpu(15).numa, 1);
    // The paths are known beside the links.
    EXPECT_EQ(graph.link(0, 1).path, PciPath::pix);
    EXPECT_EQ(graph.link(0, 2).path, PciPath::pxb);
    EXPECT_EQ(graph.link(0, 4).path, PciPath::node);
    EXPECT_EQ(graph.link(0, 8).path, PciPath::sys);
}

std::string pci_gpu(const std::string& bus, const std::string& inner = "") {
    return R"(<object type="PCIDev" pci_busid=")" + bus +
           R"(" pci_type="0302 [10de:1db8] [10de:131d] a1 00">)" + inner + "</object>";
}

// U7: Group objects enclose, and GPUs may hang from the machine itself.
TEST(HwlocXml, KeepsGroupsAndGpusOfTheMachine) {
    const auto graph = read_hwloc_xml(
        R"(<?xml version="1.0"?><topology version="2.0"><object type="Machine" cpuset="0xff"
             nodeset="0x3"><object type="Group" cpuset="0x0f" nodeset="0x1"><object type="Bridge"
             bridge_type="0-1">)" +
            pci_gpu("0000:02:00.0") + pci_gpu("0000:01:00.0") + "</object>" +
            pci_gpu("0000:03:00.0") + "</object>" + pci_gpu("0000:05:00.0") +
            pci_gpu("0000:04:00.0") + "</object></topology>",
        "f");
    ASSERT_TRUE(graph.ok()) << error_of(graph);
    ASSERT_EQ(graph->size(), 5);
    EXPECT_EQ(numa_of(*graph), (std::vector<int>{0, 0, 0, -1, -1}));
    EXPECT_EQ(graph->gpu(0).pci_bus_id, "0000:01:00.0");
    EXPECT_EQ(graph->gpu(0).cpus, "0-3");
    EXPECT_EQ(graph->gpu(3).cpus, "");
    EXPECT_EQ(fingerprint(*graph), "5 PHB,NODE,?,?;NODE,?,?;?,?;?");
}

TEST(HwlocXml, NvmlComesBeforeOtherBackEndsAndConsolesAreNoGpus) {
    const std::string console =
        R"(<object type="PCIDev" pci_busid="0000:00:01.0" pci_type="0300 [1a03:2000]"/>)";
    const auto read = [&](const std::string& inner) {
        return read_hwloc_xml(R"(<topology><object type="Machine" nodeset="0x1">)" + console +
                                  inner + "</object></topology>",
                              "f");
    };
    const auto device = [](const std::string& name) {
        return R"(<object type="OSDev" name=")" + name + R"(" osdev_type="5"/>)";
    };
    // One card of two has no driver: the other counts.
    EXPECT_EQ(read(pci_gpu("0000:01:00.0", device("nvml0") + device("cuda0")) +
                   pci_gpu("0000:02:00.0", device("opencl0d0")))
                  ->size(),
              1);
    EXPECT_EQ(
        read(pci_gpu("0000:01:00.0", device("cuda1")) + pci_gpu("0000:02:00.0", device("cuda0")))
            ->size(),
        2);
    EXPECT_EQ(read(pci_gpu("0000:01:00.0") + pci_gpu("0000:02:00.0"))->size(), 2);
    // A CUDA device that hwloc could not find on the bus.
    const auto lone = read(device("cuda0"));
    ASSERT_TRUE(lone.ok()) << error_of(lone);
    EXPECT_EQ(lone->gpu(0).pci_bus_id, "");
    // OpenCL lists processors too.
    EXPECT_EQ(error_of(read(device("opencl0d0"))),
              "f: has no GPU: write the file on the node itself, with its PCI devices (lstopo --of "
              "xml FILE)");
}

// U10: two cards cut into two slices each are two GPUs.
TEST(HwlocXml, SlicesOfOneCardAreOneGpu) {
    const std::string slices =
        R"(<object type="OSDev" name="cuda0"/><object type="OSDev" name="cuda1"/>)";
    const auto graph =
        read_hwloc_xml("<topology><object type=\"Machine\">" + pci_gpu("0000:01:00.0", slices) +
                           pci_gpu("0000:02:00.0", slices) + "</object></topology>",
                       "f");
    ASSERT_TRUE(graph.ok()) << error_of(graph);
    EXPECT_EQ(graph->size(), 2);
}

TEST(HwlocXml, XgmiIsALinkOfItsOwnRate) {
    const std::string machine =
        R"(<topology version="2.0"><object type="Machine" nodeset="0x1" gp_index="1"><object type="PCIDev"
           gp_index="2" pci_busid="0000:01:00.0"><object type="OSDev" gp_index="3" name="rsmi0"/></object><object
           type="PCIDev" gp_index="4" pci_busid="0000:02:00.0"><object type="OSDev" gp_index="5"
           name="rsmi1"/></object></object>)";
    const auto graph = read_hwloc_xml(
        machine +
            R"(<distances2 type="OSDev" nbobjs="2" kind="25" name="XGMIBandwidth" indexing="gp">
                     <indexes length="4">3 5 </indexes><u64values length="9">0 100000</u64values><u64values>
                     100000 0</u64values></distances2></topology>)",
        "f");
    ASSERT_TRUE(graph.ok()) << error_of(graph);
    EXPECT_EQ(fingerprint(*graph), "2 1x100");
    EXPECT_EQ(
        error_of(read_hwloc_xml(machine + R"(<distances2 type="OSDev" nbobjs="2"
                     name="XGMIBandwidth"><indexes>3 5</indexes><u64values>0 1 2</u64values></distances2></topology>)",
                                "f")),
        "f: XGMIBandwidth of 2 objects has 2 indexes and 3 values: n and n squared are right, n "
        "at most 1024");
}

TEST(HwlocXml, BrokenFilesNameTheLine) {
    struct Case {
        const char* text;
        const char* message;
    };
    const Case cases[] = {
        {"<topology>\n<object type=\"Machine\">\n", "f:3: the file ends within <object>"},
        {"<topology>\n</object>", "f:2: </object> closes nothing, <topology> is open"},
        {"<topology>\n<object type=Machine/></topology>",
         "f:2: <object>: attributes are written KEY=\"VALUE\""},
        {"<topology version=\"4.0\"/>",
         "f: hwloc XML of version 4.0: the versions 1, 2 and 3 are read"},
        {"<html></html>", "f: is XML, but has no <topology>"},
        {"<topology/>",
         "f: has no GPU: write the file on the node itself, with its PCI devices (lstopo --of xml "
         "FILE)"},
        {"<!-- a comment", "f:1: a comment does not end"},
    };
    for (const Case& each : cases) EXPECT_EQ(error_of(read_topology(each.text, "f")), each.message);
    std::string deep;
    for (int i = 0; i < 300; ++i) deep += "<object>";
    EXPECT_EQ(error_of(read_hwloc_xml(deep, "f")), "f:1: elements are nested more than 64 deep");
}

TEST(XmlText, EventsAttributesAndEntities) {
    XmlText xml(
        "<?xml version='1.0'?><!DOCTYPE a><a b='1 &lt; 2' c=\"&quot;&amp;\"><!-- <x> -->"
        "<d/>text</a>");
    ASSERT_EQ(*xml.next(), XmlText::Event::open);
    EXPECT_EQ(xml.name(), "a");
    EXPECT_EQ(xml.attribute("b"), "1 < 2");
    EXPECT_EQ(xml.attribute("c"), "\"&");
    EXPECT_EQ(xml.attribute("nothing"), "");
    ASSERT_EQ(*xml.next(), XmlText::Event::open);
    EXPECT_EQ(xml.name(), "d");
    ASSERT_EQ(*xml.next(), XmlText::Event::close);
    ASSERT_EQ(*xml.next(), XmlText::Event::text);
    EXPECT_EQ(xml.text(), "text");
    ASSERT_EQ(*xml.next(), XmlText::Event::close);
    EXPECT_EQ(*xml.next(), XmlText::Event::end);
}

// --- gres.conf

TEST(GresLinks, ReadsLinksAndCores) {
    const auto graph = graph_of_gres(
        {{"-1,2,0", "8-15", "v100"}, {"2,-1,0", "8,9,10-15", "v100"}, {"0,0,-1", "0-7", "v100"}});
    ASSERT_TRUE(graph.ok()) << error_of(graph);
    EXPECT_EQ(fingerprint(*graph), "3 2x50,SYS;SYS");
    EXPECT_EQ(numa_of(*graph), (std::vector<int>{1, 1, 0}));
    EXPECT_EQ(graph->gpu(0).model, "v100");
    EXPECT_EQ(graph_of_gres({})->size(), 0);
}

// U3 again, as Slurm knows it.
TEST(GresLinks, ZerosMeanUnknown) {
    const auto nothing = graph_of_gres({{"-1,0", "", ""}, {"0,-1", "", ""}});
    ASSERT_TRUE(nothing.ok()) << error_of(nothing);
    EXPECT_FALSE(nothing->informative());
    const auto by_cores =
        graph_of_gres({{"0,0,0", "16-31", ""}, {"", "0-15", ""}, {"0,0,0", "16-31", ""}});
    ASSERT_TRUE(by_cores.ok()) << error_of(by_cores);
    EXPECT_EQ(fingerprint(*by_cores), "3 SYS,NODE;SYS");
}

TEST(GresLinks, CoresInCommonAreOneNumaNode) {
    const auto graph = graph_of_gres({{"", "32-47", ""},
                                      {"", "0-7", ""},
                                      {"", "16-23", ""},
                                      {"", "0-15,18", ""},
                                      {"", "", ""},
                                      {"", "40-41", ""}});
    ASSERT_TRUE(graph.ok()) << error_of(graph);
    EXPECT_EQ(numa_of(*graph), (std::vector<int>{1, 0, 0, 0, -1, 1}));
}

TEST(GresLinks, BrokenRowsNameTheGpu) {
    struct Case {
        std::vector<GresDevice> devices;
        const char* message;
    };
    const Case cases[] = {
        // U3: a row with one comma too many.
        {{{"-1,,2", "", ""}, {"2,-1", "", ""}},
         "GPU 0: Links=-1,,2 has 3 numbers, write one for each of the 2 GPUs"},
        {{{"-1,2", "", ""}, {"2", "", ""}},
         "GPU 1: Links=2 has 1 numbers, write one for each of the 2 GPUs"},
        {{{"-1,x", "", ""}, {"2,-1", "", ""}},
         "GPU 0: Links=-1,x: \"x\" for GPU 1: write the number of links, -1 for the GPU itself"},
        {{{"2,-1", "", ""}, {"-1,2", "", ""}},
         "GPU 0: Links=2,-1: \"-1\" for GPU 1: write the number of links, -1 for the GPU itself"},
        {{{"-1,2", "", ""}, {"1,-1", "", ""}},
         "GPU 1: Links= gives 1 to GPU 0, which gives 2 back: both have to be equal"},
        {{{"-1,2", "0-", ""}, {"2,-1", "", ""}},
         "GPU 0: Cores=0-: \"0-\" is no core or range of cores: write them like 0-7,16-23"},
        // U10
        {{{"", "", "1g.10gb"}, {"", "", "1g.10gb"}},
         "GPU 0 is a MIG slice: slices have no peer-to-peer links, so no set of them is better "
         "than another"},
    };
    for (const Case& each : cases) EXPECT_EQ(error_of(graph_of_gres(each.devices)), each.message);
}

TEST(GresConf, ReadsAClassOfNodes) {
    const GpuGraph graph = read_file("gres.conf");
    EXPECT_EQ(fingerprint(graph), fingerprint(read_file("nvlink-pairs8.topo-m.txt")));
    EXPECT_EQ(graph.gpu(0).model, "a100");
    EXPECT_EQ(graph.gpu(5).minor, 5);
    const auto ranges = read_topology(
        "AutoDetect=off\nname=gpu file=/dev/nvidia[0-1] COUNT=2 cores=0-7 # first\n"
        "Name=gpu\tFile=/dev/nvidia[2,3]\tCores=8-15\nName=nic Count=4\n",
        "f");
    ASSERT_TRUE(ranges.ok()) << error_of(ranges);
    EXPECT_EQ(fingerprint(*ranges), "4 NODE,SYS,SYS;SYS,SYS;NODE");
    EXPECT_EQ(ranges->gpu(2).minor, 2);
    const auto others = read_topology("Name=gpu File=/tmp/c/dev/gpu[0-1]\nName=gpu Count=1\n", "f");
    ASSERT_TRUE(others.ok()) << error_of(others);
    for (int gpu = 0; gpu < 3; ++gpu) EXPECT_EQ(others->gpu(gpu).minor, -1);
}

TEST(GresConf, BrokenFilesNameTheLine) {
    struct Case {
        const char* text;
        const char* message;
    };
    const Case cases[] = {
        {"AutoDetect=off\n", "f: has no line Name=gpu"},
        {"AutoDetect=nvml\n",
         "f: leaves it to AutoDetect which GPUs there are: \"sluice topo discover\" on such a node "
         "describes them"},
        {"Name=gpu AutoDetect=nvml Type=a100\n",
         "f: leaves it to AutoDetect which GPUs there are: \"sluice topo discover\" on such a node "
         "describes them"},
        {"Name=gpu Count=0\n", "f:1: Count=0: write a number from 1 to 64"},
        {"Name=gpu Count=40\nName=gpu Count=40\n", "f:2: more than 64 GPUs"},
        {"Name=gpu File=/dev/nvidia[1-\n",
         "f:1: File=/dev/nvidia[1-: write paths like "
         "/dev/nvidia[0-7]"},
        {"NodeName=a Name=gpu Count=1\nNodeName=b Name=gpu Count=1\n",
         "f:2: NodeName=b after NodeName=a: keep one class of nodes in a file"},
        {"Name=gpu Count=2 Links=-1\n",
         "f:1: GPU 0: Links=-1 has 1 numbers, write one for each of the 2 GPUs"},
        {"Name=gpu Type=1g MultipleFiles=/dev/nvidia0,/dev/nvidia-caps/nvidia-cap30\n",
         "f:1: the device is a MIG slice: slices have no peer-to-peer links, so no set of them is "
         "better than another"},
        {"Name=gpu Count=2\n\nName=gpu Count=2 Cores=3-1\n",
         "f:3: GPU 2: Cores=3-1: \"3-1\" is no core or range of cores: write them like 0-7,16-23"},
    };
    for (const Case& each : cases) EXPECT_EQ(error_of(read_topology(each.text, "f")), each.message);
}

// --- all of them

TEST(TopologyFile, SaysWhatIsWrongWithIt) {
    const auto missing = read_topology_file(std::string(TEST_DATA) + "/topology/nothing");
    ASSERT_FALSE(missing.ok());
    EXPECT_EQ(missing.error().code, ErrorCode::not_found);
    const auto folder = read_topology_file(std::string(TEST_DATA) + "/topology");
    ASSERT_FALSE(folder.ok());
    EXPECT_EQ(folder.error().code, ErrorCode::unreachable);
    EXPECT_EQ(read_topology_file(std::string(TEST_DATA) + "/topology/pcie8.topo-m.txt")->size(), 8);
}

TEST(Fingerprint, TellsLinksAndPathsApart) {
    GpuGraph a(2);
    GpuGraph b(2);
    EXPECT_EQ(fingerprint(a), fingerprint(b));
    b.set_link(0, 1, {0, 0, PciPath::pix});
    EXPECT_NE(fingerprint(a), fingerprint(b));
    a.set_link(1, 0, {0, 0, PciPath::pix});
    EXPECT_EQ(fingerprint(a), fingerprint(b));
    a.set_switched(true);
    EXPECT_NE(fingerprint(a), fingerprint(b));
}

// An XML file cut in half anywhere lacks the end of its root: at every element, before and behind
// it.
TEST(HwlocXml, CutAtEveryElementIsOneClearLine) {
    for (const char* name : {"power8-4p100.hwloc1.xml", "power8-4p100.hwloc2.xml",
                             "power8-4p100.hwloc3.xml", "dgx2.hwloc3.xml"}) {
        const std::string text = test_data(std::string("topology/") + name);
        const std::size_t end = text.rfind("</topology>");
        std::size_t cuts = 0;
        for (std::size_t at = 1; at < end + 10; ++at) {
            if (text[at] != '<' && text[at - 1] != '>' && text[at] != '/') continue;
            const auto graph = read_topology(std::string_view(text).substr(0, at), "f");
            ASSERT_FALSE(graph.ok()) << name << " cut at " << at;
            ASSERT_TRUE(graph.error().message.starts_with("f")) << graph.error().message;
            ASSERT_EQ(graph.error().message.find('\n'), std::string::npos);
            ++cuts;
        }
        EXPECT_GT(cuts, 400U) << name;
    }
}

// Every beginning of every file is read or refused, never more.
TEST(TopologyFile, CutFilesAreRefusedOrRead) {
    for (const char* name : {"hgx-h100.topo-m.txt", "gres.conf", "power8-4p100.hwloc1.xml"}) {
        const std::string text = test_data(std::string("topology/") + name);
        for (std::size_t length = 0; length < text.size(); length += 97) {
            const auto graph = read_topology(std::string_view(text).substr(0, length), "f");
            EXPECT_TRUE(graph.ok() || !graph.error().message.empty());
        }
    }
}

}  // namespace
}  // namespace sluice
