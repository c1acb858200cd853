// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/model/step_time.hpp"

#include <algorithm>
#include <cmath>

namespace sluice {
namespace {

constexpr double z_of_80_percent = 1.2815515655446004;

constexpr std::size_t index(StepTerm term) {
    return static_cast<std::size_t>(term);
}

constexpr std::size_t first_sync = index(StepTerm::in_node_gb);
constexpr std::size_t sync_terms = index(StepTerm::overlap) - first_sync;

/// What each parameter of T_sync is multiplied by.
std::array<double, sync_terms> sync_factors(const StepPlacement& placement) {
    const double gpus = placement.gpus;
    const double most = placement.most_on_node;
    const double in_node =
        placement.in_node_gbps > 0 ? placement.in_node_gbps : reference_in_node_gbps;
    const double network =
        placement.network_gbps > 0 ? placement.network_gbps : reference_network_gbps;
    const bool many = placement.nodes >= 2;
    const double share = 1 - 1 / most;
    return {2 * share / in_node,
            many ? 1 / network : 0,
            many ? share / network : 0,
            placement.nodes == 2 ? share / network : 0,
            gpus > 1 ? std::log2(gpus) : 0,
            many ? placement.nodes - 2.0 : 0};
}

struct Parts {
    double compute = 0;
    double sync = 0;
};

Parts parts_of(const StepTimeModel& model, const StepPlacement& placement,
               const std::array<double, sync_terms>& factors) {
    Parts parts;
    const double a_sample =
        model[StepTerm::sample_s] + model[StepTerm::host_s] * (placement.most_on_node - 1.0);
    parts.compute = model[StepTerm::compute_s] + a_sample * placement.local_batch;
    for (std::size_t i = 0; i < sync_terms; ++i) {
        parts.sync += model.parameters[first_sync + i] * factors[i];
    }
    return parts;
}

/// Null: on the line. A local batch that was computed as B / K may be off by rounding.
const StepBatch* batch_of(const StepTimeModel& model, double local_batch) {
    for (const StepBatch& batch : model.batches) {
        if (!(batch.local_batch > 0)) break;
        if (std::fabs(batch.local_batch - local_batch) <= 1e-9 * local_batch) return &batch;
    }
    return nullptr;
}

/// (a^p + b^p)^(1/p), from the larger one so that nothing overflows.
double combined(double a, double b, double p) {
    const double larger = std::max(a, b);
    const double smaller = std::min(a, b);
    if (!(smaller > 0)) return larger;
    return larger * std::pow(1 + std::pow(smaller / larger, p), 1 / p);
}

/// How far the form was off in the public tables when fitted on up to 8 GPUs, for each doubling
/// beyond them.
constexpr double log_sd_per_doubling = 0.08;

double doublings_beyond(const StepTimeModel& model, int gpus) {
    return model.most_gpus > 0 && gpus > model.most_gpus
               ? std::log2(static_cast<double>(gpus) / model.most_gpus)
               : 0;
}

/// |L^T gradient|: the deviation that the parameters' covariance gives what has this gradient.
double deviation(const StepTimeModel& model, const std::array<double, step_terms>& gradient) {
    double variance = 0;
    for (std::size_t column = 0; column < step_terms; ++column) {
        double sum = 0;
        for (std::size_t row = column; row < step_terms; ++row) {
            sum += static_cast<double>(model.spread[row * (row + 1) / 2 + column]) * gradient[row];
        }
        variance += sum * sum;
    }
    return std::sqrt(variance);
}

}  // namespace

StepPlacement step_placement(std::span<const int> gpus_on_nodes, double local_batch,
                             double in_node_gbps, double network_gbps) {
    StepPlacement placement{0, 0, 0, local_batch, in_node_gbps, network_gbps};
    for (const int gpus : gpus_on_nodes) {
        if (gpus < 1) continue;
        ++placement.nodes;
        placement.gpus += gpus;
        placement.most_on_node = std::max(placement.most_on_node, gpus);
    }
    if (placement.nodes == 0) placement.nodes = placement.gpus = placement.most_on_node = 1;
    return placement;
}

bool usable(const StepPlacement& placement) {
    const auto is_rate = [](double rate) { return rate == 0 || (rate >= 1e-6 && rate <= 1e9); };
    const long long nodes = placement.nodes;
    const long long most = placement.most_on_node;
    return nodes >= 1 && most >= 1 && placement.gpus >= most + nodes - 1 &&
           placement.gpus <= most * nodes && placement.local_batch >= 1e-9 &&
           placement.local_batch <= 1e12 && is_rate(placement.in_node_gbps) &&
           is_rate(placement.network_gbps);
}

double step_seconds(const StepTimeModel& model, const StepPlacement& placement) {
    const Parts parts = parts_of(model, placement, sync_factors(placement));
    const double serial = model[StepTerm::serial];
    const double seconds = serial * parts.compute + combined((1 - serial) * parts.compute,
                                                             parts.sync, model[StepTerm::overlap]);
    const StepBatch* batch = batch_of(model, placement.local_batch);
    return batch ? seconds * std::exp(batch->offset) : seconds;
}

double compute_seconds(const StepTimeModel& model, const StepPlacement& placement) {
    const double seconds = parts_of(model, placement, sync_factors(placement)).compute;
    const StepBatch* batch = batch_of(model, placement.local_batch);
    return batch ? seconds * std::exp(batch->offset) : seconds;
}

double step_gradient(const StepTimeModel& model, const StepPlacement& placement,
                     std::array<double, step_terms>& gradient) {
    const auto factors = sync_factors(placement);
    const Parts parts = parts_of(model, placement, factors);
    const double serial = model[StepTerm::serial];
    const double p = model[StepTerm::overlap];
    const double a = (1 - serial) * parts.compute;
    const double b = parts.sync;
    const double both = combined(a, b, p);
    const double seconds = serial * parts.compute + both;

    gradient = {};
    if (!(seconds > 0)) return seconds;
    double by_a = a > 0 || p > 1 ? std::pow(a / both, p - 1) : 1;
    double by_b = b > 0 || p > 1 ? std::pow(b / both, p - 1) : 1;
    if (!(both > 0)) by_a = by_b = 1;
    const double by_compute = (serial + (1 - serial) * by_a) / seconds;
    gradient[index(StepTerm::compute_s)] = by_compute;
    gradient[index(StepTerm::sample_s)] = by_compute * placement.local_batch;
    gradient[index(StepTerm::host_s)] =
        by_compute * placement.local_batch * (placement.most_on_node - 1.0);
    for (std::size_t i = 0; i < sync_terms; ++i) {
        gradient[first_sync + i] = by_b * factors[i] / seconds;
    }
    if (a > 0 && b > 0) {
        // log both = log(larger) + log(1 + r^p) / p, with r = smaller / larger
        const double r = std::min(a, b) / std::max(a, b);
        const double power = std::pow(r, p);
        const double slope = power * std::log(r) / (1 + power) / p - std::log1p(power) / (p * p);
        gradient[index(StepTerm::overlap)] = both * slope / seconds;
    }
    gradient[index(StepTerm::serial)] = parts.compute * (1 - by_a) / seconds;
    const StepBatch* batch = batch_of(model, placement.local_batch);
    return batch ? seconds * std::exp(batch->offset) : seconds;
}

double StepTime::low() const {
    return seconds * std::exp(-z_of_80_percent * log_sd);
}
double StepTime::high() const {
    return seconds * std::exp(z_of_80_percent * log_sd);
}

StepTime predict_step(const StepTimeModel& model, const StepPlacement& placement) {
    std::array<double, step_terms> gradient;
    StepTime out;
    out.seconds = step_gradient(model, placement, gradient);
    const double spread = deviation(model, gradient);
    const double off = batch_of(model, placement.local_batch) ? 0 : model.batch_sd;
    const double beyond = log_sd_per_doubling * doublings_beyond(model, placement.gpus);
    out.log_sd = std::sqrt(spread * spread + model.noise * model.noise + off * off +
                           beyond * beyond + model.scale * model.scale);
    return out;
}

Slowdown slowdown(const StepTimeModel& model, const StepPlacement& placement,
                  const StepPlacement& best) {
    std::array<double, step_terms> here;
    std::array<double, step_terms> there;
    const double seconds = step_gradient(model, placement, here);
    const double best_seconds = step_gradient(model, best, there);
    const double samples = placement.local_batch * placement.gpus;
    const double best_samples = best.local_batch * best.gpus;
    for (std::size_t i = 0; i < step_terms; ++i) here[i] -= there[i];
    const double beyond = log_sd_per_doubling * (doublings_beyond(model, placement.gpus) -
                                                 doublings_beyond(model, best.gpus));
    return {seconds / samples / (best_seconds / best_samples),
            std::hypot(deviation(model, here), beyond)};
}

Slowdown bandwidth_slowdown(const StepTimeModel& model, const StepPlacement& placement,
                            double in_node_gbps, double best_in_node_gbps) {
    StepPlacement here = placement;
    StepPlacement best = placement;
    here.in_node_gbps = in_node_gbps;
    best.in_node_gbps = best_in_node_gbps;
    return slowdown(model, here, best);
}

}  // namespace sluice
