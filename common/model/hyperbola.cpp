// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/model/hyperbola.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "common/model/curve_samples.hpp"

namespace sluice {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
// Or 1 / q, the height of the curve at x = 0, had no bound.
constexpr double least_q = 1e-6;
// Steeper is a curve that falls at once.
constexpr double largest = 1e9;

using Vector = std::array<double, 3>;
using Matrix = HyperbolaFit::Covariance;

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

/// Non-negative least squares in two unknowns, min |A (p, q) - b|, from A^T A and A^T b: the free
/// solution, or the better of the two edges.
std::pair<double, double> nonnegative(double pp, double pq, double qq, double p, double q) {
    const double determinant = pp * qq - pq * pq;
    if (determinant > 1e-14 * pp * qq) {
        const double free_p = (p * qq - q * pq) / determinant;
        const double free_q = (q * pp - p * pq) / determinant;
        if (free_p >= 0 && free_q >= 0) return {free_p, free_q};
    }
    const double edge_p = pp > 0 ? std::max(0.0, p / pp) : 0;
    const double edge_q = qq > 0 ? std::max(0.0, q / qq) : 0;
    return edge_p * p > edge_q * q ? std::pair{edge_p, 0.0} : std::pair{0.0, edge_q};
}

}  // namespace

HyperbolaFit::HyperbolaFit(std::vector<Point> points, const LossCurveOptions& options)
    : points_(std::move(points)),
      huber_sigmas_(options.huber_sigmas),
      reweightings_(options.reweightings) {
    search();
    estimate_covariance();
}

double HyperbolaFit::deviation_of_mean(const std::vector<Point>& points) const {
    Vector mean{};
    for (const Point& point : points) {
        const Vector g = curve_.gradient(point.x);
        for (std::size_t i = 0; i < 3; ++i) mean[i] += g[i] / static_cast<double>(points.size());
    }
    return std::sqrt(std::max(0.0, quadratic(mean, covariance_)));
}

double HyperbolaFit::residual(const Point& point, const Curve& curve) const {
    return point.y - curve.at(point.x);
}

std::vector<double> HyperbolaFit::residuals(const Curve& curve) const {
    std::vector<double> all;
    for (const Point& point : points_) all.push_back(residual(point, curve));
    return all;
}

/// Huber's weight: residuals count with their square up to huber_sigmas, linearly beyond.
double HyperbolaFit::trust(double residual) const {
    const double reach = huber_sigmas_ * deviation_;
    const double size = std::fabs(residual);
    return deviation_ > 0 && size > reach ? reach / size : 1;
}

double HyperbolaFit::cost(const Curve& curve) const {
    const double reach = huber_sigmas_ * deviation_;
    double sum = 0;
    for (const Point& point : points_) {
        const double size = std::fabs(residual(point, curve));
        const bool far = deviation_ > 0 && size > reach;
        sum += point.weight * (far ? reach * (2 * size - reach) : size * size);
    }
    return sum;
}

/// The transformed problem at r: 1 / (y - r) = p x + q with weights (y - r)^4.
HyperbolaFit::Curve HyperbolaFit::start(double r) const {
    double pp = 0, pq = 0, qq = 0, p = 0, q = 0;
    for (const Point& point : points_) {
        const double v = std::max(point.y - r, 1e-4);  // below r there is only noise
        const double weight = point.weight * v * v * v * v;
        pp += weight * point.x * point.x;
        pq += weight * point.x;
        qq += weight;
        p += weight * point.x / v;
        q += weight / v;
    }
    const auto [best_p, best_q] = nonnegative(pp, pq, qq, p, q);
    return {std::min(best_p, largest), std::clamp(best_q, least_q, largest), r};
}

/// Gauss-Newton steps for p and q at the curve's r, each a non-negative least squares problem
/// like start(), but around the curve instead of the noisy points. Returns the cost.
double HyperbolaFit::refine(Curve& curve, int steps) const {
    double best = cost(curve);
    for (int step = 0; step < steps; ++step) {
        double pp = 0, pq = 0, qq = 0, p = 0, q = 0;
        for (const Point& point : points_) {
            const double v = curve.falling(point.x);
            const double error = residual(point, curve);
            const double weight = point.weight * trust(error) * v * v * v * v;
            const double wanted = 1 / v - error / (v * v);
            pp += weight * point.x * point.x;
            pq += weight * point.x;
            qq += weight;
            p += weight * point.x * wanted;
            q += weight * wanted;
        }
        const auto [next_p, next_q] = nonnegative(pp, pq, qq, p, q);
        bool better = false;
        double gain = 0;
        double length = 1;
        for (int halving = 0; halving < 10 && !better; ++halving, length /= 2) {
            Curve next = curve;
            next.p = std::min(curve.p + length * (next_p - curve.p), largest);
            next.q = std::clamp(curve.q + length * (next_q - curve.q), least_q, largest);
            const double next_cost = cost(next);
            if (!(next_cost < best)) continue;
            gain = best - next_cost;
            best = next_cost;
            curve = next;
            better = true;
        }
        if (!better || gain < 1e-9 * best) break;
    }
    return best;
}

struct HyperbolaFit::Candidate {
    Curve curve;
    double cost = infinity;
};

HyperbolaFit::Candidate HyperbolaFit::at_limit(double r, const Curve* near) const {
    Candidate candidate;
    candidate.curve = near ? Curve{near->p, near->q, r} : start(r);
    candidate.cost = refine(candidate.curve, near ? 12 : 6);
    return candidate;
}

/// Golden section search for r in [low, high].
void HyperbolaFit::narrow(double low, double high, int steps, Candidate& best) const {
    constexpr double golden = 0.6180339887498949;
    double left = high - golden * (high - low);
    double right = low + golden * (high - low);
    Candidate at_left = at_limit(left, &best.curve);
    Candidate at_right = at_limit(right, &best.curve);
    for (int i = 0; i < steps; ++i) {
        if (at_left.cost < at_right.cost) {
            high = right;
            right = left;
            at_right = at_left;
            left = high - golden * (high - low);
            at_left = at_limit(left, &at_right.curve);
        } else {
            low = left;
            left = right;
            at_left = at_right;
            right = low + golden * (high - low);
            at_right = at_limit(right, &at_left.curve);
        }
    }
    const Candidate& better = at_left.cost < at_right.cost ? at_left : at_right;
    if (better.cost < best.cost) best = better;
}

/// r lies between 0 and what the losses have come down to; finer near the latter.
void HyperbolaFit::search() {
    std::vector<double> late;
    for (std::size_t i = points_.size() * 3 / 4; i < points_.size(); ++i) {
        late.push_back(points_[i].y);
    }
    const double highest = std::max(0.0, median(late));
    constexpr int intervals = 16;
    const auto grid = [&](int i) {
        const double rest = 1 - static_cast<double>(std::clamp(i, 0, intervals)) / intervals;
        return highest * (1 - rest * rest);
    };
    for (int round = 0;; ++round) {
        Candidate best;
        int place = 0;
        for (int i = 0; i <= intervals; ++i) {
            const Candidate candidate = at_limit(grid(i), nullptr);
            if (candidate.cost < best.cost) {
                best = candidate;
                place = i;
            }
        }
        narrow(grid(place - 1), grid(place + 1), 5, best);
        const double deviation = robust_deviation(residuals(best.curve));
        const bool settled = std::fabs(deviation - deviation_) <= 0.02 * deviation_;
        if (round == reweightings_ || settled || deviation < 1e-12) {
            narrow(grid(place - 1), grid(place + 1), 28, best);
            curve_ = best.curve;
            deviation_ = robust_deviation(residuals(curve_));
            return;
        }
        deviation_ = deviation;
    }
}

/// Huber's sandwich A^-1 B A^-1, A from the curvature, B from the residuals themselves, so that
/// noise may differ along the curve. What the points do not determine is bounded by what is
/// known beforehand: r lies between 0 and the losses, q within a few orders of magnitude.
void HyperbolaFit::estimate_covariance() {
    Matrix a{};
    Matrix b{};
    double previous = 0;
    double products = 0;
    double squares = 0;
    const double reach = huber_sigmas_ * deviation_;
    for (const Point& point : points_) {
        const double error = residual(point, curve_);
        const double clipped = deviation_ > 0 ? std::clamp(error, -reach, reach) : error;
        const double noise = clipped * clipped + 1e-18;
        const Vector g = curve_.gradient(point.x);
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
    // in units of each parameter's own influence, or a long run's b0 would drown in rounding
    Vector unit{};
    for (std::size_t i = 0; i < 3; ++i) unit[i] = a[i][i] > 0 ? 1 / std::sqrt(a[i][i]) : 1;
    for (std::size_t i = 0; i < 3; ++i) {
        for (std::size_t j = 0; j < 3; ++j) {
            a[i][j] *= unit[i] * unit[j];
            b[i][j] *= unit[i] * unit[j] * widen;
        }
    }
    for (std::size_t i = 0; i < 3; ++i) b[i][i] *= 1 + 1e-10;
    Matrix information{};
    if (factor(b)) information = product(product(a, inverse_of_factored(b)), a);
    const double level = curve_.at(1);
    const Vector prior{100 * (curve_.p + curve_.q), 100 * (curve_.p + curve_.q), level / 2};
    for (std::size_t i = 0; i < 3; ++i) {
        information[i][i] =
            information[i][i] * (1 + 1e-10) + unit[i] * unit[i] / (prior[i] * prior[i] + 1e-30);
    }
    if (!factor(information)) {  // rounding has the better of it: nothing but the prior is left
        for (std::size_t i = 0; i < 3; ++i) covariance_[i][i] = prior[i] * prior[i];
        return;
    }
    covariance_ = inverse_of_factored(information);
    for (std::size_t i = 0; i < 3; ++i) {
        for (std::size_t j = 0; j < 3; ++j) covariance_[i][j] *= unit[i] * unit[j];
    }
}

}  // namespace sluice
