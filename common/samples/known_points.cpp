// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/samples/known_points.hpp"

#include <bit>
#include <cmath>

namespace sluice {
namespace {

/// SplitMix64's finalizer: each bit of the input changes each bit of the output.
std::uint64_t mixed(std::uint64_t value) {
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9U;
    value = (value ^ value >> 27) * 0x94d049bb133111ebU;
    return value ^ value >> 31;
}

bool power_of_two(std::int64_t count) {
    return std::has_single_bit(static_cast<std::uint64_t>(count));
}

}  // namespace

void KnownPoints::Prefix::add(const LossPoint& point) {
    const auto loss = std::isnan(point.loss) ? 0 : std::bit_cast<std::uint64_t>(point.loss);
    const auto step = point.step ? static_cast<std::uint64_t>(*point.step) : ~std::uint64_t{0};
    checksum = mixed(mixed(checksum + 0x9e3779b97f4a7c15U + loss) + step);
    ++count;
}

KnownPoints::Verdict KnownPoints::take(const LossPoint& point) {
    if (again_.count == given_.count) {
        given_.add(point);
        again_ = given_;
        if (power_of_two(given_.count))
            marks_[static_cast<std::size_t>(
                std::countr_zero(static_cast<std::uint64_t>(given_.count)))] = given_.checksum;
        return Verdict::fresh;
    }
    again_.add(point);
    if (again_.count == given_.count && again_.checksum != given_.checksum) return Verdict::changed;
    if (power_of_two(again_.count)) {
        const auto mark = std::countr_zero(static_cast<std::uint64_t>(again_.count));
        if (again_.checksum != marks_[static_cast<std::size_t>(mark)]) return Verdict::changed;
    }
    return Verdict::known;
}

}  // namespace sluice
