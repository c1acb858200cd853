// SPDX-License-Identifier: GPL-2.0-or-later
//
// A step time model that a user or a store hands in. One that is let through comes back from its
// own text, and predicts.
#include <cmath>
#include <cstdint>

#include "common/model/step_time.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace sluice;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto model = parse_step_time({reinterpret_cast<const char*>(data), size});
    if (!model.ok()) {
        demand(model.error().code == ErrorCode::bad_input && !model.error().message.empty());
        return 0;
    }
    const std::string text = to_text(*model);
    demand(text.size() <= StepTimeModel::max_bytes);
    const auto again = parse_step_time(text);
    demand(again.ok());
    demand(*again == *model);
    demand(to_text(*again) == text);

    for (const double batch : {1.0, 32.0, 4096.0}) {
        const StepPlacement one{1, 1, 1, batch, 0, 0};
        const StepPlacement pair{2, 8, 4, batch, 25, 12.5};
        const StepPlacement many{16, 64, 8, batch, 0, 0};
        for (const StepPlacement& placement : {one, pair, many}) {
            const StepTime time = predict_step(*model, placement);
            demand(std::isfinite(time.seconds) && time.seconds > 0);
            demand(std::isfinite(time.log_sd) && time.log_sd >= 0);
            demand(time.seconds == step_seconds(*model, placement));
            demand(step_seconds(*model, placement) >= step_seconds(*model, one) * (1 - 1e-9));
            demand(slowdown(*model, placement, placement).ratio == 1);
        }
    }
    return 0;
}
