// SPDX-License-Identifier: GPL-2.0-or-later
//
// What the tables of Slurm 22.05 to 24.11 (select_RELEASE.hpp) have in common. Later releases have
// a third of these entry points and need tables of their own.
#pragma once

#define SLUICE_SELECT_SHARED(X)                                                                   \
    X(int, state_save, (char* dir_name), (dir_name))                                              \
    X(int, state_restore, (char* dir_name), (dir_name))                                           \
    X(int, job_init, (xlist * jobs), (jobs))                                                      \
    X(int, node_init, (void), ())                                                                 \
    X(int, job_ready, (job_record_t * job), (job))                                                \
    X(int, job_expand, (job_record_t * from, job_record_t * to), (from, to))                      \
    X(int, job_resized, (job_record_t * job, node_record_t * node), (job, node))                  \
    X(int, job_fini, (job_record_t * job), (job))                                                 \
    X(int, job_suspend, (job_record_t * job, bool indefinitely), (job, indefinitely))             \
    X(int, job_resume, (job_record_t * job, bool indefinitely), (job, indefinitely))              \
    X(bitstr_t*, step_pick_nodes,                                                                 \
      (job_record_t * job, select_jobinfo_t * info, uint32_t nodes, bitstr_t * *available),       \
      (job, info, nodes, available))                                                              \
    X(int, step_start, (step_record_t * step), (step))                                            \
    X(int, step_finish, (step_record_t * step, bool killing), (step, killing))                    \
    X(int, select_nodeinfo_pack, (select_nodeinfo_t * info, buf_t * buffer, uint16_t version),    \
      (info, buffer, version))                                                                    \
    X(int, select_nodeinfo_unpack, (select_nodeinfo_t * *info, buf_t * buffer, uint16_t version), \
      (info, buffer, version))                                                                    \
    X(select_nodeinfo_t*, select_nodeinfo_alloc, (void), ())                                      \
    X(int, select_nodeinfo_free, (select_nodeinfo_t * info), (info))                              \
    X(int, select_nodeinfo_set, (job_record_t * job), (job))                                      \
    X(int, select_nodeinfo_get,                                                                   \
      (select_nodeinfo_t * info, enum select_nodedata_type type, enum node_states state,          \
       void* data),                                                                               \
      (info, type, state, data))                                                                  \
    X(select_jobinfo_t*, select_jobinfo_alloc, (void), ())                                        \
    X(int, select_jobinfo_free, (select_jobinfo_t * info), (info))                                \
    X(int, select_jobinfo_set,                                                                    \
      (select_jobinfo_t * info, enum select_jobdata_type type, void* data), (info, type, data))   \
    X(int, select_jobinfo_get,                                                                    \
      (select_jobinfo_t * info, enum select_jobdata_type type, void* data), (info, type, data))   \
    X(select_jobinfo_t*, select_jobinfo_copy, (select_jobinfo_t * info), (info))                  \
    X(int, select_jobinfo_pack, (select_jobinfo_t * info, buf_t * buffer, uint16_t version),      \
      (info, buffer, version))                                                                    \
    X(int, select_jobinfo_unpack, (select_jobinfo_t * *info, buf_t * buffer, uint16_t version),   \
      (info, buffer, version))                                                                    \
    X(int, get_info_from_plugin,                                                                  \
      (enum select_plugindata_info type, job_record_t * job, void* data), (type, job, data))
