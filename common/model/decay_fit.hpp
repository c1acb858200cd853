// SPDX-License-Identifier: GPL-2.0-or-later
//
// The least squares fit behind fit_loss_curve(), in units in which the last step and the spread of
// the losses are about 1:
//
//     y = h(x) + r,      h as in decay.hpp, p, q, r >= 0
//
// With t = q / p and a = 1 / q this is a (1 + x / (t c))^-c + r: for a fixed t and c a linear least
// squares problem in two unknowns under a, r >= 0, with a closed form (variable projection, Golub
// and Pereyra, SIAM J. Numer. Anal. 10, 1973). What is left is a search for t alone: a grid, then a
// golden section, repeated with Huber's weights until the residuals' scale settles.
#pragma once

#include <array>
#include <vector>

#include "common/model/decay.hpp"
#include "common/model/loss_curve.hpp"

namespace sluice {

class DecayFit {
  public:
    struct Point {
        double x = 0;  ///< 0..1
        double y = 0;
        double weight = 1;  ///< they add up to 1
    };
    struct Curve : Decay {
        double r = 0;

        double at(double x) const { return Decay::at(x) + r; }
    };
    /// Symmetric, of (p, q, r).
    using Covariance = std::array<std::array<double, 3>, 3>;

    /// The points by rising x, three or more of them; exponent > 0.
    DecayFit(const std::vector<Point>& points, double exponent, const LossCurveOptions& options);

    const Curve& curve() const { return curve_; }
    /// Weighted mean of Huber's loss of the residuals, by the scale that is given.
    double cost(double deviation) const;
    /// Robust standard deviation of the residuals.
    double deviation() const { return deviation_; }
    /// By which every variance is wider than independent noise would make it, because neighbouring
    /// residuals resemble each other.
    double correlation_factor() const { return correlation_factor_; }
    /// Standard deviation of what the curve says at x, from what the points leave open.
    double deviation_at(double x) const;

  private:
    double solve(double rate);
    void narrow(double low, double high, int steps);
    void search();
    bool reweigh();
    void estimate_covariance();
    std::array<double, 3> gradient(double x) const;

    const std::vector<Point>& points_;
    const double huber_sigmas_;
    const int reweightings_;
    std::vector<double> weights_;
    std::vector<double> shape_;  // of the rate that was solved for last
    Curve curve_;
    Covariance covariance_{};
    double deviation_ = 0;
    double correlation_factor_ = 1;
};

}  // namespace sluice
