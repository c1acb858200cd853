// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/model/record.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>

#include "common/base/json.hpp"
#include "common/base/text.hpp"

namespace sluice {
namespace {

constexpr std::int64_t largest_count = std::int64_t{1} << 53;
constexpr int largest_restarts = 1'000'000;
constexpr int largest_gpus = 1'000'000;
constexpr double largest_number = 1e300;
constexpr double largest_speed = 1e9;
constexpr std::size_t longest_no_loss = 256;

constexpr double least_exponent = 0.01;

/// {"r":0,...}: the numbers in full, which json_line() would round.
class Writer {
  public:
    void integer(const char* key, std::int64_t value) { member(key, std::to_string(value)); }
    void number(const char* key, double value) { member(key, text_of(value)); }
    void numbers(const char* key, std::initializer_list<double> values) {
        std::string list = "[";
        for (const double value : values) {
            if (list.size() > 1) list += ',';
            list += text_of(value);
        }
        member(key, list + "]");
    }
    void text(const char* key, const std::string& value) {
        member(key, json_line(json_text(value).get()));
    }
    std::string result() const { return "{" + members_ + "}"; }

  private:
    static std::string text_of(double value) {
        if (value == 0) return "0";  // and not "-0", which comes back as 0
        const std::string text = format_number(value);
        if (!std::isfinite(value)) return '"' + text + '"';
        // JSON readers take digits alone for an integer, which must not be too large
        const bool digits = text.find_first_of(".e") == std::string::npos;
        return digits && std::fabs(value) >= 1e15 ? text + ".0" : text;
    }
    void member(const char* key, const std::string& value) {
        if (!members_.empty()) members_ += ',';
        members_ += std::string("\"") + key + "\":" + value;
    }
    std::string members_;
};

/// Reads members one by one; the first that is out of range is the error.
class Reader {
  public:
    explicit Reader(const json_t* object) : object_(object) {}

    bool has(const char* key) const { return json_object_get(object_, key) != nullptr; }

    std::int64_t integer(const char* key, std::int64_t least, std::int64_t most) {
        const auto value = json_integer_at(object_, key);
        if (value && *value >= least && *value <= most) return *value;
        refuse(key, "a whole number from " + std::to_string(least) + " to " + std::to_string(most));
        return least;
    }

    double number(const char* key, double least, double most) {
        return in_range(json_object_get(object_, key), key, least, most);
    }

    /// Any number, "nan", "inf" or "-inf".
    double loss(const char* key) {
        if (const auto value = json_number_at(object_, key)) return *value;
        refuse(key, "a number, \"nan\", \"inf\" or \"-inf\"");
        return 0;
    }

    /// Above 0, or "inf".
    double exponent(const char* key) {
        const auto value = json_number_at(object_, key);
        if (value && *value >= least_exponent) return *value;
        refuse(key, "from " + format_number(least_exponent) + ", or \"inf\"");
        return 1;
    }

    template <std::size_t count>
    std::array<double, count> numbers(const char* key, double least, double most) {
        std::array<double, count> values{};
        const json_t* list = json_object_get(object_, key);
        if (!json_is_array(list) || json_array_size(list) != count) {
            refuse(key, "a list of " + std::to_string(count) + " numbers");
            return values;
        }
        for (std::size_t i = 0; i < count; ++i) {
            values[i] = in_range(json_array_get(list, i), key, least, most);
        }
        return values;
    }

    std::string text(const char* key) {
        const auto value = json_text_at(object_, key);
        if (value && value->size() <= longest_no_loss &&
            printable(*value, value->size()) == *value) {
            return *value;
        }
        refuse(key, "at most " + std::to_string(longest_no_loss) + " printable ASCII characters");
        return {};
    }

    void refuse(const char* key, const std::string& legal) {
        if (!error_.empty()) return;
        const json_t* value = json_object_get(object_, key);
        error_ = "record: \"" + std::string(key) + "\" is " +
                 (value ? printable(json_line(value), 60) : std::string("missing")) +
                 ", and has to be " + legal;
    }
    const std::string& error() const { return error_; }

  private:
    double in_range(const json_t* value, const char* key, double least, double most) {
        if (json_is_number(value)) {
            const double number = json_number_value(value);
            if (number >= least && number <= most) return number;
        }
        refuse(key, "from " + format_number(least) + " to " + format_number(most));
        return least;
    }

    const json_t* object_;
    std::string error_;
};

/// Older agents sent the covariance of (b0, b1, b2) of a hyperbola, and by how much it errs with
/// each doubling of the steps.
void read_covariance(Reader& reader, LossCurve& curve) {
    constexpr double z_80 = 1.2815515655446004;  // of a normal distribution's middle 80%
    const auto c = reader.numbers<6>("c", -largest_number, largest_number);
    for (const double variance : {c[0], c[3], c[5]}) {
        if (variance < 0)
            reader.refuse("c", "a covariance, its first, fourth and sixth not below 0");
    }
    const double misfit = reader.has("m") ? reader.number("m", 0, largest_number) : 0;
    for (std::size_t i = 0; i < LossCurve::octaves.size(); ++i) {
        const double step = static_cast<double>(curve.last_step) * std::exp2(LossCurve::octaves[i]);
        const auto [x, y] = curve.decay().gradient(step);
        const double open =
            x * x * c[0] + 2 * x * y * c[1] + 2 * x * c[2] + y * y * c[3] + 2 * y * c[4] + c[5];
        const double err = misfit * LossCurve::octaves[i];
        const double reach = z_80 * std::sqrt(std::max(0.0, open) + err * err);
        const double known =
            std::isfinite(reach) ? std::min(reach, largest_number) : largest_number;
        curve.below[i] = curve.above[i] = known;
    }
}

LossCurve read_curve(Reader& reader) {
    LossCurve curve;
    const auto b = reader.numbers<3>("b", 0, largest_number);
    curve.b0 = b[0];
    curve.b1 = b[1];
    curve.b2 = b[2];
    if (reader.has("h")) curve.exponent = reader.exponent("h");
    curve.residual = reader.number("s", 0, largest_number);
    curve.first_loss = reader.number("f", -largest_number, largest_number);
    curve.last_step = reader.integer("e", 0, largest_count);
    curve.points = reader.integer("p", 0, largest_count);
    if (reader.has("u")) {
        const auto u = reader.numbers<2 * LossCurve::octaves.size()>("u", 0, largest_number);
        for (std::size_t i = 0; i < LossCurve::octaves.size(); ++i) {
            curve.below[i] = u[i];
            curve.above[i] = u[LossCurve::octaves.size() + i];
        }
    } else {
        read_covariance(reader, curve);
    }
    curve.last_loss = curve.at(static_cast<double>(curve.last_step));
    if (!std::isfinite(curve.last_loss)) reader.refuse("b", "a curve that is finite at step \"e\"");
    return curve;
}

}  // namespace

std::string to_text(const Record& record) {
    Writer writer;
    writer.integer("r", record.restarts);
    if (record.step) writer.integer("k", *record.step);
    if (record.loss) writer.number("l", *record.loss);
    writer.integer("n", record.points);
    writer.integer("g", record.gpus);
    if (record.steps_per_second) writer.number("v", *record.steps_per_second);
    if (record.checkpointed) writer.integer("d", 1);
    if (record.ended) writer.integer("z", 1);
    if (record.points == 0 && !record.no_loss.empty()) {
        writer.text("x", printable(record.no_loss, longest_no_loss - 3));
    }
    if (record.points > 0 && record.curve) {
        const LossCurve& curve = *record.curve;
        const auto& low = curve.below;
        const auto& high = curve.above;
        writer.numbers("b", {curve.b0, curve.b1, curve.b2});
        if (curve.exponent != 1) writer.number("h", curve.exponent);
        writer.numbers("u", {low[0], low[1], low[2], low[3], low[4], high[0], high[1], high[2],
                             high[3], high[4]});
        writer.number("s", curve.residual);
        writer.number("f", curve.first_loss);
        writer.integer("e", curve.last_step);
        writer.integer("p", curve.points);
    }
    return std::string(Record::prefix) + writer.result();
}

Result<Record> parse_record(std::string_view text) {
    if (text.size() > Record::max_bytes) {
        return {ErrorCode::bad_input, "record: " + std::to_string(text.size()) +
                                          " bytes are more than the " +
                                          std::to_string(Record::max_bytes) + " of a record"};
    }
    if (text.substr(0, Record::prefix.size()) != Record::prefix) {
        return {ErrorCode::bad_input, "record: \"" + printable(text, 20) +
                                          "\" does not begin with " + std::string(Record::prefix)};
    }
    const auto json = parse_json(text.substr(Record::prefix.size()), Record::max_bytes);
    if (!json.ok()) return {ErrorCode::bad_input, "record: " + json.error().message};
    if (!json_is_object(json->get())) {
        return {ErrorCode::bad_input, "record: after the prefix stands no JSON object"};
    }
    Reader reader(json->get());
    Record record;
    record.restarts = static_cast<int>(reader.integer("r", 0, largest_restarts));
    record.points = reader.integer("n", 0, largest_count);
    record.gpus = static_cast<int>(reader.integer("g", 0, largest_gpus));
    if (reader.has("k")) record.step = reader.integer("k", 0, largest_count);
    if (reader.has("l")) record.loss = reader.loss("l");
    if (reader.has("v")) record.steps_per_second = reader.number("v", 1e-9, largest_speed);
    if (reader.has("d")) record.checkpointed = reader.integer("d", 0, 1) == 1;
    if (reader.has("z")) record.ended = reader.integer("z", 0, 1) == 1;
    if (reader.has("x")) record.no_loss = reader.text("x");
    if (reader.has("b")) record.curve = read_curve(reader);
    if (!reader.error().empty()) return {ErrorCode::bad_input, reader.error()};
    return record;
}

}  // namespace sluice
