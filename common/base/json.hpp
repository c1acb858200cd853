// SPDX-License-Identifier: GPL-2.0-or-later
//
// Ownership for jansson's values, and the few calls that the tree needs. Everything that Sluice
// writes as JSON is one line without blanks, keys in the order in which they were set: the same
// input gives the same bytes.
#pragma once

#include <jansson.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/result.hpp"

namespace sluice {

struct JsonDeleter {
    void operator()(json_t* value) const { json_decref(value); }
};
/// Owns one reference.
using Json = std::unique_ptr<json_t, JsonDeleter>;

Json json_object();
Json json_array();
Json json_text(std::string_view text);  ///< invalid UTF-8 is replaced by '?'
Json json_integer(std::int64_t value);
/// A JSON number; nan and the infinities, which JSON lacks, become the strings "nan", "inf",
/// "-inf".
Json json_number(double value);
Json json_bool(bool value);
Json json_none();

/// object[key] = value, array += value.
void json_put(const Json& object, const char* key, Json value);
void json_add(const Json& array, Json value);

/// One line without blanks.
std::string json_line(const json_t* value);

/// At most `limit` bytes, duplicate keys refused. Errors name the position.
Result<Json> parse_json(std::string_view text, std::size_t limit = std::size_t{64} * 1024);

/// Members of an object by type; nothing when absent or of another type.
std::optional<double> json_number_at(const json_t* object,
                                     const char* key);  ///< also "nan", "inf", "-inf"
std::optional<std::int64_t> json_integer_at(const json_t* object, const char* key);
std::optional<std::string> json_text_at(const json_t* object, const char* key);
std::optional<bool> json_bool_at(const json_t* object, const char* key);

}  // namespace sluice
