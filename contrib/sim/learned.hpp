// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "contrib/sim/simulation.hpp"

namespace sluice::sim {

struct LearnedOptions {
    std::map<std::string, int> most_gpus;  ///< of a job, by application; "" for the others
    /// Deviation of the log of a job's size from what earlier ones of its application show;
    /// negative: nothing is known of sizes.
    double size_error = 0.6;
    /// All step times as measured, not as below.
    bool exact_steps = false;
    /// No more than twice as many GPUs as the job has had, as Pollux and Sia have it.
    bool doubling = false;
    double soon_s = 45;    ///< rates are those of the phase that a job will be in
    int gpus_of_node = 8;  ///< of the first type
    std::uint32_t seed = 1;
};

/// What a site knows that has run the applications before. Step times: a model fitted to a third of
/// what was measured, drawn by chance; these very measurements where they are; and what jobs have
/// shown since. How gradients' noise changes as training goes on. The work of a job, but for an
/// error of its own. Jobs choose their batches by it.
class Learned : public Knowledge {
  public:
    Learned(const std::vector<Application>& applications, LearnedOptions options);
    ~Learned() override;

    TrainingJob::BatchRule batch_rule(const Application& application,
                                      const WorkloadJob& job) override;
    std::shared_ptr<const WorkForecast> forecast(const TrainingJob& job,
                                                 const WorkloadJob& asked) override;
    std::vector<int> sizes(const TrainingJob& job, const WorkloadJob& asked) override;
    /// That of earlier jobs, in steps of the first batch.
    void show_curve(const TrainingJob& job, const WorkloadJob& asked, JobView& view) override;

    class History;

  private:
    History& history(const Application& application);
    std::vector<double> remaining(const History& known, double progress, const WorkloadJob& asked,
                                  double& seems) const;

    LearnedOptions options_;
    std::unordered_map<const Application*, std::unique_ptr<History>> histories_;
};

}  // namespace sluice::sim
