// SPDX-License-Identifier: GPL-2.0-or-later
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>

#include "common/store/journal.hpp"
#include "tests/unit/scratch_dir.hpp"

namespace sluice {
namespace {

using Values = std::map<std::string, std::string>;

class JournalTest : public testing::Test {
  protected:
    std::unique_ptr<Journal> open() {
        auto journal = Journal::open(directory_, "jobs");
        EXPECT_TRUE(journal) << journal.error().message;
        return journal ? std::move(*journal) : nullptr;
    }
    std::string text() const {
        std::ifstream file(path_, std::ios::binary);
        return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    }
    /// Those of a copy, since the file itself is locked.
    Values values_on_disk() const {
        std::filesystem::copy(path_, scratch_ + "/copy");
        const auto copy = Journal::open(scratch_, "copy");
        return copy ? (*copy)->values() : Values();
    }
    void write(const std::string& text) const { std::ofstream(path_, std::ios::binary) << text; }

    const ScratchDir folder_;
    const std::string& scratch_ = folder_.path();
    const std::string directory_ = scratch_ + "/state";
    const std::string path_ = directory_ + "/jobs";
};

TEST_F(JournalTest, RemembersTheLatestOfEachKey) {
    {
        const auto journal = open();
        EXPECT_TRUE(journal->values().empty());
        EXPECT_TRUE(journal->put("job/42", R"({"a": 1})"));
        EXPECT_TRUE(journal->put("job/43", "[0.1,\"\xc3\xa4\"]"));
        EXPECT_TRUE(journal->put("job/42", R"({"a":2})"));
        EXPECT_TRUE(journal->put("job/44", "null"));
        EXPECT_TRUE(journal->erase("job/44"));
        EXPECT_TRUE(journal->erase("job/45"));
    }
    const auto journal = open();
    EXPECT_EQ(journal->values(),
              (Values{{"job/42", R"({"a":2})"}, {"job/43", "[0.1,\"\xc3\xa4\"]"}}));
    EXPECT_EQ(journal->damaged_lines(), 0u);
    struct stat info {};
    ASSERT_EQ(::stat(path_.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777, 0600u);
    ASSERT_EQ(::stat(directory_.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777, 0700u);
}

TEST_F(JournalTest, IsMadeAgainWhereItWasRemoved) {
    const Values both{{"job/1", "1"}, {"job/2", "2"}};
    for (const bool whole_folder : {false, true}) {
        const auto journal = open();
        EXPECT_TRUE(journal->put("job/1", "1"));
        std::filesystem::remove_all(whole_folder ? directory_ : path_);
        EXPECT_TRUE(journal->put("job/2", "2"));
        EXPECT_FALSE(Journal::open(directory_, "jobs")) << "it is taken";
        std::filesystem::copy(path_, scratch_ + "/jobs");
        const auto copy = Journal::open(scratch_, "jobs");
        ASSERT_TRUE(copy) << copy.error().message;
        EXPECT_EQ((*copy)->values(), both);
        std::filesystem::remove(scratch_ + "/jobs");
    }
}

TEST_F(JournalTest, SaysWhereItCannotBeMadeAgain) {
    const auto journal = open();
    std::filesystem::remove_all(directory_);
    std::ofstream(directory_) << "in the way";
    const Status refused = journal->put("job/1", "1");
    EXPECT_FALSE(refused);
    EXPECT_NE(refused.error().message.find(directory_), std::string::npos);
    std::filesystem::remove(directory_);
    EXPECT_TRUE(journal->put("job/2", "2"));
    EXPECT_NE(text().find("job/1"), std::string::npos);
}

TEST_F(JournalTest, TheFormatOfVersion1StaysReadable) {
    open();
    const std::string golden =
        "1 ad4efc48538b1f7f + job/42 {\"a\":1}\n"
        "1 f20c0e16aaa8917c + job/43 2\n"
        "1 8f97c23c91f8c570 - job/43\n";
    {
        const auto journal = open();
        EXPECT_TRUE(journal->put("job/42", "{\"a\":1}"));
        EXPECT_TRUE(journal->put("job/43", "2"));
        EXPECT_TRUE(journal->erase("job/43"));
    }
    EXPECT_EQ(text(), golden);
    write(golden);
    EXPECT_EQ(open()->values(), (Values{{"job/42", "{\"a\":1}"}}));
    EXPECT_EQ(open()->damaged_lines(), 0u);
}

TEST_F(JournalTest, UnchangedValuesAreNotWrittenAgain) {
    const auto journal = open();
    EXPECT_TRUE(journal->put("a", "1"));
    const std::string before = text();
    EXPECT_TRUE(journal->put("a", "1"));
    EXPECT_EQ(text(), before);
}

TEST_F(JournalTest, RefusesWhatWouldBreakALine) {
    const auto journal = open();
    for (const std::string& key :
         {std::string(), std::string("a b"), std::string("a\nb"), std::string("\0", 1),
          std::string(129, 'a'), std::string("\xc3\xa4")}) {
        const Status status = journal->put(key, "1");
        ASSERT_FALSE(status);
        EXPECT_EQ(status.error().code, ErrorCode::usage);
        EXPECT_FALSE(journal->erase(key));
    }
    for (const std::string& value : {std::string(), std::string("{"), std::string("[1,\n2]"),
                                     std::string("1\0", 2), '"' + std::string(70000, 'a') + '"'}) {
        const Status status = journal->put("a", value);
        ASSERT_FALSE(status);
        EXPECT_EQ(status.error().code, ErrorCode::bad_input);
    }
    EXPECT_TRUE(journal->values().empty());
    EXPECT_EQ(text(), "");
    EXPECT_TRUE(journal->put("a", '"' + std::string(65000, 'a') + '"'));
}

TEST_F(JournalTest, ATornTailCostsOnlyItself) {
    {
        const auto journal = open();
        EXPECT_TRUE(journal->put("a", "1"));
        EXPECT_TRUE(journal->put("b", "\"two\""));
    }
    const std::string whole = text();
    const std::size_t second = whole.find('\n') + 1;
    for (std::size_t length = 0; length < whole.size(); ++length) {
        write(whole.substr(0, length));
        Values before;
        {
            const auto journal = open();
            // A line that lacks nothing but its end is whole.
            const std::size_t read = length + 1 < second ? 0 : length + 1 < whole.size() ? 1 : 2;
            EXPECT_EQ(journal->values().size(), read) << length;
            const bool torn = length != 0 && length != second && length + 1 != second &&
                              length + 1 != whole.size();
            EXPECT_EQ(journal->damaged_lines(), torn ? 1u : 0u) << length;
            before = journal->values();
            EXPECT_TRUE(journal->put("c", "3"));
        }
        before["c"] = "3";
        EXPECT_EQ(open()->values(), before) << length;
    }
}

TEST_F(JournalTest, AnyDamagedByteIsFound) {
    {
        const auto journal = open();
        EXPECT_TRUE(journal->put("a", "1"));
        EXPECT_TRUE(journal->put("b", "2"));
        EXPECT_TRUE(journal->put("c", "3"));
    }
    const std::string whole = text();
    std::mt19937 random(4);
    for (int round = 0; round < 1000; ++round) {
        std::string damaged = whole;
        damaged[random() % whole.size()] ^= static_cast<char>(random() % 255 + 1);
        write(damaged);
        const auto journal = open();
        EXPECT_GE(journal->damaged_lines(), 1u);
        EXPECT_GE(journal->values().size(), 1u);
        for (const auto& [key, value] : journal->values())
            EXPECT_EQ(value, key == "a" ? "1" : key == "b" ? "2" : "3");
    }
}

TEST_F(JournalTest, AnyBytesAreReadWithoutHarm) {
    open();
    std::mt19937 random(5);
    std::string noise(300000, '\0');
    for (char& c : noise) c = static_cast<char>(random());
    write(noise + std::string(200000, 'x') + "\n1 " + std::string(1000, '0') + " + a 1");
    const auto journal = open();
    EXPECT_TRUE(journal->values().empty());
    EXPECT_GT(journal->damaged_lines(), 0u);
    EXPECT_TRUE(journal->put("a", "1"));
}

TEST_F(JournalTest, LinesOfANewerVersionAreKept) {
    open();
    const std::string newer = "2 9cb0b67edac1b2b1 what this version cannot know\n";
    write(newer);
    {
        const auto journal = open();
        EXPECT_EQ(journal->damaged_lines(), 0u);
        for (int i = 0; i < 3000; ++i)
            EXPECT_TRUE(journal->put("a", '"' + std::string(60, 'a') + std::to_string(i) + '"'));
    }
    EXPECT_LT(text().size(), 200000u);  // was rewritten
    EXPECT_EQ(text().rfind(newer, 0), 0u);
    EXPECT_TRUE(open()->values().contains("a"));
}

TEST_F(JournalTest, IsRewrittenWhenMostOfItIsOutdated) {
    Values expected;
    {
        const auto journal = open();
        std::mt19937 random(6);
        for (int i = 0; i < 20000; ++i) {
            const std::string key = "job/" + std::to_string(random() % 50);
            if (random() % 10 == 0) {
                EXPECT_TRUE(journal->erase(key));
                expected.erase(key);
            } else {
                const std::string value = "{\"n\":" + std::to_string(i) + "}";
                EXPECT_TRUE(journal->put(key, value));
                expected[key] = value;
            }
        }
        EXPECT_EQ(journal->values(), expected);
    }
    EXPECT_LT(text().size(), 80000u);
    EXPECT_EQ(open()->values(), expected);
    EXPECT_FALSE(std::filesystem::exists(path_ + ".new"));
}

TEST_F(JournalTest, AFailedRewriteLosesNothing) {
    {
        const auto journal = open();
        std::filesystem::create_directory(path_ + ".new");  // cannot be opened for writing
        for (int i = 0; i < 5000; ++i) ASSERT_TRUE(journal->put("a", std::to_string(i)));
        EXPECT_GT(text().size(), 128u * 1024);
        std::filesystem::remove(path_ + ".new");
        for (int i = 5000; i < 10000; ++i) ASSERT_TRUE(journal->put("a", std::to_string(i)));
        EXPECT_LT(text().size(), 128u * 1024);
    }
    EXPECT_EQ(open()->values(), (Values{{"a", "9999"}}));
}

TEST_F(JournalTest, OneProcessAtATime) {
    const auto journal = open();
    const auto second = Journal::open(directory_, "jobs");
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, ErrorCode::busy);
    EXPECT_EQ(second.error().message,
              path_ +
                  ": another process has it open: give each slurmctld a StateDir of its own "
                  "or stop the other one");
    EXPECT_TRUE(Journal::open(directory_, "other"));
}

TEST_F(JournalTest, FoldersThatCannotBe) {
    const auto missing = Journal::open(scratch_ + "/none/state", "jobs");
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().message,
              scratch_ + "/none/state: cannot be made: No such file or directory");
    std::filesystem::create_directories(directory_);
    std::filesystem::create_directory(path_);
    EXPECT_FALSE(Journal::open(directory_, "jobs"));
    std::filesystem::remove(path_);
    std::filesystem::create_symlink("/etc/passwd", path_);
    EXPECT_FALSE(Journal::open(directory_, "jobs"));
    std::filesystem::remove(path_);
    ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
    EXPECT_FALSE(Journal::open(directory_, "jobs"));
}

// Files of this process may not grow beyond `bytes` while one of these lives, as on a full disk.
class FullDisk {
  public:
    explicit FullDisk(rlim_t bytes) {
        handler_ = std::signal(SIGXFSZ, SIG_IGN);
        ::getrlimit(RLIMIT_FSIZE, &before_);
        const struct rlimit limit { bytes, before_.rlim_max };
        ::setrlimit(RLIMIT_FSIZE, &limit);
    }
    ~FullDisk() {
        ::setrlimit(RLIMIT_FSIZE, &before_);
        std::signal(SIGXFSZ, handler_);
    }
    FullDisk(const FullDisk&) = delete;
    FullDisk& operator=(const FullDisk&) = delete;

  private:
    void (*handler_)(int);
    struct rlimit before_ {};
};

TEST_F(JournalTest, AFullDiskIsAnErrorAndTheNextPutCatchesUp) {
    {
        const auto journal = open();
        EXPECT_TRUE(journal->put("a", "1"));
        EXPECT_TRUE(journal->put("gone", "1"));
        std::string message;
        {
            const FullDisk full(text().size() + 10);
            const Status status = journal->put("b", "2");
            message = status ? "" : status.error().message;
            if (journal->put("a", "3")) message += " put";
        }
        EXPECT_EQ(message, path_ + ": cannot be written: File too large");
        EXPECT_EQ(journal->values(), (Values{{"a", "3"}, {"b", "2"}, {"gone", "1"}}));
        EXPECT_TRUE(journal->erase("gone"));
    }
    const auto journal = open();
    EXPECT_EQ(journal->values(), (Values{{"a", "3"}, {"b", "2"}}));
    EXPECT_GE(journal->damaged_lines(), 1u);
}

TEST_F(JournalTest, OnAFullDiskWhatIsOutdatedMakesRoom) {
    const auto journal = open();
    for (int i = 0; i < 20; ++i) EXPECT_TRUE(journal->put("a", '"' + std::string(1000, 'a') + '"'));
    EXPECT_TRUE(journal->put("b", "2"));
    {
        const FullDisk full(text().size());
        EXPECT_TRUE(journal->erase("a"));
    }
    EXPECT_LT(text().size(), 100u);
    EXPECT_TRUE(journal->put("c", "3"));
    EXPECT_EQ(journal->values(), (Values{{"b", "2"}, {"c", "3"}}));
    EXPECT_EQ(values_on_disk(), journal->values());
}

TEST_F(JournalTest, KillMinus9LosesNothingThatWasPut) {
    std::mt19937 random(7);
    for (int round = 0; round < 20; ++round) {
        int reports[2];
        ASSERT_EQ(::pipe(reports), 0);
        const pid_t child = ::fork();
        ASSERT_GE(child, 0);
        if (child == 0) {
            auto journal = Journal::open(directory_, "jobs");
            if (!journal) ::_exit(1);
            for (int i = 0; i < 1000000; ++i) {
                const std::string key = "job/" + std::to_string(i % 100);
                if (!(*journal)->put(key, std::to_string(round * 1000000 + i))) ::_exit(2);
                if (::write(reports[1], &i, sizeof i) != sizeof i) ::_exit(3);
            }
            ::_exit(4);
        }
        ::close(reports[1]);
        int done = 0;
        int last = -1;
        const int stop_after = 500 + static_cast<int>(random() % 5000);
        for (int i; ::read(reports[0], &i, sizeof i) == sizeof i; ++done) {
            last = i;
            if (done == stop_after) ::kill(child, SIGKILL);
        }
        ::close(reports[0]);
        int how = 0;
        ASSERT_EQ(::waitpid(child, &how, 0), child);
        ASSERT_TRUE(WIFSIGNALED(how)) << WEXITSTATUS(how);
        const auto journal = open();
        EXPECT_EQ(journal->damaged_lines(), 0u);
        for (int i = std::max(0, last - 99); i <= last; ++i) {
            const std::string& value = journal->values().at("job/" + std::to_string(i % 100));
            // The child may have come one further than it could report.
            EXPECT_GE(std::stol(value), round * 1000000 + i);
        }
    }
}

}  // namespace
}  // namespace sluice
