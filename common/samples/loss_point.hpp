// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstdint>
#include <optional>

namespace sluice {

/// The largest step of a point: up to here a double holds all whole numbers exactly.
constexpr std::int64_t max_step = std::int64_t{1} << 53;

/// One loss as a job printed it. The loss may be nan or infinite; the step, 0 to max_step, is
/// missing where the log has none.
struct LossPoint {
    std::optional<std::int64_t> step;
    double loss = 0;

    friend bool operator==(const LossPoint&, const LossPoint&) = default;
};

}  // namespace sluice
