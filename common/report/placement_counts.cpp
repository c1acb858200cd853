// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/report/placement_counts.hpp"

#include "common/base/json.hpp"
#include "common/base/text.hpp"

namespace sluice {
namespace {

constexpr int version = 1;

struct Member {
    const char* key;
    std::int64_t PlacementCounts::*number;
};
constexpr Member numbers[] = {
    {"since", &PlacementCounts::since},           {"as_stock", &PlacementCounts::as_stock},
    {"other_gpus", &PlacementCounts::other_gpus}, {"other_nodes", &PlacementCounts::other_nodes},
    {"advised", &PlacementCounts::advised},
};

struct ReasonsMember {
    const char* key;
    PlacementCounts::Reasons PlacementCounts::*reasons;
};
constexpr ReasonsMember lists[] = {
    {"nodes_given", &PlacementCounts::nodes_given},
    {"forwarded", &PlacementCounts::forwarded},
};

bool read_reasons(const json_t* object, const char* key, PlacementCounts::Reasons& reasons) {
    json_t* value = json_object_get(object, key);
    if (!json_is_object(value)) return false;
    const char* reason = nullptr;
    json_t* count = nullptr;
    json_object_foreach(value, reason, count) {
        if (!json_is_integer(count) || json_integer_value(count) < 0) return false;
        reasons[printable(reason, 200)] = json_integer_value(count);
    }
    return true;
}

}  // namespace

std::string to_text(const PlacementCounts& counts) {
    const Json out = json_object();
    json_put(out, "v", json_integer(version));
    for (const Member& each : numbers) json_put(out, each.key, json_integer(counts.*each.number));
    for (const ReasonsMember& each : lists) {
        Json reasons = json_object();
        for (const auto& [reason, count] : counts.*each.reasons)
            json_put(reasons, reason.c_str(), json_integer(count));
        json_put(out, each.key, std::move(reasons));
    }
    return json_line(out.get()) + '\n';
}

Result<PlacementCounts> parse_placement_counts(std::string_view text) {
    const auto broken = [](const char* key) {
        return Error{ErrorCode::bad_input,
                     std::string("\"") + key + "\" is not as in placements-v1"};
    };
    const auto value = parse_json(text, PlacementCounts::max_bytes);
    if (!value) return value.error();
    const json_t* object = value->get();
    if (!json_is_object(object) || json_integer_at(object, "v") != version) return broken("v");
    PlacementCounts counts;
    for (const Member& each : numbers) {
        const auto number = json_integer_at(object, each.key);
        if (!number || *number < 0) return broken(each.key);
        counts.*each.number = *number;
    }
    for (const ReasonsMember& each : lists) {
        if (!read_reasons(object, each.key, counts.*each.reasons)) return broken(each.key);
    }
    return counts;
}

}  // namespace sluice
