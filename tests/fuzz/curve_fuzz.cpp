// SPDX-License-Identifier: GPL-2.0-or-later
//
// Losses of any size in any order of steps, ten bytes a point, many times over where the first byte
// says so: what is kept is bounded and in order, the curve is sound, and a record carries it.
#include <cmath>
#include <cstdint>
#include <cstring>

#include "common/model/record.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace sluice;

namespace {

/// One byte of kind, one of the step's way, eight of the loss.
LossPoint point_of(const std::uint8_t* data, std::int64_t& step) {
    LossPoint point;
    const int way = data[1];
    step += (data[0] & 1) != 0 ? way - 128 : way;
    if ((data[0] & 2) != 0) step += std::int64_t{way} << (data[0] >> 3);
    if ((data[0] & 4) == 0) point.step = step;
    std::memcpy(&point.loss, data + 2, sizeof point.loss);
    return point;
}

void check(const CurveReservoir& reservoir) {
    const CurveSamples& samples = reservoir.samples();
    demand(samples.size() <= CurveReservoir::max_samples);
    double before = -1;
    for (const CurveSample& sample : samples) {
        demand(sample.last > before && sample.count >= 1 && std::isfinite(sample.loss));
        before = sample.last;
    }
    const auto curve = fit_loss_curve(reservoir);
    if (!curve.ok()) {
        demand(curve.error().code == ErrorCode::not_found && !curve.error().message.empty());
        return;
    }
    for (const double value : {curve->b0, curve->b1, curve->b2}) {
        demand(std::isfinite(value) && value >= 0);
    }
    const double last = static_cast<double>(curve->last_step);
    for (const double step : {0.0, 1.0, last, 2 * last, 300 * last, 1e15}) {
        const Forecast forecast = forecast_loss(*curve, step);
        demand(std::isfinite(forecast.value));
        demand(forecast.low <= forecast.value && forecast.value <= forecast.high);
        const auto reached = forecast_step(*curve, forecast.value);
        demand(!reached || (reached->low <= reached->value && reached->value <= reached->high));
    }
    const auto flat = forecast_flat(*curve, 0.01);
    demand(!flat || (flat->low <= flat->value && flat->value <= flat->high));
    Record record;
    record.points = 1;
    record.curve = *curve;
    if (curve->last_step > (std::int64_t{1} << 53) || curve->points > (std::int64_t{1} << 53))
        return;
    const auto back = parse_record(to_text(record));
    demand(back.ok());
    demand(to_text(*back) == to_text(record));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    constexpr std::size_t bytes = 10;
    if (size < 1 + bytes || size > 20000) return 0;
    CurveReservoir reservoir;
    std::int64_t step = 0;
    const int rounds = (data[0] & 1) != 0 ? 40 : 1;
    for (int round = 0; round < rounds; ++round) {
        for (std::size_t i = 1; i + bytes <= size; i += bytes) {
            reservoir.add(point_of(data + i, step));
            if (step < 0 || step > (std::int64_t{1} << 60)) step = 0;
        }
    }
    check(reservoir);
    return 0;
}
