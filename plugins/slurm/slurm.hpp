// SPDX-License-Identifier: GPL-2.0-or-later
//
// The one door to Slurm's internal headers. Include it after every C++ standard header and after
// common/: the headers of Slurm define macros with everyday names.
#pragma once

#include <cmath>
#include <cstdlib>

#include "config.h"

// A field of that name came with 24.11 (src/common/extra_constraints.h); C++ has the word for
// itself.
#define operator operator_

extern "C" {
// slurm_xlator.h has to be the first of them: it renames what libslurm exports.
#include "src/common/slurm_xlator.h"
//
#include "src/common/bitstring.h"
#include "src/common/job_resources.h"
#include "src/common/list.h"
#include "src/common/node_conf.h"
#include "src/common/plugin.h"
#include "src/common/read_config.h"
#include "src/common/run_in_daemon.h"
#include "src/common/xmalloc.h"
#include "src/common/xstring.h"
#include "src/slurmctld/slurmctld.h"
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(23, 2, 0)
#include "src/interfaces/gres.h"
#include "src/interfaces/select.h"
#include "src/interfaces/topology.h"
#else
#include "src/common/gres.h"
#include "src/common/select.h"
#include "src/common/slurm_topology.h"
#endif
}

#undef operator

// Slurm loads a select plugin into its clients, too, and so into every program that is linked with
// the public libslurm, which lacks these two (select/cons_tres leaves such to lazy binding). Weak, so
// that the front loads there even with LD_BIND_NOW.
#pragma weak running_in_slurmctld
#pragma weak slurm_conf

// Logging goes through plugins/slurm/log.hpp; these names are too common to stay macros.
#undef error
#undef info
#undef verbose
#undef debug
#undef debug2
#undef debug3
#undef debug4
#undef debug5
#undef fatal
