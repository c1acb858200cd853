// SPDX-License-Identifier: GPL-2.0-or-later
//
// What a policy is told of jobs in the simulator.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

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

/// Some jobs take what they get, the others run as they were asked for, to their end.
class PartlyMalleable : public Knowledge {
  public:
    /// `share` of the jobs, drawn by `seed`, are what `malleable` says.
    PartlyMalleable(Knowledge& malleable, double share, std::uint32_t seed)
        : malleable_(malleable), share_(share), seed_(seed) {}

    TrainingJob::BatchRule batch_rule(const Application& application,
                                      const WorkloadJob& job) override;
    std::shared_ptr<const WorkForecast> forecast(const TrainingJob& job,
                                                 const WorkloadJob& asked) override;
    std::vector<int> sizes(const TrainingJob& job, const WorkloadJob& asked) override;
    void show_curve(const TrainingJob& job, const WorkloadJob& asked, JobView& view) override;
    bool malleable(const WorkloadJob& asked) override;

  private:
    Knowledge& of(const WorkloadJob& asked);

    Knowledge& malleable_;
    AsAsked rigid_;
    double share_;
    std::uint32_t seed_;
};

/// 1 to the most that a job of this application may have, by its least batch on a GPU too.
std::vector<int> sizes_up_to(double batch, const Application& application,
                             const std::map<std::string, int>& most_gpus);

}  // namespace sluice::sim
