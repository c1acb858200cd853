// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/base/file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>

#include "common/base/kept_lines.hpp"
#include "tests/unit/scratch_dir.hpp"

namespace sluice {
namespace {

constexpr std::size_t limit = 100;

mode_t mode_of(const std::string& path) {
    struct stat info {};
    return ::stat(path.c_str(), &info) == 0 ? info.st_mode & 0777 : 0;
}

TEST(File, IsReplacedWholeAndForItsReaders) {
    const ScratchDir folder;
    const std::string path = folder.path() + "/a";
    EXPECT_EQ(read_file(path, limit).error().code, ErrorCode::not_found);
    ASSERT_TRUE(write_file(path, "one", FileReaders::owner));
    EXPECT_EQ(mode_of(path), 0600u);
    ASSERT_TRUE(write_file(path, "two"));
    EXPECT_EQ(mode_of(path), 0644u);
    EXPECT_EQ(*read_file(path, limit), "two");
    const Status failed = write_file(folder.path() + "/none/a", "three");
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().message, folder.path() + "/none/a: No such file or directory");
}

TEST(File, OutputGoesIntoWhatIsNoOrdinaryFile) {
    const ScratchDir folder;
    const std::string path = folder.path() + "/a";
    ASSERT_TRUE(write_output(path, "longer"));
    const std::string link = folder.path() + "/link";
    ASSERT_EQ(::symlink(path.c_str(), link.c_str()), 0);
    ASSERT_TRUE(write_output(link, "one"));
    struct stat info {};
    ASSERT_EQ(::lstat(link.c_str(), &info), 0);
    EXPECT_TRUE(S_ISLNK(info.st_mode));
    EXPECT_EQ(*read_file(path, limit), "one");

    const std::string pipe = folder.path() + "/pipe";
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    ASSERT_GE(reader, 0);
    EXPECT_TRUE(write_output(pipe, "two"));
    std::array<char, 8> got{};
    EXPECT_EQ(::read(reader, got.data(), got.size()), 3);
    EXPECT_STREQ(got.data(), "two");
    ::close(reader);
    ASSERT_EQ(::lstat(pipe.c_str(), &info), 0);
    EXPECT_TRUE(S_ISFIFO(info.st_mode));

    const Status failed = write_output(folder.path(), "three");
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().message, folder.path() + ": Is a directory");
}

TEST(File, IsSetAsideInPlaceOfAnOlderOne) {
    const ScratchDir folder;
    EXPECT_FALSE(set_aside(folder.path() + "/none"));
    for (const char* text : {"one", "two"}) {
        const auto aside = set_aside(folder.write("a", text));
        ASSERT_TRUE(aside) << aside.error().message;
        EXPECT_EQ(*read_file(*aside, limit), text);
        EXPECT_FALSE(read_file(folder.path() + "/a", limit));
    }
}

// --- kept lines

constexpr std::string_view header = "numbers 1";

Result<std::string> concatenated(std::string_view text) {
    std::string out;
    const auto damaged = take_kept_lines(text, header, [&out](std::string_view line) {
        if (line == "bad") return false;
        out += line;
        return true;
    });
    if (!damaged) return damaged.error();
    return out + "/" + std::to_string(*damaged);
}

TEST(KeptLines, ADamagedLineCostsItselfAlone) {
    EXPECT_EQ(*concatenated("numbers 1\na\nbad\n\nb\nbad"), "ab/2");
    EXPECT_EQ(*concatenated("numbers 1"), "/0");
    for (const char* text : {"", "\n", "numbers 2\na\n", "numbers 1 \na\n", "a\nnumbers 1\n"})
        EXPECT_FALSE(concatenated(text)) << text;
}

TEST(KeptLines, ErrorsBeginWithThePath) {
    const ScratchDir folder;
    EXPECT_EQ(read_kept_file(folder.path() + "/none", concatenated).error().code,
              ErrorCode::not_found);
    EXPECT_EQ(*read_kept_file(folder.write("good", "numbers 1\na\n"), concatenated), "a/0");
    const auto newer = read_kept_file(folder.write("newer", "numbers 2\n"), concatenated);
    ASSERT_FALSE(newer);
    EXPECT_EQ(newer.error().message, folder.path() + "/newer: \"numbers 2\" is not \"numbers 1\"");
    const std::string long_text = "numbers 1\n" + std::string(most_kept_bytes, 'a');
    EXPECT_FALSE(read_kept_file(folder.write("long", long_text), concatenated));
}

}  // namespace
}  // namespace sluice
