// SPDX-License-Identifier: GPL-2.0-or-later
//
// Simulations of one workload under several policies as one SVG that needs nothing else: how many
// jobs had completed after how long, the GPUs held over time, average completion times. It follows
// a reader's light or dark colours. The same results give the same bytes.
#pragma once

#include <string>
#include <vector>

#include "contrib/sim/simulation.hpp"

namespace sluice::sim {

struct PlottedRun {
    std::string policy;
    const SimulationResult* result = nullptr;  ///< with a job at least
};

/// Bounded in size, however many jobs there are.
std::string to_svg(const std::vector<PlottedRun>& runs);

}  // namespace sluice::sim
