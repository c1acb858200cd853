// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/jobspec/jobspec.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <random>

namespace sluice {
namespace {

using Options = std::vector<std::pair<std::string, std::string>>;

std::string error_of(const Options& options) {
    const auto spec = parse_options(options);
    return spec ? "" : spec.error().message;
}

TEST(JobSpec, ReadsEveryOption) {
    const auto spec = parse_options({{"train-model", "gpt2/medium-v1.0"},
                                     {"train-batch", "512"},
                                     {"train-gpus", "1-16"},
                                     {"train-loss", "csv:logs/run %j;1.csv"},
                                     {"train-loss-key", "lm loss"},
                                     {"train-target", "2.5"},
                                     {"train-resize", "restart"},
                                     {"train-signal", "B:USR2@90"},
                                     {"train-advise", "yes"}});
    ASSERT_TRUE(spec) << spec.error().message;
    EXPECT_EQ(spec->model, "gpt2/medium-v1.0");
    EXPECT_EQ(spec->batch, 512);
    EXPECT_EQ(spec->sizes.size(), 16u);
    EXPECT_EQ(spec->loss, "csv:logs/run %j;1.csv");
    EXPECT_EQ(spec->loss_key, "lm loss");
    EXPECT_EQ(spec->target->kind, Target::Kind::loss);
    EXPECT_EQ(spec->target->loss, 2.5);
    EXPECT_EQ(spec->resize, ResizeMode::restart);
    EXPECT_TRUE(spec->signal.batch_only);
    EXPECT_EQ(spec->signal.number, SIGUSR2);
    EXPECT_EQ(spec->signal.grace, std::chrono::seconds(90));
    EXPECT_TRUE(spec->advise);
    EXPECT_EQ(
        to_text(*spec),
        "v1;model=gpt2/medium-v1.0;batch=512;gpus=1-16;loss=csv:logs/run %j\\;1.csv;loss-key=lm "
        "loss;target=2.5;resize=restart;signal=B:USR2@90;advise=yes");
    const auto again = parse_spec(to_text(*spec));
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(*again, *spec);
}

TEST(JobSpec, NothingAskedIsTheDefault) {
    const auto spec = parse_options({});
    ASSERT_TRUE(spec);
    EXPECT_EQ(to_text(*spec), "v1");
    EXPECT_EQ(spec->resize, ResizeMode::off);
    EXPECT_EQ(*parse_spec("v1"), *spec);
    EXPECT_EQ(parse_options({{"gpus", "1-4"}})->resize, ResizeMode::start);
    // Without sizes there is nothing to resize to, whatever a site sets in its users' environment.
    EXPECT_EQ(parse_options({{"resize", "restart"}})->resize, ResizeMode::off);
}

TEST(JobSpec, NamesAsSlurmSpellsThem) {
    EXPECT_EQ(parse_options({{"train_loss_key", "loss"}})->loss_key, "loss");
    EXPECT_EQ(parse_options({{"loss-key", "loss"}})->loss_key, "loss");
    EXPECT_EQ(parse_options({{"gpus", "2"}, {"train-gpus", "4"}})->sizes, std::vector<int>{4});
    EXPECT_EQ(error_of({{"train-gpu", "2"}}),
              "\"train-gpu\" is no option of Sluice: write one of --train-model, --train-batch, "
              "--train-gpus, "
              "--train-loss, --train-loss-key, --train-target, --train-resize, --train-signal, "
              "--train-advise");
    EXPECT_NE(error_of({{std::string(100000, 'x'), "2"}}), "");
    EXPECT_NE(error_of({{"", "2"}}), "");
    EXPECT_NE(error_of({{"train-", "2"}}), "");
}

struct SizesCase {
    const char* text;
    std::vector<int> sizes;
    const char* canonical;
};

TEST(JobSpec, Sizes) {
    const std::vector<SizesCase> cases = {
        {"4", {4}, "4"},
        {"1-4", {1, 2, 3, 4}, "1-4"},
        {"2,4,8,16", {2, 4, 8, 16}, "2-16:x2"},
        {"16,2,8,4,4", {2, 4, 8, 16}, "2-16:x2"},
        {"2-16:2", {2, 4, 6, 8, 10, 12, 14, 16}, "2-16:2"},
        {"1-16:4", {1, 5, 9, 13}, "1-13:4"},
        {"1-16:x2", {1, 2, 4, 8, 16}, "1-16:x2"},
        {"3-20:x2", {3, 6, 12}, "3-12:x2"},
        {"2,4", {2, 4}, "2,4"},
        {"3,4", {3, 4}, "3-4"},
        {"1-3,8,9-9,16-20:2", {1, 2, 3, 8, 9, 16, 18, 20}, "1-3,8-9,16-20:2"},
        {" 1 , 2 ", {1, 2}, "1-2"},
        {"7-7", {7}, "7"},
        {"1-65536:x256", {1, 256, 65536}, "1-65536:x256"},
        {"32768-65536:x2", {32768, 65536}, "32768,65536"},
        {"3,5,7,11", {3, 5, 7, 11}, "3-7:2,11"},
    };
    for (const SizesCase& test : cases) {
        const auto spec = parse_options({{"gpus", test.text}});
        ASSERT_TRUE(spec) << test.text << ": " << spec.error().message;
        EXPECT_EQ(spec->sizes, test.sizes) << test.text;
        EXPECT_EQ(to_text(*spec), std::string("v1;gpus=") + test.canonical);
        EXPECT_EQ(parse_spec(to_text(*spec))->sizes, test.sizes) << test.text;
    }
    EXPECT_EQ(parse_options({{"gpus", "1-256"}})->sizes.size(), 256u);
    EXPECT_EQ(parse_options({{"gpus", "1-200,100-256"}})->sizes.size(), 256u);
}

TEST(JobSpec, MalformedSizes) {
    EXPECT_EQ(error_of({{"train-gpus", "1-x"}}),
              "--train-gpus: \"1-x\" is no list of GPU counts from 1 to 65536: write 4, 1-16, "
              "2-16:2, 1-16:x2 or "
              "2,4,8");
    EXPECT_EQ(error_of({{"train-gpus", "1,2,y"}}),
              "--train-gpus: \"1,2,y\" is no list of GPU counts from 1 to 65536 at \"y\": write 4, "
              "1-16, 2-16:2, "
              "1-16:x2 or 2,4,8");
    EXPECT_EQ(error_of({{"train-gpus", "1-257"}}),
              "--train-gpus: \"1-257\" has more than 256 GPU counts: write 4, 1-16, 2-16:2, "
              "1-16:x2 or 2,4,8");
    for (const char* text : {"",
                             " ",
                             ",",
                             "1,",
                             ",1",
                             "0",
                             "-1",
                             "1--2",
                             "+1",
                             "16-1",
                             "1-16:0",
                             "1-16:-1",
                             "1-16:x1",
                             "1-16:x",
                             "1-16:",
                             "4:2",
                             "1-",
                             "-",
                             "1-2-3",
                             "1-16:x2:2",
                             "65537",
                             "1-65536",
                             "1e1",
                             "1.5",
                             "99999999999999999999",
                             "1-99999999999999999999",
                             "0x10",
                             "all",
                             "1-16:X2"}) {
        EXPECT_NE(error_of({{"gpus", text}}), "") << text;
    }
    EXPECT_NE(error_of({{"gpus", std::string("4\0", 2)}}), "");
    EXPECT_NE(error_of({{"gpus", std::string(10 << 20, '1')}}), "");
}

TEST(JobSpec, RandomSizesSurviveTheTextForm) {
    std::mt19937 random(2);
    for (int round = 0; round < 2000; ++round) {
        JobSpec spec;
        const int count = static_cast<int>(random() % 40) + 1;
        int size = 0;
        for (int i = 0; i < count; ++i) {
            size += static_cast<int>(random() % (round % 7 + 1)) + 1;
            spec.sizes.push_back(size);
        }
        const auto again = parse_spec(to_text(spec));
        ASSERT_TRUE(again) << to_text(spec);
        ASSERT_EQ(again->sizes, spec.sizes) << to_text(spec);
        ASSERT_EQ(to_text(*again), to_text(spec));
    }
}

TEST(JobSpec, Signals) {
    struct Case {
        const char* text;
        bool batch;
        int number;
        int grace;
        const char* canonical;
    };
    for (const Case& test : {
             Case{"USR1", false, SIGUSR1, 60, ""},
             Case{"SIGUSR1@60", false, SIGUSR1, 60, ""},
             Case{"10", false, SIGUSR1, 60, ""},
             Case{"sigterm@0", false, SIGTERM, 0, ";signal=TERM@0"},
             Case{"B:USR1@90", true, SIGUSR1, 90, ";signal=B:USR1@90"},
             Case{"b:Usr2", true, SIGUSR2, 60, ";signal=B:USR2@60"},
             Case{"31@86400", false, 31, 86400, ";signal=31@86400"},
         }) {
        const auto spec = parse_options({{"signal", test.text}});
        ASSERT_TRUE(spec) << test.text << ": " << spec.error().message;
        EXPECT_EQ(spec->signal.batch_only, test.batch) << test.text;
        EXPECT_EQ(spec->signal.number, test.number) << test.text;
        EXPECT_EQ(spec->signal.grace.count(), test.grace) << test.text;
        EXPECT_EQ(to_text(*spec), std::string("v1") + test.canonical);
        EXPECT_EQ(*parse_spec(to_text(*spec)), *spec);
    }
    for (const char* text :
         {"", "@", "USR3", "USR1@", "USR1@x", "USR1@-1", "USR1@86401", "0", "32", "KILL",
          "SIGKILL@5", "9", "STOP", "19", "URG", "B:", "R:USR1", "USR1 @60"}) {
        EXPECT_NE(error_of({{"signal", text}}), "") << text;
    }
    EXPECT_EQ(error_of({{"train-signal", "KILL@60"}}),
              "--train-signal: \"KILL@60\" names a signal that no job can catch: write a signal "
              "like USR1, USR1@60 or B:TERM@120, not KILL, STOP or URG, at most 86400 seconds");
}

TEST(JobSpec, OtherValues) {
    EXPECT_EQ(parse_options({{"target", "steps:5000"}})->target->steps, 5000);
    EXPECT_EQ(parse_options({{"target", "Flat"}})->target->kind, Target::Kind::flat);
    EXPECT_EQ(parse_options({{"target", "1e-3"}})->target->loss, 0.001);
    for (const char* text :
         {"", "nan", "inf", "steps:", "steps:0", "steps:-5", "steps:1.5", "low", "1e999", "1,5"}) {
        EXPECT_NE(error_of({{"target", text}}), "") << text;
    }
    EXPECT_EQ(error_of({{"train-resize", "live"}}),
              "--train-resize: \"live\" (growing without a restart) comes with a later release; "
              "restart, which resizes by checkpoint and requeue, is there: write off, start, "
              "restart");
    EXPECT_NE(error_of({{"resize", "maybe"}}), "");
    EXPECT_NE(error_of({{"advise", ""}}), "");
    for (const char* const bad : {"mlflow:a@ftp://h", "mlflow:a@", "mlflow:@https://me:pw@h"})
        EXPECT_EQ(error_of({{"loss", bad}}).find("--train-loss: "), 0u) << bad;
    for (const char* const good : {"mlflow:", "mlflow:abc", "mlflow:@https://h/%x", "logs/a@b"})
        EXPECT_EQ(error_of({{"loss", good}}), "") << good;
    for (const char* const bad : {"", "0", "-8", "1e3", "1000000001", "32x"})
        EXPECT_EQ(error_of({{"batch", bad}}).find("--train-batch: "), 0u) << bad;
    EXPECT_FALSE(parse_options({{"advise", "no"}})->advise);
    for (const std::string& text :
         {std::string(), std::string("a b"), std::string(65, 'a'), std::string("a;b"),
          std::string("a\nb"), std::string("a\0b", 3), std::string("\xc3\xa4")}) {
        EXPECT_NE(error_of({{"model", text}}), "") << text;
    }
}

TEST(JobSpec, LossPathsAreUtf8WithoutControlCharacters) {
    for (const std::string& text :
         {std::string("t\xc3\xbcr.log"), std::string(512, 'a'), std::string("a b.log"),
          std::string("\xe6\x90\x8d\xe5\xa4\xb1.log"), std::string("a\\;b=\\\\c;")}) {
        const auto spec = parse_options({{"loss", text}});
        ASSERT_TRUE(spec) << text << ": " << spec.error().message;
        EXPECT_EQ(spec->loss, text);
        EXPECT_EQ(*parse_spec(to_text(*spec)), *spec);
    }
    for (const std::string& text :
         {std::string(), std::string(513, 'a'), std::string("a\nb"), std::string("a\0b", 3),
          std::string("a\x7f"), std::string("\x1b[31m"), std::string("\xc2\x9b"),
          std::string("\xff\xfe"), std::string("\xc3"), std::string("\xed\xa0\x80")}) {
        EXPECT_NE(error_of({{"loss", text}}), "") << text;
        EXPECT_NE(error_of({{"loss-key", text}}), "") << text;
    }
    for (const char* text : {"tfevents:runs", "state:out", "mlflow:", "mlflow:a@https://h"})
        EXPECT_TRUE(parse_options({{"loss", text}})) << text;
    for (const char* text : {"csv:", "jsonl:", "tfevents:", "state:"})
        EXPECT_NE(error_of({{"loss", text}}), "") << text;
    // A message never passes on what could drive a terminal.
    EXPECT_EQ(error_of({{"loss", "\x1b[31m"}}).find('\x1b'), std::string::npos);
}

TEST(JobSpec, ALossKeyIsANameOrAPattern) {
    for (const char* key : {"lm loss", "train/loss", "/(train|lm)[ _]loss/", "/\\w+ loss;?/"}) {
        const auto spec = parse_options({{"loss-key", key}});
        ASSERT_TRUE(spec) << spec.error().message;
        EXPECT_EQ(spec->loss_key, key);
        EXPECT_EQ(*parse_spec(to_text(*spec)), *spec);
    }
    EXPECT_EQ(
        error_of({{"loss-key", "/(a/"}}),
        "--train-loss-key: \"/(a/\" is no pattern: it has \"(\" without \")\" at character 3: "
        "write the name of the loss in the log, or /PATTERN/ that its name matches, 1 to 64 "
        "bytes");
    for (const char* key : {"##", "//", "/a**/", "/(a{100}){100}/", "/(?=a)/"})
        EXPECT_NE(error_of({{"loss-key", key}}), "") << key;
    EXPECT_FALSE(parse_spec("v1;loss-key=/(/"));
}

TEST(JobSpec, TextThatIsNotCanonical) {
    EXPECT_TRUE(parse_spec("v1;resize=restart;gpus=1,2,3"));  // any order, any form
    EXPECT_TRUE(parse_spec("v1;"));
    for (const char* text :
         {"", "v2", "v2;gpus=4", "v1 ;gpus=4", "gpus=4", "v1;gpus", "v1;=4", "v1;;gpus=4",
          "v1;gpus=4;gpus=8", "v1;train-gpus=4", "v1;loss_key=a", "v1;gpus=x", "v1;resize=live"}) {
        EXPECT_FALSE(parse_spec(text)) << text;
    }
    EXPECT_FALSE(parse_spec(std::string("v1;gpus=4\0", 10)));
    EXPECT_FALSE(parse_spec("v1;loss=" + std::string(1020, 'a')));
    EXPECT_EQ(parse_spec("v1;gpus=4;gpus=8").error().message,
              "job specification: \"gpus\" stands there twice: write v1;NAME=VALUE;...");
}

TEST(JobSpec, TooMuchTogether) {
    std::string sizes;
    for (int size = 10000, gap = 1; size < 20000 && sizes.size() < 900; size += gap++)
        sizes += (sizes.empty() ? "" : ",") + std::to_string(size);
    const std::string message = error_of({{"gpus", sizes}, {"loss", std::string(512, 'a')}});
    EXPECT_NE(message.find("at most 1024 are kept: shorten --train-gpus or --train-loss"),
              std::string::npos)
        << message;
    EXPECT_EQ(error_of({{"gpus", sizes}}), "");
}

TEST(JobSpec, Patterns) {
    PatternValues array{71, 70, 5, "my job", "ada"};
    EXPECT_EQ(expand_pattern("%x-%A_%a.%j %u 100%%", array), "my job-70_5.71 ada 100%");
    EXPECT_EQ(expand_pattern("%4j %99a", array), "0071 0000000005");
    EXPECT_EQ(expand_pattern("%N %", array), "%N %");
    EXPECT_EQ(expand_pattern("a%12", array), "a%12");
    EXPECT_EQ(expand_pattern("a\\%j\\\\b\\", array), "a%j\\b");
    PatternValues single{71, 0, std::nullopt, "", ""};
    EXPECT_EQ(expand_pattern("%A %a%x", single), "0 4294967294");
    EXPECT_EQ(expand_pattern("", single), "");
}

TEST(JobSpec, TheListOfOptionsIsComplete) {
    ASSERT_EQ(option_infos.size(), 9u);
    for (const OptionInfo& option : option_infos) {
        EXPECT_EQ(std::string(option.name).rfind("train-", 0), 0u);
        EXPECT_NE(error_of({{option.name, ""}}).find(option.legal), std::string::npos)
            << option.name;
    }
}

}  // namespace
}  // namespace sluice
