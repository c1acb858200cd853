// SPDX-License-Identifier: GPL-2.0-or-later
//
// The nodes that a job could get, told as common/placement wants them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/placement/node_choice.hpp"
#include "plugins/select/node_tables.hpp"
#include "plugins/slurm/gpus.hpp"

namespace sluice::slurm {

/// Called under slurmctld's job and node write locks, which is all the locking it needs.
class NodeOffers {
  public:
    struct Node {
        int index = 0;
        NodeGpus gpus;
        std::shared_ptr<const BestSets> table;
        GpuSet usable;  ///< free, and of the type asked for
    };

    /// For the calls that follow.
    void use(std::shared_ptr<const NodeTables::Snapshot> snapshot);
    const NodeTables::Snapshot& snapshot() const { return *snapshot_; }

    /// Fills `node` for a request of this type (0: any). Returns null, or why the choice on this
    /// node is left to stock Slurm; node.table is null then.
    const char* look_up(int index, uint32_t type_id, Node& node);

    /// Those of `candidates` on which Sluice can choose and a GPU is usable.
    std::vector<Node> look_up_all(const bitstr_t* candidates, uint32_t type_id);

    /// Valid as long as this object and the node are.
    NodeOffer offer(const Node& node, const bitstr_t* required) const;

    /// Asks Slurm where the nodes stand in the network.
    void learn_network();
    /// The same where dynamic nodes have come or gone since.
    void follow_nodes();

  private:
    struct Known {
        std::string name;
        int gpus = 0;
        std::shared_ptr<const BestSets> table;
    };

    std::shared_ptr<const NodeTables::Snapshot> snapshot_;
    std::vector<Known> known_;                // by node index, from snapshot_
    std::vector<std::vector<int>> switches_;  // by node index; empty: no network known
    std::vector<std::string> names_;          // by node index, when switches_ were learned
};

}  // namespace sluice::slurm
