// SPDX-License-Identifier: GPL-2.0-or-later
//
// GPUs as slurmctld sees them: which a node has and which are free, which a job would get, and how
// to hide some for the length of one call. All of it under the job and node write locks that
// select's entry points hold.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/gpu_set.hpp"
#include "common/topology/gpu_graph.hpp"
#include "plugins/slurm/slurm.hpp"

namespace sluice::slurm {

/// The "gpu" record of a node, or nothing where it has none, has no device files, or more than
/// GpuSet::max_gpus.
struct NodeGpus {
    const char* node = nullptr;
    int count = 0;
    GpuSet free;
    bool shared = false;  ///< gres/shard or gres/mps live on these GPUs
    int types = 0;        ///< different types named in gres.conf
    gres_node_state_t* state = nullptr;
};
std::optional<NodeGpus> node_gpus(const node_record_t* node);

/// Those of the node's GPUs that a request for `type_id` may use (0: any type).
GpuSet gpus_of_type(const NodeGpus& gpus, uint32_t type_id);

/// The type that gres.conf gives to these GPUs of the node, or "" where it gives none.
std::string type_name(const NodeGpus& gpus, GpuSet set);

/// What gres.conf says about the node's GPUs: Links and Cores. As readers of topology files return
/// it.
Result<GpuGraph> gres_graph(const NodeGpus& gpus);

/// Changes when gres_graph() does; cheap, for it is asked often.
uint64_t gres_fingerprint(const NodeGpus& gpus);

/// What the last successful job_test chose for a job.
struct NodeChoice {
    int node = 0;  ///< index into the node table
    GpuSet gpus;
};
struct JobChoice {
    uint32_t type_id = 0;  ///< of the request, 0 where untyped
    bool open =
        false;  ///< so many GPUs for the whole job (--gpus), on each node as many as there are
    std::vector<NodeChoice> nodes;
};
/// usage: the job asks for no GPU. not_found says why the choice is left to stock Slurm: several
/// GPU types in one request, GPUs that gres.conf says too little of.
Result<JobChoice> job_choice(const job_record_t* job, const bitstr_t* nodes);

/// Why another node than those that stock Slurm chose is not looked for; empty where it is: the job
/// or the site says by which rule nodes are chosen.
std::string nodes_are_given(const job_record_t* job);

/// True where several jobs may have the same cores (OverSubscribe, gang scheduling, preemption by
/// suspension): select/cons_tres then looks for idle cores first, on all candidates, which a second
/// call for certain nodes and GPUs would undo.
bool cores_may_be_shared(const job_record_t* job);

/// Slurm's order of preference among nodes: their weight, and whether they would have to be powered
/// up or rebooted. Lower goes first.
uint64_t node_preference(int node);

/// CPUs that the last successful job_test chose.
uint32_t cpus_chosen(const job_record_t* job);

/// GPUs that a running job holds, node by node, in node order.
struct JobHolding {
    int node = 0;
    int gpus = 0;
    GpuSet indices;  ///< empty where gres.conf names no device files
};
std::vector<JobHolding> job_holding(const job_record_t* job);

/// While it lives, the GPUs in `hidden` look taken to select/cons_tres.
class HiddenGpus {
  public:
    HiddenGpus() = default;
    ~HiddenGpus();
    HiddenGpus(const HiddenGpus&) = delete;
    HiddenGpus& operator=(const HiddenGpus&) = delete;

    /// `hidden` must be free on the node.
    void hide(gres_node_state_t* state, GpuSet hidden);

  private:
    struct Node {
        gres_node_state_t* state;
        GpuSet hidden;
    };
    static void mark(const Node& node, bool taken);
    std::vector<Node> nodes_;
};

}  // namespace sluice::slurm
