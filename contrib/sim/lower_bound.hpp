// SPDX-License-Identifier: GPL-2.0-or-later
//
// An average completion time that no policy can beat in simulate(), whatever it knows. It is the
// largest of three, each of which is true by itself:
//
// 1. Alone: each job has the empty cluster to itself.
// 2. Fluid: the cluster is one machine. A job takes the fewest GPU-seconds that it can be done
//    with, whatever size that is for each epoch, at all of the cluster's speed; shortest remaining
//    work first is optimal there (Schrage, 1968).
// 3. Priced: the Lagrangian dual of the whole problem, for the rule that no more GPUs are held in a
//    round than there are. With a price p(n) >= 0 for a GPU in round n, any schedule has
//
//        sum of C_j - a_j  >=  sum over jobs of min (C_j - a_j + sum over n of p(n) K_j(n))
//                              - GPUs sum over n of p(n)
//
//    for completion C_j, arrival a_j and K_j(n) GPUs, for what is paid is at most what there is to
//    be sold. Each minimum is over what the job could do if it were alone (priced_job.hpp), so any
//    prices give a bound, and no convergence is needed for it to be true. The best prices are
//    looked for by steps along how far GPUs are asked for beyond what there is.
//
// What they have of simulate(): decisions in rounds, the first start in a round behind the arrival,
// whole GPUs, the restart at the start and at each change of a job's number of GPUs (3. alone), and
// no faster than best_rates(). Left out, each in the jobs' favour: nodes (any placement is there
// for everybody), restarts of moves that keep the number, GPUs that are held from a job's end to
// the next round, and that nobody knows the future.
// With several types of nodes a job on more than one is as fast as on that of its first node, as it
// is in simulate(): it pays for one GPU of that type and otherwise for the cheapest.
//
// Rounding: in the jobs' favour, but for that of the arithmetic; 1e-9 of the bound is taken off
// for it. Deterministic: steps are counted, no clock is asked.
//
// With T rounds to the end, S sizes of an application and P knots: O(steps T S P) for each
// application, whatever the number of jobs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "contrib/sim/simulation.hpp"

namespace sluice::sim {

struct LowerBoundOptions {
    int steps = 100;               ///< of the search for prices
    std::size_t period = 5;        ///< rounds of the same price
    std::size_t knots = 150;       ///< of a job's progress, while prices are looked for
    double not_less = 0.05;        ///< best_rates(), then
    std::size_t last_knots = 900;  ///< for the bound itself
    double last_not_less = 0.01;
    std::size_t most_rounds = 10000;  ///< that have prices
};

/// Averages in seconds.
struct LowerBound {
    double alone_s = 0;
    double fluid_s = 0;
    double priced_s = 0;

    double average_s() const { return std::max({alone_s, fluid_s, priced_s}); }
};

/// most_gpus: of a job whose size is chosen, by application; "" for the others. bad_input where the
/// workload names an application that is not among these; usage where a job may have more than 1024
/// GPUs, whose placements are too many, and where jobs start between two rounds or at no cost.
Result<LowerBound> lower_bound(const std::vector<WorkloadJob>& workload,
                               const std::vector<Application>& applications,
                               const std::vector<Nodes>& nodes,
                               const std::map<std::string, int>& most_gpus,
                               const SimulationOptions& simulation = {},
                               const LowerBoundOptions& options = {});

}  // namespace sluice::sim
