// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/model/decay_fit.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "common/model/curve_samples.hpp"

namespace sluice {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
// The height of the curve at x = 0, in units of the losses' spread: a curve that ends in noise may
// be drawn to any.
constexpr double largest_height = 1e6;
constexpr double least_height = 1e-9;
// log2 of p / q, by which the curve falls in the units of x: from nearly a line to all of it gone
// within a ten-thousandth of the steps.
constexpr double slowest = -3;
constexpr double fastest = 14;
constexpr double stride = 0.5;

using Vector = std::array<double, 3>;
using Matrix = DecayFit::Covariance;

/// Cholesky's L of a symmetric positive definite matrix, in place; false where it is none.
bool factor(Matrix& a) {
    for (std::size_t i = 0; i < 3; ++i) {
        for (std::size_t j = 0; j <= i; ++j) {
            double sum = a[i][j];
            for (std::size_t k = 0; k < j; ++k) sum -= a[i][k] * a[j][k];
            if (i == j && !(sum > 0)) return false;
            a[i][j] = i == j ? std::sqrt(sum) : sum / a[j][j];
        }
    }
    return true;
}

/// The inverse of L L^T from factor().
Matrix inverse_of_factored(const Matrix& l) {
    Matrix inverse{};
    for (std::size_t column = 0; column < 3; ++column) {
        Vector x{};
        x[column] = 1;
        for (std::size_t i = 0; i < 3; ++i) {
            for (std::size_t k = 0; k < i; ++k) x[i] -= l[i][k] * x[k];
            x[i] /= l[i][i];
        }
        for (std::size_t i = 3; i-- > 0;) {
            for (std::size_t k = i + 1; k < 3; ++k) x[i] -= l[k][i] * x[k];
            x[i] /= l[i][i];
        }
        for (std::size_t i = 0; i < 3; ++i) inverse[i][column] = x[i];
    }
    return inverse;
}

Matrix product(const Matrix& a, const Matrix& b) {
    Matrix out{};
    for (std::size_t i = 0; i < 3; ++i) {
        for (std::size_t j = 0; j < 3; ++j) {
            for (std::size_t k = 0; k < 3; ++k) out[i][j] += a[i][k] * b[k][j];
        }
    }
    return out;
}

double quadratic(const Vector& v, const Matrix& a) {
    double sum = 0;
    for (std::size_t i = 0; i < 3; ++i) {
        for (std::size_t j = 0; j < 3; ++j) sum += v[i] * a[i][j] * v[j];
    }
    return sum;
}

/// Huber's loss: residuals count with their square up to reach, linearly beyond.
double huber(double residual, double reach) {
    const double size = std::fabs(residual);
    return size > reach ? reach * (2 * size - reach) : size * size;
}

}  // namespace

DecayFit::DecayFit(const std::vector<Point>& points, double exponent,
                   const LossCurveOptions& options)
    : points_(points),
      huber_sigmas_(options.huber_sigmas),
      reweightings_(options.reweightings),
      shape_(points.size()) {
    curve_.exponent = exponent;
    for (const Point& point : points_) weights_.push_back(point.weight);
    search();
    estimate_covariance();
}

/// The best curve for p / q = 2^rate, and its weighted sum of squares.
double DecayFit::solve(double rate) {
    Decay unit = curve_;
    unit.q = 1;
    unit.p = std::exp2(rate);
    double all = 0, s = 0, y = 0;
    for (std::size_t i = 0; i < points_.size(); ++i) {
        shape_[i] = unit.at(points_[i].x);
        all += weights_[i];
        s += weights_[i] * shape_[i];
        y += weights_[i] * points_[i].y;
    }
    // around the means, or a nearly flat shape would be lost in rounding
    const double mean_s = s / all;
    const double mean_y = y / all;
    double ss = 0, sy = 0;
    for (std::size_t i = 0; i < points_.size(); ++i) {
        ss += weights_[i] * (shape_[i] - mean_s) * (shape_[i] - mean_s);
        sy += weights_[i] * (shape_[i] - mean_s) * (points_[i].y - mean_y);
    }
    double height = ss > 0 ? std::clamp(sy / ss, 0.0, largest_height) : 0;
    double r = mean_y - height * mean_s;
    if (r < 0) {  // on the edge: the line through 0
        const double squares = ss + all * mean_s * mean_s;
        height = squares > 0
                     ? std::clamp((sy + all * mean_s * mean_y) / squares, 0.0, largest_height)
                     : 0;
        r = 0;
    }
    double cost = 0;
    for (std::size_t i = 0; i < points_.size(); ++i) {
        const double error = points_[i].y - height * shape_[i] - r;
        cost += weights_[i] * error * error;
    }
    const bool falls = height > least_height;
    curve_.q = 1 / std::max(height, least_height);
    curve_.p = falls ? unit.p * curve_.q : 0;
    curve_.r = r;
    return cost;
}

/// Golden section search for the rate in [low, high]; the better end of the last interval is solved
/// for.
void DecayFit::narrow(double low, double high, int steps) {
    constexpr double golden = 0.6180339887498949;
    double left = high - golden * (high - low);
    double right = low + golden * (high - low);
    double at_left = solve(left);
    double at_right = solve(right);
    for (int i = 0; i < steps; ++i) {
        if (at_left < at_right) {
            high = right;
            right = left;
            at_right = at_left;
            left = high - golden * (high - low);
            at_left = solve(left);
        } else {
            low = left;
            left = right;
            at_left = at_right;
            right = low + golden * (high - low);
            at_right = solve(right);
        }
    }
    solve(at_left < at_right ? left : right);
}

/// Huber's weights around the curve; false where the residuals' scale has settled.
bool DecayFit::reweigh() {
    std::vector<double> residuals;
    for (const Point& point : points_) residuals.push_back(point.y - curve_.at(point.x));
    const double deviation = robust_deviation(residuals);
    const bool settled = std::fabs(deviation - deviation_) <= 0.01 * deviation_;
    deviation_ = deviation;
    if (deviation < 1e-12) return false;
    const double reach = huber_sigmas_ * deviation;
    for (std::size_t i = 0; i < points_.size(); ++i) {
        const double size = std::fabs(residuals[i]);
        weights_[i] = points_[i].weight * (size > reach ? reach / size : 1);
    }
    return !settled;
}

void DecayFit::search() {
    double place = slowest;
    for (int round = 0;; ++round) {
        // spikes may have led the first rounds astray; later ones stay near
        const bool whole = round < 2;
        double best = infinity;
        const double from = whole ? slowest : std::max(slowest, place - 2 * stride);
        const double to = whole ? fastest : std::min(fastest, place + 2 * stride);
        double rate = from;
        while (rate <= to) {
            const double cost = solve(rate);
            if (cost < best) {
                best = cost;
                place = rate;
            }
            rate += stride;
        }
        narrow(place - stride, place + stride, 10);
        if (round >= reweightings_ || !reweigh()) break;
    }
    narrow(place - stride, place + stride, 40);
    reweigh();
}

double DecayFit::cost(double deviation) const {
    const double reach = deviation > 0 ? huber_sigmas_ * deviation : infinity;
    double sum = 0;
    for (const Point& point : points_) {
        sum += point.weight * huber(point.y - curve_.at(point.x), reach);
    }
    return sum;
}

std::array<double, 3> DecayFit::gradient(double x) const {
    const auto [by_p, by_q] = curve_.gradient(x);
    return {by_p, by_q, 1};
}

double DecayFit::deviation_at(double x) const {
    return std::sqrt(std::max(0.0, quadratic(gradient(x), covariance_)));
}

/// Huber's sandwich A^-1 B A^-1, A from the curvature, B from the residuals themselves, so that
/// noise may differ along the curve. What the points do not determine is bounded by what is
/// known beforehand: r lies between 0 and the losses, q within a few orders of magnitude.
void DecayFit::estimate_covariance() {
    Matrix a{};
    Matrix b{};
    double previous = 0;
    double products = 0;
    double squares = 0;
    const double reach = huber_sigmas_ * deviation_;
    for (const Point& point : points_) {
        const double error = point.y - curve_.at(point.x);
        const double clipped = deviation_ > 0 ? std::clamp(error, -reach, reach) : error;
        const double noise = clipped * clipped + 1e-18;
        const Vector g = gradient(point.x);
        const double curvature = clipped == error ? point.weight : 0;
        for (std::size_t i = 0; i < 3; ++i) {
            for (std::size_t j = 0; j < 3; ++j) {
                a[i][j] += curvature * g[i] * g[j];
                b[i][j] += point.weight * point.weight * noise * g[i] * g[j];
            }
        }
        products += previous * clipped;
        squares += clipped * clipped;
        previous = clipped;
    }
    const double n = static_cast<double>(points_.size());
    const double correlation = squares > 0 ? std::clamp(products / squares, 0.0, 0.95) : 0.0;
    correlation_factor_ = (1 + correlation) / (1 - correlation);
    const double widen = n / std::max(1.0, n - 3) * correlation_factor_;
    // in units of each parameter's own influence, or a long run's p would drown in rounding
    Vector unit{};
    for (std::size_t i = 0; i < 3; ++i) unit[i] = a[i][i] > 0 ? 1 / std::sqrt(a[i][i]) : 1;
    for (std::size_t i = 0; i < 3; ++i) {
        for (std::size_t j = 0; j < 3; ++j) {
            a[i][j] *= unit[i] * unit[j];
            b[i][j] *= unit[i] * unit[j] * widen;
        }
    }
    // Two parameters that the points cannot tell apart, as p and q of a pure power law, make both
    // matrices singular but for rounding.
    Matrix information{};
    for (const double ridge : {1e-10, 1e-8, 1e-6, 1e-4, 1e-2}) {
        Matrix l = b;
        for (std::size_t i = 0; i < 3; ++i) l[i][i] *= 1 + ridge;
        if (!factor(l)) continue;
        information = product(product(a, inverse_of_factored(l)), a);
        const double level = curve_.at(1);
        const Vector prior{100 * (curve_.p + curve_.q), 100 * (curve_.p + curve_.q), level / 2};
        for (std::size_t i = 0; i < 3; ++i) {
            information[i][i] =
                information[i][i] * (1 + ridge) + unit[i] * unit[i] / (prior[i] * prior[i] + 1e-30);
        }
        if (factor(information)) break;
        information = {};
    }
    if (!(information[0][0] > 0)) return;
    covariance_ = inverse_of_factored(information);
    for (std::size_t i = 0; i < 3; ++i) {
        for (std::size_t j = 0; j < 3; ++j) covariance_[i][j] *= unit[i] * unit[j];
    }
}

}  // namespace sluice
