// SPDX-License-Identifier: GPL-2.0-or-later
#include "contrib/sim/knowledge.hpp"

#include <algorithm>
#include <numeric>

#include "contrib/sim/random.hpp"

namespace sluice::sim {
namespace {

/// In steps of the batch.
class Truth : public WorkForecast {
  public:
    Truth(const TrainingJob& job, double batch)
        : job_(job), batch_(batch), remaining_(job.steps_left(batch)) {}

    double remaining() const override { return remaining_; }
    double rate(const StepPlacement& placement, std::size_t type) const override {
        const BatchSplit split =
            split_batch(job_.application().limits(type), placement.gpus, batch_);
        return 1 /
               job_.step_seconds_on(filled(placement.gpus, placement.most_on_node), type, split);
    }

  private:
    const TrainingJob& job_;  // lives as long as the round
    double batch_;
    double remaining_;
};

}  // namespace

std::vector<int> sizes_up_to(double batch, const Application& application,
                             const std::map<std::string, int>& most_gpus) {
    int most = static_cast<int>(batch / application.least_local_batch());
    for (const std::string& name : {application.name(), std::string()})
        if (const auto limit = most_gpus.find(name); limit != most_gpus.end()) {
            most = std::min(most, limit->second);
            break;
        }
    std::vector<int> sizes(static_cast<std::size_t>(std::max(1, most)));
    std::iota(sizes.begin(), sizes.end(), 1);
    return sizes;
}

TrainingJob::BatchRule AsAsked::batch_rule(const Application& application, const WorkloadJob& job) {
    const double batch = batch_of(job, application.first_batch());
    return [batch](const TrainingJob& training) {
        return split_batch(training.application().limits(training.type()), training.gpus(), batch);
    };
}

std::shared_ptr<const WorkForecast> AsAsked::forecast(const TrainingJob&, const WorkloadJob&) {
    return nullptr;
}

std::vector<int> AsAsked::sizes(const TrainingJob&, const WorkloadJob& asked) {
    return {asked.gpus};
}

std::shared_ptr<const WorkForecast> Oracle::forecast(const TrainingJob& job,
                                                     const WorkloadJob& asked) {
    return std::make_shared<Truth>(job, batch_of(asked, job.application().first_batch()));
}

std::vector<int> Oracle::sizes(const TrainingJob& job, const WorkloadJob& asked) {
    const Application& application = job.application();
    return sizes_up_to(batch_of(asked, application.first_batch()), application, most_gpus_);
}

Knowledge& PartlyMalleable::of(const WorkloadJob& asked) {
    if (malleable(asked)) return malleable_;
    return rigid_;
}

bool PartlyMalleable::malleable(const WorkloadJob& asked) {
    return uniform(seed_, asked.number, 2) < share_;
}

void PartlyMalleable::show_curve(const TrainingJob& job, const WorkloadJob& asked, JobView& view) {
    of(asked).show_curve(job, asked, view);
}

TrainingJob::BatchRule PartlyMalleable::batch_rule(const Application& application,
                                                   const WorkloadJob& job) {
    return of(job).batch_rule(application, job);
}

std::shared_ptr<const WorkForecast> PartlyMalleable::forecast(const TrainingJob& job,
                                                              const WorkloadJob& asked) {
    return of(asked).forecast(job, asked);
}

std::vector<int> PartlyMalleable::sizes(const TrainingJob& job, const WorkloadJob& asked) {
    return of(asked).sizes(job, asked);
}

}  // namespace sluice::sim
