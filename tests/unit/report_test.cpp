// SPDX-License-Identifier: GPL-2.0-or-later
#include <gtest/gtest.h>

#include <random>

#include "common/base/json.hpp"
#include "common/report/placement_counts.hpp"
#include "common/report/sacct_report.hpp"
#include "common/report/scontrol_jobs.hpp"
#include "common/report/summary.hpp"
#include "tests/unit/test_data.hpp"

namespace sluice {
namespace {

Summary full_summary() {
    Summary summary;
    summary.placements = {{"n1", "0,3", 50, "0,2", 25}, {"n2", "4-7", 100.5, "", 0}};
    summary.more_nodes = 3;
    summary.prediction = SummaryPrediction{1.1, 50, 1.4, 25, 1.05, 100, true, "n1:0,2;n3:4-7"};
    summary.forwarded = "typed request gpu:a100";
    Record record;
    record.restarts = 1;
    record.step = 1200;
    record.loss = 2.25;
    record.points = 87;
    record.gpus = 4;
    summary.record = record;
    summary.resizes = {{1700000000, 2, 4, "grows from 2 to 4"}, {1700000600, 4, 2, "shrinks"}};
    summary.resize_count = 5;
    summary.advice = "would grow to 8";
    summary.pending_target = 8;
    return summary;
}

TEST(Summary, TextFormAndBack) {
    const std::string text = with_summary("", full_summary());
    EXPECT_EQ(text.find(' '), std::string::npos);
    EXPECT_EQ(text.rfind("{\"sluice\":{\"v\":1,\"placements\":[{\"node\":\"n1\",\"gpus\":\"0,3\","
                         "\"gbps\":50.0,\"stock_gpus\":\"0,2\",\"stock_gbps\":25.0}",
                         0),
              0u)
        << text;
    EXPECT_TRUE(has_summary(text));
    EXPECT_TRUE(may_write_summary(text));
    const auto summary = parse_summary(text);
    ASSERT_TRUE(summary) << summary.error().message;
    ASSERT_EQ(summary->placements.size(), 2u);
    EXPECT_EQ(summary->placements[0].node, "n1");
    EXPECT_EQ(summary->placements[0].gpus, "0,3");
    EXPECT_EQ(summary->placements[0].gbps, 50);
    EXPECT_EQ(summary->placements[0].stock_gpus, "0,2");
    EXPECT_EQ(summary->placements[0].stock_gbps, 25);
    EXPECT_EQ(summary->placements[1].stock_gpus, "");
    EXPECT_EQ(summary->more_nodes, 3);
    ASSERT_TRUE(summary->prediction);
    EXPECT_EQ(summary->prediction->step, 1.1);
    EXPECT_EQ(summary->prediction->gbps, 50);
    EXPECT_EQ(summary->prediction->stock_step, 1.4);
    EXPECT_EQ(summary->prediction->stock_gbps, 25);
    EXPECT_EQ(summary->prediction->best_step, 1.05);
    EXPECT_EQ(summary->prediction->best_gbps, 100);
    EXPECT_TRUE(summary->prediction->in_seconds);
    EXPECT_EQ(summary->prediction->stock, "n1:0,2;n3:4-7");
    EXPECT_EQ(*placement_ratio(*summary), 2);
    EXPECT_EQ(summary->forwarded, "typed_request_gpu:a100");
    ASSERT_TRUE(summary->record);
    EXPECT_EQ(summary->record->restarts, 1);
    EXPECT_EQ(summary->record->step, 1200);
    EXPECT_EQ(summary->record->loss, 2.25);
    EXPECT_EQ(summary->record->gpus, 4);
    ASSERT_EQ(summary->resizes.size(), 2u);
    EXPECT_EQ(summary->resizes[0].time, 1700000000);
    EXPECT_EQ(summary->resizes[0].from, 2);
    EXPECT_EQ(summary->resizes[0].to, 4);
    EXPECT_EQ(summary->resizes[0].reason, "grows_from_2_to_4");
    EXPECT_EQ(summary->resize_count, 5);
    EXPECT_EQ(summary->advice, "would_grow_to_8");
    EXPECT_EQ(summary->pending_target, 8);
    // What was read is written as it was.
    EXPECT_EQ(with_summary(text, *summary), text);
}

TEST(Summary, TheRecordIsKeptWordForWord) {
    Summary summary;
    summary.record = Record{};
    summary.record->no_loss = "no loss found in my log.txt; keys seen: loss_scale, lr";
    const std::string text = with_summary("", summary);
    EXPECT_EQ(text.find(' '), std::string::npos);
    EXPECT_EQ(parse_summary(text)->record->no_loss, summary.record->no_loss);
}

TEST(Summary, AnEmptyOneAnnouncesSluice) {
    EXPECT_EQ(with_summary("", {}), R"({"sluice":{"v":1}})");
    const auto summary = parse_summary(R"({"sluice":{"v":1}})");
    ASSERT_TRUE(summary);
    EXPECT_FALSE(summary->record);
    EXPECT_TRUE(summary->placements.empty());
}

TEST(Summary, WhereItMayBeWritten) {
    for (const char* field : {"", "  ", R"({"sluice":{"v":1}})", R"({"a":1,"sluice":{}})"})
        EXPECT_TRUE(may_write_summary(field)) << field;
    for (const char* field :
         {"JS1:H4sIAAAA", "checked by ada", "{}", R"({"other":1})", R"({"sluice":5})",
          R"(["sluice"])", R"("sluice")", R"({"sluice":{"v":1}} and more)", "{\"sluice\":{\"v\":1}",
          R"({"sluice":{},"sluice":{}})", "42", "null"}) {
        EXPECT_FALSE(may_write_summary(field)) << field;
        EXPECT_FALSE(has_summary(field)) << field;
    }
    EXPECT_FALSE(has_summary(""));
}

TEST(Summary, MembersOfOthersAreKept) {
    Summary summary;
    summary.pending_target = 4;
    EXPECT_EQ(with_summary(R"({ "z": 0.12345678901234568, "sluice": {"v":1}, "a": [1, "b c"] })",
                           summary),
              R"({"z":0.12345678901234568,"sluice":{"v":1,"pending_target":4},"a":[1,"b c"]})");
    EXPECT_EQ(with_summary(R"({"z":"\u00e4"})", summary),
              "{\"z\":\"\xc3\xa4\",\"sluice\":{\"v\":1,\"pending_target\":4}}");
}

TEST(PlacementCounts, TheExampleOfThePageAndBack) {
    const std::string page = test_data("../../doc/formats/placements-v1.txt");
    const std::size_t start = page.find("{\"v\":1");
    const std::string example = page.substr(start, page.find('\n', start) + 1 - start);
    const auto counts = parse_placement_counts(example);
    ASSERT_TRUE(counts) << counts.error().message;
    EXPECT_EQ(counts->since, 1700000000);
    EXPECT_EQ(counts->as_stock, 12);
    EXPECT_EQ(counts->other_gpus, 3);
    EXPECT_EQ(counts->other_nodes, 2);
    EXPECT_EQ(counts->advised, 0);
    EXPECT_EQ(counts->nodes_given.at("exclusive nodes"), 1);
    EXPECT_EQ(counts->forwarded.at("no topology known"), 4);
    EXPECT_EQ(to_text(*counts), example);
    EXPECT_EQ(*parse_placement_counts(to_text(PlacementCounts{})), PlacementCounts{});
}

TEST(PlacementCounts, DamagedOnesAreErrors) {
    const std::string text = to_text(PlacementCounts{1, 2, 3, 4, 5, {{"a", 6}}, {{"b", 7}}});
    for (std::size_t end = 0; end + 1 < text.size(); ++end)
        EXPECT_FALSE(parse_placement_counts(text.substr(0, end))) << end;
    for (const auto& [good, bad] : {std::pair{"\"v\":1", "\"v\":2"},
                                    {"\"as_stock\":2", "\"as_stock\":-2"},
                                    {"\"advised\":5", "\"advised\":\"5\""},
                                    {"{\"a\":6}", "[6]"},
                                    {"{\"b\":7}", "{\"b\":-7}"}}) {
        std::string damaged = text;
        damaged.replace(damaged.find(good), std::string(good).size(), bad);
        EXPECT_FALSE(parse_placement_counts(damaged)) << damaged;
    }
    EXPECT_EQ(parse_placement_counts("{\"v\":1}").error().message,
              "\"since\" is not as in placements-v1");
}

TEST(Summary, BrokenOnesAreErrors) {
    EXPECT_EQ(parse_summary("").error().code, ErrorCode::not_found);
    EXPECT_EQ(parse_summary(R"({"sluice":{"v":1,"record":{"r":-1,"n":0,"g":0}}})")
                  .error()
                  .message.rfind("summary of Sluice in the AdminComment: record: ", 0),
              0u);
    EXPECT_EQ(parse_summary("JS1:xyz").error().code, ErrorCode::not_found);
    EXPECT_EQ(parse_summary(R"({"a":1})").error().code, ErrorCode::not_found);
    for (
        const char* ours : {
            "5",
            "null",
            "{}",
            R"({"v":2})",
            R"({"v":"1"})",
            R"({"v":1,"placements":{}})",
            R"({"v":1,"placements":[5]})",
            R"({"v":1,"placements":[{"node":"n1"}]})",
            R"({"v":1,"placements":[{"node":"n1","gpus":"0","gbps":"fast"}]})",
            R"({"v":1,"placements":[{"node":"n1","gpus":"0","gbps":1,"stock_gpus":"1"}]})",
            R"({"v":1,"more_nodes":-1})",
            R"({"v":1,"more_nodes":1.5})",
            R"({"v":1,"more_nodes":4294967296})",
            R"({"v":1,"predicted":1})",
            R"({"v":1,"predicted":{"step":1.1,"gbps":50}})",
            R"({"v":1,"predicted":{"step":0,"gbps":1,"stock_step":1,"stock_gbps":1,"best_step":1,"best_gbps":1}})",
            R"({"v":1,"predicted":{"step":1,"gbps":-1,"stock_step":1,"stock_gbps":1,"best_step":1,"best_gbps":1}})",
            R"({"v":1,"forwarded":1})",
            R"({"v":1,"record":"x"})",
            R"({"v":1,"resizes":[{"time":1,"from":-1,"to":2}]})",
            R"({"v":1,"resizes":[null]})",
            R"({"v":1,"resize_count":"5"})",
            R"({"v":1,"advice":[]})",
            R"({"v":1,"pending_target":true})",
        }) {
        const auto summary = parse_summary(std::string(R"({"sluice":)") + ours + "}");
        ASSERT_FALSE(summary) << ours;
        EXPECT_EQ(summary.error().code, ErrorCode::bad_input) << ours;
    }
}

TEST(Summary, StaysWithinItsBoundAndKeepsTheNewest) {
    Summary summary = full_summary();
    summary.placements.clear();
    summary.resizes.clear();
    summary.more_nodes = 0;
    for (int i = 0; i < 20; ++i) {
        summary.placements.push_back(
            {"node" + std::to_string(i) + std::string(200, 'n'), "0-7", 1, "0-7", 1});
        summary.resizes.push_back({i, i, i + 1, std::string(500, '"')});
    }
    summary.advice = std::string(1000, '\\');
    const std::string text = with_summary("", summary);
    EXPECT_LE(text.size(), Summary::max_bytes);
    auto read = parse_summary(text);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_LE(read->resizes.size(), Summary::max_resizes);
    EXPECT_EQ(read->more_nodes + static_cast<int>(read->placements.size()), 20);
    EXPECT_EQ(read->resize_count, 5);

    summary.advice.clear();
    for (SummaryPlacement& placement : summary.placements) placement.node = "n";
    for (SummaryResize& resize : summary.resizes) resize.reason = "grows";
    read = parse_summary(with_summary("", summary));
    ASSERT_TRUE(read);
    EXPECT_EQ(read->placements.size(), Summary::max_placements);
    EXPECT_EQ(read->more_nodes, 12);
    ASSERT_EQ(read->resizes.size(), Summary::max_resizes);
    EXPECT_EQ(read->resizes.front().time, 12);
    EXPECT_EQ(read->resizes.back().time, 19);

    // Members of others are never cut, even where they alone are too long.
    const std::string foreign = R"({"a":")" + std::string(5000, 'a') + R"("})";
    const std::string both = with_summary(foreign, summary);
    EXPECT_EQ(both.rfind(R"({"a":"aaa)", 0), 0u);
    EXPECT_EQ(parse_summary(both)->resizes.size(), 0u);
}

TEST(Summary, AnyBytesAreReadWithoutHarm) {
    const std::string text = with_summary("", full_summary());
    std::mt19937 random(11);
    for (int round = 0; round < 5000; ++round) {
        std::string hostile = text;
        for (unsigned i = random() % 4; i < 4; ++i)
            hostile[random() % hostile.size()] = static_cast<char>(random());
        if (random() % 4 == 0) hostile.resize(random() % hostile.size());
        if (const auto summary = parse_summary(hostile)) {
            EXPECT_TRUE(parse_summary(with_summary(hostile, *summary)));
        }
    }
}

// --- sacct

constexpr const char* d = "\x1f";

std::string header(const std::string& delimiter) {
    std::string out = sacct_format();
    for (std::size_t at = 0; (at = out.find(',', at)) != std::string::npos; at += delimiter.size())
        out.replace(at, 1, delimiter);
    return out + '\n';
}

struct Row {
    std::string id = "42";
    std::string user = "ada";
    std::string state = "COMPLETED";
    std::string submit = "1000";
    std::string eligible = "1000";
    std::string start = "1060";
    std::string end = "1660";
    std::string elapsed = "600";
    std::string tres = "billing=8,cpu=8,gres/gpu=4,mem=1G,node=1";
    std::string comment;
    std::string name = "train";
};

std::string line(const Row& row, const std::string& delimiter = d) {
    std::string out = row.id;
    for (const std::string& field : {row.user, row.state, row.submit, row.eligible, row.start,
                                     row.end, row.elapsed, row.tres, row.comment, row.name})
        out += delimiter + field;
    return out + '\n';
}

Report read(const std::string& lines, const std::string& delimiter = d) {
    const auto report = read_sacct(header(delimiter) + lines, 2000);
    EXPECT_TRUE(report) << report.error().message;
    return report ? *report : Report{};
}

std::int64_t gpus_of(const std::string& tres) {
    Row row;
    row.tres = tres;
    const Report report = read(line(row));
    return report.jobs.size() == 1 ? report.jobs[0].max_gpus : -1;
}

TEST(Sacct, TheColumnsEndInWhatUsersWrite) {
    EXPECT_EQ(
        sacct_format(),
        "JobID,User,State,Submit,Eligible,Start,End,ElapsedRaw,AllocTRES,AdminComment,JobName");
}

TEST(Sacct, AllocatedGpusAreCountedOnce) {  // U37, U38
    EXPECT_EQ(gpus_of("gres/gpu=4"), 4);
    EXPECT_EQ(gpus_of("gres/gpu=2,gres/gpu:a100=2"), 2);
    EXPECT_EQ(gpus_of("cpu=1,gres/gpu:a100=2,gres/gpu=2,node=1"), 2);
    EXPECT_EQ(gpus_of("gres/gpu:a=1,gres/gpu:b=1"), 2);
    EXPECT_EQ(gpus_of("gres/gpumem=5,gres/gpuutil=7,gres/gpu=1"), 1);
    EXPECT_EQ(gpus_of("cpu=4"), 0);
    EXPECT_EQ(gpus_of(""), 0);
    EXPECT_EQ(gpus_of("gres/gpu=x"), -1);
    EXPECT_EQ(gpus_of("gres/gpu"), -1);
    EXPECT_EQ(gpus_of("gres/gpu=-1"), -1);
    EXPECT_EQ(gpus_of("gres/gpu=99999999999999999999"), -1);
    EXPECT_EQ(gpus_of("gres/gpu:=1,,="), 1);
}

TEST(Sacct, NoGpusInTresIsSaid) {  // U39
    Row row;
    row.tres = "billing=8,cpu=8,mem=1G,node=1";
    const Report report = read(line(row));
    EXPECT_FALSE(report.tres_has_gpus);
    EXPECT_NE(to_table(report).find("AccountingStorageTRES in slurm.conf lacks gres/gpu"),
              std::string::npos);
    EXPECT_EQ(to_table(read(line({}))).find("AccountingStorageTRES"), std::string::npos);
    // Of what has not started nobody knows what it will hold, and of nothing nothing is known.
    row.tres = "";
    EXPECT_EQ(to_table(read(line(row))).find("AccountingStorageTRES"), std::string::npos);
    const std::string none = to_table(read(""));
    EXPECT_EQ(none.find("AccountingStorageTRES"), std::string::npos);
    EXPECT_NE(none.find("sacct names no job of that time"), std::string::npos) << none;
}

TEST(Sacct, AllRecordsOfARequeuedJobCount) {  // U40
    std::string lines;
    for (int i = 0; i < 5; ++i) {
        Row row;
        row.state = i < 4 ? "REQUEUED" : "COMPLETED";
        row.start = std::to_string(1100 + 100 * i);
        row.elapsed = "50";
        lines += line(row);
    }
    const Report report = read(lines);
    ASSERT_EQ(report.jobs.size(), 1u);
    EXPECT_EQ(report.jobs[0].records, 5);
    EXPECT_EQ(report.jobs[0].elapsed_s, 250);
    EXPECT_EQ(report.jobs[0].gpu_seconds, 1000);
    EXPECT_EQ(report.jobs[0].state, "COMPLETED");
    EXPECT_EQ(report.jobs[0].wait_s, 100);
}

TEST(Sacct, GpuHoursOfAMalleableJob) {  // U52
    std::string lines;
    int start = 1000;
    for (const auto& [gpus, elapsed] : {std::pair(4, 600), std::pair(2, 1200), std::pair(4, 300)}) {
        Row row;
        row.state = "RESIZING";
        row.tres = "gres/gpu=" + std::to_string(gpus);
        row.start = std::to_string(start);
        row.elapsed = std::to_string(elapsed);
        start += elapsed;
        lines += line(row);
    }
    const Report report = read(lines);
    ASSERT_EQ(report.jobs.size(), 1u);
    EXPECT_EQ(report.jobs[0].gpu_seconds, 6000);
    EXPECT_EQ(report.gpu_seconds, 6000);
    EXPECT_EQ(report.jobs[0].max_gpus, 4);
}

TEST(Sacct, AThousandJobsInOneText) {  // U41
    std::string lines;
    for (int i = 1000; i > 0; --i) {
        Row row;
        row.id = std::to_string(i);
        lines += line(row);
    }
    const Report report = read(lines);
    ASSERT_EQ(report.jobs.size(), 1000u);
    EXPECT_EQ(report.jobs[0].id, "1");
    EXPECT_EQ(report.jobs[9].id, "10");
    EXPECT_EQ(report.gpu_seconds, 1000 * 2400);
}

TEST(Sacct, ArraysStepsAndOrder) {
    std::string lines;
    for (const char* id :
         {"42_10", "42_9", "7", "42.batch", "42_9.0", "42.extern", "100_[1-3%2]", "41+1", "42"}) {
        Row row;
        row.id = id;
        lines += line(row);
    }
    const Report report = read(lines);
    std::string ids;
    for (const JobReport& job : report.jobs) ids += job.id + ' ';
    EXPECT_EQ(ids, "7 41+1 42 42_9 42_10 100_[1-3%2] ");
    EXPECT_EQ(report.skipped_lines, 0u);
}

TEST(Sacct, StatesAndTimes) {
    Row row;
    row.state = "CANCELLED by 1000";
    EXPECT_EQ(read(line(row)).jobs[0].state, "CANCELLED");

    row = {};
    row.state = "PENDING";
    row.eligible = "1500";
    row.start = row.end = "Unknown";
    row.elapsed = "0";
    row.tres = "";
    EXPECT_EQ(read(line(row)).jobs[0].wait_s, 500);
    row.eligible = "Unknown";  // held: waits since it was submitted
    EXPECT_EQ(read(line(row)).jobs[0].wait_s, 1000);
    row.state = "CANCELLED";
    row.start = "None";
    EXPECT_EQ(read(line(row)).jobs[0].wait_s, 0);

    row = {};
    row.state = "RUNNING";
    row.end = "Unknown";
    row.elapsed = "";  // sacct fills it in; without it, until now
    EXPECT_EQ(read(line(row)).jobs[0].gpu_seconds, (2000 - 1060) * 4);
    EXPECT_EQ(read(line(row)).jobs[0].wait_s, 60);
    row.end = "1070";
    EXPECT_EQ(read(line(row)).jobs[0].gpu_seconds, 40);
    row.start = "3000";
    row.end = "Unknown";
    EXPECT_EQ(read(line(row)).jobs[0].gpu_seconds, 0);

    row = {};
    row.submit = "2024-02-28T23:59:59";
    row.eligible = "2024-02-29T00:00:00";
    row.start = "2024-03-01T00:01:00";
    const Report report = read(line(row));
    EXPECT_EQ(report.jobs[0].submit, 1709164799);
    EXPECT_EQ(report.jobs[0].wait_s, 86460);
}

TEST(Sacct, MalformedLinesAreNamedAndSkipped) {
    std::string lines = line({});
    const auto with = [](auto member, const char* value) {
        Row row;
        row.*member = value;
        return line(row);
    };
    lines += with(&Row::id, "x42");
    lines += with(&Row::id, "");
    lines += with(&Row::start, "yesterday");
    lines += with(&Row::submit, "2024-02-30T00:00:00");
    lines += with(&Row::elapsed, "-5");
    lines += with(&Row::elapsed, "99999999999999");
    lines += with(&Row::tres, "gres/gpu=many");
    lines += std::string("42") + d + "ada\n";
    for (int i = 0; i < 5; ++i) lines += with(&Row::id, "\x1b[31m");
    const Report report = read(lines);
    ASSERT_EQ(report.jobs.size(), 1u);
    EXPECT_EQ(report.jobs[0].records, 1);
    EXPECT_EQ(report.skipped_lines, 13u);
    ASSERT_EQ(report.warnings.size(), 10u);
    EXPECT_EQ(report.warnings[0], "line 3: \"x42\" is no job id");
    EXPECT_EQ(report.warnings[2], "line 5: Start \"yesterday\" is no time");
    EXPECT_EQ(report.warnings[4], "line 7: ElapsedRaw \"-5\" is no number of seconds");
    EXPECT_EQ(report.warnings[6], "line 9: AllocTRES \"gres/gpu=many\" has no count of GPUs");
    EXPECT_EQ(report.warnings[7], "line 10: \"42?ada\" has too few columns");
    EXPECT_NE(to_table(report).find("13 of sacct's lines skipped:\n  line 3: "), std::string::npos);
    EXPECT_EQ(to_table(report).find('\x1b'), std::string::npos);
}

TEST(Sacct, OtherTextIsRefused) {
    for (const char* text : {"", "\n", "sacct: error: slurmdbd is not there\n", "JobID|User\n"}) {
        const auto report = read_sacct(text, 0);
        ASSERT_FALSE(report) << text;
        EXPECT_EQ(report.error().code, ErrorCode::bad_input);
    }
    EXPECT_NE(read_sacct("x", 0).error().message.find("make the file with sacct -X -D -P"),
              std::string::npos);
    EXPECT_FALSE(read_sacct(header("|").substr(1), 0));
    EXPECT_FALSE(read_sacct(header(""), 0));
    EXPECT_FALSE(read_sacct(header("|") + '\0', 0));
    EXPECT_TRUE(read_sacct(header("|"), 0)->jobs.empty());
}

TEST(Sacct, HostileNamesStayInTheirJob) {
    Row hostile;
    hostile.name = std::string("a|b") + d + "c\n\n\"d\nx";
    Row other;
    other.id = "43";
    // A user knows the usual delimiter, but not that of one call.
    for (const char* delimiter : {"\x1f#3fe1", "|"}) {
        const Report report = read(line(hostile, delimiter) + line(other, delimiter), delimiter);
        ASSERT_EQ(report.jobs.size(), 2u);
        EXPECT_EQ(report.jobs[0].name, std::string("a|b") + d + "c  \"d x");
        EXPECT_EQ(report.jobs[1].name, "train");
        EXPECT_EQ(report.skipped_lines, 0u);
    }
    hostile.name = "a\n" + line(other, d) + "b";
    const Report report = read(line(hostile, "\x1f#3fe1"), "\x1f#3fe1");
    ASSERT_EQ(report.jobs.size(), 1u);
    EXPECT_NE(report.jobs[0].name.find("43\x1f"), std::string::npos);
    EXPECT_EQ(to_table(report).find(d), std::string::npos);
    EXPECT_TRUE(parse_json(to_json(report)));
}

TEST(Sacct, WhatSlurm22Printed) {
    const auto report = read_sacct(test_data("sacct/slurm-22.05.txt"), 1796000000);
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_EQ(report->skipped_lines, 0u);
    ASSERT_EQ(report->jobs.size(), 11u);
    const JobReport& requeued = report->jobs.back();
    EXPECT_EQ(requeued.id, "11");
    EXPECT_EQ(requeued.name, "gpt2 | `medium`");
    EXPECT_EQ(requeued.records, 2);
    EXPECT_EQ(requeued.gpu_seconds, 2 * 5 + 2 * 12);
    EXPECT_EQ(requeued.wait_s, 1);
    EXPECT_EQ(report->jobs[5].id, "6");
    ASSERT_TRUE(report->jobs[5].summary);
    EXPECT_EQ(report->jobs[5].summary->placements.size(), 1u);
    EXPECT_EQ(report->jobs[5].state, "CANCELLED");
    EXPECT_FALSE(report->jobs[6].summary);
}

TEST(Sacct, SumsDoNotOverflow) {
    Row row;
    row.elapsed = "10000000000";
    row.tres = "gres/gpu=1000000";
    std::string lines;
    for (int i = 0; i < 2000; ++i) {
        row.id = std::to_string(i % 2);
        lines += line(row);
    }
    EXPECT_EQ(read(lines).gpu_seconds, INT64_MAX);
}

Report sample_report() {
    Row row;
    row.name = "=cmd|' /C calc'!A0";
    Summary summary = full_summary();
    LossCurve curve;
    curve.b0 = 0.001;
    curve.b1 = 0.2;
    curve.b2 = 1.5;
    curve.first_loss = 6.5;
    curve.last_loss = 2.5;
    curve.last_step = 800;
    curve.points = 87;
    summary.record->curve = curve;
    row.comment = with_summary("", summary);
    row.elapsed = "3600";
    Row plain;
    plain.id = "43";
    plain.user = "bob";
    plain.name = "say \"hi\", ok";
    plain.state = "FAILED";
    plain.tres = "cpu=1";
    return read(line(row) + line(plain));
}

TEST(Sacct, TheSummaryOfTheLastRecordThatHasOne) {
    const Report report = sample_report();
    ASSERT_TRUE(report.jobs[0].summary);
    EXPECT_EQ(report.jobs[0].summary->resize_count, 5);
    EXPECT_EQ(*placement_ratio(*report.jobs[0].summary), 2);
    EXPECT_EQ(*report.jobs[0].loss_per_gpu_hour, 1);  // 4.0 in four GPU-hours
    EXPECT_FALSE(report.jobs[1].summary);
    EXPECT_FALSE(report.jobs[1].loss_per_gpu_hour);
    EXPECT_FALSE(placement_ratio(Summary{}));

    Row first, second, third;
    Summary summary;
    summary.resize_count = 1;
    first.comment = with_summary("", summary);
    summary.resize_count = 2;
    second.start = "1100";
    second.comment = with_summary("", summary);
    third.start = "1200";
    third.comment = "JS1:H4s";
    for (const std::string& lines :
         {line(first) + line(second) + line(third), line(third) + line(second) + line(first)}) {
        EXPECT_EQ(read(lines).jobs[0].summary->resize_count, 2);
    }
}

TEST(Sacct, Table) {
    EXPECT_EQ(
        to_table(sample_report()),
        "JOB  USER  NAME                STATE      GPUS  GPU-HOURS     WAIT  RECORDS  RESIZES  "
        "PLACEMENT  LOSS/GPU-H\n"
        "42   ada   =cmd|' /C calc'!A0  COMPLETED     4       4.00  0:01:00        1        5      "
        "2.00x      1.0000\n"
        "43   bob   say \"hi\", ok        FAILED        0       0.00  0:01:00        1        -    "
        "      -           -\n"
        "2 jobs, 4.00 GPU-hours, mean wait 0:01:00, 5 resizes, mean placement 2.00x the bandwidth "
        "of stock\n");
    EXPECT_NE(to_table(read("")).find("0 jobs, 0.00 GPU-hours, mean wait 0:00:00, 0 resizes\n"),
              std::string::npos);
}

TEST(Sacct, Json) {
    EXPECT_EQ(
        to_json(sample_report()),
        R"({"jobs":[{"id":"42","user":"ada","name":"=cmd|' /C calc'!A0","state":"COMPLETED",)"
        R"("submit":1000,"wait_s":60,"elapsed_s":3600,"max_gpus":4,"gpu_seconds":14400,)"
        R"("records":1,"resizes":5,"placement_ratio":2.0,"loss_per_gpu_hour":1.0},)"
        R"({"id":"43","user":"bob","name":"say \"hi\", ok","state":"FAILED","submit":1000,)"
        R"("wait_s":60,"elapsed_s":600,"max_gpus":0,"gpu_seconds":0,"records":1,"resizes":null,)"
        R"("placement_ratio":null,"loss_per_gpu_hour":null}],"gpu_seconds":14400,)"
        R"("tres_has_gpus":true,"skipped_lines":0,"warnings":[]})"
        "\n");
}

TEST(Sacct, Csv) {
    EXPECT_EQ(to_csv(sample_report()),
              "id,user,name,state,submit,wait_s,elapsed_s,max_gpus,gpu_seconds,records,resizes,"
              "placement_ratio,loss_per_gpu_hour\n"
              "\"42\",\"ada\",\"'=cmd|' /C calc'!A0\",\"COMPLETED\",1000,60,3600,4,14400,1,5,2,1\n"
              "\"43\",\"bob\",\"say \"\"hi\"\", ok\",\"FAILED\",1000,60,600,0,0,1,,,\n");
}

TEST(Sacct, AnyBytesAreReadWithoutHarm) {
    const std::string text = header(d) + line({}) + line({}) + line({});
    std::mt19937 random(12);
    for (int round = 0; round < 5000; ++round) {
        std::string hostile = text;
        for (unsigned i = random() % 8; i < 8; ++i)
            hostile[random() % hostile.size()] = static_cast<char>(random());
        if (const auto report = read_sacct(hostile, 2000)) {
            to_table(*report);
            to_csv(*report);
            EXPECT_TRUE(parse_json(to_json(*report)));
        }
    }
}

// --- scontrol

// A job as scontrol of Slurm 22.05 prints it.
struct Shown {
    std::string id = "JobId=42";
    std::string name = "train";
    std::string state = "RUNNING";
    std::string tres = "TRES=cpu=1,node=1,billing=1,gres/gpu=4";
    std::string work_dir = "/home/ada";
    std::string admin_comment = R"({"sluice":{"v":1,"pending_target":8}})";
    std::string comment;
};

std::string shown(const Shown& job) {
    std::string out =
        job.id + " JobName=" + job.name +
        " UserId=ada(1000) GroupId=ada(1000) MCS_label=N/A Priority=4294901759 Nice=0 Account=lab "
        "QOS=normal JobState=" +
        job.state +
        " Reason=None Dependency=(null) Requeue=1 Restarts=2 BatchFlag=1 Reboot=0 ExitCode=0:0 "
        "RunTime=00:00:03 TimeLimit=365-00:00:00 TimeMin=N/A SubmitTime=2024-11-29T23:30:21 "
        "EligibleTime=2024-11-29T23:30:21 AccrueTime=2024-11-29T23:30:21 "
        "StartTime=2024-11-29T23:30:21 EndTime=2025-11-29T23:30:21 Deadline=N/A SuspendTime=None "
        "SecsPreSuspend=0 LastSchedEval=2024-11-29T23:30:21 Scheduler=Backfill Partition=main "
        "AllocNode:Sid=login:26348 ReqNodeList=(null) ExcNodeList=(null) NodeList=n1 BatchHost=n1 "
        "NumNodes=1 NumCPUs=1 NumTasks=1 CPUs/Task=1 ReqB:S:C:T=0:0:*:* " +
        job.tres +
        " Socks/Node=* NtasksPerN:B:S:C=0:0:*:* CoreSpec=* MinCPUsNode=1 MinMemoryNode=0 "
        "MinTmpDiskNode=0 Features=(null) DelayBoot=00:00:00 OverSubscribe=OK Contiguous=0 "
        "Licenses=(null) Network=(null) Command=/home/ada/x.sh WorkDir=" +
        job.work_dir;
    if (!job.admin_comment.empty()) out += " AdminComment=" + job.admin_comment + " ";
    if (!job.comment.empty()) out += " Comment=" + job.comment + " ";
    return out +
           " StdErr=/home/ada/slurm-42.out StdIn=/dev/null StdOut=/home/ada/slurm-42.out Power= "
           "TresPerJob=gres:gpu:4 \n";
}

ControlJob only(const std::string& text) {
    const ControlJobs read = read_scontrol(text, {"40", "42", "43"});
    EXPECT_EQ(read.jobs.size(), 1u);
    return read.jobs.empty() ? ControlJob{} : read.jobs[0];
}

TEST(Scontrol, ReadsAJob) {
    const ControlJob job = only(shown({}) + "\n");
    EXPECT_EQ(job.id, "42");
    EXPECT_EQ(job.array, "");
    EXPECT_EQ(job.state, "RUNNING");
    EXPECT_EQ(job.restarts, 2);
    EXPECT_EQ(job.gpus, 4);
    EXPECT_EQ(job.nodes, "n1");
    ASSERT_TRUE(job.summary) << job.summary.error().message;
    EXPECT_EQ(job.summary->pending_target, 8);
}

TEST(Scontrol, GpusWhereTheTresDoNotTell) {
    const auto gpus = [](const std::string& details) {
        Shown job;
        job.tres = "TRES=cpu=2,node=2,billing=2" + details;
        return only(shown(job)).gpus;
    };
    EXPECT_EQ(gpus(""), 0);
    EXPECT_EQ(gpus(" JOB_GRES=gpu:4"), 4);
    EXPECT_EQ(gpus(" JOB_GRES=gpu:v100:4,gpu:a100:2,shard:8"), 6);
    EXPECT_EQ(gpus(" JOB_GRES=gpumem:4,gpu:x"), 0);
}

TEST(Scontrol, ArraysAndNewerReleases) {
    Shown job;
    job.id = "JobId=43 ArrayJobId=40 ArrayTaskId=3";
    EXPECT_EQ(only(shown(job)).array, "40_3");
    job.id = "JobId=40 ArrayJobId=40 ArrayTaskId=4-9%2";
    EXPECT_EQ(only(shown(job)).array, "40_[4-9%2]");
    job.tres = "ReqTRES=cpu=1,gres/gpu=4 AllocTRES=cpu=1,gres/gpu:a100=2,gres/gpu=2";
    EXPECT_EQ(only(shown(job)).gpus, 2);
    job.tres = "ReqTRES=cpu=1,gres/gpu=4 AllocTRES=(null)";
    EXPECT_EQ(only(shown(job)).gpus, 4);
    job.tres = "TRES=cpu=1";
    EXPECT_EQ(only(shown(job)).gpus, 0);
}

TEST(Scontrol, JobsThatAreNotSluices) {
    Shown job;
    job.admin_comment = "";
    EXPECT_EQ(only(shown(job)).summary.error().code, ErrorCode::not_found);
    job.admin_comment = "JS1:H4sIAAAA";
    EXPECT_EQ(only(shown(job)).summary.error().code, ErrorCode::not_found);
    job.admin_comment = R"({"sluice":{"v":7}})";
    EXPECT_EQ(only(shown(job)).summary.error().code, ErrorCode::bad_input);
    for (const char* text :
         {"", "No jobs in the system\n", "JobId=x\n", "JobId=\n", "JobId=41 x\n"})
        EXPECT_TRUE(read_scontrol(text, {"42"}).jobs.empty()) << text;
}

TEST(Scontrol, NamesThatLookLikeFields) {
    const std::string fake = R"(AdminComment={"sluice":{"v":1,"pending_target":666}})";
    Shown job;
    job.name = "a b JobState=FAILED NodeList=x TRES=gres/gpu=9 UserId=eve(0) " + fake + " \nx\n";
    job.comment = "c AdminComment={} AdminComment=x=" + fake;
    ControlJob read = only(shown(job));
    EXPECT_EQ(read.state, "RUNNING");
    EXPECT_EQ(read.nodes, "n1");
    EXPECT_EQ(read.gpus, 4);
    ASSERT_TRUE(read.summary);
    EXPECT_EQ(read.summary->pending_target, 8);

    // What stands where a summary may stand is not believed either.
    for (auto put : {+[](Shown&to, const std::string&text) { to.name = "x WorkDir=/ " + text; },
                     +[](Shown&to, const std::string&text) { to.work_dir = "/ " + text; },
                     +[](Shown&to, const std::string&text) { to.comment = "c " + text; }}) {
        job = {};
        put(job, fake);
        read = only(shown(job));
        ASSERT_FALSE(read.summary);
        EXPECT_EQ(read.summary.error().code, ErrorCode::bad_input);
        // The same text twice leaves no doubt.
        put(job, "AdminComment=" + job.admin_comment);
        EXPECT_TRUE(only(shown(job)).summary);
    }
}

TEST(Scontrol, SeveralJobs) {
    Shown first;
    Shown second;
    second.id = "JobId=43";
    second.name = "line\nend";
    second.state = "PENDING";
    const ControlJobs read = read_scontrol(shown(first) + shown(second), {"42", "43", "44"});
    ASSERT_EQ(read.jobs.size(), 2u);
    EXPECT_TRUE(read.doubtful.empty());
    EXPECT_EQ(read.jobs[0].id, "42");
    EXPECT_EQ(read.jobs[1].id, "43");
    EXPECT_EQ(read.jobs[1].state, "PENDING");
    EXPECT_TRUE(read.jobs[1].summary);
}

TEST(Scontrol, NamesThatLookLikeJobs) {
    Shown hostile;
    Shown fake;
    fake.id = "JobId=99";
    fake.state = "FAILED";
    Shown other;
    other.id = "JobId=43";
    hostile.name = "x\n" + shown(fake) + "JobId=42 JobName=y";
    ControlJobs read = read_scontrol(shown(hostile) + shown(other), {"42", "43"});
    ASSERT_EQ(read.jobs.size(), 2u);
    EXPECT_EQ(read.jobs[0].state, "RUNNING");
    EXPECT_TRUE(read.jobs[0].summary);
    EXPECT_EQ(read.doubtful, std::set<std::string>{"42"});
    // The id of a job that is there: not to be told apart, but found out.
    fake.id = "JobId=43";
    hostile.name = "x\n" + shown(fake);
    Shown last;
    last.id = "JobId=44";
    read = read_scontrol(shown(hostile) + shown(last) + shown(other), {"42", "43", "44"});
    EXPECT_EQ(read.doubtful, (std::set<std::string>{"42", "43", "44"}));
}

TEST(Scontrol, AnyBytesAreReadWithoutHarm) {
    const std::string text = shown({}) + shown({});
    std::mt19937 random(13);
    for (int round = 0; round < 5000; ++round) {
        std::string hostile = text;
        for (unsigned i = random() % 8; i < 8; ++i)
            hostile[random() % hostile.size()] = static_cast<char>(random());
        if (random() % 4 == 0) hostile.resize(random() % hostile.size());
        for (const ControlJob& job : read_scontrol(hostile, {"42"}).jobs) EXPECT_GE(job.gpus, 0);
    }
}

}  // namespace
}  // namespace sluice
