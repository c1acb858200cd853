// SPDX-License-Identifier: GPL-2.0-or-later
#include "contrib/sim/learned.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <unordered_map>

#include "common/model/remaining_work.hpp"
#include "common/model/step_time_fit.hpp"
#include "contrib/sim/knowledge.hpp"
#include "contrib/sim/random.hpp"

namespace sluice::sim {
namespace {

constexpr double least_alone_s = 120;  ///< expected of a job of unknown size, on one GPU

/// Work left in seconds of one GPU, and speeds relative to one.
class Forecast : public WorkForecast {
  public:
    Forecast(Learned::History& history, std::vector<double> remaining, int epoch)
        : history_(history), remaining_(std::move(remaining)), epoch_(epoch) {}

    double remaining() const override {
        return std::accumulate(remaining_.begin(), remaining_.end(), 0.0) /
               static_cast<double>(remaining_.size());
    }
    std::vector<double> remaining_quantiles() const override { return remaining_; }
    double rate(const StepPlacement& placement, std::size_t type) const override;

  private:
    Learned::History& history_;  // lives as long as the simulation
    std::vector<double> remaining_;
    int epoch_;
};

}  // namespace

/// An application as its earlier jobs have shown it.
class Learned::History {
  public:
    History(const Application& application, const LearnedOptions& options)
        : application_(application),
          exact_(options.exact_steps),
          rates_(application.types()),
          residuals_(application.types()) {
        std::minstd_rand random(options.seed);
        for (std::size_t type = 0; type < application.types(); ++type) {
            std::vector<MeasuredStep> some = application.measured(type);
            for (std::size_t i = some.size(); i > 1; --i)
                std::swap(some[i - 1], some[random() % i]);
            some.resize((some.size() + 2) / 3);
            std::vector<StepSample> samples;
            for (const MeasuredStep& each : some)
                samples.push_back({each.placement, each.seconds.step});
            models_.push_back(fit_step_time(samples));
            for (const MeasuredStep& each : some) measured(each.placement, type, each.seconds);
        }
        if (const auto fitted = fit_loss_curve(application.losses())) curve_ = *fitted;
        StepPlacement one;
        alone_.resize(static_cast<std::size_t>(application.epochs()) + 1);
        for (int epoch = application.epochs() - 1; epoch >= 0; --epoch) {
            const double work =
                application.progress_after(epoch + 1) - application.progress_after(epoch);
            const auto at = static_cast<std::size_t>(epoch);
            alone_[at] = alone_[at + 1] + work / rate(one, 0, epoch);
        }
    }

    const Application& application() const { return application_; }
    const std::optional<LossCurve>& curve() const { return curve_; }

    /// A job has been seen to take so long for a step.
    void measured(const StepPlacement& placement, std::size_t type, const StepSeconds& seconds) {
        const double computing = std::max(seconds.step - seconds.sync, 1e-3 * seconds.step);
        residuals_[type][key_of(placement)][placement.local_batch] = {
            std::log(seconds.step / step_seconds(models_[type], placement)),
            std::log(computing / compute_seconds(models_[type], placement))};
    }

    void seen(const StepPlacement& placement, std::size_t type, const StepSeconds& seconds) {
        if (residuals_[type][key_of(placement)].contains(placement.local_batch)) return;
        measured(placement, type, seconds);
        std::erase_if(rates_[type], [&](const auto& rate) {
            return (rate.first & ((1ULL << key_bits) - 1)) == key_of(placement);
        });
    }

    /// Progress a second in this epoch.
    double rate(const StepPlacement& placement, std::size_t type, int epoch) {
        const std::uint64_t key = static_cast<std::uint64_t>(epoch) << key_bits | key_of(placement);
        const auto [at, is_new] = rates_[type].try_emplace(key, 0.0);
        if (is_new) at->second = best(placement, type, epoch).rate;
        return at->second;
    }

    BestBatch best(StepPlacement placement, std::size_t type, int epoch) const {
        const std::vector<int> gpus = filled(placement.gpus, placement.most_on_node);
        return best_batch(application_.limits(type), placement.gpus, [&](const BatchSplit& split) {
            StepSeconds seconds;
            if (exact_) {
                seconds = application_.step(type, gpus, split.local);
            } else {
                placement.local_batch = split.local;
                const Residual off = residual(placement, type);
                seconds.step = std::exp(off.step) * step_seconds(models_[type], placement);
                const double computing =
                    std::exp(off.computing) * compute_seconds(models_[type], placement);
                seconds.sync = std::max(0.0, seconds.step - computing);
            }
            return application_.gain(split.batch(placement.gpus), epoch) /
                   (seconds.step + split.accumulated * (seconds.step - seconds.sync));
        });
    }

    /// Seconds on one GPU from this progress to the end.
    double alone_from(double progress) const {
        const int epoch = epoch_at(progress);
        const double from = application_.progress_after(epoch);
        const double to = application_.progress_after(epoch + 1);
        const auto at = static_cast<std::size_t>(epoch);
        const double share = std::clamp((to - progress) / (to - from), 0.0, 1.0);
        return alone_[at + 1] + share * (alone_[at] - alone_[at + 1]);
    }

    int epoch_at(double progress) const {
        int epoch = 0;
        while (epoch + 1 < application_.epochs() &&
               application_.progress_after(epoch + 1) <= progress)
            ++epoch;
        return epoch;
    }

  private:
    /// 7 bits for GPUs on a node, 17 for nodes, 23 for GPUs; the epoch has the rest.
    static std::uint64_t key_of(const StepPlacement& placement) {
        return static_cast<std::uint64_t>(placement.gpus) << 24 |
               static_cast<std::uint64_t>(placement.nodes) << 7 |
               static_cast<std::uint64_t>(placement.most_on_node);
    }

    static constexpr int key_bits = 47;

    struct Residual {
        double step = 0;  ///< of the log of seconds
        double computing = 0;
    };

    /// Between the local batches that were measured on the placement.
    Residual residual(const StepPlacement& placement, std::size_t type) const {
        const auto found = residuals_[type].find(key_of(placement));
        if (found == residuals_[type].end()) return {};
        const auto high = found->second.lower_bound(placement.local_batch);
        if (high == found->second.begin()) return high->second;
        const auto low = std::prev(high);
        if (high == found->second.end()) return low->second;
        const double share = (placement.local_batch - low->first) / (high->first - low->first);
        return {std::lerp(low->second.step, high->second.step, share),
                std::lerp(low->second.computing, high->second.computing, share)};
    }

    const Application& application_;
    std::optional<LossCurve> curve_;  // by epochs; nothing where there are too few
    bool exact_;
    std::vector<StepTimeModel> models_;                             // by type
    std::vector<std::unordered_map<std::uint64_t, double>> rates_;  // by type
    std::vector<std::unordered_map<std::uint64_t, std::map<double, Residual>>> residuals_;
    std::vector<double> alone_;  // seconds on one GPU from the beginning of each epoch
};

namespace {

double Forecast::rate(const StepPlacement& placement, std::size_t type) const {
    return history_.rate(placement, type, epoch_) / history_.rate(StepPlacement{}, 0, epoch_);
}

}  // namespace

Learned::Learned(const std::vector<Application>& applications, LearnedOptions options)
    : options_(std::move(options)) {
    for (const Application& application : applications)
        histories_.emplace(&application, std::make_unique<History>(application, options_));
}

Learned::~Learned() = default;

Learned::History& Learned::history(const Application& application) {
    return *histories_.at(&application);
}

TrainingJob::BatchRule Learned::batch_rule(const Application& application, const WorkloadJob&) {
    History& known = history(application);
    return [&known](const TrainingJob& job) {
        return known.best(step_placement(job.placement(), 1), job.type(), job.epoch()).split;
    };
}

std::vector<double> Learned::remaining(const History& known, double progress,
                                       const WorkloadJob& asked, double& seems) const {
    seems = 1;
    const double error = options_.size_error;
    const double alone = known.alone_from(progress);
    if (error < 0) return {std::max(least_alone_s, known.alone_from(0) - alone)};
    if (error == 0) return {alone};
    seems = std::exp(error * normal_quantile(uniform(options_.seed, asked.number, 1)));
    const double done = progress / known.application().total_progress();
    std::vector<double> remaining;
    for (const double total : total_quantiles({seems, error}, done))
        remaining.push_back(std::max(5.0, total * known.alone_from(progress / total)));
    return remaining;
}

std::shared_ptr<const WorkForecast> Learned::forecast(const TrainingJob& job,
                                                      const WorkloadJob& asked) {
    History& known = history(job.application());
    double seems = 1;
    std::vector<double> left = remaining(known, job.progress(), asked, seems);
    StepPlacement now;
    if (job.running()) {
        now = step_placement(job.placement(), job.split().local);
        known.seen(now, job.type(),
                   job.application().step(job.type(), job.placement(), job.split().local));
    }
    const double soon = options_.soon_s / seems * known.rate(now, job.type(), job.epoch());
    const int epoch = std::max(job.epoch(), known.epoch_at(job.progress() + soon));
    return std::make_shared<Forecast>(known, std::move(left), epoch);
}

void Learned::show_curve(const TrainingJob& job, const WorkloadJob&, JobView& view) {
    History& known = history(job.application());
    if (!known.curve()) return;
    view.curve = known.curve();
    view.step = job.progress();
    std::vector<SpeedSample> speeds;
    for (int gpus = 1; gpus <= view.sizes.back(); gpus *= 2)
        if (const double rate =
                known.rate(step_placement(filled(gpus, options_.gpus_of_node), 1), 0, job.epoch());
            rate > 0)
            speeds.push_back({gpus, rate});
    view.speed = fit_speed(speeds);
}

std::vector<int> Learned::sizes(const TrainingJob& job, const WorkloadJob&) {
    std::vector<int> sizes =
        sizes_up_to(job.application().most_batch(), job.application(), options_.most_gpus);
    if (options_.doubling)
        sizes.resize(
            std::min(sizes.size(), static_cast<std::size_t>(std::max(1, 2 * job.most_gpus()))));
    return sizes;
}

}  // namespace sluice::sim
