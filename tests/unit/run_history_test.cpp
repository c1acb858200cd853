// SPDX-License-Identifier: GPL-2.0-or-later
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "common/base/text.hpp"
#include "common/model/run_history.hpp"
#include "tests/unit/test_data.hpp"

namespace sluice {
namespace {

PastRun run(std::uint32_t job, std::uint32_t user, const std::string& model) {
    PastRun out;
    out.job = job;
    out.user = user;
    out.account = user < 1010 ? "physics" : "biology";
    out.model = model;
    out.gpu_type = "a100";
    out.batch = 512;
    out.ended = 1700000000 + job;
    out.record.step = 100;
    out.record.points = 7;
    out.record.gpus = 2;
    return out;
}

std::string jobs_of(const std::vector<const PastRun*>& runs) {
    std::string out;
    for (const PastRun* each : runs) out += std::to_string(each->job) + ' ';
    return out;
}

RunQuery query_of(std::uint32_t user, Sharing sharing = Sharing::user) {
    return {user, user < 1010 ? "physics" : "biology", "gpt2", "a100", 512, sharing};
}

TEST(RunHistory, NearestFirst) {
    RunHistory history;
    PastRun other_type = run(2, 1000, "gpt2");
    other_type.gpu_type = "h100";
    PastRun other_batch = run(3, 1000, "gpt2");
    other_batch.batch = 64;
    for (const PastRun& each : {run(1, 1000, "gpt2"), other_type, other_batch, run(4, 1000, "gpt2"),
                                run(5, 1000, "bert")})
        ASSERT_TRUE(history.add(each));
    EXPECT_EQ(jobs_of(history.find(query_of(1000))), "4 1 2 3 ");
    EXPECT_EQ(jobs_of(history.all()), "1 2 3 4 5 ");
    RunQuery nobodys = query_of(1000);
    nobodys.model = "t5";
    EXPECT_TRUE(history.find(nobodys).empty());
}

TEST(RunHistory, RunsOfOthersAreTheirOwn) {
    RunHistory history;
    for (const PastRun& each : {run(1, 1000, "gpt2"), run(2, 1001, "gpt2"), run(3, 1020, "gpt2")})
        ASSERT_TRUE(history.add(each));
    EXPECT_EQ(jobs_of(history.find(query_of(1000))), "1 ");
    EXPECT_EQ(jobs_of(history.find(query_of(1002))), "");
    EXPECT_EQ(jobs_of(history.find(query_of(1000, Sharing::account))), "1 2 ");
    EXPECT_EQ(jobs_of(history.find(query_of(1020, Sharing::account))), "3 ");
    // Who has no account shares with nobody, not with all others who have none.
    PastRun without = run(4, 1003, "gpt2");
    without.account.clear();
    ASSERT_TRUE(history.add(without));
    RunQuery query = query_of(1004, Sharing::account);
    query.account = "";
    EXPECT_EQ(jobs_of(history.find(query)), "");
}

TEST(RunHistory, IsBounded) {
    RunHistory history({3, 2});
    for (std::uint32_t job = 1; job <= 5; ++job) ASSERT_TRUE(history.add(run(job, 1000, "gpt2")));
    EXPECT_EQ(jobs_of(history.all()), "4 5 ");
    ASSERT_TRUE(history.add(run(6, 1000, "bert")));
    ASSERT_TRUE(history.add(run(7, 1001, "gpt2")));
    // The fourth of three: the one that was added to longest ago goes.
    ASSERT_TRUE(history.add(run(8, 1000, "t5")));
    EXPECT_EQ(jobs_of(history.all()), "6 7 8 ");
    ASSERT_TRUE(history.add(run(9, 1000, "gpt2")));
    EXPECT_EQ(jobs_of(history.all()), "7 8 9 ");
    // A job counts once, however often it is told of.
    ASSERT_TRUE(history.add(run(8, 1000, "t5")));
    EXPECT_EQ(jobs_of(history.all()), "7 9 8 ");
}

TEST(RunHistory, NamesThatAFileOfLinesCannotHold) {
    RunHistory history;
    for (const std::string& bad : {std::string(), std::string("a b"), std::string("a\nb"),
                                   std::string("-"), std::string(65, 'x')}) {
        const Status added = history.add(run(1, 1000, bad));
        ASSERT_FALSE(added) << bad;
        EXPECT_EQ(added.error().code, ErrorCode::bad_input);
    }
    EXPECT_TRUE(history.all().empty());
}

TEST(RunHistory, TextAndBack) {
    RunHistory history;
    PastRun plain = run(4294967295, 4294967295, "gpt2/v1");
    plain.account.clear();
    plain.gpu_type.clear();
    plain.batch = 0;
    plain.completed = true;
    plain.record.points = 0;
    plain.record.no_loss = "no loss found in a.log; keys seen: x";
    ASSERT_TRUE(history.add(run(1, 1000, "gpt2")));
    ASSERT_TRUE(history.add(plain));
    const std::string text = to_text(history);
    const auto read = parse_run_history(text);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->damaged, 0u);
    EXPECT_EQ(to_text(read->history), text);
    const PastRun& back = *read->history.all().at(1);
    EXPECT_EQ(back.user, 4294967295u);
    EXPECT_EQ(back.account, "");
    EXPECT_TRUE(back.completed);
    EXPECT_EQ(back.record.no_loss, plain.record.no_loss);
}

TEST(RunHistory, DamagedLinesAreLeftOut) {
    const std::string text = test_data("../../doc/formats/runs-v1.txt");
    const std::size_t begin = text.find("    sluice runs 1\n");
    ASSERT_NE(begin, text.npos);
    std::string example;
    for (const std::string_view line :
         split(std::string_view(text).substr(begin, text.find("\n\n", begin) - begin), '\n'))
        example += std::string(line.substr(4)) + "\n";
    const auto read = parse_run_history(example);
    ASSERT_TRUE(read) << read.error().message;
    ASSERT_EQ(jobs_of(read->history.all()), "4711 ");
    const std::size_t line = example.find('\n') + 1;
    for (std::size_t cut = line + 1; cut + 2 < example.size(); ++cut) {
        const auto part = parse_run_history(example.substr(0, cut));
        ASSERT_TRUE(part);
        EXPECT_EQ(part->damaged, 1u) << example.substr(line, cut - line);
    }
    EXPECT_FALSE(parse_run_history("sluice runs 2\n"));
    EXPECT_FALSE(parse_run_history(""));
    EXPECT_EQ(read_run_history("/nonexistent/runs").error().code, ErrorCode::not_found);
}

}  // namespace
}  // namespace sluice
