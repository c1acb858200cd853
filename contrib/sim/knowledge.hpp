// SPDX-License-Identifier: GPL-2.0-or-later
//
// What a policy is told of jobs in the simulator.
#pragma once

#include <map>
#include <string>

#include "contrib/sim/simulation.hpp"

namespace sluice::sim {

/// Each job runs as it was asked for: one size, one batch; nothing is known of its work.
class AsAsked : public Knowledge {
  public:
    TrainingJob::BatchRule batch_rule(const Application& application,
                                      const WorkloadJob& job) override;
    std::shared_ptr<const WorkForecast> forecast(const TrainingJob& job,
                                                 const WorkloadJob& asked) override;
    std::vector<int> sizes(const TrainingJob& job, const WorkloadJob& asked) override;
};

/// Batches as asked, any size that they divide among, and the truth about the work that is left
/// and its speed anywhere: no real controller knows that.
class Oracle : public AsAsked {
  public:
    /// most_gpus: of a job, by application; "" for the others.
    explicit Oracle(std::map<std::string, int> most_gpus) : most_gpus_(std::move(most_gpus)) {}

    std::shared_ptr<const WorkForecast> forecast(const TrainingJob& job,
                                                 const WorkloadJob& asked) override;
    std::vector<int> sizes(const TrainingJob& job, const WorkloadJob& asked) override;

  private:
    std::map<std::string, int> most_gpus_;
};

}  // namespace sluice::sim
