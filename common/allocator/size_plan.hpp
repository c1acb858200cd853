// SPDX-License-Identifier: GPL-2.0-or-later
//
// Sizes for jobs that run until they are over: running ones are resized and never stopped, waiting
// ones start in order of priority. Which sizes, by what they are worth to each job; which nodes is
// Slurm's to say.
//
// A size is worth V_j(s) within the horizon H = max(interval, cooldown): over t = H for the size
// that a job runs at and for a job that waits, and t = H - restart cost for any other size of a
// running job. So a restart pays only if it makes up for the time it takes.
//
// 1. Minimums, first come first served. What a job cannot be made to give up stays with it: all
// GPUs
//    of one that is not resizable, was resized less than the cooldown ago or too often, and the
//    least legal size of any other. In order of priority each waiting job is promised its least
//    size (a rigid one: its size); where too few GPUs are free, running jobs shrink, those first
//    that lose least value per GPU, those whose values are not known last. After the first waiting
//    job that does not fit even so, no later one is promised anything, and none of them grows.
//    Where it is only cooldowns that it waits for, nobody grows at all: the free GPUs are its own.
// 2. Requests. A job whose values are not known gets, of what is free, up to what was
//    requested, and never more.
// 3. Growth, greedily (Optimus, EuroSys 2018, section 4.1). The step of largest
//    (V(s') - V(s)) / (s' - s) over all jobs and their larger sizes s' is taken, from free GPUs or,
//    where these are too few, from running jobs that lose less than is gained; until there is none.
//    For concave V that is GPU by GPU; the first step of a running job is the best average over
//    several, because the restart is paid once.
//    A running job is resized only for a rise of its own value, less what others lose for it, by
//    min_gain of the value it has; for a step 1 shrink nothing is asked.
// 4. Jobs that wait and fit ask for the size they got, the others for their least, so that Slurm
//    starts them as early as it can.
//
// Each step is checked against the nodes (NodePacking). With J jobs of S sizes on N nodes:
// O(J S) values, at most G steps of growth for G GPUs, each O(log J + S + N) and, where jobs give
// GPUs up, O(J S) for each of the S sizes; packing again is bounded.
#pragma once

#include <optional>
#include <string>

#include "common/allocator/policy.hpp"

namespace sluice {

/// What GPUs are worth to jobs, in a unit that can be added up over all of them.
class SizeValues {
  public:
    virtual ~SizeValues() = default;
    /// Of running on so many GPUs for so long (0 and less: not at all); nothing: not known.
    virtual std::optional<double> value(const JobView& job, int size, double seconds) const = 0;
    /// For people: "13.19%" and " of the loss still to fall within 20 s".
    virtual std::string amount(const JobView& job, double value, double seconds) const = 0;
    virtual std::string unit(double seconds) const = 0;
};

Plan plan_sizes(const ClusterView& cluster, const SizeValues& values);

}  // namespace sluice
