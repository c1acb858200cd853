// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/samples/log_follower.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "common/samples/loss_feed.hpp"
#include "tests/unit/loss_cases.hpp"
#include "tests/unit/scratch_dir.hpp"

namespace sluice {
namespace {

class LogFollowerTest : public testing::Test {
  protected:
    static void write(const std::string& path, const std::string& text) {
        std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
    }
    static void append(const std::string& path, const std::string& text) {
        std::ofstream(path, std::ios::binary | std::ios::app) << text;
    }
    /// Writes at a place of the file, beyond its end as well.
    static void write_at(const std::string& path, off_t place, const std::string& text) {
        const int fd = open(path.c_str(), O_WRONLY | O_CREAT, 0600);
        ASSERT_GE(fd, 0);
        EXPECT_EQ(pwrite(fd, text.data(), text.size(), place), static_cast<ssize_t>(text.size()));
        close(fd);
    }

    /// "R:" where the file began anew, "!" and the problem where there is one.
    static std::string shown(const LogFollower::Read& read) {
        return (read.restarted ? "R:" : "") + read.bytes +
               (read.problem.empty() ? "" : "!" + read.problem);
    }
    static std::string next(LogFollower& follower) { return shown(follower.read()); }

    /// Until there is something, or for as long as zeros are waited for.
    static std::string wait(LogFollower& follower) {
        for (int polls = 0; polls < 3 * LogFollower::patience; ++polls) {
            const std::string text = next(follower);
            if (!text.empty()) return text;
        }
        return {};
    }

    const ScratchDir scratch_;
    const std::string& folder_ = scratch_.path();
    const std::string log_ = folder_ + "/log";
};

TEST_F(LogFollowerTest, FollowsAFileThatAppearsLateAndGrows) {
    LogFollower follower(log_);
    EXPECT_EQ(next(follower), "!No such file or directory");
    write(log_, "one\n");
    EXPECT_EQ(next(follower), "one\n");
    EXPECT_EQ(next(follower), "");
    append(log_, "tw");
    EXPECT_EQ(next(follower), "tw");
    append(log_, "o\n");
    EXPECT_EQ(next(follower), "o\n");
}

TEST_F(LogFollowerTest, ReadsAFileOfOthersInPieces) {
    const std::string much(3 * LogFollower::max_read + 5, 'x');
    write(log_, much);
    LogFollower follower(log_);
    std::string all;
    for (int i = 0; i < 3; ++i) {
        const LogFollower::Read read = follower.read();
        EXPECT_EQ(read.bytes.size(), LogFollower::max_read);
        EXPECT_TRUE(read.more);
        all += read.bytes;
    }
    const LogFollower::Read last = follower.read();
    EXPECT_FALSE(last.more);
    EXPECT_EQ(all + last.bytes, much);
}

TEST_F(LogFollowerTest, BeginsAnewWhereTheFileWasTruncated) {
    write(log_, "one\ntwo\n");
    LogFollower follower(log_);
    EXPECT_EQ(next(follower), "one\ntwo\n");
    write(log_, "new\n");
    EXPECT_EQ(next(follower), "R:new\n");
    // and has grown beyond its size before, between two polls
    write(log_, "a third run, with a longer line\n");
    EXPECT_EQ(next(follower), "R:a third run, with a longer line\n");
    append(log_, "and on\n");
    EXPECT_EQ(next(follower), "and on\n");
    write(log_, "");
    EXPECT_EQ(next(follower), "R:");
    append(log_, "again\n");
    EXPECT_EQ(next(follower), "again\n");
}

TEST_F(LogFollowerTest, ReadsAFileThatWasMovedAwayToItsEnd) {
    write(log_, "one\n");
    LogFollower follower(log_);
    EXPECT_EQ(next(follower), "one\n");
    std::filesystem::rename(log_, log_ + ".1");
    EXPECT_EQ(next(follower), "") << "nothing has taken its place yet";
    append(log_ + ".1", "two\n");
    EXPECT_EQ(next(follower), "two\n");
    append(log_ + ".1", "three\n");
    write(log_, "new\n");
    EXPECT_EQ(next(follower), "three\n");
    EXPECT_EQ(next(follower), "R:new\n");
}

// logrotate's copytruncate under a writer without O_APPEND: the file begins with a hole.
TEST_F(LogFollowerTest, PassesOverTheHoleThatCopytruncateLeaves) {
    write(log_, std::string(100000, 'a') + "\n");
    LogFollower follower(log_);
    EXPECT_EQ(next(follower).size(), 100001u);
    ASSERT_EQ(truncate(log_.c_str(), 0), 0);
    EXPECT_EQ(next(follower), "R:");
    write_at(log_, 100001, "step 5 loss 2\n");
    EXPECT_EQ(wait(follower), "step 5 loss 2\n");
}

// The client of an NFS server sees the new size first.
TEST_F(LogFollowerTest, WaitsForDataThatComeAfterTheSize) {
    write(log_, "step 1 ");
    ASSERT_EQ(truncate(log_.c_str(), 21), 0);
    LogFollower follower(log_);
    EXPECT_EQ(next(follower), "step 1 ");
    EXPECT_EQ(next(follower), "");
    EXPECT_EQ(next(follower), "");
    write_at(log_, 7, "loss 0.25\n");
    EXPECT_EQ(next(follower), "loss 0.25\n");
    write_at(log_, 17, "step");
    EXPECT_EQ(next(follower), "step");
    // in the midst of the file, too
    write_at(log_, 21 + 64, "end\n");
    EXPECT_EQ(next(follower), "");
    write_at(log_, 21, std::string(64, 'x'));
    EXPECT_EQ(next(follower), std::string(64, 'x') + "end\n");
}

TEST_F(LogFollowerTest, DoesNotWaitForEver) {
    write(log_, "a\n" + std::string(3000, '\0') + "b\n" + std::string("c\0d\n", 4));
    LogFollower follower(log_);
    EXPECT_EQ(next(follower), "a\n");
    EXPECT_EQ(wait(follower), std::string("b\nc\0d\n", 6)) << "a single 0 is output";
}

TEST_F(LogFollowerTest, PassesOverTenGigabytesOfNothingAtOnce) {
    const off_t size = off_t{10} << 30;
    write(log_, "step 1 loss 2\n");
    write_at(log_, size, "step 2 loss 1\n");
    LogFollower follower(log_);
    EXPECT_EQ(next(follower), "step 1 loss 2\n");
    int polls = 0;
    std::string text;
    while (text.empty() && ++polls < 100) text = next(follower);
    EXPECT_EQ(text, "step 2 loss 1\n");
    EXPECT_LE(polls, LogFollower::patience + 3);
    ASSERT_EQ(truncate(log_.c_str(), 2 * size), 0);
    for (polls = 0; polls < LogFollower::patience + 3; ++polls) EXPECT_EQ(next(follower), "");
    append(log_, "step 3 loss 0.5\n");
    EXPECT_EQ(wait(follower), "step 3 loss 0.5\n");
}

TEST_F(LogFollowerTest, ReadsNoLinkNoDeviceAndNoFolder) {
    write(folder_ + "/secret", "step 1 loss 2\n");
    ASSERT_EQ(symlink((folder_ + "/secret").c_str(), log_.c_str()), 0);
    LogFollower link(log_);
    EXPECT_EQ(next(link), "!it is a symbolic link, which is not followed");
    LogFollower zero("/dev/zero");
    EXPECT_EQ(next(zero), "!it is a device, which is not read");
    LogFollower folder(folder_);
    EXPECT_EQ(next(folder), "!it is a folder");
    // in place of the file that was there
    std::filesystem::remove(log_);
    write(log_, "one\n");
    LogFollower follower(log_);
    EXPECT_EQ(next(follower), "one\n");
    std::filesystem::remove(log_);
    ASSERT_EQ(symlink((folder_ + "/secret").c_str(), log_.c_str()), 0);
    EXPECT_EQ(next(follower), "!it is a symbolic link, which is not followed");
    // and the file again
    std::filesystem::remove(log_);
    write(log_, "two\n");
    EXPECT_EQ(next(follower), "R:two\n");
}

// A reader that opens a FIFO lets the writer go on, and kills him with SIGPIPE when it goes away.
TEST_F(LogFollowerTest, DoesNotTouchAFifo) {
    ASSERT_EQ(mkfifo(log_.c_str(), 0600), 0);
    LogFollower follower(log_);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(next(follower), "!it is a FIFO, which is not read");
    // a writer would have been let in if it had been opened
    const int writer = open(log_.c_str(), O_WRONLY | O_NONBLOCK);
    EXPECT_EQ(writer, -1);
    if (writer >= 0) close(writer);
}

TEST_F(LogFollowerTest, SaysWhyAFileCannotBeRead) {
    if (geteuid() == 0) {
        // root reads everything; what the kernel says is passed on all the same
        LogFollower follower(folder_ + "/log/below");
        write(log_, "no folder");
        EXPECT_EQ(next(follower), "!Not a directory");
        return;
    }
    write(log_, "one\n");
    ASSERT_EQ(chmod(log_.c_str(), 0), 0);
    LogFollower follower(log_);
    EXPECT_EQ(next(follower), "!Permission denied");
    ASSERT_EQ(chmod(log_.c_str(), 0600), 0);
    EXPECT_EQ(next(follower), "one\n");
}

// --- whose points are they? (a job that appends to a log that is already there)

TEST_F(LogFollowerTest, BeginsBehindWhatOtherJobsHaveLeft) {
    write(log_, "step 900 loss 0.1\n");
    const LogMark mark = LogFollower::mark(log_);
    append(log_, "step 1 loss 9\n");  // before the first look
    LogFollower follower(log_, mark);
    EXPECT_EQ(next(follower), "step 1 loss 9\n");
    append(log_, "step 2 loss 8\n");
    EXPECT_EQ(next(follower), "step 2 loss 8\n");
    // a requeued job has its own points there
    LogFollower again(log_);
    EXPECT_EQ(next(again), "step 900 loss 0.1\nstep 1 loss 9\nstep 2 loss 8\n");
}

TEST_F(LogFollowerTest, AMarkIsOfOneFile) {
    const LogMark nothing = LogFollower::mark(log_);
    write(log_, "one\n");
    LogFollower late(log_, nothing);
    EXPECT_EQ(next(late), "one\n") << "it was not there at the start";

    const LogMark mark = LogFollower::mark(log_);
    std::filesystem::rename(log_, log_ + ".old");
    write(log_, "a new file\n");
    LogFollower replaced(log_, mark);
    EXPECT_EQ(next(replaced), "a new file\n");

    const LogMark before = LogFollower::mark(log_);
    write(log_, "cut\n");
    LogFollower truncated(log_, before);
    EXPECT_EQ(next(truncated), "cut\n");

    write(log_, "one\n");
    const LogMark at_start = LogFollower::mark(log_);
    LogFollower follower(log_, at_start);
    EXPECT_EQ(next(follower), "");
    write(log_, "");
    EXPECT_EQ(next(follower), "R:") << "truncated later: all of it is this job's";
    append(log_, "two\n");
    EXPECT_EQ(next(follower), "two\n");
}

TEST_F(LogFollowerTest, AFeedBeginsBehindTheMark) {
    write(log_, "step 900 loss 0.1\n");
    LossSource source;
    source.path = log_;
    const auto feed = open_file_feed(source, {}, LogFollower::mark(log_));
    append(log_, "step 1 loss 9\nstep 2 loss 8\n");
    Points points = feed->poll(0).points;
    for (const LossPoint& point : feed->finish()) points.push_back(point);
    EXPECT_EQ(sluice::shown(points), "[1,9] [2,8] ");
}

// A script whose first line makes its log anew, where an earlier job's has the same name.
TEST_F(LogFollowerTest, AFileThatWasWrittenAnewBeforeTheFirstLookIsThisJobs) {
    write(log_, "step 900 loss 0.1\n");
    const LogMark mark = LogFollower::mark(log_);
    write(log_, "step 1 loss 9\nstep 2 loss 8\n");
    ASSERT_GT(static_cast<off_t>(std::filesystem::file_size(log_)), mark.size);
    LogFollower follower(log_, mark);
    EXPECT_EQ(next(follower), "R:step 1 loss 9\nstep 2 loss 8\n");
}

TEST_F(LogFollowerTest, SaysOnceWhatStandsBeforeTheMark) {
    write(log_, "a,b\n1,2");
    const LogMark mark = LogFollower::mark(log_);
    append(log_, "\n3,4\n");
    LogFollower follower(log_, mark);
    LogFollower::Read read = follower.read();
    EXPECT_EQ(read.before, "a,b\n1,2");
    EXPECT_EQ(read.bytes, "\n3,4\n");
    append(log_, "5,6\n");
    EXPECT_EQ(follower.read().before, "");

    // the beginning and the end of much, in whole lines
    const std::string row(999, 'x');
    write(log_, "first\n");
    for (int i = 0; i < 300; ++i) append(log_, row + "\n");
    append(log_, "last\n");
    LogFollower of_much(log_, LogFollower::mark(log_));
    read = of_much.read();
    EXPECT_LE(read.before.size(), 2 * LogFollower::max_before);
    EXPECT_EQ(read.before.substr(0, 6), "first\n");
    EXPECT_EQ(read.before.substr(read.before.size() - 6), "\nlast\n");
    EXPECT_EQ((read.before.size() - 11) % (row.size() + 1), 0u);
}

TEST_F(LogFollowerTest, AFeedKnowsTheColumnsThatStandBeforeTheMark) {
    const std::string csv = folder_ + "/c.csv";
    const auto rows_after = [&](const std::string& before, const std::string& path) {
        write(path, before);
        const LogMark mark = LogFollower::mark(path);
        const auto source = parse_loss_source(path);
        const auto feed = open_file_feed(*source, {}, mark);
        append(path, "1,10,2.5\n1,20,2.25\n");
        Points points = feed->poll(0).points;
        for (const LossPoint& point : feed->finish()) points.push_back(point);
        return sluice::shown(points);
    };
    const std::string rows = "[10,2.5] [20,2.25] ";
    EXPECT_EQ(rows_after("epoch,step,train_loss\n", csv), rows);
    EXPECT_EQ(rows_after("epoch,step,train_loss\n0,5,9\n", csv), rows) << "5 is another job's";
    EXPECT_EQ(rows_after("a,b\n1,2\nepoch,step,train_loss\n", csv), rows) << "the last one counts";
    EXPECT_EQ(rows_after("epoch,step,train_loss\n0,5,9\n", log_), rows) << "a log may be one";
    std::string many = "epoch,step,train_loss\n";
    for (int i = 0; i < 50'000; ++i) many += "0,5,9\n";
    EXPECT_EQ(rows_after(many, csv), rows);
    EXPECT_EQ(rows_after("step 900 loss 0.1\n", log_), "");
}

// --- what it costs

// The agent of a job that prints a line a second has to stay below 0.1% of a core: 1 ms a second.
TEST_F(LogFollowerTest, APollCostsLittle) {
    write(log_, "");
    LogFollower follower(log_);
    LossReader reader;
    Points points;
    const auto cpu_s = [] {
        rusage usage{};
        getrusage(RUSAGE_SELF, &usage);
        const auto seconds = [](const timeval& time) {
            return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
        };
        return seconds(usage.ru_utime) + seconds(usage.ru_stime);
    };
    const int fd = open(log_.c_str(), O_WRONLY | O_APPEND);
    ASSERT_GE(fd, 0);
    const double before = cpu_s();
    constexpr int lines = 2000;
    for (int line = 1; line <= lines; ++line) {
        const std::string text = "step " + std::to_string(line) + " loss 2.5\n";
        ASSERT_EQ(::write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
        reader.feed(follower.read().bytes, points);
    }
    const double each = (cpu_s() - before) / lines;
    close(fd);
    reader.finish(points);
    EXPECT_EQ(points.size(), static_cast<std::size_t>(lines));
    std::printf("a poll with a new line: %.1f us\n", each * 1e6);
    RecordProperty("microseconds", static_cast<int>(each * 1e6));
    EXPECT_LT(each, 0.5e-3) << "more than half of the agent's budget";
}

}  // namespace
}  // namespace sluice
