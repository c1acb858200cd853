// SPDX-License-Identifier: GPL-2.0-or-later
//
// An AdminComment. What is read from it has to come out of the text form as it went in, and members
// of others have to survive.
#include <cstdint>

#include "common/base/json.hpp"
#include "common/report/summary.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace sluice;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view field(reinterpret_cast<const char*>(data), size);
    if (!may_write_summary(field)) {
        demand(!has_summary(field) && !parse_summary(field));
        return 0;
    }
    const auto summary = parse_summary(field);
    const std::string text = with_summary(field, summary ? *summary : Summary());
    demand(has_summary(text));
    const auto again = parse_summary(text);
    demand(again.ok());
    demand(with_summary(text, *again) == text);
    const std::string alone = with_summary("", *again);
    demand(alone.size() <= Summary::max_bytes && alone.find(' ') == std::string::npos);
    if (has_summary(field)) {
        const auto before = parse_json(field);
        const auto after = parse_json(text);
        demand(before.ok() && after.ok() &&
               json_object_size(before->get()) == json_object_size(after->get()));
    }
    return 0;
}
