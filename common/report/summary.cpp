// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/report/summary.hpp"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <span>

#include "common/base/json.hpp"
#include "common/base/text.hpp"

namespace sluice {
namespace {

constexpr const char* member = "sluice";
constexpr int version = 1;
constexpr std::size_t max_field_bytes = std::size_t{64} * 1024;
constexpr std::size_t max_sentence_bytes = 240;
constexpr std::size_t max_node_bytes = 255;

// The field as an object, or null.
Json parse_object(std::string_view field) {
    auto value = parse_json(field, max_field_bytes);
    if (!value || !json_is_object(value->get())) return nullptr;
    return std::move(*value);
}

// --- reading

constexpr const char* where = "summary of Sluice in the AdminComment: ";

Error broken(const char* name) {
    return {ErrorCode::bad_input, std::string(where) + '"' + name + "\" is not as in summary-v1"};
}

// The member as an int >= 0; 0 where it is missing, nothing where it is something else.
std::optional<int> count_at(const json_t* object, const char* key) {
    if (json_object_get(object, key) == nullptr) return 0;
    const auto number = json_integer_at(object, key);
    if (!number || *number < 0 || *number > std::numeric_limits<int>::max()) return std::nullopt;
    return static_cast<int>(*number);
}

// "" where it is missing.
std::optional<std::string> sentence_at(const json_t* object, const char* key) {
    if (json_object_get(object, key) == nullptr) return "";
    return json_text_at(object, key);
}

std::optional<SummaryPlacement> read_placement(const json_t* value) {
    const auto node = json_text_at(value, "node");
    const auto gpus = json_text_at(value, "gpus");
    const auto gbps = json_number_at(value, "gbps");
    const auto stock_gpus = sentence_at(value, "stock_gpus");
    if (!node || !gpus || !gbps || !stock_gpus) return std::nullopt;
    SummaryPlacement out{*node, *gpus, *gbps, *stock_gpus, 0};
    if (!stock_gpus->empty()) {
        const auto stock_gbps = json_number_at(value, "stock_gbps");
        if (!stock_gbps) return std::nullopt;
        out.stock_gbps = *stock_gbps;
    }
    return out;
}

std::optional<SummaryPrediction> read_prediction(const json_t* value) {
    SummaryPrediction out;
    for (const auto& [key, number] : {std::pair{"step", &out.step},
                                      {"gbps", &out.gbps},
                                      {"stock_step", &out.stock_step},
                                      {"stock_gbps", &out.stock_gbps},
                                      {"best_step", &out.best_step},
                                      {"best_gbps", &out.best_gbps}}) {
        const auto read = json_number_at(value, key);
        if (!read || !(*read >= 0)) return std::nullopt;
        *number = *read;
    }
    const auto stock = sentence_at(value, "stock");
    if (!stock || !(out.step > 0)) return std::nullopt;
    if (json_object_get(value, "in_seconds") != nullptr) {
        const auto in_seconds = json_bool_at(value, "in_seconds");
        if (!in_seconds) return std::nullopt;
        out.in_seconds = *in_seconds;
    }
    out.stock = *stock;
    return out;
}

std::optional<SummaryResize> read_resize(const json_t* value) {
    const auto time = json_integer_at(value, "time");
    const auto from = count_at(value, "from");
    const auto to = count_at(value, "to");
    const auto reason = sentence_at(value, "reason");
    if (!time || !from || !to || !reason) return std::nullopt;
    return SummaryResize{*time, *from, *to, *reason};
}

// Each element of object[key] through `read`; a missing list is empty. False where one is broken.
template <typename T>
bool read_list(const json_t* object, const char* key, std::optional<T> (*read)(const json_t*),
               std::vector<T>& out) {
    const json_t* list = json_object_get(object, key);
    if (list == nullptr) return true;
    if (!json_is_array(list)) return false;
    for (std::size_t i = 0; i < json_array_size(list); ++i) {
        auto element = read(json_array_get(list, i));
        if (!element) return false;
        out.push_back(std::move(*element));
    }
    return true;
}

// --- writing

// One of Sluice's own texts: bounded, printable, '_' for blanks.
Json sentence(const std::string& text) {
    std::string out = printable(text, max_sentence_bytes);
    std::replace(out.begin(), out.end(), ' ', '_');
    return json_text(out);
}

Json placement_value(const SummaryPlacement& placement) {
    Json out = json_object();
    json_put(out, "node", json_text(printable(placement.node, max_node_bytes)));
    json_put(out, "gpus", sentence(placement.gpus));
    json_put(out, "gbps", json_number(placement.gbps));
    if (!placement.stock_gpus.empty()) {
        json_put(out, "stock_gpus", sentence(placement.stock_gpus));
        json_put(out, "stock_gbps", json_number(placement.stock_gbps));
    }
    return out;
}

Json prediction_value(const SummaryPrediction& prediction) {
    Json out = json_object();
    json_put(out, "step", json_number(prediction.step));
    json_put(out, "gbps", json_number(prediction.gbps));
    json_put(out, "stock_step", json_number(prediction.stock_step));
    json_put(out, "stock_gbps", json_number(prediction.stock_gbps));
    json_put(out, "best_step", json_number(prediction.best_step));
    json_put(out, "best_gbps", json_number(prediction.best_gbps));
    if (prediction.in_seconds) json_put(out, "in_seconds", json_bool(true));
    if (!prediction.stock.empty()) json_put(out, "stock", sentence(prediction.stock));
    return out;
}

Json resize_value(const SummaryResize& resize) {
    Json out = json_object();
    json_put(out, "time", json_integer(resize.time));
    json_put(out, "from", json_integer(resize.from));
    json_put(out, "to", json_integer(resize.to));
    json_put(out, "reason", sentence(resize.reason));
    return out;
}

// Our member with the first `placements` of the nodes and the last `resizes` of the resizes.
std::string member_text(const Summary& summary, std::size_t placements, std::size_t resizes) {
    Json out = json_object();
    json_put(out, "v", json_integer(version));
    if (placements > 0) {
        Json list = json_array();
        for (const SummaryPlacement& each : std::span(summary.placements).first(placements))
            json_add(list, placement_value(each));
        json_put(out, "placements", std::move(list));
    }
    const auto more = static_cast<std::int64_t>(summary.placements.size() - placements);
    if (summary.more_nodes + more > 0)
        json_put(out, "more_nodes", json_integer(summary.more_nodes + more));
    if (summary.prediction) json_put(out, "predicted", prediction_value(*summary.prediction));
    if (!summary.forwarded.empty()) json_put(out, "forwarded", sentence(summary.forwarded));
    if (summary.record) {
        // The very text that the agent sent, without its prefix.
        const std::string text = to_text(*summary.record);
        if (auto value = parse_json(std::string_view(text).substr(Record::prefix.size())))
            json_put(out, "record", std::move(*value));
    }
    if (resizes > 0) {
        Json list = json_array();
        for (const SummaryResize& each : std::span(summary.resizes).last(resizes))
            json_add(list, resize_value(each));
        json_put(out, "resizes", std::move(list));
    }
    if (summary.resize_count > 0) json_put(out, "resize_count", json_integer(summary.resize_count));
    if (!summary.advice.empty()) json_put(out, "advice", sentence(summary.advice));
    if (summary.pending_target > 0)
        json_put(out, "pending_target", json_integer(summary.pending_target));
    // Compact JSON has blanks only within strings; in those of the record they have to survive.
    std::string text;
    for (const char c : json_line(out.get())) {
        if (c == ' ')
            text += "\\u0020";
        else
            text += c;
    }
    return text;
}

std::string key_text(const char* key) {
    return json_line(json_text(key).get()) + ':';
}

// A member of somebody else: 17 digits, so that its numbers keep their values.
std::string foreign_text(const json_t* value) {
    const std::unique_ptr<char, decltype(&std::free)> text(
        json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY), &std::free);
    return text ? text.get() : "null";
}

}  // namespace

bool has_summary(std::string_view field) {
    const Json object = parse_object(field);
    return object && json_is_object(json_object_get(object.get(), member));
}

bool may_write_summary(std::string_view field) {
    return trim(field).empty() || has_summary(field);
}

Result<Summary> parse_summary(std::string_view field) {
    const Json object = parse_object(field);
    const json_t* ours = object ? json_object_get(object.get(), member) : nullptr;
    if (ours == nullptr) return {ErrorCode::not_found, "no summary of Sluice in the AdminComment"};
    if (!json_is_object(ours)) return broken(member);
    if (json_integer_at(ours, "v") != version) return broken("v");

    Summary out;
    if (!read_list(ours, "placements", read_placement, out.placements)) return broken("placements");
    if (!read_list(ours, "resizes", read_resize, out.resizes)) return broken("resizes");
    const auto more_nodes = count_at(ours, "more_nodes");
    if (!more_nodes) return broken("more_nodes");
    out.more_nodes = *more_nodes;
    if (const json_t* value = json_object_get(ours, "predicted")) {
        out.prediction = read_prediction(value);
        if (!out.prediction) return broken("predicted");
    }
    const auto forwarded = sentence_at(ours, "forwarded");
    if (!forwarded) return broken("forwarded");
    out.forwarded = *forwarded;
    if (const json_t* value = json_object_get(ours, "record")) {
        auto record = parse_record(std::string(Record::prefix) + json_line(value));
        if (!record)
            return {ErrorCode::bad_input, std::string(where) + "record: " + record.error().message};
        out.record = std::move(*record);
    }
    const auto resize_count = count_at(ours, "resize_count");
    if (!resize_count) return broken("resize_count");
    out.resize_count = *resize_count;
    const auto advice = sentence_at(ours, "advice");
    if (!advice) return broken("advice");
    out.advice = *advice;
    const auto pending_target = count_at(ours, "pending_target");
    if (!pending_target) return broken("pending_target");
    out.pending_target = *pending_target;
    return out;
}

std::string with_summary(std::string_view field, const Summary& summary) {
    std::string before;  // others' members, each with its comma
    std::string after;
    if (const Json object = parse_object(field)) {
        bool passed = false;
        const char* key = nullptr;
        json_t* value = nullptr;
        json_object_foreach(object.get(), key, value) {
            const bool ours = std::string_view(key) == member;
            passed = passed || ours;
            if (ours) continue;
            if (passed)
                after += ',' + key_text(key) + foreign_text(value);
            else
                before.append(key_text(key)).append(foreign_text(value)) += ',';
        }
    }
    const std::string head = '{' + before + key_text(member);
    std::size_t placements = std::min(summary.placements.size(), Summary::max_placements);
    std::size_t resizes = std::min(summary.resizes.size(), Summary::max_resizes);
    for (;;) {
        std::string out = head;
        out.append(member_text(summary, placements, resizes)).append(after) += '}';
        if (out.size() <= Summary::max_bytes || placements + resizes == 0) return out;
        if (resizes > 0)
            --resizes;
        else
            --placements;
    }
}

}  // namespace sluice
