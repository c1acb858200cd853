// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/base/json.hpp"

#include <cmath>
#include <cstdlib>

#include "common/base/text.hpp"

namespace sluice {

Json json_object() {
    return Json(::json_object());
}
Json json_array() {
    return Json(::json_array());
}

Json json_text(std::string_view text) {
    if (json_t* value = json_stringn(text.data(), text.size())) return Json(value);
    const std::string safe = printable(text, text.size());
    return Json(json_stringn(safe.data(), safe.size()));
}

Json json_integer(std::int64_t value) {
    return Json(::json_integer(value));
}

Json json_number(double value) {
    if (!std::isfinite(value)) return json_text(format_number(value));
    return Json(json_real(value));
}

Json json_bool(bool value) {
    return Json(json_boolean(value));
}
Json json_none() {
    return Json(json_null());
}

void json_put(const Json& object, const char* key, Json value) {
    json_object_set_new(object.get(), key, value.release());
}

void json_add(const Json& array, Json value) {
    json_array_append_new(array.get(), value.release());
}

std::string json_line(const json_t* value) {
    const std::unique_ptr<char, decltype(&std::free)> text(
        json_dumps(value,
                   JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_ENCODE_ANY | JSON_REAL_PRECISION(12)),
        &std::free);
    return text ? std::string(text.get()) : std::string();
}

Result<Json> parse_json(std::string_view text, std::size_t limit) {
    if (text.size() > limit) {
        return {ErrorCode::bad_input, "JSON of " + std::to_string(text.size()) +
                                          " bytes is longer than the " + std::to_string(limit) +
                                          " that are read"};
    }
    json_error_t error;
    if (json_t* value = json_loadb(text.data(), text.size(),
                                   JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error)) {
        return Json(value);
    }
    return {ErrorCode::bad_input, "no JSON at line " + std::to_string(error.line) + " column " +
                                      std::to_string(error.column) + ": " +
                                      printable(error.text, 120)};
}

std::optional<double> json_number_at(const json_t* object, const char* key) {
    const json_t* value = json_object_get(object, key);
    if (json_is_number(value)) return json_number_value(value);
    if (json_is_string(value)) {
        const auto number = parse_number(json_string_value(value));
        if (number && !std::isfinite(*number)) return number;
    }
    return std::nullopt;
}

std::optional<std::int64_t> json_integer_at(const json_t* object, const char* key) {
    const json_t* value = json_object_get(object, key);
    if (!json_is_integer(value)) return std::nullopt;
    return json_integer_value(value);
}

std::optional<std::string> json_text_at(const json_t* object, const char* key) {
    const json_t* value = json_object_get(object, key);
    if (!json_is_string(value)) return std::nullopt;
    return std::string(json_string_value(value), json_string_length(value));
}

std::optional<bool> json_bool_at(const json_t* object, const char* key) {
    const json_t* value = json_object_get(object, key);
    if (!json_is_boolean(value)) return std::nullopt;
    return json_is_true(value);
}

}  // namespace sluice
