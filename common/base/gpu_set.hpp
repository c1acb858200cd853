// SPDX-License-Identifier: GPL-2.0-or-later
//
// A set of GPUs of one node, by local index 0..63. "Local index" is the position among the node's
// GPUs in the order in which Slurm lists them (the bit in gres_node_state_t); it need not be
// contiguous in a set.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.hpp"

namespace sluice {

class GpuSet {
  public:
    static constexpr int max_gpus = 64;

    constexpr GpuSet() = default;
    constexpr explicit GpuSet(std::uint64_t bits) : bits_(bits) {}
    /// {0, ..., count - 1}; count in 0..64.
    static constexpr GpuSet first(int count) {
        return GpuSet(count >= max_gpus ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1);
    }

    constexpr std::uint64_t bits() const { return bits_; }
    constexpr int size() const { return std::popcount(bits_); }
    constexpr bool empty() const { return bits_ == 0; }
    constexpr bool contains(int gpu) const { return (bits_ >> gpu & 1) != 0; }
    constexpr bool contains(GpuSet other) const { return (other.bits_ & ~bits_) == 0; }
    constexpr void insert(int gpu) { bits_ |= std::uint64_t{1} << gpu; }
    constexpr void erase(int gpu) { bits_ &= ~(std::uint64_t{1} << gpu); }
    /// Lowest index; only where not empty.
    constexpr int lowest() const { return std::countr_zero(bits_); }

    friend constexpr GpuSet operator|(GpuSet a, GpuSet b) { return GpuSet(a.bits_ | b.bits_); }
    friend constexpr GpuSet operator&(GpuSet a, GpuSet b) { return GpuSet(a.bits_ & b.bits_); }
    friend constexpr GpuSet operator-(GpuSet a, GpuSet b) { return GpuSet(a.bits_ & ~b.bits_); }
    friend constexpr bool operator==(GpuSet a, GpuSet b) = default;

    std::vector<int> indices() const;

  private:
    std::uint64_t bits_ = 0;
};

/// "0,2,4-6" as Slurm prints it; "" for the empty set.
std::string to_string(GpuSet set);

/// The inverse: comma-separated indices and ranges below 64, each once. "" is the empty set.
Result<GpuSet> parse_gpu_set(std::string_view text);

}  // namespace sluice
