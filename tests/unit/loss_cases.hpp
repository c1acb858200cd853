// SPDX-License-Identifier: GPL-2.0-or-later
//
// Pieces of logs and the points that they hold (tests/data/losses), and how the reader's are shown.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/json.hpp"
#include "common/base/text.hpp"
#include "common/samples/loss_reader.hpp"
#include "tests/unit/test_data.hpp"

namespace sluice {

using Points = std::vector<LossPoint>;

inline Points read_pieces(const std::vector<std::string_view>& pieces,
                          LossReaderOptions options = {}) {
    LossReader reader(std::move(options));
    Points points;
    for (const std::string_view piece : pieces) reader.feed(piece, points);
    reader.finish(points);
    return points;
}

inline Points read(std::string_view text, const std::string& key = "") {
    LossReaderOptions options;
    options.key = key;
    return read_pieces({text}, options);
}

/// "[26,10.29] [null,nan]": nan compares equal to itself here.
inline std::string shown(const Points& points) {
    std::string out;
    for (const LossPoint& point : points) {
        out += "[" + (point.step ? std::to_string(*point.step) : "null") + "," +
               format_number(point.loss) + "] ";
    }
    return out;
}

struct Case {
    std::string id;
    std::string text;
    Points points;
};

/// One JSON object a line: {"id":..., "text":..., "points":[[step,loss],...]}.
inline std::vector<Case> cases_of(const std::string& file) {
    std::vector<Case> cases;
    const std::string text = test_data("losses/" + file);
    for (const std::string_view line : split(text, '\n')) {
        if (trim(line).empty()) continue;
        const auto object = parse_json(line);
        if (!object.ok()) {
            ADD_FAILURE() << file << ": " << object.error().message;
            continue;
        }
        Case one{json_text_at(object->get(), "id").value_or(""),
                 json_text_at(object->get(), "text").value_or(""),
                 {}};
        std::size_t index = 0;
        const json_t* pair = nullptr;
        json_array_foreach(json_object_get(object->get(), "points"), index, pair) {
            LossPoint point;
            const json_t* step = json_array_get(pair, 0);
            if (json_is_integer(step)) point.step = json_integer_value(step);
            const json_t* loss = json_array_get(pair, 1);
            point.loss = json_is_string(loss) ? parse_number(json_string_value(loss)).value_or(-99)
                                              : json_number_value(loss);
            one.points.push_back(point);
        }
        cases.push_back(std::move(one));
    }
    return cases;
}

inline std::vector<Case> all_cases() {
    std::vector<Case> cases = cases_of("loss-lines.jsonl");
    for (Case& one : cases_of("families.jsonl")) cases.push_back(std::move(one));
    return cases;
}

}  // namespace sluice
