// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstdint>

namespace sluice::sim {

/// In (0, 1), the same for the same three everywhere (SplitMix64, Steele, Lea and Flood, OOPSLA
/// 2014).
inline double uniform(std::uint32_t seed, std::uint64_t number, std::uint32_t stream) {
    std::uint64_t x = (static_cast<std::uint64_t>(seed) << 32 | stream) ^ number << 16;
    for (int i = 0; i < 2; ++i) {
        x += 0x9e3779b97f4a7c15;
        x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
        x = (x ^ x >> 27) * 0x94d049bb133111eb;
        x ^= x >> 31;
    }
    return (static_cast<double>(x >> 11) + 0.5) / 9007199254740992.0;
}

}  // namespace sluice::sim
