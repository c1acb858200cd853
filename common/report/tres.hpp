// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace sluice {

/// The GPUs of a TRES list.
struct TresGpus {
    static constexpr std::int64_t max_gpus = 1'000'000;  ///< far beyond any real job

    bool named = false;  ///< the list has gres/gpu at all
    std::int64_t count = 0;
};

/// "billing=8,gres/gpu:a100=2,gres/gpu=2" -> 2: gres/gpu=N when it is there, else the sum of the
/// typed ones, never both. Nothing where a count is no number from 0 to max_gpus.
std::optional<TresGpus> parse_tres(std::string_view text);

}  // namespace sluice
