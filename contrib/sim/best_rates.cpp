// SPDX-License-Identifier: GPL-2.0-or-later
#include "contrib/sim/best_rates.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "common/model/goodput.hpp"

namespace sluice::sim {
namespace {

struct Step {
    double batch = 0;
    double seconds = 0;
};

bool faster_anywhere(const std::vector<double>& rates, const std::vector<double>& than,
                     double not_less) {
    for (std::size_t epoch = 0; epoch < rates.size(); ++epoch)
        if (rates[epoch] > than[epoch] * (1 + not_less)) return true;
    return false;
}

/// Of one type, by GPUs.
void leave_out_useless(std::vector<SizeRates>& sizes, double not_less) {
    std::vector<SizeRates> kept;
    std::vector<SizeRates> raised;
    for (SizeRates& size : sizes) {
        const auto matches = std::find_if(kept.begin(), kept.end(), [&](const SizeRates& fewer) {
            return !faster_anywhere(size.by_epoch, fewer.by_epoch, not_less);
        });
        if (matches == kept.end()) {
            kept.push_back(size);
            raised.push_back(std::move(size));
            continue;
        }
        std::vector<double>& rates =
            raised[static_cast<std::size_t>(matches - kept.begin())].by_epoch;
        for (std::size_t epoch = 0; epoch < rates.size(); ++epoch)
            rates[epoch] = std::max(rates[epoch], size.by_epoch[epoch]);
    }
    sizes = std::move(raised);
}

}  // namespace

std::vector<SizeRates> best_rates(const Application& application,
                                  const std::vector<WorkloadJob>& jobs,
                                  const std::vector<Nodes>& nodes, int most_gpus, double not_less) {
    int all_nodes = 0;
    int all_gpus = 0;
    int most_on_node = 1;
    std::set<std::size_t> types;
    for (const Nodes& group : nodes) {
        all_nodes += group.count;
        all_gpus += group.count * group.gpus;
        most_on_node = std::max(most_on_node, group.gpus);
        types.insert(group.type);
    }
    most_gpus =
        std::clamp(static_cast<int>(application.most_batch() / application.least_local_batch()), 1,
                   std::min(most_gpus, all_gpus));
    std::set<int> sizes;
    for (int gpus = 1; gpus <= most_gpus; ++gpus) sizes.insert(gpus);
    std::set<double> batches;
    std::set<std::pair<int, double>> as_asked;
    for (const WorkloadJob& job : jobs) {
        if (job.application != application.name()) continue;
        sizes.insert(job.gpus);
        const double batch = batch_of(job, application.first_batch());
        batches.insert(batch);
        as_asked.insert({job.gpus, batch});
    }

    std::vector<SizeRates> all;
    for (const std::size_t type : types) {
        std::vector<SizeRates> of_type;
        const BatchLimits limits = application.limits(type);
        for (const int gpus : sizes) {
            std::vector<Step> steps;
            const auto add = [&](const BatchSplit& split) {
                steps.push_back(
                    {split.batch(gpus),
                     application.fastest_step(type, gpus, most_on_node, all_nodes, split)});
                return 0.0;
            };
            if (gpus <= most_gpus) best_batch(limits, gpus, add);
            // what best_batch() leaves a job with that can have none of its batches
            if (steps.empty()) add(BatchSplit{});
            for (const double batch : batches)
                if (gpus <= most_gpus || as_asked.contains({gpus, batch}))
                    add(split_batch(limits, gpus, batch));
            SizeRates size{type, gpus, {}};
            for (int epoch = 0; epoch < application.epochs(); ++epoch) {
                double best = 0;
                for (const Step& step : steps)
                    best = std::max(best, application.gain(step.batch, epoch) / step.seconds);
                size.by_epoch.push_back(best);
            }
            of_type.push_back(std::move(size));
        }
        leave_out_useless(of_type, not_less);
        std::move(of_type.begin(), of_type.end(), std::back_inserter(all));
    }
    return all;
}

}  // namespace sluice::sim
