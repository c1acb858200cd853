// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/model/decay.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sluice {
namespace {

/// (1 + z / c)^-c; the usual exponents without pow(), which is slow.
double shape(double z, double c) {
    if (std::isinf(c)) return std::exp(-z);
    const double base = 1 + z / c;
    if (c == 1.0 / 3) return 1 / std::cbrt(base);
    if (c == 0.5) return 1 / std::sqrt(base);
    if (c == 2) return 1 / (base * base);
    return std::pow(base, -c);
}

}  // namespace

double Decay::at(double x) const {
    // this one is defined for q = 0 too
    if (exponent == 1) return 1 / (p * x + q);
    return shape(p * x / q, exponent) / q;
}

std::array<double, 2> Decay::gradient(double x) const {
    if (exponent == 1) {
        const double v = at(x);
        return {-x * v * v, -v * v};
    }
    const double z = p * x / q;
    const double v = shape(z, exponent) / q;
    // (1 + z / c)^(-c - 1)
    const double steep = std::isinf(exponent) ? v : v / (1 + z / exponent);
    return {-x * steep / q, (z * steep - v) / q};
}

double Decay::reached(double height) const {
    if (!(height > 0)) return std::numeric_limits<double>::infinity();
    if (exponent == 1) return std::max(0.0, (1 / height - q) / p);
    const double fall = 1 / (height * q);
    if (fall <= 1) return 0;
    const double z =
        std::isinf(exponent) ? std::log(fall) : exponent * (std::pow(fall, 1 / exponent) - 1);
    return z * q / p;
}

}  // namespace sluice
