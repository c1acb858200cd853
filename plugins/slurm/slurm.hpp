// SPDX-License-Identifier: GPL-2.0-or-later
//
// The one door to Slurm's internal headers. Include it after every C++ standard header and after
// common/: the headers of Slurm define macros with everyday names.
#pragma once

#include "config.h"

extern "C" {
// slurm_xlator.h has to be the first of them: it renames what libslurm exports.
#include "src/common/slurm_xlator.h"
//
#include "src/common/bitstring.h"
#include "src/common/gres.h"
#include "src/common/job_resources.h"
#include "src/common/list.h"
#include "src/common/node_conf.h"
#include "src/common/plugin.h"
#include "src/common/read_config.h"
#include "src/common/run_in_daemon.h"
#include "src/common/select.h"
#include "src/common/xmalloc.h"
#include "src/common/xstring.h"
#include "src/slurmctld/slurmctld.h"
}

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
