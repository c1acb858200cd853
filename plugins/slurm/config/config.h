/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The config.h that Slurm's internal headers ask for. They need no more than this of a configure run: sizes and offsets of
 * job_record_t, node_record_t and gres_node_state_t are the same as under Slurm's own (tests/integration/builds_test.py).
 */
#define HAVE_CONFIG_H 1
#define NDEBUG 1
#define STDC_HEADERS 1
#define HAVE_INTTYPES_H 1
