// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/base/config.hpp"

#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "tests/unit/scratch_dir.hpp"

namespace sluice {
namespace {

std::string error_of(const std::string& text) {
    const auto config = parse_config(text, "sluice.conf");
    return config ? "" : config.error().message;
}

TEST(Config, ARestartThatCannotPayIsNoted) {
    const auto note = [](const std::string& text) {
        return note_on(*parse_config(text, "sluice.conf"));
    };
    EXPECT_EQ(note(""), "");
    EXPECT_EQ(note("Interval=10 ResizeCooldown=20"),
              "RestartCost=60 is not below the longer of Interval and ResizeCooldown, 20 s, within "
              "which a restart has to pay: no running job is given more GPUs");
    EXPECT_EQ(note("Interval=10 ResizeCooldown=20 RestartCost=8"), "");
    EXPECT_NE(note("Interval=60 ResizeCooldown=0"), "");
    EXPECT_EQ(note("Interval=10 ResizeCooldown=20 Policy=fifo"), "");
    EXPECT_EQ(note("Interval=10 ResizeCooldown=20 MaxResizesPerHour=0"), "");
}

TEST(Config, EveryKey) {
    const auto config = parse_config(
        "# Sluice\r\n"
        "Policy=fifo\n"
        "interval=30 ADVISEONLY = Yes   # two on a line, blanks around =\n"
        "Partitions=gpu,a100\n"
        "TopologyDir=\"/etc/slurm/my topology\"\n"
        "Topology=dgx1.txt Nodes=n[1-3,7]\n"
        "\tTopology=/srv/hgx.xml\tNodes=h01,h[08-10]\t\n"
        "StateDir=/var/spool/sluice\n"
        "SummaryField=none\n"
        "ShareRuns=account\n"
        "MinSampleInterval=120\n"
        "MaxRecordsPerSecond=5\n"
        "ResizeCooldown=0\n"
        "MaxResizesPerHour=2\n"
        "RestartCost=90\n"
        "MinGain=0.1 FragmentationWeight=0.25",
        "sluice.conf");
    ASSERT_TRUE(config) << config.error().message;
    EXPECT_EQ(config->policy, "fifo");
    EXPECT_EQ(config->policy_line, 2);
    EXPECT_EQ(config->interval.count(), 30);
    EXPECT_TRUE(config->advise_only);
    EXPECT_EQ(config->partitions, (std::vector<std::string>{"gpu", "a100"}));
    EXPECT_EQ(config->topology_dir, "/etc/slurm/my topology");
    ASSERT_EQ(config->node_classes.size(), 2u);
    EXPECT_EQ(config->node_classes[0].file, "dgx1.txt");
    EXPECT_EQ(config->node_classes[0].nodes, (std::vector<std::string>{"n1", "n2", "n3", "n7"}));
    EXPECT_EQ(config->node_classes[1].file, "/srv/hgx.xml");
    EXPECT_EQ(config->node_classes[1].nodes,
              (std::vector<std::string>{"h01", "h08", "h09", "h10"}));
    EXPECT_EQ(config->state_dir, "/var/spool/sluice");
    EXPECT_FALSE(config->summary_in_admin_comment);
    EXPECT_EQ(config->min_sample_interval.count(), 120);
    EXPECT_EQ(config->max_records_per_second, 5);
    EXPECT_EQ(config->resize_cooldown.count(), 0);
    EXPECT_EQ(config->max_resizes_per_hour, 2);
    EXPECT_EQ(config->restart_cost.count(), 90);
    EXPECT_EQ(config->min_gain, 0.1);
    EXPECT_EQ(config->fragmentation_weight, 0.25);
}

TEST(Config, AnEmptyFileIsTheDefault) {
    for (const char* text : {"", "\n\n", "# nothing\n", "  \t\n#"}) {
        const auto config = parse_config(text, "sluice.conf");
        ASSERT_TRUE(config) << config.error().message;
        EXPECT_EQ(config->policy, "sluice");
        EXPECT_EQ(config->interval.count(), 60);
        EXPECT_TRUE(config->partitions.empty());
    }
}

TEST(Config, ABadLineNamesFileLineKeyAndLegalValues) {
    EXPECT_EQ(error_of("Policy=fifo\nInterval=0\n"),
              "sluice.conf:2: Interval: \"0\" is not legal: write 1 to 3600 (seconds)");
    EXPECT_EQ(error_of("Colour=red"),
              "sluice.conf:1: Colour: no such key: write one of Policy, Interval, AdviseOnly, "
              "Partitions, TopologyDir, Topology, Nodes, StateDir, SummaryField, ShareRuns, "
              "MinSampleInterval, MaxRecordsPerSecond, ResizeCooldown, MaxResizesPerHour, "
              "RestartCost, MinGain, FragmentationWeight");
    EXPECT_EQ(error_of("\n\nPolicy fifo"),
              "sluice.conf:3: \"Policy fifo\" is no Key=Value: write Key=Value, a comment begins "
              "with #");
    EXPECT_EQ(error_of("Interval=5\nInterval=6"),
              "sluice.conf:2: Interval: stands in line 1 already: write it once");
    EXPECT_EQ(error_of("TopologyDir=\"/a b"),
              "sluice.conf:1: TopologyDir: a quote is never closed: write Key=Value, a comment "
              "begins with #");
    EXPECT_EQ(error_of("Topology=/a"),
              "sluice.conf:1: Topology: no Nodes: write Topology=FILE Nodes=LIST on one line");
    EXPECT_EQ(error_of("Topology=/a\nNodes=n1"),
              "sluice.conf:1: Topology: no Nodes: write Topology=FILE Nodes=LIST on one line");
    EXPECT_EQ(error_of("Nodes=n1"),
              "sluice.conf:1: Nodes: no Topology before it: write Topology=FILE Nodes=LIST on one "
              "line");
    EXPECT_EQ(error_of("\nTopology=dgx.txt Nodes=n1"),
              "sluice.conf:2: Topology: a relative name and no TopologyDir: write an absolute "
              "path or set TopologyDir");
    EXPECT_EQ(error_of("Topology=/a Nodes=n[1-3]\nTopology=/b Nodes=n3"),
              "sluice.conf:2: Nodes: n3 has a class already, in line 1: write each node once");
    EXPECT_EQ(error_of("Topology=/a Nodes=n[3-1]"),
              "sluice.conf:1: Nodes: \"n[3-1]\" is no list of nodes: \"[3-1]\" holds no rising "
              "ranges: write names like n1,n2 or n[01-16,20]");
}

TEST(Config, ValuesThatAreNotLegal) {
    for (const char* text : {
             "Policy=",
             "Policy=\"a b\"",
             "Interval=3601",
             "Interval=1m",
             "Interval=-1",
             "Interval=1.5",
             "Interval=",
             "AdviseOnly=maybe",
             "Partitions=",
             "Partitions=a,,b",
             "TopologyDir=",
             "StateDir=state",
             "SummaryField=Comment",
             "ShareRuns=all",
             "MinSampleInterval=0",
             "MaxRecordsPerSecond=0",
             "MaxRecordsPerSecond=10001",
             "ResizeCooldown=86401",
             "MaxResizesPerHour=3601",
             "RestartCost=-1",
             "MinGain=2",
             "MinGain=nan",
             "MinGain=0,5",
             "FragmentationWeight=-0.1",
             "FragmentationWeight=1.5",
             "=",
             "=5",
             "Policy=a\x01",
             "Topology= Nodes=n1",
             "Topology=/a Nodes=",
             "Topology=/a Nodes=n[0-65536]",
             "Topology=/a Nodes=n[0-40000]\nTopology=/b Nodes=m[0-40000]",
         }) {
        EXPECT_NE(error_of(text), "") << text;
    }
    EXPECT_NE(error_of(std::string("Policy=a\0b", 10)), "");
}

TEST(Config, Files) {
    const ScratchDir dir;
    const auto missing = read_config_file(dir.path() + "/none.conf");
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().code, ErrorCode::not_found);

    const auto config = read_config_file(
        dir.write("sluice.conf", "TopologyDir=sluice/topology\nTopology=dgx.txt Nodes=n1\n"));
    ASSERT_TRUE(config) << config.error().message;
    EXPECT_EQ(config->topology_dir, dir.path() + "/sluice/topology");
    EXPECT_EQ(config->node_classes[0].file, "dgx.txt");

    const auto broken = read_config_file(dir.write("broken.conf", "Interval=x\n"));
    ASSERT_FALSE(broken);
    EXPECT_EQ(broken.error().code, ErrorCode::bad_input);
    EXPECT_EQ(broken.error().message, dir.path() +
                                          "/broken.conf:1: Interval: \"x\" is not "
                                          "legal: write 1 to 3600 (seconds)");

    EXPECT_TRUE(read_config_file(dir.write("full.conf", std::string(1 << 20, '\n'))));
    const auto huge = read_config_file(dir.write("huge.conf", std::string((1 << 20) + 1, '\n')));
    ASSERT_FALSE(huge);
    EXPECT_NE(huge.error().message.find("longer than 1048576 bytes"), std::string::npos);

    EXPECT_FALSE(read_config_file(dir.path()));
    ASSERT_EQ(::mkfifo((dir.path() + "/fifo").c_str(), 0600), 0);
    EXPECT_FALSE(read_config_file(dir.path() + "/fifo"));
}

TEST(Config, TheListOfKeysIsComplete) {
    ASSERT_EQ(config_keys().size(), 17u);
    for (const ConfigKeyInfo& key : config_keys()) EXPECT_NE(std::string(key.legal), "");
}

TEST(Hostlist, Expands) {
    using Names = std::vector<std::string>;
    EXPECT_EQ(*expand_hostlist("n[1-3,7],login"), (Names{"n1", "n2", "n3", "n7", "login"}));
    EXPECT_EQ(*expand_hostlist("n[008-011]"), (Names{"n008", "n009", "n010", "n011"}));
    EXPECT_EQ(*expand_hostlist("n[9-11]-ib"), (Names{"n9-ib", "n10-ib", "n11-ib"}));
    EXPECT_EQ(*expand_hostlist("r[1-2]n[1-2]"), (Names{"r1n1", "r1n2", "r2n1", "r2n2"}));
    EXPECT_EQ(*expand_hostlist("a.b_c-1"), Names{"a.b_c-1"});
    EXPECT_EQ(expand_hostlist("n[0-65535]")->size(), 65536u);
}

TEST(Hostlist, CompressIsTheInverse) {
    const auto compress = [](const char* list) {
        return compress_hostlist(*expand_hostlist(list));
    };
    EXPECT_EQ(compress("n3,n1,login,n2,n7,n3"), "login,n[1-3,7]");
    EXPECT_EQ(compress("n[9-11]"), "n[9-11]");
    EXPECT_EQ(compress("n[08-12]"), "n[08-12]");
    EXPECT_EQ(compress("n08,n9,n10"), "n[08,9-10]");
    EXPECT_EQ(compress("n1,n01,n001"), "n[001,01,1]");
    EXPECT_EQ(compress("n,n1"), "n,n1");
    EXPECT_EQ(compress("r[1-2]n[1-2]"), "r1n[1-2],r2n[1-2]");
    EXPECT_EQ(compress("n1-ib,n2-ib"), "n1-ib,n2-ib");
    EXPECT_EQ(compress("a12345678901"), "a12345678901");
    EXPECT_EQ(compress_hostlist({}), "");
    for (const char* list :
         {"n[1-3,7],login", "n[008-1011],x[0,00,000]", "a[99999999-100000001]"}) {
        auto names = *expand_hostlist(list);
        auto again = *expand_hostlist(compress_hostlist(names));
        std::sort(names.begin(), names.end());
        std::sort(again.begin(), again.end());
        EXPECT_EQ(names, again) << list;
    }
}

TEST(Hostlist, Malformed) {
    for (const char* text : {"",
                             ",",
                             "a,",
                             ",a",
                             "a,,b",
                             "n[",
                             "n[1",
                             "n]",
                             "n[]",
                             "n[1-]",
                             "n[-1]",
                             "n[2-1]",
                             "n[a]",
                             "n[1,]",
                             "n[[1]]",
                             "a b",
                             "n*",
                             "n[0-65536]",
                             "n[0-999]x[0-999]",
                             "n[1-9999999999]",
                             "n[0-65535],m",
                             "/etc"}) {
        EXPECT_FALSE(expand_hostlist(text)) << text;
    }
    EXPECT_FALSE(expand_hostlist(std::string(256, 'n')));
    EXPECT_FALSE(expand_hostlist(std::string(250, 'n') + "[100000-100001]"));
    EXPECT_FALSE(expand_hostlist(std::string("a\0", 2)));
}

}  // namespace
}  // namespace sluice
