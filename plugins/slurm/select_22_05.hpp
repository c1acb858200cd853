// SPDX-License-Identifier: GPL-2.0-or-later
//
// The entry points of a select plugin in Slurm 22.05 (src/common/select.c, node_select_syms).
// Chosen by select_entry_points.hpp, which explains the form.
#pragma once

#include "plugins/slurm/select_shared.hpp"

// Slurm loads every select plugin in PluginDir, files under this number what each packs, and stops
// at a number seen twice. Its own end at 110.
#define SLUICE_SELECT_PLUGIN_ID 151

#define SLUICE_JOB_TEST_PARAMETERS                                               \
    job_record_t *job, bitstr_t *nodes, uint32_t min_nodes, uint32_t max_nodes,  \
        uint32_t req_nodes, uint16_t mode, xlist *preemptees, xlist **preempted, \
        bitstr_t *excluded_cores
#define SLUICE_JOB_TEST_ARGUMENTS \
    job, nodes, min_nodes, max_nodes, req_nodes, mode, preemptees, preempted, excluded_cores

#define SLUICE_SELECT_FORWARDED(X)                                                                \
    SLUICE_SELECT_SHARED(X)                                                                       \
    X(int, job_signal, (job_record_t * job, int signal), (job, signal))                           \
    X(char*, select_jobinfo_sprint, (select_jobinfo_t * info, char* text, size_t size, int mode), \
      (info, text, size, mode))                                                                   \
    X(char*, select_jobinfo_xstrdup, (select_jobinfo_t * info, int mode), (info, mode))           \
    X(int, update_node_config, (int index), (index))                                              \
    X(bitstr_t*, resv_test,                                                                       \
      (resv_desc_msg_t * description, uint32_t nodes, bitstr_t * available, bitstr_t * *cores),   \
      (description, nodes, available, cores))
