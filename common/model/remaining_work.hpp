// SPDX-License-Identifier: GPL-2.0-or-later
//
// How much is left of a job of which so much is done, by what is expected of its whole. The whole
// is lognormal around what is expected and cannot be less than what is done: the further a job goes
// beyond what was expected, the more is expected still, in proportion to what is done.
#pragma once

#include <vector>

namespace sluice {

struct ExpectedWork {
    double total = 0;   ///< median of the whole, above 0
    double log_sd = 0;  ///< deviation of its logarithm; 0: as expected, whatever is done
};

/// Equally likely values of the whole over what is done, ascending, all above `done`.
std::vector<double> total_quantiles(const ExpectedWork& expected, double done, int count = 5);

/// Of earlier runs: the median, and the deviation of their logarithms, at least `least_log_sd`, and
/// the more of it the fewer they are. Values not above 0 are left out; 0 for none.
ExpectedWork expected_work(std::vector<double> totals, double least_log_sd = 0.2);

/// Of the standard normal distribution, for 0 < share < 1 (Abramowitz and Stegun, 26.2.23: off by
/// 4.5e-4 at most).
double normal_quantile(double share);

}  // namespace sluice
