// SPDX-License-Identifier: GPL-2.0-or-later
//
// A training log, read whole, in pieces, and line by line without the fast path: the points have to
// be the same, and a curve fitted to them sound. The first byte chooses how it is read, and whether
// its first half stands before it, the second where it is cut.
#include <cmath>
#include <cstdint>

#include "common/base/text.hpp"
#include "common/model/loss_curve.hpp"
#include "common/samples/loss_reader.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace {

using namespace sluice;

LossReaderOptions options_of(std::uint8_t choice) {
    LossReaderOptions options;
    options.format = static_cast<LossReaderOptions::Format>(choice & 3);
    if ((choice & 4) != 0) options.key = "val loss";
    if ((choice & 8) != 0) options.max_line_bytes = 40;
    // the fast path begins where enough names have been seen
    if ((choice & 32) != 0) options.max_keys_seen = 1;
    return options;
}

struct Found {
    std::vector<LossPoint> points;
    std::optional<std::int64_t> last_step;
    std::vector<std::string> keys;
};

Found read_pieces(std::string_view before, std::string_view text, const LossReaderOptions& options,
                  std::uint32_t seed) {
    LossReader reader(options);
    reader.learn_columns(before);
    Found found;
    while (!text.empty()) {
        std::size_t size = text.size();
        if (seed != 0) {
            seed = seed * 1664525 + 1013904223;
            size = std::min<std::size_t>(size, 1 + (seed >> 24) % 40);
        }
        reader.feed(text.substr(0, size), found.points);
        text.remove_prefix(size);
    }
    reader.finish(found.points);
    found.last_step = reader.last_step();
    found.keys = reader.keys_seen();
    return found;
}

void compare(const Found& a, const Found& b) {
    demand(a.points.size() == b.points.size());
    for (std::size_t i = 0; i < a.points.size(); ++i) {
        demand(a.points[i].step == b.points[i].step);
        demand(format_number(a.points[i].loss) == format_number(b.points[i].loss));
    }
    demand(a.last_step == b.last_step);
    demand(a.keys == b.keys);
}

void fit(const std::vector<LossPoint>& points) {
    const auto curve = fit_loss_curve(points);
    if (!curve.ok()) {
        demand(!curve.error().message.empty());
        return;
    }
    for (const double value : {curve->b0, curve->b1, curve->b2}) {
        demand(std::isfinite(value) && value >= 0);
    }
    for (const double step : {0.0, 1.0, static_cast<double>(curve->last_step), 1e15}) {
        const Forecast forecast = forecast_loss(*curve, step);
        demand(forecast.low <= forecast.value && forecast.value <= forecast.high);
        const auto reached = forecast_step(*curve, forecast.value);
        demand(!reached || (reached->low <= reached->value && reached->value <= reached->high));
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 2) return 0;
    std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
    const std::string_view before = text.substr(0, (data[0] & 128) != 0 ? text.size() / 2 : 0);
    text.remove_prefix(before.size());
    const LossReaderOptions options = options_of(data[0]);
    const Found whole = read_pieces(before, text, options, 0);
    compare(whole, read_pieces(before, text, options, 1u + data[1]));
    LossReaderOptions slow = options;
    slow.every_line = true;
    compare(whole, read_pieces(before, text, slow, 0));
    for (const LossPoint& point : whole.points) demand(!point.step || *point.step >= 0);
    for (const std::string& key : whole.keys) demand(key.size() <= 64);
    demand(whole.keys.size() <= options.max_keys_seen);
    if ((data[0] & 16) != 0) fit(whole.points);
    return 0;
}
