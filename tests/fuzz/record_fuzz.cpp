// SPDX-License-Identifier: GPL-2.0-or-later
//
// What an agent, or a user who plays one, sends to the controller. A record that is let through
// comes back from its own text, and its curve can be used.
#include <cstdint>

#include "common/model/record.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace sluice;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto record = parse_record({reinterpret_cast<const char*>(data), size});
    if (!record.ok()) {
        demand(record.error().code == ErrorCode::bad_input && !record.error().message.empty());
        return 0;
    }
    const std::string text = to_text(*record);
    demand(text.size() <= Record::max_bytes);
    const auto again = parse_record(text);
    demand(again.ok());
    demand(to_text(*again) == text);
    if (!record->curve) return 0;
    const Forecast limit = forecast_limit(*record->curve);
    demand(!(limit.low > limit.value) && !(limit.high < limit.value));
    for (const double step : {0.0, 1000.0, 1e15}) {
        const Forecast forecast = forecast_loss(*record->curve, step);
        demand(!(forecast.low > forecast.value) && !(forecast.high < forecast.value));
        const auto reached = forecast_step(*record->curve, forecast.value);
        demand(!reached || !(reached->high < reached->value));
    }
    return 0;
}
