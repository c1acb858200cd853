// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstddef>
#include <vector>

#include "contrib/sim/application.hpp"
#include "contrib/sim/simulation.hpp"
#include "contrib/sim/workload.hpp"

namespace sluice::sim {

/// Progress a second that no job of an application exceeds on so many GPUs, the first of them on a
/// node of this type.
struct SizeRates {
    std::size_t type = 0;
    int gpus = 0;
    std::vector<double> by_epoch;
};

/// Over all placements that the cluster can hold when it is empty, and over the batches that the
/// simulator's jobs can have: those that best_batch() tries, and those that `jobs` were asked for
/// with. Sizes: 1 to `most_gpus` as far as the largest batch goes, and
/// those that were asked for. By type, then GPUs. A size that
/// is not faster than a smaller one by `not_less` in any epoch is left out, and the smaller one
/// is as fast.
std::vector<SizeRates> best_rates(const Application& application,
                                  const std::vector<WorkloadJob>& jobs,
                                  const std::vector<Nodes>& nodes, int most_gpus, double not_less);

}  // namespace sluice::sim
