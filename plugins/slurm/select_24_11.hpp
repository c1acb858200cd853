// SPDX-License-Identifier: GPL-2.0-or-later
//
// The entry points of a select plugin in Slurm 24.11 (src/interfaces/select.c, node_select_syms).
// Chosen by select_entry_points.hpp, which explains the form.
#pragma once

#include "plugins/slurm/select_shared.hpp"

// Slurm loads every select plugin in PluginDir, files under this number what each packs, and stops
// at a number seen twice. Its own end at 110.
#define SLUICE_SELECT_PLUGIN_ID 151

#define SLUICE_JOB_TEST_PARAMETERS                                               \
    job_record_t *job, bitstr_t *nodes, uint32_t min_nodes, uint32_t max_nodes,  \
        uint32_t req_nodes, uint16_t mode, xlist *preemptees, xlist **preempted, \
        resv_exc_t *reserved, will_run_data_t *will_run
#define SLUICE_JOB_TEST_ARGUMENTS \
    job, nodes, min_nodes, max_nodes, req_nodes, mode, preemptees, preempted, reserved, will_run

#define SLUICE_SELECT_FORWARDED(X) SLUICE_SELECT_SHARED(X)
