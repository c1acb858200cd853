// SPDX-License-Identifier: GPL-2.0-or-later
//
// What the reader of losses promises beyond single lines (samples_test.cpp): one file of many
// formats in any order, in any locale, cut anywhere; the fast path; keys.
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <cwctype>
#include <limits>
#include <random>

#include "common/base/loss_key.hpp"
#include "common/samples/key_pattern.hpp"
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
        if (round >= 2) continue;
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

// --- the fast path: what no hint points at is passed over, and nothing is lost

std::string all_found(std::string_view text, LossReaderOptions options, std::size_t most_bytes,
                      std::mt19937 random) {
    LossReader reader(std::move(options));
    Points points;
    while (!text.empty()) {
        const std::size_t size = std::min<std::size_t>(text.size(), 1 + random() % most_bytes);
        reader.feed(text.substr(0, size), points);
        text.remove_prefix(size);
    }
    reader.finish(points);
    std::string out = shown(points) + "last " + std::to_string(reader.last_step().value_or(-1));
    for (const std::string& key : reader.keys_seen()) out += ", " + key;
    return out;
}

void expect_fast_is_slow(const std::string& text, std::mt19937& random) {
    for (const char* key : {"", "val loss", "l", "it", "ppl 2"}) {
        LossReaderOptions options;
        options.key = key;
        // the fast path begins where enough names have been seen
        options.max_keys_seen = random() % 8;
        options.max_line_bytes = random() % 4 == 0 ? 40 : 65536;
        const std::size_t most = random() % 2 == 0 ? 20 : 100000;
        const std::string fast = all_found(text, options, most, random);
        options.every_line = true;
        ASSERT_EQ(fast, all_found(text, options, text.size() + 1, random))
            << "key \"" << key << "\", max_keys_seen " << options.max_keys_seen
            << ", max_line_bytes " << options.max_line_bytes << ", text:\n"
            << text;
    }
}

TEST(LossReader, FindsOnTheFastPathWhatItFindsLineByLine) {
    static constexpr const char* pieces[] = {"loss",
                                             "LOSS",
                                             "lo",
                                             "ss",
                                             "step",
                                             "Step",
                                             "ep",
                                             "EP",
                                             "epoch",
                                             "oc",
                                             "it",
                                             "IT",
                                             "itr",
                                             "iter",
                                             "ation",
                                             "update",
                                             "updates",
                                             "num ",
                                             "progress",
                                             "batch",
                                             "data",
                                             "sample",
                                             "train",
                                             "val",
                                             "eval",
                                             "global",
                                             "ppl",
                                             "2",
                                             "l",
                                             "is",
                                             "tensor",
                                             "np.float64",
                                             "Unknown",
                                             "per",
                                             "Num ",
                                             "at",
                                             "the",
                                             "and",
                                             "rank",
                                             "nan",
                                             "1",
                                             "27",
                                             "5000",
                                             "0.5",
                                             "1e3",
                                             "-1",
                                             "12,500",
                                             "inf",
                                             " ",
                                             " ",
                                             " ",
                                             "  ",
                                             "\t",
                                             ":",
                                             ": ",
                                             "=",
                                             "/",
                                             " / ",
                                             "/ ",
                                             " /",
                                             ",",
                                             ", ",
                                             ";",
                                             "|",
                                             "_",
                                             "-",
                                             ".",
                                             "[",
                                             "]",
                                             "(",
                                             ")",
                                             "{",
                                             "}",
                                             "'",
                                             "\"",
                                             "\\",
                                             "<",
                                             "%",
                                             "\33[31m",
                                             "\33[0m",
                                             "\33[",
                                             "\33",
                                             "\33]0;a\a",
                                             "\n",
                                             "\n",
                                             "\n",
                                             "\r",
                                             "\n\n",
                                             "11/01 20:14:15",
                                             "2025/09/08",
                                             "32it [00:10, 3it/s]",
                                             "s/it",
                                             "\303\251",
                                             "\0x"};
    // and what a line is mostly made of
    static constexpr const char* names[] = {"loss",
                                            "Train Loss",
                                            "val loss",
                                            "ep",
                                            "EPOCH",
                                            "it",
                                            "the it",
                                            "itr",
                                            "iter",
                                            "step",
                                            "progress",
                                            "batch",
                                            "train",
                                            "num updates",
                                            "lm loss:",
                                            "steps per epoch",
                                            "loss at step",
                                            "",
                                            "l",
                                            "ppl 2",
                                            "data"};
    static constexpr const char* marks[] = {" ",  ": ", "=",   "\": \"",     " is ",   ": tensor(",
                                            " [", ":",  " = ", ": {\"a\": ", " is ([", "\t"};
    static constexpr const char* values[] = {"5",          "0.5",         "32/100", "5 / 100",
                                             "32/Unknown", "32it [00:10", "nan",    "7/9",
                                             "11/01",      "1e3",         "50%|",   "8/9 ["};
    const auto one_of = [](const auto& list, std::mt19937& from) {
        return list[from() % std::size(list)];
    };
    std::mt19937 random(4);
    for (int round = 0; round < 12000; ++round) {
        std::string text;
        const std::size_t count = 1 + random() % 30;
        for (std::size_t i = 0; i < count; ++i) {
            if (round % 3 == 0) {
                text += one_of(pieces, random);
            } else {
                std::string item = one_of(names, random);
                item += one_of(marks, random);
                item += one_of(values, random);
                if (random() % 4 == 0) item.insert(random() % item.size(), one_of(pieces, random));
                if (random() % 3 == 0) item.insert(random() % item.size(), "\33[1m");
                text += item + (random() % 2 == 0 ? " " : "\n");
            }
        }
        expect_fast_is_slow(text, random);
        if (HasFatalFailure()) return;
    }
}

TEST(LossReader, FindsOnTheFastPathWhatIsInRealLogs) {
    std::mt19937 random(5);
    std::vector<Case> cases = all_cases();
    for (int round = 0; round < 100; ++round) {
        std::shuffle(cases.begin(), cases.end(), random);
        std::string text;
        for (const Case& one : cases) {
            text += one.text;
            for (std::size_t lines = random() % 4; lines > 0; --lines)
                text += "worker 3: cache miss, it is 5 past, nothing to report\n";
        }
        // and mutilated
        for (int i = round % 2 == 0 ? 0 : 200; i > 0; --i)
            text[random() % text.size()] = static_cast<char>(random());
        expect_fast_is_slow(text, random);
        if (HasFatalFailure()) return;
    }
}

// Each of these made a search that looks ahead or back look at the same bytes again and again.
TEST(LossReader, TakesLinearTimeWhateverTheLine) {
    for (const char* piece :
         {"-it-", "it ", "ep.", "it(", "1/", " /", "\33[", "32it ", "itr-is-", "step",
          "loss:", "[1:2<3", "{'loss': ", "1,234", "epoch [", "a/b@c#", "\\\""}) {
        std::string text = "a: 1\n";
        while (text.size() < 4'000'000) text += piece;
        LossReaderOptions options;
        options.max_keys_seen = 1;
        LossReader reader(options);
        Points points;
        reader.feed(text + "\n" + text, points);  // a line, and one without an end
        reader.finish(points);
        EXPECT_LE(points.size(), 2u) << piece;
    }
}

/// Processor time to read the line, in seconds: the least of a few tries, as others run beside.
double time_to_read(const std::string& line) {
    double least = std::numeric_limits<double>::infinity();
    for (int tries = 0; tries < 3; ++tries) {
        LossReaderOptions options;
        options.max_keys_seen = 1;
        options.max_line_bytes = line.size() + 2;
        LossReader reader(options);
        Points points;
        const std::clock_t begin = std::clock();
        reader.feed(line, points);
        reader.finish(points);
        least = std::min(least, static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
    }
    return least;
}

// Ids of tokens, printed as a list, look like one long number until its end.
TEST(LossReader, TakesNoMoreThanTwiceTheTimeForTwiceTheLine) {
    constexpr std::size_t bytes = std::size_t{16} * 1024;
    for (const char* piece : {"000,", "111,", "1,", "1,234 ", "a=1,", "((((", "\":", "[[", "%|",
                              ": : :", "7", "1:2:3:", "1/2/3/", "is ", "-", ".5", "a(", "\t"}) {
        std::string line = "loss ";
        const auto grow_to = [&](std::size_t size) {
            while (line.size() < size) line += piece;
            return time_to_read(line + "1\n");
        };
        const double once = std::max(grow_to(bytes), 1e-4);
        // 8 where it is linear, 64 where it is quadratic
        EXPECT_LT(grow_to(8 * bytes) / once, 24) << piece;
    }
}

TEST(LossReader, LosesNoLineBehindAMillionOthers) {
    const std::string chatter = "2025-09-08 I cache.cc:88] evicted 12 pages, hit rate 0.93\r\n";
    std::string text;
    for (int block = 0; block < 40; ++block) {
        for (int i = 0; i < 5000; ++i) text += chatter;
        text += "step " + std::to_string(block) + " loss 0." + std::to_string(block + 10) + "\n";
    }
    const Points points = read(text);
    ASSERT_EQ(points.size(), 40u);
    EXPECT_EQ(points.back(), (LossPoint{39, 0.49}));
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

TEST(LossReader, StepsOverEpochsStayWhatARecordHolds) {
    EXPECT_EQ(shown(read("epoch 1 step 9007199254740000 loss 3\n"
                         "epoch 2 step 9007199254739999 loss 2\n")),
              "[9007199254740000,3] [9007199254739999,2] ");
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

// --- what users ran into

// U44: the whole grammar of numbers.
TEST(LossReader, ReadsEveryFormOfANumber) {
    EXPECT_EQ(shown(read("iter 1 loss = 6.05e-06\niter 2 loss = 1E+01\niter 3 loss = -.5\n"
                         "iter 4 loss = +2.\niter 5 loss = nan\niter 6 loss = -nan\n"
                         "iter 7 loss = inf\niter 8 loss = -INF\niter 9 loss = NaN\n"
                         "iter 10 loss = Infinity\niter 11 loss = 1e-400\niter 12 loss = 1e400\n")),
              "[1,6.05e-06] [2,10] [3,-0.5] [4,2] [5,nan] [6,nan] [7,inf] [8,-inf] [9,nan] "
              "[10,inf] [11,0] [12,inf] ");
}

// U45: a line that has changed is read by its names; where they are others, they are shown.
TEST(LossReader, ALineThatHasChangedIsReadOrItsNamesAreShown) {
    EXPECT_EQ(shown(read("Iteration 100, loss = 0.5\nIteration 200 (2.5 iter/s, 40s/100 iters), "
                         "loss = 0.4\n[300] lr 0.1 | Iteration: 300 | time 3 | loss: 0.3\n")),
              "[100,0.5] [200,0.4] [300,0.3] ");
    LossReader reader;
    Points points;
    std::string text;
    for (int i = 0; i < 100; ++i) text += "  setting_" + std::to_string(i) + " = 5\n";
    text += "Iteration 400, objective = 0.3, pg_loss = 0.1\n";
    reader.feed(text, points);
    reader.finish(points);
    EXPECT_TRUE(points.empty());
    const auto& keys = reader.keys_seen();
    EXPECT_LE(keys.size(), 32u);
    for (const char* key : {"setting_0", "Iteration", "objective", "pg_loss"})
        EXPECT_NE(std::find(keys.begin(), keys.end(), key), keys.end()) << key;
}

TEST(LossReader, ShowsAnUnknownLossFarIntoALog) {
    LossReader reader;
    Points points;
    for (int i = 0; i < 6000; ++i) reader.feed("worker 3: cache miss\n", points);
    reader.feed("the actor says my_loss_term=0.5\n", points);
    reader.finish(points);
    const auto& keys = reader.keys_seen();
    EXPECT_NE(std::find(keys.begin(), keys.end(), "the actor says my_loss_term"), keys.end());
}

// U46: bars make one line of 30 MB.
TEST(LossReader, ReadsThirtyMegabytesOfProgressBars) {
    LossReader reader;
    Points points;
    std::size_t fed = 0;
    std::int64_t step = 0;
    while (fed < 30'000'000) {
        ++step;
        const std::string bar = "\r 12%|##   | " + std::to_string(step) +
                                "/900000 [00:01<00:08, 10it/s, loss=" +
                                format_number(1 + 1 / static_cast<double>(step)) + "]";
        reader.feed(bar, points);
        fed += bar.size();
    }
    reader.finish(points);
    ASSERT_EQ(points.size(), static_cast<std::size_t>(step));
    EXPECT_EQ(points.back().step, step);
}

// U47: every rank prints every step, in any order.
TEST(LossReader, KeepsOnePointAStepOfManyRanks) {
    std::mt19937 random(8);
    std::string text;
    std::string expected;
    std::vector<int> ranks{0, 1, 2, 3, 4, 5, 6, 7};
    for (int step = 1; step <= 200; ++step) {
        std::shuffle(ranks.begin(), ranks.end(), random);
        for (const int rank : ranks) {
            text += "[rank" + std::to_string(rank) + "]: step: " + std::to_string(step) +
                    " loss: " + std::to_string(rank + 1) + "\n";
        }
        expected += "[" + std::to_string(step) + ",1] ";
    }
    EXPECT_EQ(shown(read(text)), expected) << "rank 0 speaks for all";
}

// U49: an overflow shows as a loss of exactly 0 for ever, so the fit has to get to see it.
TEST(LossReader, PassesOnALossOfExactlyZero) {
    EXPECT_EQ(shown(read("step 1 loss 2\nstep 2 loss 0.0\nstep 3 loss: 0\nstep 4 loss 0.000\n")),
              "[1,2] [2,0] [3,0] [4,0] ");
}

// --- keys that are patterns

Points read_key(std::string_view text, const std::string& key) {
    LossReaderOptions options;
    const Status status = set_loss_key(options, key);
    EXPECT_TRUE(status) << (status ? "" : status.error().message);
    return read_pieces({text}, options);
}

std::string refusal(const std::string& key) {
    LossReaderOptions options;
    options.key = "before";
    const Status status = set_loss_key(options, key);
    EXPECT_EQ(options.key, status ? key : "before");
    return status ? "" : status.error().message;
}

TEST(LossKey, APatternMatchesWholeNames) {
    const std::string nanogpt = "step 100: train loss 2.4989, val loss 2.5072\n";
    EXPECT_EQ(shown(read_key(nanogpt, "/val loss/")), "[100,2.5072] ");
    EXPECT_EQ(shown(read_key(nanogpt, "/.*LOSS/")), "[100,2.4989] ") << "the first of a line";
    EXPECT_EQ(shown(read_key(nanogpt, "/loss/")), "") << "the whole name";
    EXPECT_EQ(shown(read_key("step 5 aux/loss_3: 1.5 aux/loss_12: 9\n", "/aux\\/loss_\\d{2,}/")),
              "[5,9] ");
    EXPECT_EQ(shown(read_key("step 5 perplexity: 20 acc=0.5\n", "/ppl|perplexity/")), "[5,20] ");
    EXPECT_EQ(shown(read_key("step,a loss,b loss\n1,2,3\n2,1,2.5\n", "/b .*/")), "[1,3] [2,2.5] ");
    // wherever it stands
    EXPECT_EQ(shown(read_key("valid | step 7 | nll 3.5\n", "/nll/")), "[7,3.5] ");
}

TEST(LossKey, AKeyOfSeveralWordsIsANameInAnySpelling) {
    for (const char* key : {"mean episode loss", "mean_episode_loss", "Mean/Episode-Loss"}) {
        EXPECT_EQ(shown(read_key("step 3 mean/episode_loss: 0.5 loss: 7\n", key)), "[3,0.5] ");
        EXPECT_EQ(shown(read_key("step 3 | Mean Episode Loss = 0.5\n", key)), "[3,0.5] ");
        EXPECT_EQ(shown(read_key("step 3 | episode loss = 0.5\n", key)), "");
    }
}

TEST(LossKey, RefusesWhatIsNoPattern) {
    const std::vector<std::pair<std::string, std::string>> bad{
        {"", "is empty"},
        {"//", "has none of a-z, A-Z and 0-9"},
        {"#", "has none of a-z, A-Z and 0-9"},
        {std::string(65, 'a'), "has 65 bytes"},
        {"/(a/", "\"(\" without \")\" at character 3"},
        {"/a)/", "\")\" without \"(\" at character 2"},
        {"/*a/", "nothing to repeat"},
        {"/a|+/", "nothing to repeat"},
        {"/a**/", "repeats a repetition"},
        {"/^*/", "repeats a border"},
        {"/[a/", "\"[\" without \"]\""},
        {"/[]/", "an empty set"},
        {"/[z-a]/", "no range"},
        {"/[a-\\d]/", "no range"},
        {"/a/b/", "\"/\" without a \\ before it at character 2"},
        {"/a{2/", "\"{\" without \"}\""},
        {"/a{x}/", "no number"},
        {"/a{3,2}/", "a repetition that is not"},
        {"/a{1000}/", "a repetition that is not"},
        {"/(a{100}){100}/", "more than 500 places"},
        {"/(?=a)b/", "something else than \"(?:\""},
        {"/(?P<n>a)/", "something else than \"(?:\""},
        {"/(a)\\1/", "\"\\\" before none of"},
        {"/a\\/", "\"\\\" before none of"},
        {"/caf\303\251/", "printable ASCII"},
        {std::string("/a\0b/", 5), "printable ASCII"},
    };
    for (const auto& [key, why] : bad) {
        const std::string message = refusal(key);
        EXPECT_NE(message.find(why), std::string::npos) << key << ": " << message;
        if (!message.empty()) {
            EXPECT_NE(message.find(": write the name of the loss"), std::string::npos) << message;
        }
    }
}

TEST(LossKey, APatternMadeToBlowUpIsLinear) {
    const std::string name(60, 'a');
    std::string text;
    for (int i = 0; i < 200; ++i) text += name + std::to_string(i) + ": 2.5\n";
    for (const char* key : {"/(a*)*b/", "/(a|aa)+b/", "/(a|a?)+b/", "/(.*)(.*)(.*)(.*)(.*)b/",
                            "/a{0,100}a{0,100}b/", "/((a?){7}){7}b/"}) {
        EXPECT_EQ(shown(read_key(text, key)), "") << key;
    }
}

/// Slurm's daemons check patterns without an engine: what they let pass has to compile.
TEST(LossKey, EveryLegalPatternCompiles) {
    static constexpr const char* pieces[] = {
        "a",    "Z",      "0",          "_",         " ",    ".",   "-",     ",",     "<",
        "&",    ":",      "(",          "(",         "(?:",  ")",   ")",     "|",     "*",
        "+",    "?",      "??",         "{2}",       "{3,}", "{0}", "{2,9}", "{100}", "[a-z]",
        "[^a]", "[\\d_]", "[^\\W\\S-]", "[",         "]",    "^",   "$",     "\\d",   "\\W",
        "\\b",  "\\B",    "\\.",        "\\\\",      "\\/",  "\\_", "\\ ",   "\\-",   "[\\]]",
        "[a-]", "[.-9]",  "\\S{50}",    "[!-~]{99}", "}",    "/"};
    std::mt19937 random(6);
    int legal = 0;
    for (int round = 0; round < 40000; ++round) {
        std::string key = "/";
        const std::size_t count = 1 + random() % (round % 2 == 0 ? 6 : 20);
        for (std::size_t i = 0; i < count; ++i) key += pieces[random() % std::size(pieces)];
        key += "/";
        if (!check_loss_key(key)) continue;
        ++legal;
        EXPECT_EQ(refusal(key), "") << key;
    }
    EXPECT_GT(legal, 3000);
    // the largest ones
    for (const char* key : {"/(\\W\\W\\W\\W\\W\\W\\W\\W\\W\\W\\W\\W\\W\\W\\W\\W){27}/",
                            "/([^a]){80}([^b]){80}([^c])/", "/\\S{60}\\W{60}[!-~]{60}\\D{60}/",
                            "/((((((((((\\W?)?)?)?)?)?)?)?)?)?){20}/", "/(\\W{0,20}){0,10}/"}) {
        ASSERT_TRUE(check_loss_key(key)) << key << check_loss_key(key).error().message;
        EXPECT_EQ(refusal(key), "") << key;
    }
}

}  // namespace
}  // namespace sluice
