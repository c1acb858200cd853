// SPDX-License-Identifier: GPL-2.0-or-later
//
// Seconds per optimizer step of a data-parallel training job, by where it runs.
//
// The form is Pollux's (Qiao et al., OSDI 2021, section 3.2): computing and exchanging gradients,
// which overlap in part. What it adds was chosen by measurement (tests/bench/README.md).
//
//     T(P) = (serial T_grad + (((1 - serial) T_grad)^overlap + T_sync^overlap)^(1 / overlap))
//     e^b(m) T_grad = compute_s + (sample_s + host_s (g - 1)) m T_sync = in_node_gb 2 (g - 1) / g /
//     in_node_gbps                    every GPU count above one
//            + level_s log2(K)
//            + (network_gb + (shared_gb + [N = 2] pair_gb) (1 - 1 / g)) / network_gbps       N >= 2
//            + node_s (N - 2)                                                                N >= 2
//
// for K GPUs on N nodes, g of them on the node that has most, and m samples per GPU and step.
// The GPUs of a node share its way to the network, and the cores and disks that feed them, hence g:
// it tells 1111 from 22 (one GPU on each of four nodes from two on each of two) and 112 from 13.
// With two nodes all traffic is between one pair of hosts, which costs more the more GPUs send over
// it: on the public tables that is the largest single effect that Pollux's form leaves out.
// Unevenness beyond g, and K - 2 beside log2(K), were tried and bring nothing.
//
// b(m) is 0 but for single local batches that were measured to run off the line of the others
// (kernels and padding differ by size); it depends on nothing else and cancels where placements of
// one local batch are compared.
//
// All parameters are at least 0, so T, without b, rises with m, with g, with K at equal N and g,
// and with each rate that falls. It may fall from two nodes to three, as it does when measured.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "common/base/result.hpp"

namespace sluice {

/// What of a placement the step time depends on.
struct StepPlacement {
    int nodes = 1;
    int gpus = 1;             ///< of all nodes
    int most_on_node = 1;     ///< GPUs on the node that has most
    double local_batch = 1;   ///< samples per GPU and step, on the GPU that has most
    double in_node_gbps = 0;  ///< GB/s, slowest edge of the ring in the slowest node; 0: unknown
    double network_gbps = 0;  ///< GB/s of a node to the network; 0: unknown
};

/// Stand in where a rate is unknown: 16 lanes of PCIe 3, and 50 Gb/s. With one unknown rate
/// everywhere, the GB parameters are relative to it and predictions do not depend on it.
constexpr double reference_in_node_gbps = 10;
constexpr double reference_network_gbps = 6.25;

/// Nodes without a GPU do not count; nothing at all is one GPU.
StepPlacement step_placement(std::span<const int> gpus_on_nodes, double local_batch,
                             double in_node_gbps = 0, double network_gbps = 0);

/// At least one GPU, one node a GPU at most, GPUs that fit the nodes, a local batch from 1e-9 to
/// 1e12, rates 0 or from 1e-6 to 1e9.
bool usable(const StepPlacement& placement);

/// The index of a parameter in StepTimeModel::parameters, and of its row in the covariance.
enum class StepTerm : std::size_t {
    compute_s,   ///< s, of a step however few samples: launches, optimizer
    sample_s,    ///< s per sample on a GPU
    host_s,      ///< s per sample for each other GPU of the node: what feeds them is shared
    in_node_gb,  ///< GB exchanged inside a node, effective: overheads that go with the rate
                 ///< included
    network_gb,  ///< GB that leave a node with one GPU
    shared_gb,   ///< GB more that leave a node with many GPUs
    pair_gb,     ///< the same, further, where two nodes are all there are
    level_s,     ///< s per doubling of the GPUs: latency of trees, waiting for the slowest
    node_s,      ///< s per node beyond two
    overlap,     ///< Pollux's gamma, 1 to 10: 1 adds, large takes the larger
    serial,      ///< share of T_grad that overlaps with nothing (forward pass), 0 to 0.9
};
constexpr std::size_t step_terms = 11;

/// A local batch that runs off the line of the others.
struct StepBatch {
    double local_batch = 0;  ///< 0: no more of them
    double offset = 0;       ///< b(m), a factor's logarithm

    bool operator==(const StepBatch&) const = default;
};

/// A fitted model, of one job model on one GPU type. About 500 bytes, nothing allocated.
struct StepTimeModel {
    static constexpr std::string_view prefix = "steptime1:";
    static constexpr std::size_t max_bytes = 2048;
    static constexpr std::size_t most_batches = 8;

    std::array<double, step_terms> parameters{1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0};
    std::array<StepBatch, most_batches> batches{};  ///< by rising local batch
    /// Lower triangle, row by row, of L where L L^T is the parameters' covariance.
    std::array<float, step_terms*(step_terms + 1) / 2> spread{};
    double noise = 0.1;   ///< deviation of log step times measured on one placement
    double batch_sd = 0;  ///< of b(m) where m is not among `batches`
    /// Deviation of the log of a factor on all step times that is not known: 0 where this job model
    /// was measured on this GPU type. Ratios of step times do not have it.
    double scale = 0;
    int samples = 0;    ///< that entered the fit; 0: prior alone
    int most_gpus = 0;  ///< of them all; on more the form itself is less sure. 0: no such limit

    double operator[](StepTerm term) const { return parameters[static_cast<std::size_t>(term)]; }
    double& operator[](StepTerm term) { return parameters[static_cast<std::size_t>(term)]; }

    bool operator==(const StepTimeModel&) const = default;
};

/// For usable() placements. Some 50 ns, nothing allocated.
double step_seconds(const StepTimeModel& model, const StepPlacement& placement);

/// T_grad alone, without any exchange: what each further batch costs whose gradients are added up
/// before they are exchanged.
double compute_seconds(const StepTimeModel& model, const StepPlacement& placement);

struct StepTime {
    double seconds = 0;
    double log_sd = 0;  ///< deviation of log(seconds) of one measurement from the prediction

    /// Bounds that 80% of measurements keep.
    double low() const;
    double high() const;
};

StepTime predict_step(const StepTimeModel& model, const StepPlacement& placement);

struct Slowdown {
    double ratio = 1;
    double log_sd = 0;  ///< of log(ratio); without the noise of a measurement
};

/// Seconds per sample at `placement` over those at `best`: how much slower the job trains there.
Slowdown slowdown(const StepTimeModel& model, const StepPlacement& placement,
                  const StepPlacement& best);

/// The same for two bandwidths inside the nodes at one placement.
Slowdown bandwidth_slowdown(const StepTimeModel& model, const StepPlacement& placement,
                            double in_node_gbps, double best_in_node_gbps);

/// d log T / d parameter, for each; returns T.
double step_gradient(const StepTimeModel& model, const StepPlacement& placement,
                     std::array<double, step_terms>& gradient);

/// One line (doc/formats/step-time-v1.txt), at most max_bytes, that parse_step_time() reads back
/// to an equal model.
std::string to_text(const StepTimeModel& model);

/// bad_input that names the member, its value and the legal range.
Result<StepTimeModel> parse_step_time(std::string_view text);

}  // namespace sluice
