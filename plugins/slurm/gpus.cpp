// SPDX-License-Identifier: GPL-2.0-or-later
#include "plugins/slurm/gpus.hpp"

#include <algorithm>
#include <cstring>

#include "plugins/slurm/release.hpp"

namespace sluice::slurm {
namespace {

constexpr char gpu_name[] = "gpu";

int is_gpu_record(void* record, void* id) {
    return static_cast<gres_state_t*>(record)->plugin_id == *static_cast<uint32_t*>(id) ? 1 : 0;
}

// The gpu record of a node's list (one a node).
gres_node_state_t* gpu_state_of_node(const node_record_t* node) {
    if (!node || !node->gres_list) return nullptr;
    static uint32_t gpu_id = gres_build_id(const_cast<char*>(gpu_name));
    auto* found =
        static_cast<gres_state_t*>(list_find_first(node->gres_list, is_gpu_record, &gpu_id));
    return found ? static_cast<gres_node_state_t*>(found->gres_data) : nullptr;
}

// All gpu records of a job's list: a job that asks for two types has two.
std::vector<const gres_job_state_t*> gpu_states_of_job(xlist* list) {
    std::vector<const gres_job_state_t*> found;
    if (!list) return found;
    static const uint32_t gpu_id = gres_build_id(const_cast<char*>(gpu_name));
    auto* records = list_iterator_create(list);
    while (auto* record = static_cast<gres_state_t*>(list_next(records))) {
        if (record->plugin_id == gpu_id)
            found.push_back(static_cast<const gres_job_state_t*>(record->gres_data));
    }
    list_iterator_destroy(records);
    return found;
}

GpuSet set_of(bitstr_t* bits) {
    GpuSet set;
    if (!bits) return set;
    const int64_t size = bit_size(bits);
    for (int64_t i = 0; i < size && i < GpuSet::max_gpus; ++i) {
        if (bit_test(bits, i)) set.insert(static_cast<int>(i));
    }
    return set;
}

}  // namespace

std::optional<NodeGpus> node_gpus(const node_record_t* node) {
    gres_node_state_t* state = gpu_state_of_node(node);
    if (!state || !state->gres_bit_alloc) return std::nullopt;
    const int64_t size = bit_size(state->gres_bit_alloc);
    if (size < 1 || size > GpuSet::max_gpus) return std::nullopt;

    NodeGpus gpus;
    gpus.node = node->name;
    gpus.count = static_cast<int>(size);
    gpus.free = GpuSet::first(gpus.count) - set_of(state->gres_bit_alloc);
    gpus.shared = are_shared(*state);
    gpus.state = state;
    if (const uint32_t* types = state->topo_type_id) {
        for (int i = 0; i < state->topo_cnt; ++i)
            gpus.types += std::find(types, types + i, types[i]) == types + i ? 1 : 0;
    }
    return gpus;
}

GpuSet gpus_of_type(const NodeGpus& gpus, uint32_t type_id) {
    const GpuSet all = GpuSet::first(gpus.count);
    if (type_id == 0) return all;
    GpuSet typed;
    for (int i = 0; i < gpus.state->topo_cnt; ++i) {
        if (gpus.state->topo_type_id && gpus.state->topo_type_id[i] == type_id &&
            gpus.state->topo_gres_bitmap)
            typed = typed | set_of(gpus.state->topo_gres_bitmap[i]);
    }
    return typed & all;
}

std::string type_name(const NodeGpus& gpus, GpuSet set) {
    const gres_node_state_t& state = *gpus.state;
    for (int i = 0; i < state.topo_cnt; ++i) {
        if (!state.topo_gres_bitmap || !state.topo_type_name || !state.topo_type_name[i]) continue;
        if (!(set_of(state.topo_gres_bitmap[i]) & set).empty()) return state.topo_type_name[i];
    }
    return "";
}

Result<GpuGraph> gres_graph(const NodeGpus& gpus) {
    const gres_node_state_t& state = *gpus.state;
    std::vector<GresDevice> devices(static_cast<std::size_t>(gpus.count));
    for (std::size_t gpu = 0; gpu < devices.size(); ++gpu) {
        if (state.links_cnt && state.link_len >= gpus.count) {
            for (int peer = 0; peer < gpus.count; ++peer) {
                if (peer > 0) devices[gpu].links += ',';
                devices[gpu].links +=
                    std::to_string(static_cast<int>(gpu) == peer ? -1 : state.links_cnt[gpu][peer]);
            }
        }
    }
    for (int i = 0; state.topo_gres_bitmap && i < state.topo_cnt; ++i) {
        std::string cores;
        if (state.topo_core_bitmap && state.topo_core_bitmap[i]) {
            char text[256];
            cores = bit_fmt(text, sizeof(text), state.topo_core_bitmap[i]);
        }
        const char* type = state.topo_type_name ? state.topo_type_name[i] : nullptr;
        for (const int gpu : set_of(state.topo_gres_bitmap[i]).indices()) {
            if (gpu >= gpus.count) continue;
            devices[static_cast<std::size_t>(gpu)].cores = cores;
            devices[static_cast<std::size_t>(gpu)].type = type ? type : "";
        }
    }
    return graph_of_gres(devices);
}

uint64_t gres_fingerprint(const NodeGpus& gpus) {
    const gres_node_state_t& state = *gpus.state;
    uint64_t hash = 0xcbf29ce484222325;  // FNV-1a, a number at a time
    const auto mix = [&hash](int64_t number) {
        hash = (hash ^ static_cast<uint64_t>(number)) * 0x100000001b3;
    };
    mix(gpus.count);
    for (int gpu = 0; state.links_cnt && gpu < state.link_len; ++gpu) {
        for (int peer = 0; peer < state.link_len; ++peer) mix(state.links_cnt[gpu][peer]);
    }
    for (int i = 0; i < state.topo_cnt; ++i) {
        for (bitstr_t** bits : {state.topo_gres_bitmap, state.topo_core_bitmap}) {
            if (!bits || !bits[i]) continue;
            mix(bit_ffs(bits[i]));
            mix(bit_fls(bits[i]));
            mix(bit_set_count(bits[i]));
        }
        if (state.topo_type_id) mix(state.topo_type_id[i]);
    }
    return hash;
}

Result<JobChoice> job_choice(const job_record_t* job, const bitstr_t* nodes) {
    const auto states = gpu_states_of_job(job->gres_list_req);
    if (states.empty()) return {ErrorCode::usage, "no GPU request"};
    if (states.size() > 1) return {ErrorCode::not_found, "several GPU types in one request"};
    const gres_job_state_t& state = *states.front();
    // Without Cores (or AutoDetect) select/cons_tres counts GPUs and leaves which to slurmctld.
    const auto unknown = [] {
        return Error{ErrorCode::not_found, "gres.conf names no File or no Cores of the GPUs"};
    };
    if (!state.gres_bit_select) return unknown();

    JobChoice choice;
    choice.type_id = state.type_name ? state.type_id : 0;
    choice.open = state.gres_per_job > 0 && state.gres_per_node == 0 &&
                  state.gres_per_socket == 0 && state.gres_per_task == 0;
    auto* bits = const_cast<bitstr_t*>(nodes);
    for (int64_t i = bit_ffs(bits); i >= 0 && i < bit_size(bits); ++i) {
        if (!bit_test(bits, i)) continue;
        if (i >= static_cast<int64_t>(state.total_node_cnt)) break;
        const GpuSet gpus = set_of(state.gres_bit_select[i]);
        if (!gpus.empty()) choice.nodes.push_back({static_cast<int>(i), gpus});
    }
    if (choice.nodes.empty()) return unknown();
    return choice;
}

std::string nodes_are_given(const job_record_t* job) {
    const auto* details = job->details;
    if (!details) return "a job without details";
    // Each component starts only if all do.
    if (job->het_job_id != 0) return "heterogeneous jobs";
    if (details->whole_node) return "exclusive nodes";
    if (details->contiguous) return "contiguous nodes";
    if (job->req_switch > 0) return "a limit on switches";
    if ((job->bit_flags & SPREAD_JOB) != 0) return "--spread-job";
    if (details->features && std::strpbrk(details->features, "[*"))
        return "nodes by numbers of features";
    if ((slurm_conf.select_type_param & CR_LLN) != 0 ||
        (job->part_ptr && (job->part_ptr->flags & PART_FLAG_LLN) != 0))
        return "least loaded nodes (LLN)";
    return "";
}

bool cores_may_be_shared(const job_record_t* job) {
    constexpr uint32_t by_suspension = PREEMPT_MODE_GANG | PREEMPT_MODE_SUSPEND;
    if ((slurm_conf.preempt_mode & by_suspension) != 0) return true;
    const auto* partition = job->part_ptr;
    if (!partition) return false;
    if (partition->preempt_mode != NO_VAL16 && (partition->preempt_mode & by_suspension) != 0)
        return true;
    return (partition->max_share & ~SHARED_FORCE) > 1;
}

uint64_t node_preference(int node) {
    return node_record_table_ptr[node]->sched_weight;
}

uint32_t cpus_chosen(const job_record_t* job) {
    return job->job_resrcs ? job->job_resrcs->ncpus : 0;
}

std::vector<JobHolding> job_holding(const job_record_t* job) {
    std::vector<JobHolding> holding;
    if (!job->job_resrcs || !job->job_resrcs->node_bitmap) return holding;
    const auto states = gpu_states_of_job(job->gres_list_alloc);
    bitstr_t* nodes = job->job_resrcs->node_bitmap;
    uint32_t position = 0;
    for (int64_t i = bit_ffs(nodes); i >= 0 && i < bit_size(nodes); ++i) {
        if (!bit_test(nodes, i)) continue;
        JobHolding here;
        here.node = static_cast<int>(i);
        for (const gres_job_state_t* state : states) {
            if (position >= state->node_cnt) continue;
            if (state->gres_cnt_node_alloc)
                here.gpus += static_cast<int>(state->gres_cnt_node_alloc[position]);
            if (state->gres_bit_alloc)
                here.indices = here.indices | set_of(state->gres_bit_alloc[position]);
        }
        if (here.gpus > 0) holding.push_back(here);
        ++position;
    }
    return holding;
}

void HiddenGpus::hide(gres_node_state_t* state, GpuSet hidden) {
    nodes_.push_back({state, hidden});
    mark(nodes_.back(), true);
}

HiddenGpus::~HiddenGpus() {
    for (const Node& node : nodes_) mark(node, false);
}

// Keeps every counter that cons_tres compares with the bitmap: the total, per topology record, per
// type.
void HiddenGpus::mark(const Node& node, bool taken) {
    gres_node_state_t& state = *node.state;
    const auto count = [taken](uint64_t& counter) { taken ? ++counter : --counter; };
    for (GpuSet rest = node.hidden; !rest.empty(); rest.erase(rest.lowest())) {
        const int gpu = rest.lowest();
        if (taken)
            bit_set(state.gres_bit_alloc, gpu);
        else
            bit_clear(state.gres_bit_alloc, gpu);
        count(state.gres_cnt_alloc);
        for (int i = 0; i < state.topo_cnt; ++i) {
            if (!state.topo_gres_bitmap || !state.topo_gres_bitmap[i] ||
                gpu >= bit_size(state.topo_gres_bitmap[i]) ||
                !bit_test(state.topo_gres_bitmap[i], gpu))
                continue;
            if (state.topo_gres_cnt_alloc) count(state.topo_gres_cnt_alloc[i]);
            for (int type = 0; state.topo_type_id && type < state.type_cnt; ++type) {
                if (state.type_id[type] == state.topo_type_id[i]) count(state.type_cnt_alloc[type]);
            }
        }
    }
}

}  // namespace sluice::slurm
