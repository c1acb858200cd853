// SPDX-License-Identifier: GPL-2.0-or-later
//
// What a simulation comes to, in a few numbers.
//
// Finish-time fairness is that of Themis (Mahajan et al., NSDI 2020) and Sia (Jayaram Subramanya et
// al., SOSP 2023): how long a job took, relative to what it would have taken alone on an equal
// share of the cluster,
//
//     rho = C / A        A = min over s of D(s) max(1, s n / G)
//
// C: from arrival to end. n: mean number of active jobs from its arrival to its end, itself
// included. G: GPUs of the cluster. D(s): how long the job runs alone on s GPUs, its start included
// (JobResult::alone); where its share G / n is smaller than s, it takes turns. s goes up to what it
// asked for, and a rigid job has only that. Above 1 the job would have been better off alone. The
// batch is as asked under every policy: what a policy gains by others, or by more GPUs, counts for
// it.
#pragma once

#include <vector>

#include "contrib/sim/simulation.hpp"

namespace sluice::sim {

/// rho of each job, in the order of the result. O(J log J).
std::vector<double> finish_time_fairness(const SimulationResult& result);

/// Linear between the values around it. Not for none.
double quantile(std::vector<double> values, double share);

struct Figures {
    double average_s = 0;  ///< completion times
    double median_s = 0;
    double p99_s = 0;
    double gpu_hours = 0;    ///< held
    double utilisation = 0;  ///< GPU-seconds held / (GPUs of the cluster x makespan)
    double useful = 0;    ///< GPU-seconds with progress / those held: the rest went to restarts and
                          ///< was lost
    double restarts = 0;  ///< of a job
    double failures = 0;  ///< of nodes under a job
    double resizes = 0;   ///< of a job
    double longest_wait_s = 0;  ///< of any job, without GPUs at a stretch
    double rho_worst = 0;
    double rho_median = 0;
    double rho_above_1 = 0;  ///< share of the jobs
};

/// Not for no jobs.
Figures figures_of(const SimulationResult& result);

}  // namespace sluice::sim
