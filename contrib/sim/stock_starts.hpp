// SPDX-License-Identifier: GPL-2.0-or-later
//
// What stock Slurm starts: jobs in order, each at the size it asked for, and behind the first that
// does not fit those that do not delay it (backfill with one reservation, EASY: Lifka, JSSPP 1995).
#pragma once

#include <cstddef>
#include <vector>

#include "common/allocator/policy.hpp"

namespace sluice::sim {

struct StockJob {
    bool running = false;
    int gpus = 1;                 ///< asked for, or held
    double end_s = 0;             ///< running: the latest, by its time limit
    double limit_s = 0;           ///< waiting: its time limit
    std::vector<NodeShare> held;  ///< running
};

struct StockStart {
    std::size_t job = 0;
    std::vector<NodeShare> shares;
};

/// Jobs in order of priority. GPUs of one node where one has enough, the one that has least; else
/// of the nodes that have most. O(J N) and a sort.
std::vector<StockStart> stock_starts(const std::vector<NodeView>& nodes,
                                     const std::vector<StockJob>& jobs, double now_s);

}  // namespace sluice::sim
