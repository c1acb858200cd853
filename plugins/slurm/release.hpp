// SPDX-License-Identifier: GPL-2.0-or-later
//
// What the releases of Slurm do differently outside the select plugin's table
// (select_entry_points.hpp).
#pragma once

#include "plugins/slurm/built_for.hpp"
#include "plugins/slurm/slurm.hpp"

/// Parameters of job_submit's job_modify(); `err_msg` came with 23.02.
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(23, 2, 0)
#define SLUICE_JOB_MODIFY_PARAMETERS \
    job_desc_msg_t *request, job_record_t *job, uint32_t submit_uid, char **err_msg
#else
#define SLUICE_JOB_MODIFY_PARAMETERS job_desc_msg_t *request, job_record_t *job, uint32_t submit_uid
#endif
