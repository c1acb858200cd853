// SPDX-License-Identifier: GPL-2.0-or-later
//
// spank_sluice.so: Slurm's callbacks. Each stands alone: what one cannot do is logged, and the job
// goes on.
#include <unistd.h>

#include <memory>

#include "plugins/slurm/built_for.hpp"
#include "plugins/slurm/guard.hpp"
#include "plugins/slurm/log.hpp"
#include "plugins/spank/launch.hpp"
#include "plugins/spank/options.hpp"
#include "plugins/spank/spank.hpp"

using namespace sluice;
using namespace sluice::spank;
using sluice::slurm::built_for;
using sluice::slurm::guarded;

extern "C" {
// SPANK_PLUGIN() would make these local to this file in C++.
extern const char plugin_name[] = "sluice";
extern const char plugin_type[] = "spank";
extern const unsigned int plugin_version = built_for;
extern const unsigned int spank_plugin_version = 1;
}

namespace {

/// Made once a process, never destroyed.
struct State {
    Given given;
    Arguments arguments;
};
State* state = nullptr;

void init(spank_t context, int count, char** values) {
    if (!state) state = std::make_unique<State>().release();
    const Result<Arguments> arguments = parse_arguments(count, values);
    if (arguments)
        state->arguments = *arguments;
    else
        slurm::log_error(arguments.error().message + "; going on without");
    switch (spank_context()) {
        case S_CTX_LOCAL:
        case S_CTX_REMOTE:
        case S_CTX_ALLOCATOR:
            if (!register_options(context, &state->given))
                slurm::log_error("the --train-* options could not be registered");
            break;
        case S_CTX_ERROR:
        case S_CTX_SLURMD:
        case S_CTX_JOB_SCRIPT:
            break;
    }
}

}  // namespace

extern "C" {

// spank.h declares these without noexcept, so they cannot have it; guarded() is all that they call.
int slurm_spank_init(spank_t context, int count, char** values) {
    guarded("slurm_spank_init", [&] { init(context, count, values); });
    return ESPANK_SUCCESS;
}

int slurm_spank_init_post_opt(spank_t, int, char**) {
    int rc = ESPANK_SUCCESS;
    guarded("slurm_spank_init_post_opt", [&] {
        const spank_context_t where = spank_context();
        if (!state || state->given.empty() || where == S_CTX_REMOTE) return;
        // Each value alone is legal; together they may not be.
        const Result<JobSpec> spec = spec_of(state->given);
        if (spec) return;
        slurm::log_error(spec.error().message);
        rc = ESPANK_BAD_ARG;
    });
    return rc;
}

int slurm_spank_task_init(spank_t context, int, char**) {
    guarded("slurm_spank_task_init", [&] {
        if (!state || state->given.empty()) return;
        const Result<JobSpec> spec = spec_of(state->given);
        if (!spec || !is_agents_task(context)) return;
        launch_agent(context, state->arguments, *spec);
    });
    return ESPANK_SUCCESS;
}

}  // extern "C"
