// SPDX-License-Identifier: GPL-2.0-or-later
//
// From measured step times to a StepTimeModel: the parameters of greatest posterior density,
//
//     min over theta >= 0 of  sum_i w_i huber(log(T(P_i) / t_i) / noise) + 1/2 |(theta - mean) /
//     sd|^2
//
// (relative errors count, single outliers do not), by Levenberg's and Marquardt's method with
// bounds from a few fixed starts; their covariance is the inverse of the Hessian there. The prior
// (mean, sd) says what has not been measured, and fades as measurements come. It is one of:
//  - the topology's: a usual share of communication at the reference rates, so that the bandwidth
//    of a set and the number of nodes alone order placements;
//  - a similar model's, which was measured: its computing and its communication each scaled by one
//    factor, which the samples say.
//
// Deterministic, no allocation that lasts, bounded: 11 parameters, 3 starts, 40 steps each at most.
#pragma once

#include <optional>
#include <span>

#include "common/model/step_time.hpp"

namespace sluice {

struct StepSample {
    StepPlacement placement;
    double seconds = 0;  ///< per step
    double weight = 1;   ///< how many measurements it stands for
};

/// A usable placement, 1e-9 to 1e9 seconds, a weight above 0 and at most 1e6.
bool usable(const StepSample& sample);

/// What is believed of a job model of which nothing was measured. Shares are of the step time of
/// one GPU at its local batch; communication at the reference rates. Wide, and optimistic as
/// Pollux's: a job is given a chance to scale until it has been seen not to.
struct StepPriorOptions {
    double compute = 0.4, compute_sd = 0.4;  ///< compute_s; sample_s has the rest, and this sd
    double host = 0.005, host_sd = 0.1;
    double in_node = 0.05, in_node_sd = 0.25;  ///< a ring of many GPUs takes twice this
    double network = 0.2, network_sd = 0.8;
    double shared = 0.2, shared_sd = 0.8;
    double pair = 0.1, pair_sd = 0.8;
    double level = 0.01, level_sd = 0.1;
    double node = 0.002, node_sd = 0.03;
    double overlap = 2, overlap_sd = 3;
    double serial = 0.2, serial_sd = 0.3;
    double batch_sd = 0.05;         ///< of b(m)
    double noise = 0.1;             ///< before it can be estimated
    double noise_samples = 4;       ///< how many samples that guess counts for
    double unknown_scale = 2;       ///< StepTimeModel::scale where no step time is known at all
    double similar_scale = 0.5;     ///< and where only another GPU type's is
    double similar_sd = 2;          ///< of a similar model's parameters, as a share of each,
    double similar_floor = 0.5;     ///< and at least this share of the topology prior's
    double compute_ratio_sd = 1.5;  ///< of the log of computing here over there,
    double sync_ratio_sd = 1;       ///< and of communication
};

/// Nothing measured, from topology alone: ratios mean something, seconds do not (one GPU takes
/// `seconds_alone` at `local_batch`; 0: at any).
StepTimeModel topology_step_time(double seconds_alone = 1, double local_batch = 0,
                                 const StepPriorOptions& options = {});

/// A similar model, measured, stands in: the same job model on another GPU type, or another of its
/// family. compute_ratio: seconds of computing here over there, if known (Sia, SOSP 2023: from one
/// GPU on each type).
StepTimeModel similar_step_time(const StepTimeModel& similar, std::optional<double> compute_ratio,
                                const StepPriorOptions& options = {});

/// Samples that are not usable (placement, seconds or weight) are left out; without one that is,
/// the answer is similar_step_time() or topology_step_time(). `similar` may be null.
StepTimeModel fit_step_time(std::span<const StepSample> samples,
                            const StepTimeModel* similar = nullptr,
                            const StepPriorOptions& options = {});

}  // namespace sluice
