// SPDX-License-Identifier: GPL-2.0-or-later
//
// spank_sluice.so: Slurm's callbacks. A front, as plugins/slurm/part.hpp explains: it registers the
// options, and a job that has none of them never sees the rest.
#include <cstdio>
#include <cstdlib>

#include "common/jobspec/option_infos.hpp"
#include "plugins/slurm/built_for.hpp"
#include "plugins/slurm/part.hpp"
#include "plugins/spank/job_part.hpp"
#include "plugins/spank/spank.hpp"

using namespace sluice;
using namespace sluice::spank;

extern "C" {
// SPANK_PLUGIN() would make these local to this file in C++.
extern const char plugin_name[] = "sluice";
extern const char plugin_type[] = "spank";
extern const unsigned int plugin_version = slurm::built_for;
extern const unsigned int spank_plugin_version = 1;
}

namespace {

/// Loaded with the first option that is given, and kept: options are collected there. What cannot
/// be loaded is not tried again, for that is said once.
const JobPart* part = nullptr;
bool part_wanted = false;

}  // namespace

extern "C" {

static int take_option(int index, const char* value, int /*remote*/) noexcept {
    if (!part_wanted)
        part =
            static_cast<const JobPart*>(slurm::load_part(job_part_file, job_part_symbol).entries);
    part_wanted = true;
    const int rc = part ? part->take_option(index, value) : ESPANK_ERROR;
    // A job that was submitted runs, without its agent: slurmstepd would only log the value that it
    // took from the user's environment, line breaks and all. Its own srun has the options, too.
    const bool submitted =
        spank_context() == S_CTX_REMOTE || (!part && std::getenv("SLURM_JOB_ID"));
    return submitted ? ESPANK_SUCCESS : rc;
}

// spank.h declares these without noexcept, so they cannot have it; nothing here throws.
int slurm_spank_init(spank_t context, int, char**) {
    const spank_context_t where = spank_context();
    if (where != S_CTX_LOCAL && where != S_CTX_REMOTE && where != S_CTX_ALLOCATOR)
        return ESPANK_SUCCESS;
    int index = 0;
    for (const OptionInfo& info : option_infos) {
        // SPANK copies what it is given.
        spank_option option{};
        option.name = const_cast<char*>(info.name);
        option.arginfo = const_cast<char*>(info.value);
        option.usage = const_cast<char*>(info.legal);
        option.has_arg = 1;
        option.val = index++;
        option.cb = take_option;
        if (spank_option_register(context, &option) == ESPANK_SUCCESS) continue;
        slurm_error("sluice: the --train-* options could not be registered");
        break;
    }
    return ESPANK_SUCCESS;
}

/// In slurmstepd, where no option came: Slurm 22.05 loses those of a batch job under
/// `sbatch --export=NONE`, but for the copies that sbatch made for the job's own srun.
static void take_options_for_srun(spank_t context) noexcept {
    char name[96];
    char value[4096];  // longer than any legal one
    int index = 0;
    for (const OptionInfo& info : option_infos) {
        const int length = std::snprintf(name, sizeof name, "SLURM_SPANK__SLURM_SPANK_OPTION_%s_%s",
                                         plugin_name, info.name);
        for (int i = 0; i < length; ++i)
            if (name[i] == '-') name[i] = '_';
        if (spank_getenv(context, name, value, sizeof value) == ESPANK_SUCCESS)
            take_option(index, value, 1);
        ++index;
    }
}

int slurm_spank_init_post_opt(spank_t context, int, char**) {
    if (spank_context() == S_CTX_REMOTE) {
        if (!part_wanted) take_options_for_srun(context);
        return ESPANK_SUCCESS;
    }
    return part ? part->check_options() : ESPANK_SUCCESS;
}

int slurm_spank_user_init(spank_t context, int, char**) {
    if (part) part->begin_step(context);
    return ESPANK_SUCCESS;
}

int slurm_spank_task_init(spank_t context, int count, char** values) {
    if (part) part->begin_task(context, count, values);
    return ESPANK_SUCCESS;
}

int slurm_spank_task_exit(spank_t context, int, char**) {
    if (part) part->end_task(context);
    return ESPANK_SUCCESS;
}

}  // extern "C"
