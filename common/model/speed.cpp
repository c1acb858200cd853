// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/model/speed.hpp"

#include <algorithm>
#include <cmath>

namespace sluice {

std::optional<SpeedModel> fit_speed(const std::vector<SpeedSample>& samples,
                                    const SpeedOptions& options) {
    // Seconds per step are linear in (1 / k, 1); relative errors count, hence the weights f^2.
    double aa = 0, ab = 0, bb = 0, a = 0, b = 0;
    int fewest = 0;
    int most = 0;
    for (const SpeedSample& sample : samples) {
        const double f = sample.steps_per_second;
        if (sample.gpus < 1 || !std::isfinite(f) || !(f > 0)) continue;
        if (!std::isfinite(sample.weight) || !(sample.weight > 0)) continue;
        const double share = 1.0 / sample.gpus;
        const double weight = sample.weight * f * f;
        aa += weight * share * share;
        ab += weight * share;
        bb += weight;
        a += weight * share / f;
        b += weight / f;
        fewest = fewest == 0 ? sample.gpus : std::min(fewest, sample.gpus);
        most = std::max(most, sample.gpus);
    }
    if (!(bb > 0) || !std::isfinite(bb)) return std::nullopt;
    if (fewest == most) {
        const double serial = options.prior_serial_fraction;
        const double alone = (b / bb) / ((1 - serial) / most + serial);
        return SpeedModel{alone * (1 - serial), alone * serial};
    }
    // Non-negative least squares in two unknowns: the free solution, or the better edge.
    const double determinant = aa * bb - ab * ab;
    if (determinant > 1e-12 * aa * bb) {
        const SpeedModel free{(a * bb - b * ab) / determinant, (b * aa - a * ab) / determinant};
        if (free.t0_s >= 0 && free.t1_s >= 0) return free;
    }
    if (a * a / aa > b * b / bb) return SpeedModel{a / aa, 0};
    return SpeedModel{0, b / bb};
}

}  // namespace sluice
