// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/model/remaining_work.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace sluice {
namespace {

constexpr double least_step = 0.02;       ///< of z, by which the whole is more than what is done
constexpr double unknown_log_sd = 0.6;    ///< of one run by another of the same model
constexpr double unknown_counts_for = 2;  ///< runs

}  // namespace

double normal_quantile(double share) {
    const double tail = std::max(1e-12, std::min(share, 1 - share));
    const double t = std::sqrt(-2 * std::log(tail));
    const double z = t - (2.515517 + 0.802853 * t + 0.010328 * t * t) /
                             (1 + 1.432788 * t + 0.189269 * t * t + 0.001308 * t * t * t);
    return share < 0.5 ? -z : z;
}

std::vector<double> total_quantiles(const ExpectedWork& expected, double done, int count) {
    if (expected.log_sd <= 0) return {std::max(expected.total, done)};
    const double least = done > 0 ? std::log(done / expected.total) / expected.log_sd : -9;
    const double below = 0.5 * std::erfc(-least / std::numbers::sqrt2);
    std::vector<double> totals;
    for (int i = 0; i < count; ++i) {
        const double share = below + (1 - below) * (i + 0.5) / count;
        const double z =
            std::max(normal_quantile(std::min(share, 1 - 1e-9)), least + least_step * (i + 1));
        totals.push_back(expected.total * std::exp(expected.log_sd * z));
    }
    return totals;
}

ExpectedWork expected_work(std::vector<double> totals, double least_log_sd) {
    std::erase_if(totals, [](double total) { return !(total > 0) || !std::isfinite(total); });
    if (totals.empty()) return {};
    std::sort(totals.begin(), totals.end());
    const std::size_t middle = totals.size() / 2;
    const double median = totals.size() % 2 == 1
                              ? totals[middle]
                              : std::sqrt(totals[middle - 1]) * std::sqrt(totals[middle]);
    double squares = unknown_counts_for * unknown_log_sd * unknown_log_sd;
    for (const double total : totals) squares += std::pow(std::log(total / median), 2);
    const auto runs = static_cast<double>(totals.size());
    return {median, std::max(least_log_sd, std::sqrt(squares / (runs + unknown_counts_for)))};
}

}  // namespace sluice
