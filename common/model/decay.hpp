// SPDX-License-Identifier: GPL-2.0-or-later
//
// One formula for every family of curves, by its exponent c:
//
//     h(x) = (1 / q) (1 + p x / (q c))^-c          c = infinity: (1 / q) exp(-p x / q)
//
// It begins at 1 / q with the slope -p / q^2, whatever c is. c = 1 is Optimus's 1 / (p x + q), the
// O(1/k) of stochastic gradient descent on strongly convex losses; c = 1/2 the O(1/sqrt(k)) on
// others; c = 2 a square of SLAQ's; infinity the linear convergence of a plain descent; where
// p x / (q c) is large it is the power law x^-c of scaling laws.
#pragma once

#include <array>

namespace sluice {

struct Decay {
    double p = 0;
    double q = 1;
    double exponent = 1;

    double at(double x) const;
    /// Derivatives by p and q.
    std::array<double, 2> gradient(double x) const;
    /// The x >= 0 at which the curve has come down to `height` > 0; infinite where it never does.
    double reached(double height) const;
};

}  // namespace sluice
