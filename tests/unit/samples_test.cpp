// SPDX-License-Identifier: GPL-2.0-or-later
#include <gtest/gtest.h>

#include <random>
#include <sstream>

#include "common/base/text.hpp"
#include "common/samples/loss_reader.hpp"
#include "tests/unit/loss_cases.hpp"

namespace sluice {
namespace {

TEST(LossReader, ReadsTheLinesThatUsersReported) {
    const auto cases = cases_of("loss-lines.jsonl");
    EXPECT_EQ(cases.size(), 19u);
    for (const Case& one : cases) EXPECT_EQ(shown(read(one.text)), shown(one.points)) << one.id;
}

TEST(LossReader, ReadsTheLogsOfManyFrameworks) {
    const auto cases = cases_of("families.jsonl");
    EXPECT_GT(cases.size(), 80u);
    for (const Case& one : cases) EXPECT_EQ(shown(read(one.text)), shown(one.points)) << one.id;
}

TEST(LossReader, DoesNotDependOnWhereTheInputIsCut) {
    for (const Case& one : all_cases()) {
        const std::string_view text = one.text;
        std::vector<std::string_view> bytes;
        for (std::size_t cut = 0; cut <= text.size(); ++cut) {
            EXPECT_EQ(shown(read_pieces({text.substr(0, cut), text.substr(cut)})),
                      shown(one.points))
                << one.id << " cut at " << cut;
            if (cut < text.size()) bytes.push_back(text.substr(cut, 1));
        }
        EXPECT_EQ(shown(read_pieces(bytes)), shown(one.points)) << one.id << " byte by byte";
    }
}

TEST(LossReader, ReadsFarIntoALogWhatItReadsAtItsBegin) {
    std::string before;
    for (int i = 0; i < 5000; ++i) before += "worker 3: cache miss, nothing to report\n";
    for (const Case& one : all_cases()) {
        EXPECT_EQ(shown(read(before + one.text)), shown(one.points)) << one.id;
    }
}

TEST(LossReader, ReadsMutilatedLinesTheSameInPieces) {
    std::mt19937 random(20240229);
    std::string all;
    for (const Case& one : all_cases()) all += one.text;
    for (int round = 0; round < 200; ++round) {
        std::string text = all;
        for (int i = 0; i < 60; ++i) text[random() % text.size()] = static_cast<char>(random());
        for (int i = 0; i < 10; ++i) text.erase(random() % text.size(), random() % 40);
        std::vector<std::string_view> pieces;
        for (std::string_view rest = text; !rest.empty();) {
            const std::size_t size = std::min<std::size_t>(rest.size(), 1 + random() % 300);
            pieces.push_back(rest.substr(0, size));
            rest.remove_prefix(size);
        }
        EXPECT_EQ(shown(read_pieces(pieces)), shown(read(text))) << "round " << round;
    }
}

TEST(LossReader, AKeyNamesTheLoss) {
    const std::string megatron =
        " iteration       20/ 1000000 | lm loss: 1.005022E+01 | sop loss: 8.174902E-01 | loss "
        "scale: "
        "32768.0 |\n";
    EXPECT_EQ(shown(read(megatron, "sop loss")), "[20,0.8174902] ");
    EXPECT_EQ(shown(read(megatron, "Loss_Scale")), "[20,32768] ");
    EXPECT_EQ(shown(read(megatron, "loss")), "");
    const std::string nanogpt =
        "step 100: train loss 2.4989, val loss 2.5072\niter 110: loss 2.4, time 14ms\n";
    EXPECT_EQ(shown(read(nanogpt, "val loss")), "[100,2.5072] ");
    EXPECT_EQ(shown(read(nanogpt, "loss")), "[110,2.4] ");
    EXPECT_EQ(shown(read("2020-03-03 | INFO | valid | epoch 003 | loss 8.91 | num_updates 1068\n",
                         "loss")),
              "");
    EXPECT_EQ(shown(read(" validation loss at iteration 10 | lm loss value: 6.0E+00 |\n",
                         "lm loss value")),
              "[null,6] ");
    EXPECT_EQ(shown(read("step,loss,val_loss\n1,2,3\n2,1,2.5\n", "val_loss")), "[1,3] [2,2.5] ");
}

TEST(LossReader, AFormatLeavesOutTheRest) {
    LossReaderOptions json;
    json.format = LossReaderOptions::Format::json_lines;
    const std::string text = "step 1 loss 9\n{\"step\": 2, \"loss\": 2.5}\nstep,loss\n3,2.4\n";
    EXPECT_EQ(shown(read_pieces({text}, json)), "[2,2.5] ");
    LossReaderOptions csv;
    csv.format = LossReaderOptions::Format::csv;
    EXPECT_EQ(shown(read_pieces({text}, csv)), "[3,2.4] ");
    LossReaderOptions plain;
    plain.format = LossReaderOptions::Format::text;
    EXPECT_EQ(shown(read_pieces({text}, plain)), "[1,9] [2,2.5] ");
    EXPECT_EQ(shown(read_pieces({"loss\n2.5\n2.4\n"}, csv)), "[null,2.5] [null,2.4] ");
}

TEST(LossReader, KeepsTheLastPointUntilItIsSure) {
    LossReader reader;
    Points points;
    reader.feed("step 1 loss 3\nstep 2 loss 2.5\n", points);
    EXPECT_EQ(shown(points), "[1,3] ");
    reader.feed("step 2 loss 2.4\nstep 3 lo", points);
    EXPECT_EQ(shown(points), "[1,3] ");
    reader.feed("ss 2", points);
    reader.finish(points);
    EXPECT_EQ(shown(points), "[1,3] [2,2.4] [3,2] ");
}

TEST(LossReader, CountsProgressWithoutALoss) {
    LossReader reader;
    Points points;
    EXPECT_FALSE(reader.last_step().has_value());
    reader.feed(" iteration       10/ 1000000 | loss scale: 8388608.0 |\n", points);
    EXPECT_EQ(reader.last_step(), 10);
    reader.feed("Loading checkpoint shards: 100%|##| 77/77 [00:05<00:00,  2.9s/it]\n", points);
    reader.feed("Accuracy: 9800/10000 (98%)\n[500/1000] c++ -O2 a.cpp\n", points);
    reader.feed("Validation: 60/100\nEval step 99: loss 3\nmax_steps: 5000\n", points);
    EXPECT_EQ(reader.last_step(), 10);
    reader.feed("\r 12%|##    | 12/100 [00:01<00:08,  10it/s]\r", points);
    EXPECT_EQ(reader.last_step(), 12);
    reader.feed("step: 11 lr: 0.1\n", points);
    EXPECT_EQ(reader.last_step(), 12);
    EXPECT_TRUE(points.empty());
}

TEST(LossReader, NamesTheKeysOfALogWithoutALoss) {
    LossReaderOptions options;
    options.max_keys_seen = 3;
    LossReader reader(options);
    Points points;
    reader.feed("step: 1 perplexity: 20.1 acc=0.5\nstep: 2 perplexity: 19 lr 0.1 other: 5\n",
                points);
    reader.finish(points);
    EXPECT_TRUE(points.empty());
    EXPECT_EQ(reader.keys_seen(), (std::vector<std::string>{"step", "perplexity", "acc"}));
    LossReader hostile;
    hostile.feed(std::string(100, 'a') + ": 5\n\"a\tb\x01\": 3\n", points);
    for (const std::string& key : hostile.keys_seen()) EXPECT_LE(key.size(), 64u);
}

TEST(LossReader, SurvivesALineOf40Megabytes) {
    LossReader reader;
    Points points;
    const std::string piece = std::string(1000, '#') + " loss: 1 step: 1 ";
    reader.feed("step: 1 ", points);
    for (std::size_t fed = 0; fed < 40'000'000; fed += piece.size()) reader.feed(piece, points);
    reader.feed("\nstep: 2 loss: 2.5\n", points);
    reader.finish(points);
    EXPECT_EQ(shown(points), "[1,1] [2,2.5] ");
}

TEST(LossReader, DoesNotReadHalfANumberAtTheEndOfALongLine) {
    LossReaderOptions options;
    options.max_line_bytes = 16;
    EXPECT_EQ(shown(read_pieces({"step 5 loss 2.345\n"}, options)), "");
    EXPECT_EQ(shown(read_pieces({"step 5 loss 2.3 xxxxxx\n"}, options)), "[5,2.3] ");
}

TEST(LossReader, ARestartWithinEpochsGoesBack) {
    EXPECT_EQ(shown(read("Epoch [1][90/100] loss: 3\nEpoch [2][10/100] loss: 2\n"
                         "Epoch [3][50/100] loss: 1\nEpoch [2][20/100] loss: 2\n")),
              "[90,3] [110,2] [250,1] [120,2] ");
    // steps that go on over epochs are left alone
    EXPECT_EQ(shown(read("epoch 1 step 90 loss 3\nepoch 2 step 110 loss 2\n")), "[90,3] [110,2] ");
}

TEST(LossReader, AnEvaluationBarIsNoStepOfTheTraining) {
    EXPECT_EQ(
        shown(read("\r 50%|##| 500/1000 [00:17<37:10,  2.23it/s]\r{'loss': 2.0, 'epoch': 1.0}\n"
                   "\r 50%|##| 500/1000 [00:17<37:10,  2.23it/s]\r"
                   "\r 10%|# | 1/10 [00:00<00:01, 9it/s]\r100%|##| 10/10 [00:01<00:00, 9it/s]"
                   "\r{'eval_loss': 2.5, 'epoch': 1.0}\n"
                   "\r 51%|##| 510/1000 [00:17<37:10,  2.23it/s]\r{'loss': 1.9, 'epoch': 1.02}\n")),
        "[500,2] [510,1.9] ");
}

TEST(LossReader, KeepsHostileNumbersInRange) {
    EXPECT_EQ(shown(read("step 99999999999999999999 loss 2\n")), "[null,2] ");
    EXPECT_EQ(shown(read("step -5 loss 2\n")), "[null,2] ");
    EXPECT_EQ(shown(read("step 1.5 loss 2\n")), "[null,2] ");
    EXPECT_EQ(shown(read("step 1 loss 1e999\n")), "[1,inf] ");
    EXPECT_EQ(shown(read("step 1 loss 1e-999\n")), "[1,0] ");
    EXPECT_EQ(shown(read("Epoch [1][5/9007199254740992] loss: 3\n"
                         "Epoch [9007199254740992][1/9007199254740992] loss: 2\n")),
              "[5,3] [1,2] ");
}

}  // namespace
}  // namespace sluice
