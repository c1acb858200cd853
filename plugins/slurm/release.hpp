// SPDX-License-Identifier: GPL-2.0-or-later
//
// What the releases of Slurm do differently outside the select plugin's table
// (select_entry_points.hpp).
#pragma once

#include "plugins/slurm/built_for.hpp"
#include "plugins/slurm/slurm.hpp"

namespace sluice::slurm {

/// What stands before "gpu:2" in a job's TRES texts; the form changed with 23.11.
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(23, 11, 0)
inline constexpr char gres_prefix[] = "gres/";
#else
inline constexpr char gres_prefix[] = "gres:";
#endif

/// Whether gres/shard or gres/mps live on the GPUs of a node; the field was renamed with 23.02.
inline bool are_shared(const gres_node_state_t& gpus) {
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(23, 2, 0)
    return gpus.alt_gres != nullptr;
#else
    return gpus.alt_gres_ns != nullptr;
#endif
}

/// A job cannot be changed for a moment after its start, while slurmdbd has the word; 24.11 knows
/// no such moment.
inline bool is_changeable_later([[maybe_unused]] int rc) {
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(23, 2, 0)
    return false;
#else
    return rc == ESLURM_JOB_SETTING_DB_INX;
#endif
}

/// "switch.switch.node" for a node, and the pattern of that; both are to be freed. Renamed
/// with 23.02.
inline int node_address(char* node, char** address, char** pattern) {
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(23, 2, 0)
    return topology_g_get_node_addr(node, address, pattern);
#else
    return slurm_topo_get_node_addr(node, address, pattern);
#endif
}

}  // namespace sluice::slurm

/// Parameters of job_submit's job_modify(); `err_msg` came with 23.02.
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(23, 2, 0)
#define SLUICE_JOB_MODIFY_PARAMETERS \
    job_desc_msg_t *request, job_record_t *job, uint32_t submit_uid, char **
#else
#define SLUICE_JOB_MODIFY_PARAMETERS job_desc_msg_t *request, job_record_t *job, uint32_t submit_uid
#endif
