// SPDX-License-Identifier: GPL-2.0-or-later
//
// The least squares fit behind fit_loss_curve(), in units in which the last step and the spread of
// the losses are about 1:
//
//     y = 1 / (p x + q) + r,      p, q, r >= 0
//
// For a fixed r, 1 / (y - r) is linear in x, and (p, q) are a non-negative least squares problem in
// two unknowns, with a closed form. Its weights (y - r)^4 make residuals count in y, but noise near
// r makes the transformed points useless, so that solution is the start of Gauss-Newton steps in y
// itself, each of them again such a problem. r is found by a grid and a golden section search, all
// of it repeated with Huber's weights until the residuals' scale settles.
#pragma once

#include <array>
#include <vector>

#include "common/model/loss_curve.hpp"

namespace sluice {

class HyperbolaFit {
  public:
    struct Point {
        double x = 0;  ///< 0..1
        double y = 0;
        double weight = 1;  ///< they add up to 1
    };
    struct Curve {
        double p = 0;
        double q = 1;
        double r = 0;

        double falling(double x) const { return 1 / (p * x + q); }
        double at(double x) const { return falling(x) + r; }
        /// Derivatives by p, q, r.
        std::array<double, 3> gradient(double x) const {
            const double v = falling(x);
            return {-x * v * v, -v * v, 1};
        }
    };
    /// Symmetric, of (p, q, r).
    using Covariance = std::array<std::array<double, 3>, 3>;

    /// The points by rising x, three or more of them.
    HyperbolaFit(std::vector<Point> points, const LossCurveOptions& options);

    const Curve& curve() const { return curve_; }
    const Covariance& covariance() const { return covariance_; }
    /// Robust standard deviation of the residuals.
    double deviation() const { return deviation_; }
    /// By which every variance is wider than independent noise would make it, because neighbouring
    /// residuals resemble each other.
    double correlation_factor() const { return correlation_factor_; }
    /// Standard deviation of the mean over the points' x of what the curve says.
    double deviation_of_mean(const std::vector<Point>& points) const;

  private:
    struct Candidate;

    double residual(const Point& point, const Curve& curve) const;
    std::vector<double> residuals(const Curve& curve) const;
    double trust(double residual) const;
    double cost(const Curve& curve) const;
    Curve start(double r) const;
    double refine(Curve& curve, int steps) const;
    Candidate at_limit(double r, const Curve* near) const;
    void narrow(double low, double high, int steps, Candidate& best) const;
    void search();
    void estimate_covariance();

    std::vector<Point> points_;
    const double huber_sigmas_;
    const int reweightings_;
    Curve curve_;
    Covariance covariance_{};
    double deviation_ = 0;
    double correlation_factor_ = 1;
};

}  // namespace sluice
