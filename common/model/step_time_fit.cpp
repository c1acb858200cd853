// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/model/step_time_fit.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace sluice {
namespace {

using Vector = std::array<double, step_terms>;
using Matrix = std::array<Vector, step_terms>;

constexpr std::size_t index(StepTerm term) {
    return static_cast<std::size_t>(term);
}

constexpr int most_steps = 40;
constexpr double huber = 1.5;  // deviations beyond which a sample pulls no harder
constexpr double most_noise = 10;
constexpr double most_offset = 5;
constexpr double least_noise = 0.01;  // clocks and schedulers are no better than that
constexpr double z_of_80_percent = 1.2815515655446004;

struct Prior {
    Vector mean{};
    Vector sd{};
};

constexpr Vector lowest{0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0};
constexpr Vector highest{1e300, 1e300, 1e300, 1e300, 1e300, 1e300, 1e300, 1e300, 1e300, 10, 0.9};

Prior topology_prior(double seconds_alone, double local_batch, const StepPriorOptions& options) {
    Prior prior;
    const auto set = [&prior](StepTerm term, double mean, double sd) {
        prior.mean[index(term)] = mean;
        prior.sd[index(term)] = sd;
    };
    const double t = seconds_alone;
    const double in_node = t * reference_in_node_gbps;
    const double network = t * reference_network_gbps;
    // Where no batch is known, seconds are not known either: what matters is that they do not
    // drown communication at any batch.
    const double per_sample = local_batch > 0 ? t / local_batch : 0;
    const double least_sd = 1e-3 * t;
    set(StepTerm::compute_s, local_batch > 0 ? t * options.compute : t, t * options.compute_sd);
    set(StepTerm::sample_s, per_sample * (1 - options.compute),
        local_batch > 0 ? per_sample * options.compute_sd : least_sd);
    set(StepTerm::host_s, per_sample * options.host,
        local_batch > 0 ? per_sample * options.host_sd : least_sd);
    set(StepTerm::in_node_gb, in_node * options.in_node, in_node * options.in_node_sd);
    set(StepTerm::network_gb, network * options.network, network * options.network_sd);
    set(StepTerm::shared_gb, network * options.shared, network * options.shared_sd);
    set(StepTerm::pair_gb, network * options.pair, network * options.pair_sd);
    set(StepTerm::level_s, t * options.level, t * options.level_sd);
    set(StepTerm::node_s, t * options.node, t * options.node_sd);
    set(StepTerm::overlap, options.overlap, options.overlap_sd);
    set(StepTerm::serial, options.serial, options.serial_sd);
    return prior;
}

/// Lower triangular L with L L^T = matrix, which is positive definite.
Matrix cholesky(const Matrix& matrix) {
    Matrix lower{};
    for (std::size_t i = 0; i < step_terms; ++i) {
        for (std::size_t j = 0; j <= i; ++j) {
            double sum = matrix[i][j];
            for (std::size_t k = 0; k < j; ++k) sum -= lower[i][k] * lower[j][k];
            // rounding may leave a little below 0 where a parameter is as good as known
            lower[i][j] =
                i == j ? std::sqrt(std::max(sum, 1e-12 * matrix[i][i])) : sum / lower[j][j];
        }
    }
    return lower;
}

/// The inverse of L L^T.
Matrix inverse_of(const Matrix& lower) {
    Matrix half{};  // L^-1
    for (std::size_t i = 0; i < step_terms; ++i) {
        half[i][i] = 1 / lower[i][i];
        for (std::size_t j = 0; j < i; ++j) {
            double sum = 0;
            for (std::size_t k = j; k < i; ++k) sum -= lower[i][k] * half[k][j];
            half[i][j] = sum / lower[i][i];
        }
    }
    Matrix out{};
    for (std::size_t i = 0; i < step_terms; ++i) {
        for (std::size_t j = 0; j < step_terms; ++j) {
            for (std::size_t k = std::max(i, j); k < step_terms; ++k) {
                out[i][j] += half[k][i] * half[k][j];
            }
        }
    }
    return out;
}

/// `scaled` is the covariance in units of `unit`, which keeps it well conditioned.
void set_spread(StepTimeModel& model, const Matrix& scaled, const Vector& unit) {
    const Matrix lower = cholesky(scaled);
    for (std::size_t i = 0; i < step_terms; ++i) {
        for (std::size_t j = 0; j <= i; ++j) {
            const double entry = lower[i][j] * unit[i];
            model.spread[i * (i + 1) / 2 + j] = static_cast<float>(std::clamp(entry, -1e18, 1e18));
        }
    }
}

StepTimeModel model_of(const Prior& prior, double noise, double scale) {
    StepTimeModel model;
    model.parameters = prior.mean;
    Matrix unit{};
    for (std::size_t i = 0; i < step_terms; ++i) unit[i][i] = 1;
    set_spread(model, unit, prior.sd);
    model.noise = noise;
    model.scale = scale;
    return model;
}

double median(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

/// One GPU's step time as the samples with fewest GPUs have it, and their local batch.
Prior prior_from(std::span<const StepSample> samples, const StepPriorOptions& options) {
    int fewest = samples.front().placement.gpus;
    for (const StepSample& sample : samples) fewest = std::min(fewest, sample.placement.gpus);
    std::vector<double> alone;
    std::vector<double> batches;
    for (const StepSample& sample : samples) {
        batches.push_back(sample.placement.local_batch);
        if (sample.placement.gpus != fewest) continue;
        const auto usual = topology_step_time(1, sample.placement.local_batch, options);
        alone.push_back(sample.seconds / step_seconds(usual, sample.placement));
    }
    return topology_prior(median(alone), median(batches), options);
}

struct Ratios {
    double compute = 1;
    double sync = 1;
};

/// Of the similar model, computing and communication each scaled.
Prior prior_from(const StepTimeModel& similar, const Ratios& ratios,
                 const StepPriorOptions& options) {
    Prior prior;
    for (std::size_t i = 0; i < step_terms; ++i) {
        double variance = 0;
        for (std::size_t j = 0; j <= i; ++j) {
            const double entry = static_cast<double>(similar.spread[i * (i + 1) / 2 + j]);
            variance += entry * entry;
        }
        double factor = 1;
        if (i < index(StepTerm::overlap)) {
            factor = i < index(StepTerm::in_node_gb) ? ratios.compute : ratios.sync;
        }
        const double own = options.similar_sd * similar.parameters[i];
        prior.mean[i] = factor * similar.parameters[i];
        prior.sd[i] = factor * std::sqrt(variance + own * own);
    }
    // What is 0 there may be a little here; no parameter may be certain.
    StepPlacement one;
    const double launches = similar[StepTerm::compute_s];
    const double sample = similar[StepTerm::sample_s];
    if (launches > 0 && sample > 0) one.local_batch = std::clamp(launches / sample, 1e-9, 1e12);
    const Prior usual =
        topology_prior(ratios.compute * step_seconds(similar, one), one.local_batch, options);
    for (std::size_t i = 0; i < step_terms; ++i) {
        prior.sd[i] = std::max(prior.sd[i], options.similar_floor * usual.sd[i]);
    }
    return prior;
}

/// Huber's, of an error in deviations.
double loss(double error) {
    const double size = std::fabs(error);
    return size < huber ? size * size / 2 : huber * (size - huber / 2);
}

StepTimeModel scaled_model(const StepTimeModel& similar, const Ratios& ratios) {
    StepTimeModel model = similar;
    for (std::size_t i = 0; i < index(StepTerm::overlap); ++i) {
        model.parameters[i] *= i < index(StepTerm::in_node_gb) ? ratios.compute : ratios.sync;
    }
    return model;
}

class Fit {
  public:
    Fit(std::span<const StepSample> samples, const Prior& prior, double noise)
        : samples_(samples), prior_(prior), noise_(noise) {}

    void set_noise(double noise) { noise_ = noise; }

    double cost(const StepTimeModel& model) const {
        double total = 0;
        for (const StepSample& sample : samples_) {
            total += sample.weight * loss(relative_error(model, sample) / noise_);
        }
        for (std::size_t i = 0; i < step_terms; ++i) {
            const double off = (model.parameters[i] - prior_.mean[i]) / prior_.sd[i];
            total += off * off / 2;
        }
        return std::isfinite(total) ? total : 1e300;
    }

    /// In units of the prior's deviations: the Hessian (of Gauss and Newton) and minus the slope.
    void expand(const StepTimeModel& model, Matrix& hessian, Vector& downhill) const {
        hessian = {};
        for (std::size_t i = 0; i < step_terms; ++i) {
            hessian[i][i] = 1;
            downhill[i] = -(model.parameters[i] - prior_.mean[i]) / prior_.sd[i];
        }
        Vector slope;
        for (const StepSample& sample : samples_) {
            const double seconds = step_gradient(model, sample.placement, slope);
            const double error = (seconds / sample.seconds - 1) / noise_;
            const double size = std::fabs(error);
            const double weight = sample.weight * (size < huber ? 1 : huber / size);
            for (std::size_t i = 0; i < step_terms; ++i)
                slope[i] *= seconds / sample.seconds * prior_.sd[i] / noise_;
            for (std::size_t i = 0; i < step_terms; ++i) {
                downhill[i] -= weight * error * slope[i];
                for (std::size_t j = 0; j <= i; ++j) hessian[i][j] += weight * slope[i] * slope[j];
            }
        }
        for (std::size_t i = 0; i < step_terms; ++i) {
            for (std::size_t j = 0; j < i; ++j) hessian[j][i] = hessian[i][j];
        }
    }

    /// Downhill from `model` until it does not get better.
    double descend(StepTimeModel& model) const {
        Matrix hessian;
        Vector downhill;
        double damping = 1e-3;
        double best = cost(model);
        for (int step = 0; step < most_steps; ++step) {
            expand(model, hessian, downhill);
            bool better = false;
            double gain = 0;
            for (int attempt = 0; attempt < 8 && !better; ++attempt, damping *= 5) {
                const StepTimeModel next = moved(model, hessian, downhill, damping);
                const double now = cost(next);
                if (now < best) {
                    gain = best - now;
                    best = now;
                    model.parameters = next.parameters;
                    better = true;
                }
            }
            damping = std::max(damping * 0.05, 1e-9);
            if (!better || gain < 1e-5 * best) break;
        }
        return best;
    }

    static double relative_error(const StepTimeModel& model, const StepSample& sample) {
        return step_seconds(model, sample.placement) / sample.seconds - 1;
    }
    static double log_error(const StepTimeModel& model, const StepSample& sample) {
        return std::log(step_seconds(model, sample.placement) / sample.seconds);
    }

  private:
    /// The damped quadratic's minimum within the bounds, by coordinate descent: few and small
    /// dimensions.
    StepTimeModel moved(const StepTimeModel& model, const Matrix& hessian, const Vector& downhill,
                        double damping) const {
        Vector shift{};
        for (int sweep = 0; sweep < 60; ++sweep) {
            double change = 0;
            for (std::size_t i = 0; i < step_terms; ++i) {
                double slope = downhill[i];
                for (std::size_t j = 0; j < step_terms; ++j) {
                    if (j != i) slope -= hessian[i][j] * shift[j];
                }
                const double low = (lowest[i] - model.parameters[i]) / prior_.sd[i];
                const double high = (highest[i] - model.parameters[i]) / prior_.sd[i];
                const double next =
                    std::clamp(slope / (hessian[i][i] * (1 + damping)), low, std::max(low, high));
                change = std::max(change, std::fabs(next - shift[i]));
                shift[i] = next;
            }
            if (change < 1e-7) break;
        }
        StepTimeModel next = model;
        for (std::size_t i = 0; i < step_terms; ++i) {
            next.parameters[i] =
                std::clamp(model.parameters[i] + shift[i] * prior_.sd[i], lowest[i], highest[i]);
        }
        return next;
    }

    std::span<const StepSample> samples_;
    Prior prior_;
    double noise_;
};

/// The ratios at which the samples fit best, by a coarse grid and then steps that halve. One is
/// what they are believed to be near.
Ratios ratios_of(const StepTimeModel& similar, std::span<const StepSample> samples,
                 const StepPriorOptions& options) {
    const auto cost = [&](double compute, double sync) {
        const StepTimeModel scaled = scaled_model(similar, {std::exp(compute), std::exp(sync)});
        double total =
            compute * compute / 2 / (options.compute_ratio_sd * options.compute_ratio_sd) +
            sync * sync / 2 / (options.sync_ratio_sd * options.sync_ratio_sd);
        for (const StepSample& sample : samples) {
            total += sample.weight * loss(Fit::relative_error(scaled, sample) / options.noise);
        }
        return total;
    };
    double compute = 0;
    double sync = 0;
    double least = cost(0, 0);
    const auto try_at = [&](double next_compute, double next_sync) {
        const double now = cost(next_compute, next_sync);
        if (!(now < least)) return false;
        least = now;
        compute = next_compute;
        sync = next_sync;
        return true;
    };
    for (int i = -8; i <= 8; ++i) {
        for (int j = -6; j <= 6; ++j) try_at(i, j);
    }
    double step = 0.5;
    while (step > 0.005) {
        for (int i = 0; i < 4; ++i) {
            const double at_compute = compute;
            const double at_sync = sync;
            bool better = try_at(at_compute + step, at_sync);
            better = try_at(at_compute - step, at_sync) || better;
            better = try_at(at_compute, at_sync + step) || better;
            better = try_at(at_compute, at_sync - step) || better;
            if (!better) break;
        }
        step /= 2;
    }
    return {std::exp(compute), std::exp(sync)};
}

/// From the residuals' 80% quantile, which is what the stated interval is about, and the guess.
double noise_of(const StepTimeModel& model, std::span<const StepSample> samples,
                const StepPriorOptions& options, double free_parameters) {
    std::vector<double> errors;
    for (const StepSample& sample : samples) {
        errors.push_back(std::fabs(Fit::log_error(model, sample)));
    }
    const auto count = static_cast<double>(errors.size());
    const auto at = errors.begin() + static_cast<std::ptrdiff_t>(std::lround(0.8 * (count - 1)));
    std::nth_element(errors.begin(), at, errors.end());
    const double spread = *at / z_of_80_percent;
    const double left = std::max(count - free_parameters, 0.0);
    const double guess = options.noise * options.noise * options.noise_samples;
    const double variance = (guess + spread * spread * count) / (options.noise_samples + left);
    return std::clamp(std::sqrt(variance), least_noise, most_noise);
}

/// What each local batch's samples show beside the line, drawn to 0 as far as the noise explains
/// it. Two batches are a line; from three on there can be one beside it.
void set_batches(StepTimeModel& model, std::span<const StepSample> samples,
                 const StepPriorOptions& options) {
    StepTimeModel line = model;
    line.batches = {};
    struct Seen {
        double local_batch, sum, weight;
    };
    std::vector<Seen> seen;
    for (const StepSample& sample : samples) {
        const double m = sample.placement.local_batch;
        const double error = -Fit::log_error(line, sample);
        const double weight =
            sample.weight * std::min(1.0, 3 * model.noise / std::max(std::fabs(error), 1e-300));
        const auto at = std::lower_bound(
            seen.begin(), seen.end(), m * (1 - 1e-9),
            [](const Seen& entry, double batch) { return entry.local_batch < batch; });
        if (at != seen.end() && at->local_batch <= m * (1 + 1e-9)) {
            at->sum += weight * error;
            at->weight += weight;
        } else {
            seen.insert(at, {m, weight * error, weight});
        }
    }
    model.batches = {};
    model.batch_sd = 0;
    if (seen.size() < 3) return;
    const double ratio = model.noise * model.noise / (options.batch_sd * options.batch_sd);
    std::vector<StepBatch> batches;
    double squares = 0;
    for (const Seen& entry : seen) {
        const double offset =
            std::clamp(entry.sum / (entry.weight + ratio), -most_offset, most_offset);
        squares += offset * offset;
        batches.push_back({entry.local_batch, offset});
    }
    model.batch_sd = std::sqrt(squares / static_cast<double>(batches.size()));
    if (batches.size() > StepTimeModel::most_batches) {
        std::sort(batches.begin(), batches.end(), [](const StepBatch& a, const StepBatch& b) {
            const double x = std::fabs(a.offset);
            const double y = std::fabs(b.offset);
            return x != y ? x > y : a.local_batch < b.local_batch;
        });
        batches.resize(StepTimeModel::most_batches);
        std::sort(batches.begin(), batches.end(), [](const StepBatch& a, const StepBatch& b) {
            return a.local_batch < b.local_batch;
        });
    }
    std::copy(batches.begin(), batches.end(), model.batches.begin());
}

}  // namespace

bool usable(const StepSample& sample) {
    return usable(sample.placement) && sample.seconds >= 1e-9 && sample.seconds <= 1e9 &&
           sample.weight > 0 && sample.weight <= 1e6;
}

StepTimeModel topology_step_time(double seconds_alone, double local_batch,
                                 const StepPriorOptions& options) {
    return model_of(topology_prior(seconds_alone, local_batch, options), options.noise,
                    options.unknown_scale);
}

StepTimeModel similar_step_time(const StepTimeModel& similar, std::optional<double> compute_ratio,
                                const StepPriorOptions& options) {
    StepTimeModel model =
        model_of(prior_from(similar, {compute_ratio.value_or(1), 1}, options), similar.noise,
                 compute_ratio ? similar.scale : std::hypot(similar.scale, options.similar_scale));
    model.batch_sd = similar.batch_sd;
    model.most_gpus = similar.most_gpus;
    return model;
}

StepTimeModel fit_step_time(std::span<const StepSample> samples, const StepTimeModel* similar,
                            const StepPriorOptions& options) {
    std::vector<StepSample> kept;
    for (const StepSample& sample : samples) {
        if (usable(sample)) kept.push_back(sample);
    }
    if (kept.empty()) {
        return similar ? similar_step_time(*similar, std::nullopt, options)
                       : topology_step_time(1, 0, options);
    }
    const Prior prior = similar ? prior_from(*similar, ratios_of(*similar, kept, options), options)
                                : prior_from(kept, options);

    Fit fit(kept, prior, options.noise);
    struct Start {
        double overlap, serial, sync;
    };
    StepTimeModel best;
    double least = 0;
    bool first = true;
    for (const Start start : {Start{1.5, 0.05, 1}, Start{3, 0.3, 3}, Start{6, 0.1, 0.5}}) {
        StepTimeModel model;
        model.parameters = prior.mean;
        for (std::size_t i = index(StepTerm::in_node_gb); i < index(StepTerm::overlap); ++i) {
            model.parameters[i] *= start.sync;
        }
        model[StepTerm::overlap] = start.overlap;
        model[StepTerm::serial] = start.serial;
        const double cost = fit.descend(model);
        if (first || cost < least) {
            best = model;
            least = cost;
            first = false;
        }
    }
    // The weights of data and prior, and what is an outlier, depend on the noise: again with
    // the one found. So with the batches that are beside the line.
    const double most_free =
        std::min(static_cast<double>(kept.size()) / 2, static_cast<double>(step_terms));
    for (int round = 0; round < 2; ++round) {
        best.noise = noise_of(best, kept, options, most_free);
        set_batches(best, kept, options);
        fit.set_noise(best.noise);
        fit.descend(best);
    }
    best.noise = noise_of(best, kept, options, most_free);
    fit.set_noise(best.noise);
    Matrix hessian;
    Vector downhill;
    fit.expand(best, hessian, downhill);
    set_spread(best, inverse_of(cholesky(hessian)), prior.sd);
    best.scale = 0;
    best.most_gpus = 0;
    for (const StepSample& sample : kept) {
        best.most_gpus = std::max(best.most_gpus, sample.placement.gpus);
    }
    best.samples = static_cast<int>(std::min<std::size_t>(kept.size(), 1'000'000));
    return best;
}

}  // namespace sluice
