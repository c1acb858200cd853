// SPDX-License-Identifier: GPL-2.0-or-later
//
// Where nodes stand in the network, as Slurm's topology plugin knows it.
#pragma once

#include <vector>

namespace sluice::slurm {

/// By node index: the switches (or blocks) above a node from the top down, by numbers of our own; a
/// node that topology.conf leaves out stands under switches of its own. Empty where no topology is
/// configured. Takes some microseconds a node: for once after each start
/// or reconfiguration. Under the node read lock.
std::vector<std::vector<int>> switches_of_nodes();

}  // namespace sluice::slurm
