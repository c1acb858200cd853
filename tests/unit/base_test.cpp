// SPDX-License-Identifier: GPL-2.0-or-later
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "common/base/gpu_set.hpp"
#include "common/base/json.hpp"
#include "common/base/result.hpp"
#include "common/base/text.hpp"
#include "tests/unit/locales.hpp"

namespace sluice {
namespace {

// --- text

TEST(Text, TrimAndSplit) {
    EXPECT_EQ(trim(" \t a b \r\n"), "a b");
    EXPECT_EQ(trim(" \r\n"), "");
    EXPECT_EQ(split("a,,b", ','), (std::vector<std::string_view>{"a", "", "b"}));
    EXPECT_EQ(split("", ','), (std::vector<std::string_view>{""}));
    EXPECT_EQ(split(",", ','), (std::vector<std::string_view>{"", ""}));
}

TEST(Text, Integers) {
    EXPECT_EQ(parse_integer("0"), 0);
    EXPECT_EQ(parse_integer("-17"), -17);
    EXPECT_EQ(parse_integer("9223372036854775807"), std::numeric_limits<std::int64_t>::max());
    for (const char* text :
         {"", "-", "+1", " 1", "1 ", "1x", "0x10", "1.0", "9223372036854775808", "--1"})
        EXPECT_FALSE(parse_integer(text)) << text;
}

TEST(Text, NumbersHaveTheWholeGrammar) {
    EXPECT_EQ(parse_number("6.05e-06"), 6.05e-06);
    EXPECT_EQ(parse_number("+1E+01"), 10.0);
    EXPECT_EQ(parse_number("-.5"), -0.5);
    EXPECT_EQ(parse_number("5."), 5.0);
    EXPECT_EQ(parse_number("inf"), std::numeric_limits<double>::infinity());
    EXPECT_EQ(parse_number("-Infinity"), -std::numeric_limits<double>::infinity());
    EXPECT_TRUE(std::isnan(*parse_number("-NaN")));
    EXPECT_EQ(parse_number("1e400"), std::numeric_limits<double>::infinity());
    EXPECT_EQ(parse_number("-1e400"), -std::numeric_limits<double>::infinity());
    EXPECT_EQ(parse_number("1e-400"), 0.0);
    EXPECT_EQ(parse_number(std::string(400, '9')), std::numeric_limits<double>::infinity());
    EXPECT_EQ(parse_number("0." + std::string(400, '0') + "1"), 0.0);
    // the digits and the exponent count together
    const double infinity = std::numeric_limits<double>::infinity();
    const std::string zeros(400, '0');
    EXPECT_EQ(parse_number("1" + zeros + "e-5"), infinity);
    EXPECT_EQ(parse_number("-1" + zeros + ".5E-05"), -infinity);
    EXPECT_EQ(parse_number("0" + zeros + "12.5e400"), infinity);
    EXPECT_EQ(parse_number("0." + zeros + "1e+5"), 0.0);
    EXPECT_EQ(parse_number("." + zeros + "1e+750"), infinity);
    EXPECT_EQ(parse_number("1" + zeros + "e-800"), 0.0);
    EXPECT_EQ(parse_number("1" + zeros + "e-400"), 1.0);
    EXPECT_EQ(parse_number("0." + zeros + "1e401"), 1.0);
    EXPECT_EQ(parse_number("1" + zeros + "e-99999999999999999999"), 0.0);
    EXPECT_EQ(parse_number("0." + zeros + "1e99999999999999999999"), infinity);
    EXPECT_EQ(parse_number("1e9223372036854775807"), infinity);
    EXPECT_EQ(parse_number("0e999"), 0.0);
    for (const char* text : {"", "-", "+-1", "--1", ".", "e5", "1e", "1,5", "0x1p3", "nan(1)", "1 ",
                             " 1", "1.2.3", "infin"})
        EXPECT_FALSE(parse_number(text)) << text;
}

TEST(Text, FormatReadsBack) {
    for (const double value : {0.0, 0.1, -12.5, 1e300, 5e-324, 25.0, 1.0 / 3})
        EXPECT_EQ(parse_number(format_number(value)), value);
    EXPECT_EQ(format_number(25), "25");
    EXPECT_EQ(format_number(std::nan("")), "nan");
    EXPECT_EQ(format_number(-std::numeric_limits<double>::infinity()), "-inf");
    EXPECT_EQ(format_fixed(2.0 / 3, 2), "0.67");
    EXPECT_EQ(format_fixed(1e308, 3).size(), 309U + 4);
    EXPECT_EQ(format_fixed(std::nan(""), 2), "nan");
}

TEST(Text, CaseAndControlCharacters) {
    EXPECT_TRUE(equal_ignoring_case("NodeName", "NODENAME"));
    EXPECT_FALSE(equal_ignoring_case("a", "ab"));
    EXPECT_TRUE(starts_with_ignoring_case("Loss=1", "loss"));
    EXPECT_FALSE(starts_with_ignoring_case("lo", "loss"));
    EXPECT_EQ(printable("a\x1b[4m\nb\xc3\xa9"), "a?[4m?b??");
    EXPECT_EQ(printable("abcdef", 3), "abc...");
    EXPECT_EQ(printable("abc", 3), "abc");
}

// A process that has set a German locale reads and writes points all the same.
TEST(Text, TheLocaleDoesNotCount) {
    const InLocale locale("de_DE.UTF-8");
    ASSERT_EQ(locale.problem(), "");
    EXPECT_EQ(parse_number("0.5"), 0.5);
    EXPECT_EQ(format_number(0.5), "0.5");
    EXPECT_EQ(format_fixed(0.5, 1), "0.5");
    EXPECT_EQ(json_line(json_number(0.5).get()), "0.5");
    EXPECT_EQ(json_real_value(parse_json("0.5")->get()), 0.5);
}

// --- sets of GPUs

TEST(GpuSets, TextAndBack) {
    EXPECT_EQ(to_string(GpuSet()), "");
    EXPECT_EQ(to_string(GpuSet(0b1110101)), "0,2,4-6");
    EXPECT_EQ(to_string(GpuSet::first(64)), "0-63");
    EXPECT_EQ(to_string(GpuSet(std::uint64_t{3} << 62)), "62-63");
    for (const std::uint64_t bits : {0ULL, 1ULL, 0b1110101ULL, ~0ULL, 0x8000000000000001ULL})
        EXPECT_EQ(parse_gpu_set(to_string(GpuSet(bits)))->bits(), bits);
    EXPECT_EQ(parse_gpu_set(" 3 , 1-2 ")->bits(), 0b1110U);
}

TEST(GpuSets, BrokenTexts) {
    for (const char* text : {"x", "1,", ",1", "64", "-1", "3-1", "1-", "1--2", "0-64", "1 2"}) {
        const auto set = parse_gpu_set(text);
        ASSERT_FALSE(set.ok()) << text;
        EXPECT_NE(set.error().message.find("write indices below 64"), std::string::npos) << text;
    }
    EXPECT_EQ(parse_gpu_set("0-3,2").error().message,
              "GPU 2 is named twice in \"0-3,2\": name each once");
}

TEST(GpuSets, Algebra) {
    const GpuSet set(0b10110);
    EXPECT_EQ(set.size(), 3);
    EXPECT_EQ(set.lowest(), 1);
    EXPECT_EQ(set.indices(), (std::vector<int>{1, 2, 4}));
    EXPECT_TRUE(set.contains(GpuSet(0b00110)));
    EXPECT_FALSE(set.contains(GpuSet(0b01000)));
    EXPECT_EQ((set - GpuSet(0b00010)).bits(), 0b10100U);
    EXPECT_EQ((set & GpuSet(0b00011)).bits(), 0b00010U);
    EXPECT_EQ((set | GpuSet(0b00001)).bits(), 0b10111U);
    GpuSet changed = set;
    changed.erase(4);
    changed.insert(63);
    EXPECT_EQ(to_string(changed), "1-2,63");
}

// --- JSON

TEST(Json, OneLineInTheOrderOfWriting) {
    const Json object = json_object();
    json_put(object, "z", json_integer(1));
    json_put(object, "a", json_number(0.1));
    json_put(object, "text", json_text("\"\n\xc3\xa9"));
    json_put(object, "bad", json_text("\xff"));
    json_put(object, "none", json_none());
    json_put(object, "yes", json_bool(true));
    json_put(object, "no", json_bool(false));
    Json array = json_array();
    json_add(array, json_number(std::nan("")));
    json_add(array, json_number(-std::numeric_limits<double>::infinity()));
    json_put(object, "odd", std::move(array));
    EXPECT_EQ(json_line(object.get()),
              "{\"z\":1,\"a\":0.1,\"text\":\"\\\"\\n\xc3\xa9\",\"bad\":\"?\",\"none\":null,"
              "\"yes\":true,\"no\":false,\"odd\":[\"nan\",\"-inf\"]}");
}

TEST(Json, MembersByType) {
    const auto parsed = parse_json(R"({"n":1.5,"i":7,"t":"x","b":true,"nan":"nan","null":null})");
    ASSERT_TRUE(parsed.ok()) << parsed.error().message;
    const json_t* const object = parsed->get();
    EXPECT_EQ(json_number_at(object, "n"), 1.5);
    EXPECT_EQ(json_number_at(object, "i"), 7.0);
    EXPECT_TRUE(std::isnan(*json_number_at(object, "nan")));
    EXPECT_FALSE(json_number_at(object, "t"));
    EXPECT_EQ(json_integer_at(object, "i"), 7);
    EXPECT_FALSE(json_integer_at(object, "n"));
    EXPECT_EQ(json_text_at(object, "t"), "x");
    EXPECT_FALSE(json_text_at(object, "null"));
    EXPECT_EQ(json_bool_at(object, "b"), true);
    EXPECT_FALSE(json_bool_at(object, "i"));
    EXPECT_FALSE(json_bool_at(object, "nothing"));
    EXPECT_FALSE(json_number_at(nullptr, "n"));
}

TEST(Json, BrokenTexts) {
    EXPECT_FALSE(parse_json("").ok());
    EXPECT_FALSE(parse_json("{\"a\":1,\"a\":2}").ok());
    EXPECT_FALSE(parse_json("{\"a\":1} x").ok());
    EXPECT_EQ(parse_json("[1,2", 3).error().message,
              "JSON of 4 bytes is longer than the 3 that are read");
    EXPECT_EQ(parse_json("[1,\n2").error().message.substr(0, 17), "no JSON at line 2");
    // Nesting without end does not end the stack.
    EXPECT_FALSE(parse_json(std::string(60000, '[')).ok());
}

// --- results

TEST(Results, HoldAValueOrAnError) {
    const Result<int> value = 3;
    const Result<int> error(ErrorCode::not_found, "gone");
    EXPECT_TRUE(value.ok());
    EXPECT_EQ(*value, 3);
    EXPECT_FALSE(error.ok());
    EXPECT_EQ(error.error().message, "gone");
    EXPECT_EQ(static_cast<int>(error.error().code), 1);
    EXPECT_TRUE(Status().ok());
    EXPECT_FALSE(Status(ErrorCode::usage, "no").ok());
}

}  // namespace
}  // namespace sluice
