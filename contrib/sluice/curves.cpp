// SPDX-License-Identifier: GPL-2.0-or-later
//
// sluice losses, sluice fit: what the agent would read from a log, and what it would make of it.
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <thread>

#include "common/base/json.hpp"
#include "common/base/text.hpp"
#include "common/model/loss_curve.hpp"
#include "common/remote/mlflow_server.hpp"
#include "common/samples/key_pattern.hpp"
#include "common/samples/loss_feed.hpp"
#include "common/samples/loss_reader.hpp"
#include "contrib/sluice/command.hpp"

namespace sluice::cli {
namespace {

struct CloseFile {
    void operator()(std::FILE* file) const {
        if (file != stdin) std::fclose(file);
    }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

/// "-" is standard input.
Result<File> open_log(const std::string& path) {
    if (path == "-") return File(stdin);
    const auto bad = [&path](const std::string& why) {
        return Error{ErrorCode::bad_input, printable(path, 200) + ": " + why +
                                               ": write the name of a log, or - for "
                                               "standard input"};
    };
    File file(std::fopen(path.c_str(), "rbe"));
    if (!file) return bad(std::strerror(errno));
    struct stat status {};
    if (::fstat(::fileno(file.get()), &status) == 0 && S_ISDIR(status.st_mode)) {
        return bad(
            "is a directory: tfevents: before it reads event files there, state: the newest "
            "checkpoint of transformers");
    }
    return file;
}

/// What is read, and how.
struct Reading {
    LossSource source;
    LossReaderOptions options;  ///< the key
};

struct Format {
    const char* name;
    LossSource::Kind kind;
    LossReaderOptions::Format format = LossReaderOptions::Format::automatic;
};
constexpr Format formats[] = {
    {"text", LossSource::Kind::log, LossReaderOptions::Format::text},
    {"csv", LossSource::Kind::log, LossReaderOptions::Format::csv},
    {"jsonl", LossSource::Kind::log, LossReaderOptions::Format::json_lines},
    {"tfevents", LossSource::Kind::events},
    {"state", LossSource::Kind::trainer_state},
    {"mlflow", LossSource::Kind::mlflow},
};

Result<Reading> reading_of(const Options& options) {
    Reading out;
    if (options.has("--key")) {
        const Status status = set_loss_key(out.options, options.value("--key"));
        if (!status.ok()) return {ErrorCode::usage, "--key " + status.error().message};
    }
    const std::string& operand = options.operands()[0];
    const std::string name = options.value("--format", "auto");
    if (name == "auto") {
        const Result<LossSource> source = parse_loss_source(operand);
        if (!source.ok()) return {ErrorCode::usage, source.error().message};
        out.source = *source;
        return out;
    }
    for (const Format& format : formats) {
        if (name != format.name) continue;
        if (format.kind == LossSource::Kind::mlflow) {
            const Result<LossSource> source = parse_loss_source("mlflow:" + operand);
            if (!source.ok()) return {ErrorCode::usage, source.error().message};
            out.source = *source;
        }
        out.source.kind = format.kind;
        out.source.format = format.format;
        out.source.path = operand;
        if (operand == "-" && format.kind != LossSource::Kind::log) {
            return {ErrorCode::usage,
                    "--format " + name + " reads files, not standard input: name one"};
        }
        return out;
    }
    return {ErrorCode::usage, "--format " + printable(name) +
                                  ": write auto, text, csv, jsonl, tfevents, state or mlflow"};
}

using Take = std::function<void(const std::vector<LossPoint>&)>;

/// Letters and digits alone: "val_loss" and "Val loss" are one name.
std::string bare_name(std::string_view name) {
    std::string out;
    for (const char c : name) {
        if (c >= 'A' && c <= 'Z')
            out += static_cast<char>(c - 'A' + 'a');
        else if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
            out += c;
    }
    return out;
}

Error no_loss(const std::string& name, const std::vector<std::string>& keys_seen,
              const LossReaderOptions& options) {
    std::string keys;
    std::string wanted;
    for (const std::string& key : keys_seen) {
        keys += (keys.empty() ? "" : ", ") + key;
        if (!options.key.empty() && bare_name(key) == bare_name(options.key)) wanted = key;
    }
    const std::string none = "no loss found in " + printable(name, 200);
    if (!wanted.empty())
        return {ErrorCode::not_found, none + ": " + wanted +
                                          " is there, but no number is read under that name; "
                                          "keys seen: " +
                                          keys};
    return {ErrorCode::not_found,
            none + "; keys seen: " +
                (keys.empty() ? "none" : keys + " (--key says which of them is the loss)")};
}

/// Whether comma-separated values can begin like this: where there is more than a line of names, a
/// line below has as many cells, of which one is a number.
bool begins_like_csv(std::string_view text) {
    char separator = ',';
    std::size_t columns = 0;
    bool more = false;
    for (std::string_view line : split(text, '\n')) {
        line = trim(line);
        if (line.empty()) continue;
        if (columns == 0) {
            const auto count = [line](char c) { return std::count(line.begin(), line.end(), c); };
            for (const char each : {';', '\t'}) {
                if (count(each) > count(separator)) separator = each;
            }
            columns = split(line, separator).size();
            continue;
        }
        more = true;
        const auto cells = split(line, separator);
        if (cells.size() == columns && std::any_of(cells.begin(), cells.end(), [](auto cell) {
                return parse_number(trim(cell)).has_value();
            }))
            return true;
    }
    return !more;
}

/// Reads the whole log; `take` gets the points as they come. not_found, with the names that were
/// seen, where there are none.
Status read_log(const std::string& path, const LossReaderOptions& options, const Take& take) {
    const Result<File> file = open_log(path);
    if (!file.ok()) return file.error();
    LossReader reader(options);
    std::vector<LossPoint> points;
    bool found = false;
    const auto pass_on = [&] {
        found = found || !points.empty();
        take(points);
        points.clear();
    };
    std::vector<char> buffer(std::size_t{1} << 18);
    std::string beginning;
    for (;;) {
        const std::size_t size = std::fread(buffer.data(), 1, buffer.size(), file->get());
        if (size == 0) break;
        if (beginning.empty()) beginning.assign(buffer.data(), size);
        reader.feed({buffer.data(), size}, points);
        pass_on();
    }
    if (std::ferror(file->get()) != 0) {
        return {ErrorCode::bad_input, printable(path, 200) + ": " + std::strerror(errno)};
    }
    reader.finish(points);
    pass_on();
    if (found) return {};
    const bool is_no_csv =
        options.format == LossReaderOptions::Format::csv && !begins_like_csv(beginning);
    Error error = is_no_csv ? Error{ErrorCode::not_found,
                                    "no loss found in " + printable(path, 200) +
                                        ": it is no CSV, no line has numbers in columns below "
                                        "a line of names: --format text reads it as a log"}
                            : no_loss(path, reader.keys_seen(), options);
    if (reader.cut_lines() > 0) {
        error.message += "; lines were too long: " + std::to_string(reader.cut_lines()) +
                         ", of which the beginning alone was read";
    }
    return error;
}

/// What a job's agent would not read, though we do.
void note_difference(const std::string& path) {
    struct stat status {};
    if (path == "-" || ::lstat(path.c_str(), &status) != 0 || S_ISREG(status.st_mode)) return;
    std::fprintf(stderr, "sluice: %s: in a job this is not read: it is %s\n",
                 printable(path, 200).c_str(),
                 S_ISLNK(status.st_mode) ? "a symbolic link" : "no ordinary file");
}

/// The same for what is no log: as the agent reads it, until nothing more is to be had.
Status read_feed(LossFeed& feed, const LossReaderOptions& options, ErrorCode unread,
                 const Take& take) {
    std::vector<LossPoint> all;
    const auto begun = std::chrono::steady_clock::now();
    for (;;) {
        const std::chrono::duration<double> age = std::chrono::steady_clock::now() - begun;
        const LossFeed::Poll news = feed.poll(age.count());
        if (news.restarted) all.clear();
        all.insert(all.end(), news.points.begin(), news.points.end());
        if (news.waiting) std::this_thread::sleep_for(std::chrono::milliseconds(10));
        if (news.more || news.waiting) continue;
        take(all);
        const std::string problem =
            news.problem.empty() ? "" : printable(feed.name(), 200) + ": " + news.problem;
        if (all.empty())
            return problem.empty() ? no_loss(feed.name(), feed.keys_seen(), options)
                                   : Error{unread, problem};
        if (!problem.empty()) std::fprintf(stderr, "sluice: %s\n", problem.c_str());
        return {};
    }
}

std::string variable(const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "";
}

Status read_losses(const Reading& reading, const Take& take) {
    switch (reading.source.kind) {
        case LossSource::Kind::log: {
            LossReaderOptions options = reading.options;
            options.format = reading.source.format;
            note_difference(reading.source.path);
            return read_log(reading.source.path, options, take);
        }
        case LossSource::Kind::events:
        case LossSource::Kind::trainer_state: {
            const auto feed = open_file_feed(reading.source, reading.options);
            Status status = read_feed(*feed, reading.options, ErrorCode::bad_input, take);
            if (!status && status.error().code == ErrorCode::not_found && feed->keys_seen().empty())
                return {ErrorCode::not_found, "no loss found in " + printable(feed->name(), 200) +
                                                  ": it is empty, or holds no numbers"};
            return status;
        }
        case LossSource::Kind::mlflow:
            break;
    }
    const auto feed = open_mlflow_feed(reading.source, reading.options, variable);
    if (!feed.ok()) return feed.error();
    return read_feed(**feed, reading.options, ErrorCode::unreachable, take);
}

std::string json_of(const LossPoint& point) {
    const std::string loss = format_number(point.loss);
    return "{\"step\":" + (point.step ? std::to_string(*point.step) : "null") +
           ",\"loss\":" + (std::isfinite(point.loss) ? loss : '"' + loss + '"') + "}\n";
}

// --- fit

struct Question {
    std::optional<double> at;
    std::optional<double> target;
    bool flat = false;
};

// Flat: twice the steps bring less than a hundredth of what there has been.
constexpr double flat_share = 0.01;

Result<Question> question_of(const Options& options) {
    Question question;
    if (options.has("--at")) {
        const auto step = parse_integer(options.value("--at"));
        if (!step || *step < 0) {
            return {ErrorCode::usage, "--at " + printable(options.value("--at")) +
                                          ": write a step, a whole number from 0"};
        }
        question.at = static_cast<double>(*step);
    }
    question.flat = options.has("--flat");
    if (options.has("--target")) {
        question.target = parse_number(options.value("--target"));
        if (!question.target || !std::isfinite(*question.target)) {
            return {ErrorCode::usage, "--target " + printable(options.value("--target")) +
                                          ": write a loss, a number"};
        }
    }
    return question;
}

/// A step is whole; the far end of an interval may be none.
Json json_step(double step) {
    if (!(std::fabs(step) < 9e15)) return json_number(step);
    return json_integer(static_cast<std::int64_t>(step));
}

void put_loss(const Json& object, const Forecast& forecast) {
    json_put(object, "loss", json_number(forecast.value));
    json_put(object, "low", json_number(forecast.low));
    json_put(object, "high", json_number(forecast.high));
}

Json json_at(double step, const Forecast& forecast) {
    Json at = json_object();
    json_put(at, "step", json_step(step));
    put_loss(at, forecast);
    return at;
}

/// Without a forecast it never comes to it.
void put_steps(const Json& object, const std::optional<Forecast>& reached) {
    json_put(object, "step", reached ? json_step(std::ceil(reached->value)) : json_none());
    json_put(object, "low", reached ? json_step(std::floor(reached->low)) : json_none());
    json_put(object, "high", reached ? json_step(std::ceil(reached->high)) : json_none());
}

Json json_target(double loss, const std::optional<Forecast>& reached) {
    Json target = json_object();
    json_put(target, "loss", json_number(loss));
    put_steps(target, reached);
    return target;
}

Json json_curve(const LossCurve& curve) {
    Json parameters = json_object();
    json_put(parameters, "b0", json_number(curve.b0));
    json_put(parameters, "b1", json_number(curve.b1));
    json_put(parameters, "b2", json_number(curve.b2));
    Json out = json_object();
    if (std::isfinite(curve.exponent) && curve.exponent != 1)
        json_put(parameters, "c", json_number(curve.exponent));
    json_put(out, "family", json_text(curve.family()));
    json_put(out, "parameters", std::move(parameters));
    json_put(out, "points", json_integer(curve.points));
    json_put(out, "last_step", json_integer(curve.last_step));
    json_put(out, "last_loss", json_number(curve.last_loss));
    json_put(out, "residual", json_number(curve.residual));
    Json limit = json_object();
    put_loss(limit, forecast_limit(curve));
    json_put(out, "limit", std::move(limit));
    return out;
}

/// Four significant digits, as a person reads a loss.
std::string shown(double value) {
    std::array<char, 32> text{};
    const auto end =
        std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::general, 4);
    return {text.data(), end.ptr};
}

/// Two values with as many digits as tell them apart.
std::pair<std::string, std::string> shown_apart(double a, double b) {
    if (shown(a) != shown(b)) return {shown(a), shown(b)};
    return {format_number(a), format_number(b)};
}

std::string shown_step(double step) {
    return std::isfinite(step) ? format_fixed(step, 0) : "never";
}

std::string shown_interval(const Forecast& forecast) {
    return shown(forecast.value) + " (80%: " + shown(forecast.low) + " to " + shown(forecast.high) +
           ")";
}

std::string shown_steps(const Forecast& reached) {
    return "step " + shown_step(std::ceil(reached.value)) +
           " (80%: " + shown_step(std::floor(reached.low)) + " to " +
           shown_step(std::ceil(reached.high)) + ")";
}

void print_curve(const LossCurve& curve) {
    const Forecast now = forecast_loss(curve, static_cast<double>(curve.last_step));
    std::printf("curve   loss(k) = %s, from %lld losses\n", formula(curve).c_str(),
                static_cast<long long>(curve.points));
    std::printf("now     step %lld: %s, single losses scatter by %s%s\n",
                static_cast<long long>(curve.last_step), shown_interval(now).c_str(),
                shown(curve.residual).c_str(), curve.falls() ? "" : "; it does not fall");
    if (curve.falls()) std::printf("limit   %s\n", shown_interval(forecast_limit(curve)).c_str());
}

/// Why there is no step at which it is reached.
std::string unreached(const LossCurve& curve, double target) {
    const Forecast limit = forecast_limit(curve);
    const auto [wanted, end] = shown_apart(target, limit.value);
    return "a loss of " + wanted + (target < limit.low ? " is never" : " may never be") +
           " reached: the curve " + (curve.falls() ? "falls to " : "is level at ") + end +
           " (80%: " + shown(limit.low) + " to " + shown(limit.high) + ")";
}

/// Prints the answers; not_found where the target is never reached.
Status answer(const LossCurve& curve, const Question& question, bool json) {
    const Json out = json_curve(curve);
    if (!json) print_curve(curve);
    if (question.at) {
        const Forecast at = forecast_loss(curve, *question.at);
        json_put(out, "at", json_at(*question.at, at));
        if (!json) {
            std::printf("at      step %s: %s\n", shown_step(*question.at).c_str(),
                        shown_interval(at).c_str());
        }
    }
    Status status;
    if (question.target) {
        const std::optional<Forecast> reached = forecast_step(curve, *question.target);
        json_put(out, "target", json_target(*question.target, reached));
        if (!reached) {
            status = {ErrorCode::not_found, unreached(curve, *question.target)};
        } else if (!json) {
            std::printf("target  %s: %s\n", shown(*question.target).c_str(),
                        shown_steps(*reached).c_str());
        }
    }
    if (question.flat) {
        const std::optional<Forecast> flat = forecast_flat(curve, flat_share);
        Json object = json_object();
        put_steps(object, flat);
        json_put(out, "flat", std::move(object));
        if (!flat) {
            status = {ErrorCode::not_found,
                      "the loss does not fall: there is no step from which "
                      "on it is flat"};
        } else if (!json) {
            std::printf("flat    %s\n", shown_steps(*flat).c_str());
        }
    }
    if (json) std::printf("%s\n", json_line(out.get()).c_str());
    return status;
}

}  // namespace

std::string formula(const LossCurve& curve) {
    if (!curve.falls()) return shown(curve.at(0)) + ", level";
    const std::string limit = " + " + shown(curve.b2);
    if (curve.exponent == 1)
        return "1 / (" + shown(curve.b0) + " k + " + shown(curve.b1) + ")" + limit;
    const std::string height = shown(1 / curve.b1);
    const double steps = curve.b1 / curve.b0;
    if (std::isinf(curve.exponent)) return height + " exp(-k / " + shown(steps) + ")" + limit;
    return height + " (1 + k / " + shown(steps * curve.exponent) + ")^-" + shown(curve.exponent) +
           limit;
}

int losses(const Arguments& arguments) {
    const auto options =
        Options::parse(arguments, {{"--key", true}, {"--format", true}, {"--json", false}}, 1);
    if (!options.ok()) return fail("losses", options.error());
    if (options->operands().empty()) {
        return fail("losses", {ErrorCode::usage, "names no log: write sluice losses FILE"});
    }
    const auto reading = reading_of(*options);
    if (!reading.ok()) return fail("losses", reading.error());
    const Status status = read_losses(*reading, [](const std::vector<LossPoint>& points) {
        std::string lines;
        for (const LossPoint& point : points) lines += json_of(point);
        std::fwrite(lines.data(), 1, lines.size(), stdout);
    });
    return status.ok() ? 0 : fail("losses", status.error());
}

int fit(const Arguments& arguments) {
    const auto options = Options::parse(arguments,
                                        {{"--key", true},
                                         {"--format", true},
                                         {"--at", true},
                                         {"--target", true},
                                         {"--flat", false},
                                         {"--json", false}},
                                        1);
    if (!options.ok()) return fail("fit", options.error());
    if (options->operands().empty()) {
        return fail("fit", {ErrorCode::usage, "names no log: write sluice fit FILE"});
    }
    const auto reading = reading_of(*options);
    if (!reading.ok()) return fail("fit", reading.error());
    const auto question = question_of(*options);
    if (!question.ok()) return fail("fit", question.error());
    CurveReservoir all;
    const std::string& path = options->operands()[0];
    const Status status = read_losses(*reading, [&all](const std::vector<LossPoint>& points) {
        for (const LossPoint& point : points) all.add(point);
    });
    if (!status.ok()) return fail("fit", status.error());
    const auto curve = fit_loss_curve(all);
    if (!curve.ok()) {
        return fail("fit",
                    {curve.error().code, printable(path, 200) + ": " + curve.error().message});
    }
    const Status answered = answer(*curve, *question, options->has("--json"));
    return answered.ok() ? 0 : fail("fit", answered.error());
}

}  // namespace sluice::cli
