// SPDX-License-Identifier: GPL-2.0-or-later
//
// Sources of losses: what they give, and what they do with files that are half there, written anew,
// or meant to do harm.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <deque>
#include <filesystem>
#include <fstream>
#include <limits>

#include "common/base/text.hpp"
#include "common/samples/event_feed.hpp"
#include "common/samples/event_records.hpp"
#include "common/samples/known_points.hpp"
#include "common/samples/loss_feed.hpp"
#include "common/samples/mlflow_feed.hpp"
#include "common/samples/trainer_state.hpp"
#include "tests/unit/scratch_dir.hpp"
#include "tests/unit/test_data.hpp"

namespace sluice {
namespace {

using Points = std::vector<LossPoint>;
namespace fs = std::filesystem;

/// "[26,10.29] [null,nan]": nan compares equal to itself here.
std::string shown(const Points& points) {
    std::string out;
    for (const LossPoint& point : points) {
        out += "[" + (point.step ? std::to_string(*point.step) : "null") + "," +
               format_number(point.loss) + "] ";
    }
    return out;
}

LossReaderOptions keyed(const std::string& key) {
    LossReaderOptions options;
    options.key = key;
    return options;
}

/// A folder of its own for each test.
class Sources : public testing::Test {
  protected:
    std::string path(const std::string& name) const { return (folder_ / name).string(); }
    void write(const std::string& name, std::string_view text) const {
        fs::create_directories((folder_ / name).parent_path());
        std::ofstream(folder_ / name, std::ios::binary) << text;
    }
    void append(const std::string& name, std::string_view text) const {
        std::ofstream(folder_ / name, std::ios::binary | std::ios::app) << text;
    }
    std::unique_ptr<LossFeed> open(const std::string& source, const std::string& key = "") const {
        const auto parsed = parse_loss_source(source);
        EXPECT_TRUE(parsed.ok()) << source;
        return open_file_feed(*parsed, keyed(key));
    }

    const ScratchDir scratch_;
    const fs::path folder_ = scratch_.path();
};

/// All that a feed has at the moment, and what it says besides.
struct Drained {
    Points points;
    bool restarted = false;
    std::string problem;
};
/// Later than ever before.
double later() {
    static double now = 0;
    return now += 100;
}

Drained drain(LossFeed& feed, double now = later()) {
    Drained out;
    for (int polls = 0; polls < 100000; ++polls) {
        const LossFeed::Poll news = feed.poll(now);
        if (news.restarted) out.points.clear();
        out.restarted = out.restarted || news.restarted;
        out.points.insert(out.points.end(), news.points.begin(), news.points.end());
        out.problem = news.problem;
        if (!news.more && !news.waiting) return out;
    }
    ADD_FAILURE() << "a feed without an end";
    return out;
}

// --- what --train-loss takes

TEST(LossSource, Parses) {
    const auto automatic = parse_loss_source("logs/train.log");
    ASSERT_TRUE(automatic.ok());
    EXPECT_EQ(automatic->kind, LossSource::Kind::log);
    EXPECT_EQ(automatic->format, LossReaderOptions::Format::automatic);
    EXPECT_EQ(automatic->path, "logs/train.log");
    const auto csv = parse_loss_source("csv:/data/%j.csv");
    ASSERT_TRUE(csv.ok());
    EXPECT_EQ(csv->format, LossReaderOptions::Format::csv);
    EXPECT_EQ(csv->path, "/data/%j.csv");
    const auto json = parse_loss_source("jsonl:a:b");
    ASSERT_TRUE(json.ok());
    EXPECT_EQ(json->format, LossReaderOptions::Format::json_lines);
    EXPECT_EQ(json->path, "a:b");
    const auto events = parse_loss_source("tfevents:runs");
    ASSERT_TRUE(events.ok());
    EXPECT_EQ(events->kind, LossSource::Kind::events);
    EXPECT_EQ(events->path, "runs");
    EXPECT_EQ(parse_loss_source("a/events.out.tfevents.1.host")->kind, LossSource::Kind::events);
    EXPECT_EQ(parse_loss_source("a/trainer_state.json")->kind, LossSource::Kind::trainer_state);
    EXPECT_EQ(parse_loss_source("a/backup-trainer_state.json")->kind,
              LossSource::Kind::trainer_state);
    EXPECT_EQ(parse_loss_source("a/metrics.csv")->format, LossReaderOptions::Format::csv);
    EXPECT_EQ(parse_loss_source("log.jsonl")->format, LossReaderOptions::Format::json_lines);
    EXPECT_EQ(parse_loss_source("jsonl:a.csv")->format, LossReaderOptions::Format::json_lines);
    EXPECT_EQ(parse_loss_source("a.csv/log")->format, LossReaderOptions::Format::automatic);
    EXPECT_EQ(parse_loss_source("state:out")->kind, LossSource::Kind::trainer_state);
    EXPECT_EQ(parse_loss_source("csv:trainer_state.json")->kind, LossSource::Kind::log);
    const auto run = parse_loss_source("mlflow:5f3a@https://ml.example.org/a/");
    ASSERT_TRUE(run.ok());
    EXPECT_EQ(run->kind, LossSource::Kind::mlflow);
    EXPECT_EQ(run->run, "5f3a");
    EXPECT_EQ(run->uri, "https://ml.example.org/a");
    EXPECT_EQ(parse_loss_source("mlflow:")->run, "");
    EXPECT_EQ(parse_loss_source("mlflow:@http://h:5000")->uri, "http://h:5000");
}

TEST(LossSource, Refuses) {
    for (const std::string& text :
         {std::string(), std::string("csv:"), std::string("jsonl:"), std::string("tfevents:"),
          std::string("state:"), std::string("mlflow:a/b"), std::string("mlflow:a@"),
          std::string("mlflow:a@ftp://h"), std::string("mlflow:a@http://"),
          std::string("mlflow:a@http://user:secret@h"), std::string("mlflow:a@http://h?x=1"),
          "mlflow:" + std::string(65, 'a'), std::string("a\nb"), std::string(5000, 'a')}) {
        const auto source = parse_loss_source(text);
        ASSERT_FALSE(source.ok()) << text;
        EXPECT_EQ(source.error().code, ErrorCode::bad_input);
        EXPECT_NE(source.error().message.find("csv:PATH"), std::string::npos);
    }
}

TEST(KnownPoints, TellsWhatIsNewAndWhatIsAnother) {
    using Verdict = KnownPoints::Verdict;
    KnownPoints known;
    for (int i = 0; i < 100; ++i) EXPECT_EQ(known.take({i, 1.0 / (1 + i)}), Verdict::fresh);
    known.rewind();
    for (int i = 0; i < 100; ++i) EXPECT_EQ(known.take({i, 1.0 / (1 + i)}), Verdict::known);
    EXPECT_EQ(known.take({100, std::nan("")}), Verdict::fresh);
    EXPECT_EQ(known.count(), 101);
    known.rewind();
    EXPECT_EQ(known.take({0, 1.5}), Verdict::changed);
    // A difference further on is found at the next power of two, at the latest with the last one.
    known.rewind();
    int found = 0;
    for (int i = 0; i <= 100 && found == 0; ++i) {
        const double loss = i == 100 ? std::nan("") : i == 70 ? 7 : 1.0 / (1 + i);
        if (known.take({i, loss}) == Verdict::changed) found = i;
    }
    EXPECT_EQ(found, 100);
}

// --- CSV that is written anew

TEST_F(Sources, CsvWithANewColumnGoesOn) {
    write("metrics.csv", "epoch,step,train_loss\n0,49,2.3\n0,99,2.2\n0,149,2.1\n");
    const auto feed = open("csv:" + path("metrics.csv"));
    EXPECT_EQ(shown(drain(*feed).points), "[49,2.3] [99,2.2] ");
    // Lightning writes the file anew, longer than it was.
    write("metrics.csv",
          "epoch,lr-Adam/pg1,step,train_loss,val_loss\n0,,49,2.3,\n0,,99,2.2,\n0,,149,2.1,\n"
          "0,,149,,2.4\n1,0.001,199,2.05,\n1,,249,2.0,\n");
    const Drained more = drain(*feed);
    EXPECT_FALSE(more.restarted);
    EXPECT_EQ(shown(more.points), "[149,2.1] [199,2.05] ");
    append("metrics.csv", "1,,299,1.9,\n");
    EXPECT_EQ(shown(drain(*feed).points), "[249,2] ");
    EXPECT_EQ(shown(feed->finish()), "[299,1.9] ");
}

TEST_F(Sources, CsvIsReadWhileItIsWrittenAnew) {
    write("metrics.csv", "step,loss\n1,9\n2,8\n3,7\n");
    const auto feed = open("csv:" + path("metrics.csv"));
    EXPECT_EQ(shown(drain(*feed).points), "[1,9] [2,8] ");
    write("metrics.csv", "");
    EXPECT_EQ(shown(drain(*feed).points), "");
    write("metrics.csv", "loss,step,x\n9,1,\n");
    EXPECT_EQ(shown(drain(*feed).points), "");
    append("metrics.csv", "8,2,\n7,3,\n6,4,1\n");
    const Drained more = drain(*feed);
    EXPECT_FALSE(more.restarted);
    EXPECT_EQ(shown(more.points), "[3,7] ");
}

TEST_F(Sources, CsvOfAnotherRunBeginsAnew) {
    write("metrics.csv", "step,loss\n1,9\n2,8\n3,7\n");
    const auto feed = open("csv:" + path("metrics.csv"));
    drain(*feed);
    write("metrics.csv", "step,loss\n1,5\n2,4\n3,3\n4,2\n");
    const Drained anew = drain(*feed);
    EXPECT_TRUE(anew.restarted);
    EXPECT_EQ(shown(anew.points), "[1,5] [2,4] [3,3] ");
}

TEST_F(Sources, CsvRowsNeedNotFillTheSameColumn) {
    write("m.csv",
          "\xef\xbb\xbf"
          "epoch,loss,step,train_loss\n0,3,1,\n0,2.9,2,\n0,9,3,2.8\n0,9,4,\n0,,5,2.7\n0,,6,2.6\n");
    EXPECT_EQ(shown(drain(*open("csv:" + path("m.csv"))).points), "[1,3] [2,2.9] [3,2.8] [5,2.7] ");
}

TEST_F(Sources, LinesThatAreCutAreSpokenOfWhereThereIsNoLoss) {
    std::string header = "step";
    std::string row = "1";
    for (int i = 0; i < 20000; ++i) {
        header += ",c" + std::to_string(i);
        row += ",0.5";
    }
    write("wide.csv", header + ",loss\n" + row + ",2\n" + row + ",1\n");
    const auto feed = open("csv:" + path("wide.csv"));
    const Drained found = drain(*feed);
    EXPECT_EQ(shown(found.points), "");
    EXPECT_EQ(found.problem.find("lines are too long (3), of each only 65536 bytes are read; keys "
                                 "seen: step, c0, c1"),
              0U)
        << found.problem;
    // Not where losses were found, nor where nothing that was cut could hold one.
    write("some.log", "step 1 loss 2\nstep 2 loss 1\n" + std::string(100000, '7') + "\n");
    EXPECT_EQ(drain(*open(path("some.log"))).problem, "");
    write("none.log", "step 1 ppl 2\n");
    EXPECT_EQ(drain(*open(path("none.log"))).problem, "");
}

// --- TensorBoard

std::string varint(std::uint64_t value) {
    std::string out;
    for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
    out.push_back(static_cast<char>(value));
    return out;
}

std::string bytes_field(int id, std::string_view bytes) {
    return varint(static_cast<std::uint64_t>(id) << 3 | 2) + varint(bytes.size()) +
           std::string(bytes);
}

template <typename Number>
std::string fixed_field(int id, Number number) {
    std::string out = varint(static_cast<std::uint64_t>(id) << 3 | (sizeof number == 4 ? 5 : 1));
    return out.append(reinterpret_cast<const char*>(&number), sizeof number);
}

/// An Event with one value: `payload` is its simple_value or tensor.
std::string event_of(std::int64_t step, std::string_view tag, std::string_view payload) {
    const std::string value = bytes_field(1, tag) + std::string(payload);
    return event_record(fixed_field(1, 1.7e9) + varint(2 << 3) +
                        varint(static_cast<std::uint64_t>(step)) +
                        bytes_field(5, bytes_field(1, value)));
}

std::string event(std::int64_t step, std::string_view tag, float value) {
    return event_of(step, tag, fixed_field(2, value));
}

std::string tensor_event(std::int64_t step, std::string_view tag, std::string_view tensor) {
    return event_of(step, tag, bytes_field(8, tensor));
}

std::string file_begin() {
    return event_record(fixed_field(1, 1.7e9) + bytes_field(3, "brain.Event:2"));
}

TEST(EventRecords, ChecksumIsCastagnolis) {
    EXPECT_EQ(crc32c("123456789"), 0xe3069283U);
    EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aaU);
    EXPECT_EQ(crc32c(""), 0U);
}

std::string scanned(std::string_view bytes, EventScan* scan = nullptr) {
    Points points;
    const EventScan result = scan_events(bytes, [&points](const EventScalar& scalar) {
        points.push_back({scalar.step, scalar.value});
    });
    if (scan) *scan = result;
    return shown(points);
}

TEST(EventRecords, ReadsSimpleValuesAndTensors) {
    const std::string one_float = varint(1 << 3) + varint(1);
    const std::string one_double = varint(1 << 3) + varint(2);
    const float half = 0.5F;
    const double quarter = 0.25;
    const std::string half_bytes(reinterpret_cast<const char*>(&half), 4);
    const std::string quarter_bytes(reinterpret_cast<const char*>(&quarter), 8);
    EXPECT_EQ(
        scanned(file_begin() + event(1, "loss", 2.5F) +
                tensor_event(2, "loss", one_float + bytes_field(4, half_bytes)) +
                tensor_event(3, "loss", one_float + fixed_field(5, 1.5F)) +
                tensor_event(4, "loss", one_float + bytes_field(5, half_bytes)) +
                tensor_event(5, "loss", one_double + bytes_field(4, quarter_bytes)) +
                tensor_event(6, "loss", one_double + bytes_field(6, quarter_bytes)) +
                event(7, "loss", std::numeric_limits<float>::quiet_NaN()) +
                event(std::int64_t{1} << 40, "loss", -std::numeric_limits<float>::infinity())),
        "[1,2.5] [2,0.5] [3,1.5] [4,0.5] [5,0.25] [6,0.25] [7,nan] [1099511627776,-inf] ");
    // No scalars: two numbers, text, another type.
    EXPECT_EQ(
        scanned(tensor_event(1, "a", one_float + bytes_field(5, half_bytes + half_bytes)) +
                tensor_event(1, "b", one_float + bytes_field(4, half_bytes + half_bytes)) +
                tensor_event(1, "c", varint(1 << 3) + varint(7) + bytes_field(8, "text")) +
                tensor_event(1, "d", varint(1 << 3) + varint(3) + varint(7 << 3) + varint(5)) +
                event_of(1, "e", "") + event(-1, "f", 1)),
        "");
}

TEST(EventRecords, StopsBeforeWhatIsNotThereYet) {
    const std::string begin = file_begin();
    const std::string text = begin + event(1, "loss", 2.5F);
    for (std::size_t size = 0; size < text.size(); ++size) {
        EventScan scan;
        EXPECT_EQ(scanned(std::string_view(text).substr(0, size), &scan), "");
        EXPECT_EQ(scan.used, size < begin.size() ? 0 : begin.size());
        EXPECT_FALSE(scan.broken);
        EXPECT_EQ(scan.damaged, 0);
    }
}

TEST(EventRecords, LeavesOutWhatIsDamaged) {
    const std::string first = event(1, "loss", 2.5F);
    std::string damaged = event(2, "loss", 2.25F);
    damaged[20] ^= 1;
    EventScan scan;
    EXPECT_EQ(scanned(first + damaged + event(3, "loss", 2), &scan), "[1,2.5] [3,2] ");
    EXPECT_EQ(scan.damaged, 1);
    std::string lost = event(2, "loss", 2.25F);
    lost[0] ^= 1;
    EXPECT_EQ(scanned(first + lost + event(3, "loss", 2), &scan), "[1,2.5] ");
    EXPECT_TRUE(scan.broken);
    EXPECT_EQ(scan.used, first.size());
    // A graph or an image is passed over, also where it is not there to its end.
    const std::string large = event_record(std::string(max_event_bytes + 1, 'x'));
    EXPECT_EQ(scanned(first + large + first, &scan), "[1,2.5] [1,2.5] ");
    scanned(first + large.substr(0, 50), &scan);
    EXPECT_EQ(scan.used, first.size() + large.size());
}

TEST_F(Sources, EventFilesOfAFolderInOrder) {
    const auto feed = open("tfevents:" + folder_.string());
    EXPECT_EQ(drain(*feed).problem, "no event file (*tfevents.*) is in this folder");
    write("notes.txt", "step 1 loss 1");
    write("eval/events.out.tfevents.1.host", file_begin() + event(1, "loss", 9));
    const std::string name = "events.out.tfevents.1700000000.host.1.0";
    write(name, file_begin() + event(10, "train/loss", 2.5F) + event(10, "eval/loss", 3));
    EXPECT_EQ(shown(drain(*feed).points), "[10,2.5] ");
    const std::string record = event(20, "train/loss", 2.25F);
    append(name, record.substr(0, 30));
    EXPECT_EQ(shown(drain(*feed).points), "");
    append(name, record.substr(30));
    EXPECT_EQ(shown(drain(*feed).points), "[20,2.25] ");
    // Killed while it wrote; the next run writes a file of its own, from the checkpoint on.
    append(name, record.substr(0, 30));
    write("events.out.tfevents.999999999.host", file_begin() + event(5, "train/loss", 4));
    write("events.out.tfevents.1700000100.host", file_begin() + event(15, "train/loss", 2.125F));
    const Drained more = drain(*feed);
    EXPECT_EQ(shown(more.points), "[5,4] [15,2.125] ");
    EXPECT_EQ(more.problem, "");
    EXPECT_EQ(feed->last_step(), 20);
    EXPECT_EQ(feed->keys_seen(), (std::vector<std::string>{"train/loss", "eval/loss"}));
    EXPECT_EQ(shown(drain(*open(path(name))).points), "[10,2.5] [20,2.25] ");
}

TEST_F(Sources, EventFilesBringTheMostExactLoss) {
    write("events.out.tfevents.1", event(1, "loss_epoch", 3) + event(1, "loss", 2.5F) +
                                       event(2, "loss", 2) + event(2, "train/loss", 1.5F) +
                                       event(3, "loss", 8) + event(3, "train/loss", 1) +
                                       event(3, "train/train_loss", 7));
    EXPECT_EQ(shown(drain(*open("tfevents:" + folder_.string())).points), "[2,1.5] [3,1] ");
    EXPECT_EQ(shown(drain(*open("tfevents:" + folder_.string(), "loss_epoch")).points), "[1,3] ");
    const auto none = open("tfevents:" + folder_.string(), "perplexity");
    EXPECT_EQ(shown(drain(*none).points), "");
    EXPECT_EQ(none->keys_seen().size(), 4U);
}

// Who logs the time as a step has none: no record could hold it.
TEST_F(Sources, EventsFarAboveAllStepsHaveNone) {
    constexpr std::int64_t most = std::int64_t{1} << 53;
    write("events.out.tfevents.1", event(most - 1, "loss", 4) + event(most, "loss", 3) +
                                       event(most + 1, "loss", 2) +
                                       event(1700000000000000000, "loss", 1) +
                                       event(std::numeric_limits<std::int64_t>::max(), "loss", 0));
    const auto feed = open("tfevents:" + folder_.string());
    EXPECT_EQ(shown(drain(*feed).points),
              "[9007199254740991,4] [9007199254740992,3] [null,2] [null,1] [null,0] ");
    EXPECT_EQ(feed->last_step(), most);
}

TEST_F(Sources, EventFileWithABrokenPlaceSaysWhere) {
    const std::string first = event(1, "loss", 2.5F);
    write("events.out.tfevents.1", first + std::string(100, '\0'));
    const auto feed = open("tfevents:" + folder_.string());
    const Drained found = drain(*feed);
    EXPECT_EQ(shown(found.points), "[1,2.5] ");
    EXPECT_EQ(found.problem, "events.out.tfevents.1: byte " + std::to_string(first.size()) +
                                 " begins no record of an event file; what follows is not read");
    // A network file system had not brought these bytes yet.
    write("events.out.tfevents.1", first + event(2, "loss", 2));
    const Drained more = drain(*feed);
    EXPECT_EQ(shown(more.points), "[2,2] ");
    EXPECT_EQ(more.problem, "");
}

TEST_F(Sources, EventFileOfAMillionLosses) {
    std::string text;
    for (int i = 0; i < 100000; ++i) text += event(i, "loss", 2);
    write("events.out.tfevents.1", text);
    const auto feed = open("tfevents:" + folder_.string());
    EXPECT_EQ(drain(*feed).points.size(), 100000U);
}

TEST_F(Sources, ManyEventFilesComeInPortions) {
    constexpr std::size_t files = 40;
    constexpr std::size_t each = 4000;
    std::string text;
    for (std::size_t i = 0; i < each; ++i) text += event(static_cast<int>(i), "loss", 2);
    for (std::size_t i = 0; i < files; ++i)
        write("events.out.tfevents." + std::to_string(100 + i), text);
    const auto feed = open("tfevents:" + folder_.string());
    std::size_t points = 0;
    std::size_t polls = 0;
    for (bool more = true; more; ++polls) {
        ASSERT_LT(polls, files);
        const LossFeed::Poll news = feed->poll(0);
        EXPECT_LT(news.points.size() * (text.size() / each), 2 * EventFeed::enough_bytes);
        points += news.points.size();
        more = news.more;
    }
    EXPECT_EQ(points, files * each);
    EXPECT_GE(polls, files * text.size() / (2 * EventFeed::enough_bytes));
    // What comes later to the first file is found, too.
    append("events.out.tfevents.100", event(7, "loss", 1));
    EXPECT_EQ(shown(drain(*feed).points), "[7,1] ");
}

// --- trainer_state.json

std::string state(std::string_view entries) {
    return "{\n  \"best_metric\": null,\n  \"epoch\": 1.5,\n  \"log_history\": [\n" +
           std::string(entries) + "  ],\n  \"max_steps\": 100,\n  \"total_flos\": 1e18\n}\n";
}

TEST_F(Sources, TrainerStateIsReadWhole) {
    const std::string first =
        "{\"epoch\": 0.1, \"loss\": 2.5, \"step\": 10},\n"
        "{\"step\": 10, \"eval_loss\": 2.75, \"loss_scale\": {\"loss\": 1}},\n";
    const std::string second =
        "{\"loss\": NaN, \"step\": 20}, {\"loss\": -Infinity, \"step\": 30},\n";
    write("checkpoint-10/trainer_state.json", state(first + "{}"));
    const auto feed = open("state:" + folder_.string());
    EXPECT_EQ(shown(drain(*feed).points), "[10,2.5] ");
    EXPECT_EQ(shown(drain(*feed).points), "");
    const std::string later =
        state(first + second + "{\"train_loss\": 2, \"train_runtime\": 9, \"step\": 30}");
    write("checkpoint-30/trainer_state.json", later);
    const Drained more = drain(*feed);
    EXPECT_FALSE(more.restarted);
    EXPECT_EQ(shown(more.points), "[20,nan] [30,-inf] ");
    EXPECT_EQ(feed->last_step(), 30);
    write("elsewhere/trainer_state.json", later);
    EXPECT_EQ(shown(drain(*open(path("elsewhere/trainer_state.json"))).points),
              "[10,2.5] [20,nan] [30,-inf] ");
}

TEST_F(Sources, TrainerStateThatIsHalfWrittenChangesNothing) {
    const std::string before = state("{\"loss\": 3, \"step\": 1}");
    const std::string after = state("{\"loss\": 3, \"step\": 1}, {\"loss\": 2, \"step\": 2}");
    for (std::size_t size = 0; size + 2 < after.size(); ++size) {
        write("trainer_state.json", before);
        const auto feed = open(path("trainer_state.json"));
        ASSERT_EQ(shown(drain(*feed).points), "[1,3] ");
        write("trainer_state.json", std::string_view(after).substr(0, size));
        const Drained half = drain(*feed);
        ASSERT_EQ(shown(half.points), "") << size;
        ASSERT_FALSE(half.restarted);
        ASSERT_NE(half.problem, "");
        write("trainer_state.json", after);
        ASSERT_EQ(shown(drain(*feed).points), "[2,2] ") << size;
    }
}

TEST_F(Sources, TrainerStateOfAnotherRunBeginsAnew) {
    write("trainer_state.json", state("{\"loss\": 3, \"step\": 1}, {\"loss\": 2, \"step\": 2}"));
    const auto feed = open(path("trainer_state.json"));
    drain(*feed);
    write("trainer_state.json", state("{\"loss\": 5, \"step\": 1}"));
    const Drained anew = drain(*feed);
    EXPECT_TRUE(anew.restarted);
    EXPECT_EQ(shown(anew.points), "[1,5] ");
}

TEST_F(Sources, TrainerStateOfALongRunComesInPortions) {
    std::string entries = "{\"loss\": 2, \"step\": 0}";
    const int count = 3 * static_cast<int>(TrainerStateFeed::max_points) / 2;
    for (int i = 1; i < count; ++i)
        entries += ",\n{\"loss\": 2, \"step\": " + std::to_string(i) + "}";
    write("trainer_state.json", state(entries));
    const auto feed = open(path("trainer_state.json"));
    EXPECT_EQ(feed->poll(0).points.size(), TrainerStateFeed::max_points);
    EXPECT_EQ(drain(*feed).points.size(), TrainerStateFeed::max_points / 2);
    EXPECT_EQ(drain(*feed).points.size(), 0U);
}

// What was read is not looked at again, and each poll is short.
TEST_F(Sources, TrainerStateIsReadOnFromWhereThePollBeforeEnded) {
    std::string entries = "{\"loss\": 2, \"step\": 0}";
    constexpr int count = 2 * static_cast<int>(TrainerStateFeed::max_points) + 1000;
    for (int i = 1; i < count; ++i)
        entries += ",\n{\"loss\": 2, \"step\": " + std::to_string(i) + "}";
    const std::string name = path("trainer_state.json");
    write("trainer_state.json", state(entries));
    const auto feed = open(name);
    EXPECT_EQ(feed->poll(0).points.size(), TrainerStateFeed::max_points);
    const auto written = fs::last_write_time(name);
    std::fstream(name, std::ios::in | std::ios::out) << std::string(100000, 'x');
    fs::last_write_time(name, written);
    const Drained rest = drain(*feed);
    EXPECT_EQ(rest.problem, "");
    EXPECT_FALSE(rest.restarted);
    ASSERT_EQ(rest.points.size(), count - TrainerStateFeed::max_points);
    EXPECT_EQ(rest.points.back(), (LossPoint{count - 1, 2}));
}

TEST_F(Sources, TrainerStateWithFewLossesComesInPortions) {
    const std::string other = "{\"eval_loss\": 2, \"step\": 1},\n";
    std::string entries;
    while (entries.size() < 5 * TrainerStateFeed::max_read / 2) entries += other;
    write("trainer_state.json", state(entries + "{\"loss\": 2, \"step\": 3}"));
    const auto feed = open(path("trainer_state.json"));
    for (int poll = 0; poll < 2; ++poll) {
        const LossFeed::Poll news = feed->poll(0);
        EXPECT_EQ(shown(news.points), "");
        EXPECT_TRUE(news.more);
    }
    const LossFeed::Poll last = feed->poll(0);
    EXPECT_EQ(shown(last.points), "[3,2] ");
    EXPECT_FALSE(last.more);
    EXPECT_EQ(last.problem, "");
}

TEST_F(Sources, TrainerStateThatChangesWhileItIsReadIsReadAgain) {
    std::string entries = "{\"loss\": 3, \"step\": 1},\n";
    while (entries.size() < TrainerStateFeed::max_read) entries += "{\"eval_loss\": 2},\n";
    write("trainer_state.json", state(entries + "{\"loss\": 2, \"step\": 2}"));
    const auto feed = open(path("trainer_state.json"));
    EXPECT_TRUE(feed->poll(0).more);
    write("trainer_state.json", state("{\"loss\": 3, \"step\": 1}, {\"loss\": 2, \"step\": 4}"));
    const LossFeed::Poll changed = feed->poll(1);
    EXPECT_EQ(changed.problem, "it was written to while it was read");
    EXPECT_FALSE(changed.more);
    EXPECT_EQ(shown(drain(*feed).points), "[1,3] [4,2] ");
}

TEST_F(Sources, TrainerStateIsTheNewestThatIsWhole) {
    const std::string first = "{\"loss\": 3, \"step\": 1}, {\"loss\": 2, \"step\": 2}";
    const std::string whole = state(first + ", {\"loss\": 1, \"step\": 3}");
    const std::string not_whole = ": it is no JSON, or not written to its end yet";
    write("checkpoint-2/trainer_state.json", state(first));
    write("checkpoint-3/trainer_state.json", whole.substr(0, whole.size() / 2));
    const auto feed = open("state:" + folder_.string());
    const Drained older = drain(*feed);
    EXPECT_EQ(shown(older.points), "[1,3] [2,2] ");
    EXPECT_EQ(older.problem, "checkpoint-3/trainer_state.json" + not_whole);
    EXPECT_EQ(drain(*feed).problem, older.problem);
    write("checkpoint-3/trainer_state.json", whole);
    const Drained newest = drain(*feed);
    EXPECT_EQ(shown(newest.points), "[3,1] ");
    EXPECT_FALSE(newest.restarted);
    EXPECT_EQ(newest.problem, "");
    // The same where it takes several polls to see that it is not whole.
    std::string entries = first;
    while (entries.size() < TrainerStateFeed::max_read) entries += ", {\"eval_loss\": 2}";
    write("checkpoint-4/trainer_state.json", "{\"log_history\": [" + entries);
    const Drained again = drain(*open("state:" + folder_.string()));
    EXPECT_EQ(shown(again.points), "[1,3] [2,2] [3,1] ");
    EXPECT_EQ(again.problem, "checkpoint-4/trainer_state.json" + not_whole);
}

// Over NFS a file can be there before its bytes are, and stay as old and as long.
TEST_F(Sources, TrainerStateThatWasNoGoodIsReadAgainEverMoreSeldom) {
    const std::string text = state("{\"loss\": 3, \"step\": 1}");
    const std::string name = path("trainer_state.json");
    write("trainer_state.json", std::string(text.size(), '\0'));
    const auto written = fs::last_write_time(name);
    const auto feed = open(name);
    EXPECT_NE(feed->poll(0).problem, "");
    EXPECT_NE(feed->poll(10).problem, "");
    write("trainer_state.json", text);
    fs::last_write_time(name, written);
    const LossFeed::Poll early = feed->poll(20);  // 20 seconds after the second time
    EXPECT_EQ(shown(early.points), "");
    EXPECT_NE(early.problem, "");
    EXPECT_EQ(shown(feed->poll(30).points), "[1,3] ");
}

// --- MLflow

/// Answers from a list, and keeps what it was asked.
class FakeServer final : public HttpClient {
  public:
    void get(const std::string& url) override { asked.push_back(url); }
    std::optional<Reply> reply() override {
        if (replies.empty()) return std::nullopt;
        Reply reply = replies.front();
        replies.pop_front();
        return reply;
    }
    void say(std::string body, int status = 200) {
        replies.push_back({status, std::move(body), ""});
    }

    std::vector<std::string> asked;
    std::deque<Reply> replies;
};

struct Mlflow {
    FakeServer* server = nullptr;
    std::unique_ptr<MlflowFeed> feed;
};
Mlflow mlflow(const std::string& key = "") {
    auto server = std::make_unique<FakeServer>();
    Mlflow out;
    out.server = server.get();
    out.feed = std::make_unique<MlflowFeed>("http://h:5000", "r1", keyed(key), std::move(server));
    return out;
}

std::string metric(const std::string& value, int step) {
    return R"({"key":"loss","value":)" + value + R"(,"timestamp":"17","step":)" +
           std::to_string(step) + "}";
}
const std::string run_reply =
    R"({"run":{"info":{"run_id":"r1","metrics":1},"data":{"metrics":[{"key":"val_loss","value":3,"step":"2"},)"
    R"({"key":"loss","value":2,"step":"2"}],"params":[{"key":"loss","value":"7"}]}}})";

TEST(MlflowFeed, ReadsPagesAndThenOnlyWhatIsNew) {
    Mlflow m = mlflow();
    m.server->say(run_reply);
    m.server->say("{\"metrics\":[" + metric("3.5", 0) + "," + metric("\"NaN\"", 1) +
                  "],\"next_page_token\":\"a/b\"}");
    m.server->say("{\"metrics\":[" + metric("2.5", 2) + "]}");
    EXPECT_EQ(shown(drain(*m.feed, 0).points), "[0,3.5] [1,nan] [2,2.5] ");
    EXPECT_EQ(m.server->asked,
              (std::vector<std::string>{
                  "http://h:5000/api/2.0/mlflow/runs/get?run_id=r1",
                  "http://h:5000/api/2.0/mlflow/metrics/get-history?run_id=r1&metric_key=loss"
                  "&max_results=500",
                  "http://h:5000/api/2.0/mlflow/metrics/get-history?run_id=r1&metric_key=loss"
                  "&max_results=500&page_token=a%2Fb"}));
    // Not before its time.
    EXPECT_FALSE(m.feed->poll(MlflowFeed::interval_s - 1).waiting);
    EXPECT_EQ(m.server->asked.size(), 3U);
    m.server->say("{\"metrics\":[" + metric("2.5", 2) + "," + metric("2", 3) + "]}");
    const Drained more = drain(*m.feed, MlflowFeed::interval_s);
    EXPECT_EQ(shown(more.points), "[3,2] ");
    EXPECT_FALSE(more.restarted);
    EXPECT_EQ(m.server->asked.size(), 4U);
    EXPECT_EQ(m.feed->last_step(), 3);
    EXPECT_EQ(m.feed->keys_seen(), (std::vector<std::string>{"val_loss", "loss"}));
}

TEST(MlflowFeed, PagesComeToAnEnd) {
    Mlflow empty = mlflow();
    empty.server->say(run_reply);
    empty.server->say("{\"metrics\":[],\"next_page_token\":\"a\"}");
    EXPECT_NE(drain(*empty.feed, 0).problem.find("after one without points"), std::string::npos);
    EXPECT_FALSE(empty.feed->poll(1).waiting);

    Mlflow endless = mlflow();
    endless.server->say(run_reply);
    std::size_t points = 0;
    std::string problem;
    for (int page = 0; problem.empty() && page < 2 * MlflowFeed::most_pages; ++page) {
        endless.server->say("{\"metrics\":[" + metric("2", page) + "],\"next_page_token\":\"" +
                            std::to_string(page) + "\"}");
        const LossFeed::Poll news = endless.feed->poll(0);
        points += news.points.size();
        problem = news.problem;
    }
    EXPECT_NE(problem.find("more than 10000000 points"), std::string::npos) << problem;
    EXPECT_GE(points, static_cast<std::size_t>(MlflowFeed::most_pages));
}

TEST(MlflowFeed, TakesAnotherHistoryFromItsBeginning) {
    Mlflow m = mlflow();
    m.server->say(run_reply);
    m.server->say("{\"metrics\":[" + metric("3", 1) + "," + metric("2", 3) + "]}");
    drain(*m.feed, 0);
    m.server->say("{\"metrics\":[" + metric("3", 1) + "," + metric("2.5", 2) + "," +
                  metric("2", 3) + "]}");
    EXPECT_TRUE(drain(*m.feed, 100).restarted);
    m.server->say("{\"metrics\":[" + metric("3", 1) + "," + metric("2.5", 2) + "," +
                  metric("2", 3) + "]}");
    EXPECT_EQ(shown(drain(*m.feed, 200).points), "[1,3] [2,2.5] [3,2] ");
}

TEST(MlflowFeed, LossesWithoutAStepHaveNone) {
    Mlflow m = mlflow();
    m.server->say(run_reply);
    m.server->say("{\"metrics\":[" + metric("3", 0) + "," + metric("2", 0) + "," + metric("1", 0) +
                  "]}");
    EXPECT_EQ(shown(drain(*m.feed, 0).points), "[0,3] [null,2] [null,1] ");
}

TEST(MlflowFeed, AsksEverMoreSeldomWhereThereIsNoAnswer) {
    const std::pair<HttpClient::Reply, std::string> cases[] = {
        {{0, "", "Timeout was reached"}, "Timeout was reached"},
        {{302, "<html>", ""},
         "the server redirects (HTTP 302), which is not followed: give the "
         "address that it leads to"},
        {{404, R"({"error_code":"RESOURCE_DOES_NOT_EXIST","message":"x"})", ""},
         "the server says HTTP 404, RESOURCE_DOES_NOT_EXIST"},
        {{500, "<html>", ""}, "the server says HTTP 500"},
        {{200, "[1]", ""}, "the reply is no JSON object"},
        {{200, "{\"metrics\":[{", ""}, "the reply is no JSON object"},
        {{200, "{\"next_page_token\":\"" + std::string(2000, 'x') + "\"}", ""},
         "the reply has a page token of 1024 bytes or more"},
    };
    Mlflow m = mlflow();
    double now = 0;
    double pause = MlflowFeed::interval_s;
    for (int round = 0; round < 3; ++round) {
        for (const auto& [reply, problem] : cases) {
            m.server->replies.push_back(reply);
            EXPECT_EQ(drain(*m.feed, now).problem, problem);
            EXPECT_FALSE(m.feed->poll(now + pause - 1).waiting);
            EXPECT_EQ(m.feed->poll(now + pause - 1).problem, problem);
            now += pause;
            pause = std::min(2 * pause, MlflowFeed::longest_interval_s);
        }
    }
    EXPECT_EQ(m.server->asked.size(), 3 * std::size(cases));
    m.server->say(run_reply);
    m.server->say("{}");
    EXPECT_EQ(drain(*m.feed, now).problem, "");
}

TEST(MlflowFeed, AKeyNamesTheMetric) {
    Mlflow m = mlflow("val_loss");
    m.server->say(run_reply);
    m.server->say("{\"metrics\":[" + metric("3", 1) + "]}");
    EXPECT_EQ(shown(drain(*m.feed, 0).points), "[1,3] ");
    EXPECT_NE(m.server->asked[1].find("metric_key=val_loss&"), std::string::npos);
}

// --- what the job says itself

TEST_F(Sources, WhatTheJobTellsCountsAlone) {
    write("train.log", "step 1 loss 9\nstep 2 loss 8\nstep 3 loss 7\n");
    const auto feed = prefer_told(open("jsonl:" + path("emit")), open(path("train.log")));
    EXPECT_EQ(shown(drain(*feed).points), "[1,9] [2,8] ");
    write("emit", "{\"step\":1,\"loss\":3}\n");
    append("train.log", "step 4 loss 6\n");
    EXPECT_EQ(shown(drain(*feed).points), "[3,7] ");
    append("emit", "{\"step\":2,\"loss\":\"nan\"}\n{\"step\":3,\"loss\":2.5}\n");
    const Drained told = drain(*feed);
    EXPECT_TRUE(told.restarted);
    EXPECT_EQ(shown(told.points), "[1,3] [2,nan] ");
    append("train.log", "step 5 loss 5\nstep 6 loss 5\n");
    EXPECT_EQ(shown(drain(*feed).points), "");
    EXPECT_EQ(shown(feed->finish()), "[3,2.5] ");
    EXPECT_EQ(feed->name(), path("emit"));
}

TEST_F(Sources, EmittedLossesAreAsTheirFormatSays) {
    const std::string page = test_data("../../doc/formats/emit-v1.txt");
    std::string lines;
    for (const std::string_view line : split(page, '\n')) {
        if (line.starts_with("    {")) lines += std::string(line.substr(4)) + "\n";
    }
    write("emit", lines);
    const auto feed = open("jsonl:" + path("emit"));
    const std::string read = shown(drain(*feed).points);
    EXPECT_EQ(read + shown(feed->finish()), "[100,2.3125] [110,nan] [120,inf] [null,2.25] ");
}

// --- what is meant to do harm

TEST_F(Sources, NothingLeadsElsewhereOrKeepsAFeedWaiting) {
    ASSERT_EQ(mkfifo(path("fifo").c_str(), 0600), 0);
    fs::create_symlink("/etc/shadow", path("link"));
    for (const std::string prefix : {"", "csv:", "jsonl:", "tfevents:", "state:"}) {
        for (const std::string& name : {path("fifo"), path("link"), std::string("/dev/zero")}) {
            SCOPED_TRACE(prefix + name);
            const auto feed = open(prefix + name);
            const Drained found = drain(*feed);
            EXPECT_EQ(shown(found.points), "");
            const char* const why = name == path("link")   ? "it is a symbolic link, which"
                                    : name == path("fifo") ? "it is a FIFO, which"
                                                           : "it is a device, which";
            EXPECT_EQ(found.problem.find(why), 0U) << found.problem;
        }
    }
    // The same within a folder.
    fs::create_directories(folder_ / "runs" / "checkpoint-1");
    fs::create_symlink("/etc/shadow", path("runs/events.out.tfevents.1"));
    ASSERT_EQ(mkfifo(path("runs/events.out.tfevents.2").c_str(), 0600), 0);
    write("runs/events.out.tfevents.3", event(1, "loss", 2));
    ASSERT_EQ(mkfifo(path("runs/trainer_state.json").c_str(), 0600), 0);
    fs::create_symlink("/etc/shadow", path("runs/checkpoint-1/trainer_state.json"));
    EXPECT_EQ(shown(drain(*open("tfevents:" + path("runs"))).points), "[1,2] ");
    EXPECT_EQ(drain(*open("state:" + path("runs"))).problem,
              "trainer_state.json: it is a FIFO, which is not read");
    fs::remove(path("runs/trainer_state.json"));
    EXPECT_EQ(drain(*open("state:" + path("runs"))).problem,
              "checkpoint-1/trainer_state.json: it is a symbolic link, which is not followed");
    fs::remove(path("runs/checkpoint-1/trainer_state.json"));
    EXPECT_EQ(drain(*open("state:" + path("runs"))).problem,
              "neither trainer_state.json nor checkpoint-*/trainer_state.json is there");
    fs::create_symlink("checkpoint-1", path("runs/checkpoint-2"));
    EXPECT_EQ(drain(*open("state:" + path("runs"))).problem,
              "checkpoint-2: it is a symbolic link, which is not followed");
}

TEST_F(Sources, ASparseFileOf10GigabytesTakesNeitherMemoryNorTime) {
    write("sparse", "");
    fs::resize_file(path("sparse"), std::uintmax_t{10} << 30);
    for (const std::string prefix : {"tfevents:", "state:"}) {
        const auto feed = open(prefix + path("sparse"));
        for (int polls = 0; polls < 10; ++polls) {
            const LossFeed::Poll news = feed->poll(polls);
            EXPECT_NE(news.problem, "");
            EXPECT_FALSE(news.more);
        }
    }
    for (const std::string prefix : {"", "csv:", "jsonl:"}) {
        const auto feed = open(prefix + path("sparse"));
        for (int polls = 0; polls < 10; ++polls) EXPECT_TRUE(feed->poll(polls).points.empty());
    }
}

TEST_F(Sources, AFeedOfAFileThatComesLateWaits) {
    for (const std::string prefix : {"", "csv:", "tfevents:", "state:"}) {
        const auto feed = open(prefix + path("late"));
        EXPECT_NE(drain(*feed).problem, "") << prefix;
    }
    const auto broken = broken_feed("x", "no network");
    EXPECT_EQ(drain(*broken).problem, "no network");
    EXPECT_TRUE(broken->keys_seen().empty());
}

}  // namespace
}  // namespace sluice
