// SPDX-License-Identifier: GPL-2.0-or-later
#include "plugins/select/node_offers.hpp"

#include "plugins/slurm/network.hpp"

namespace sluice::slurm {

namespace {

// A dynamic node that is deleted leaves a hole.
const char* name_of(int index) {
    const node_record_t* node = node_record_table_ptr[index];
    return node && node->name ? node->name : "";
}

}  // namespace

void NodeOffers::use(std::shared_ptr<const NodeTables::Snapshot> snapshot) {
    if (snapshot_ == snapshot) return;
    snapshot_ = std::move(snapshot);
    known_.clear();
}

const char* NodeOffers::look_up(int index, uint32_t type_id, Node& node) {
    const auto gpus = node_gpus(node_record_table_ptr[index]);
    if (!gpus) return "GPUs without device files";
    node.index = index;
    node.gpus = *gpus;
    if (gpus->shared) return "GPUs that are shared by shard or mps";
    if (gpus->types > 1 && type_id == 0)
        return "an untyped request on a node with several GPU types";

    const auto place = static_cast<std::size_t>(index);
    if (place >= known_.size()) known_.resize(place + 1);
    Known& known = known_[place];
    // A node with another number of GPUs, or another node of that index.
    if (!known.table || known.gpus != gpus->count || known.name != gpus->node)
        known = {gpus->node, gpus->count, snapshot_->find(gpus->node, gpus->count)};
    node.table = known.table;
    if (!node.table)
        return snapshot_->knows(gpus->node) ? "another number of GPUs than the node's topology"
                                            : "no topology known";
    node.usable = type_id == 0 ? gpus->free : gpus->free & gpus_of_type(*gpus, type_id);
    return nullptr;
}

std::vector<NodeOffers::Node> NodeOffers::look_up_all(const bitstr_t* candidates,
                                                      uint32_t type_id) {
    std::vector<Node> nodes;
    auto* bits = const_cast<bitstr_t*>(candidates);
    for (int64_t i = bit_ffs(bits); i >= 0 && i < bit_size(bits); ++i) {
        if (!bit_test(bits, i)) continue;
        Node node;
        if (!look_up(static_cast<int>(i), type_id, node) && !node.usable.empty())
            nodes.push_back(std::move(node));
    }
    return nodes;
}

NodeOffer NodeOffers::offer(const Node& node, const bitstr_t* required) const {
    NodeOffer offer{node.index, node.table.get(), node.usable, false, {}};
    offer.required = required && bit_test(const_cast<bitstr_t*>(required), node.index);
    const auto place = static_cast<std::size_t>(node.index);
    if (place < switches_.size()) offer.switches = switches_[place];
    return offer;
}

void NodeOffers::learn_network() {
    switches_ = switches_of_nodes();
    names_.clear();
    for (int i = 0; i < node_record_count; ++i) names_.emplace_back(name_of(i));
}

void NodeOffers::follow_nodes() {
    bool same = static_cast<std::size_t>(node_record_count) == names_.size();
    for (int i = 0; same && i < node_record_count; ++i)
        same = names_[static_cast<std::size_t>(i)] == name_of(i);
    if (!same) learn_network();
}

}  // namespace sluice::slurm
