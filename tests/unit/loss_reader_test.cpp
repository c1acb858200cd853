// SPDX-License-Identifier: GPL-2.0-or-later
//
// What the reader of losses promises beyond single lines (samples_test.cpp): one file of many
// formats in any order, in any locale, cut anywhere; the fast path; keys.
#include <gtest/gtest.h>

#include <algorithm>
#include <cwctype>
#include <random>

#include "tests/unit/locales.hpp"
#include "tests/unit/loss_cases.hpp"

namespace sluice {
namespace {

/// The cases one behind the other, and the points of each of them.
struct OneFile {
    std::string text;
    Points points;
    std::string order;
};

OneFile joined(std::vector<Case> cases, std::mt19937& random, bool end_lines) {
    std::shuffle(cases.begin(), cases.end(), random);
    OneFile file;
    for (const Case& one : cases) {
        file.text += one.text;
        const bool ended = one.text.empty() || one.text.back() == '\n' || one.text.back() == '\r';
        if (end_lines && !ended) file.text += '\n';
        file.points.insert(file.points.end(), one.points.begin(), one.points.end());
        file.order += one.id + " ";
    }
    return file;
}

Points read_in_two(std::string_view text, std::size_t cut) {
    return read_pieces({text.substr(0, cut), text.substr(cut)});
}

/// In pieces of 1 to `most` bytes.
Points read_in_pieces(std::string_view text, std::mt19937& random, std::size_t most) {
    std::vector<std::string_view> pieces;
    while (!text.empty()) {
        const std::size_t size = std::min<std::size_t>(text.size(), 1 + random() % most);
        pieces.push_back(text.substr(0, size));
        text.remove_prefix(size);
    }
    return read_pieces(pieces);
}

void expect_the_same_points_however_cut() {
    std::mt19937 random(20261130);
    for (int round = 0; round < 40; ++round) {
        const OneFile file = joined(cases_of("loss-lines.jsonl"), random, round % 2 == 0);
        const std::string points = shown(file.points);
        ASSERT_EQ(shown(read(file.text)), points) << file.order;
        ASSERT_EQ(shown(read_in_pieces(file.text, random, 1)), points) << file.order;
        ASSERT_EQ(shown(read_in_pieces(file.text, random, 30)), points) << file.order;
        if (round >= 4) continue;
        for (std::size_t cut = 0; cut <= file.text.size(); ++cut)
            ASSERT_EQ(shown(read_in_two(file.text, cut)), points) << "cut at " << cut << file.order;
    }
}

TEST(LossReader, ReadsOneFileCutAnywhereInTheLocaleC) {
    expect_the_same_points_however_cut();
}

// U48: a reader that obeys the locale finds no "0.123" in Germany.
TEST(LossReader, ReadsOneFileCutAnywhereInGermany) {
    const InLocale locale("de_DE.UTF-8");
    ASSERT_EQ(locale.problem(), "");
    ASSERT_STREQ(std::localeconv()->decimal_point, ",");
    ASSERT_EQ(std::strtod("0.5", nullptr), 0.0) << "the locale is not in force";
    expect_the_same_points_however_cut();
}

// In Turkish the small letter of I is another one than i: "ITERATION" and "TRAINING".
TEST(LossReader, ReadsOneFileCutAnywhereInTurkey) {
    const InLocale locale("tr_TR.UTF-8");
    ASSERT_EQ(locale.problem(), "");
    ASSERT_EQ(std::towlower(L'I'), 0x131u) << "the locale is not in force";
    expect_the_same_points_however_cut();
    EXPECT_EQ(shown(read("ITERATION 5 | TRAINING LOSS: 0.25\n")), "[5,0.25] ");
}

TEST(LossReader, ReadsAllCasesInOneFileInAnyOrder) {
    const std::vector<Case> cases = cases_of("loss-lines.jsonl");
    std::mt19937 random(7);
    for (int round = 0; round < 2000; ++round) {
        const OneFile file = joined(cases, random, round % 2 == 0);
        ASSERT_EQ(shown(read(file.text)), shown(file.points)) << file.order;
    }
}

TEST(LossReader, TakesStepsFromEpochsWhereTheLogSaysHowLongTheyAre) {
    EXPECT_EQ(shown(read("  Num Epochs = 3\n  Total optimization steps = 375\n"
                         "{'loss': 2.5, 'epoch': 0.5}\n{'loss': 2.0, 'epoch': 1.6}\n")),
              "[63,2.5] [200,2] ");
    EXPECT_EQ(shown(read("steps_per_epoch: 1875\nEpoch 1 | train loss 0.5\n"
                         "Epoch 2 | train loss 0.4\n")),
              "[1875,0.5] [3750,0.4] ");
    // a step that is printed is the better one
    EXPECT_EQ(shown(read("steps per epoch: 100\nepoch 1 step 150 loss 0.5\n")), "[150,0.5] ");
    // nothing is known, or nothing that can be
    EXPECT_EQ(shown(read("{'loss': 2.5, 'epoch': 0.5}\n")), "[null,2.5] ");
    EXPECT_EQ(shown(read("Num Epochs = 9,223,372,036,854,775,807\n"
                         "Total optimization steps = 500\n{'loss': 2.5, 'epoch': 0.5}\n")),
              "[null,2.5] ");
    EXPECT_EQ(shown(read("Num Epochs = 0\nTotal optimization steps = 500\nsteps_per_epoch: nan\n"
                         "{'loss': 2.5, 'epoch': 0.5}\n")),
              "[null,2.5] ");
    EXPECT_EQ(shown(read("steps_per_epoch: 1e300\n{'loss': 2.5, 'epoch': 2}\n")), "[null,2.5] ");
}

TEST(LossReader, KeepsTheCountsOfSeveralFormatsApart) {
    // a count within epochs, and another one below it
    EXPECT_EQ(shown(read("Epoch [1][50/2931] loss: 3\nepoch 003: 5 / 356 loss=2.5\n"
                         "Epoch [2][40/2931] loss: 2\nepoch 004: 4 / 350 loss=1.5\n")),
              "[50,3] [5,2.5] [2971,2] [360,1.5] ");
    // the epoch of a whole report says nothing of other lines
    EXPECT_EQ(shown(read("epoch 1 step 0 loss 3\nepoch 2 step 0 loss 2\nstep: 7 loss: 1\n")),
              "[0,3] [1,2] [7,1] ");
}

TEST(LossReader, AReportBehindAProgressBarIsALineOfItsOwn) {
    const std::string bar = "\rSteps: 1%| | 27/5000 [00:17<37:10, 2.23it/s, loss=0.5]";
    EXPECT_EQ(shown(read(bar + "step: 30 loss: 0.4\n")), "[27,0.5] [30,0.4] ");
    EXPECT_EQ(shown(read(bar + "  iteration 30/ 100 | lm loss: 0.4\n")), "[27,0.5] [30,0.4] ");
    EXPECT_EQ(shown(read(bar + "03/22/2024 15:02:37 - saved, loss 0.4\n")), "[27,0.5] ");
    // Keras goes on behind its bar
    EXPECT_EQ(shown(read("5/60 [=>...] - ETA: 3s - loss: 0.4 - step: 5\n")), "[5,0.4] ");
    std::string many;
    for (int i = 1; i <= 2000; ++i)
        many += std::to_string(i) + "/5000 [00:17<37:10, 2.23it/s, loss=0.5]";
    EXPECT_FALSE(read(many + "\n").empty());
}

}  // namespace
}  // namespace sluice
