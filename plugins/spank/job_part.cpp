// SPDX-License-Identifier: GPL-2.0-or-later
#include "plugins/spank/job_part.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/jobspec/jobspec.hpp"
#include "plugins/slurm/guard.hpp"
#include "plugins/slurm/log.hpp"
#include "plugins/slurm/part.hpp"
#include "plugins/spank/launch.hpp"

using namespace sluice;
using namespace sluice::spank;
using sluice::slurm::guarded;

namespace {

/// What the user has given so far, as (name, value).
using Given = std::vector<std::pair<std::string, std::string>>;

Given& given() {
    static Given* const made = std::make_unique<Given>().release();  // never destroyed
    return *made;
}

/// A pipe of slurmstepd. The agent holds one end as long as it lives; at the other slurmstepd sees
/// that it has ended.
struct Life {
    int watched = -1;
    int held = -1;
};

Life& agents_life() {
    static Life life;
    return life;
}

void let_go(int& end) {
    if (end >= 0) close(end);
    end = -1;
}

int take_option(int index, const char* value) noexcept {
    int rc = ESPANK_ERROR;
    guarded("take_option", [&] {
        const OptionInfo& option = option_infos.at(static_cast<std::size_t>(index));
        const std::pair<std::string, std::string> pair{option.name, value ? value : ""};
        if (const Result<JobSpec> checked = parse_options({pair}); !checked) {
            slurm::log_error(checked.error().message);
            rc = ESPANK_BAD_ARG;
            return;
        }
        given().push_back(pair);
        rc = ESPANK_SUCCESS;
    });
    return rc;
}

int check_options() noexcept {
    int rc = ESPANK_SUCCESS;
    guarded("slurm_spank_init_post_opt", [&] {
        // Each value alone is legal; together they may not be.
        const Result<JobSpec> spec = parse_options(given());
        if (spec) return;
        slurm::log_error(spec.error().message);
        rc = ESPANK_BAD_ARG;
    });
    return rc;
}

void begin_step(spank_t context) noexcept {
    guarded("slurm_spank_user_init", [&] {
        int ends[2];
        if (!is_agents_step(context) || pipe2(ends, O_CLOEXEC) != 0) return;
        agents_life() = {ends[0], ends[1]};
    });
}

void begin_task(spank_t context, int count, char** values) noexcept {
    guarded("slurm_spank_task_init", [&] {
        const Result<JobSpec> spec = parse_options(given());
        if (!spec) return;
        restore_variables(context);
        if (!is_agents_task(context)) return;
        const Result<Arguments> arguments = parse_arguments(count, values);
        if (!arguments) slurm::log_error(arguments.error().message + "; going on without");
        launch_agent(context, arguments ? *arguments : *parse_arguments(0, nullptr), *spec,
                     agents_life().held);
    });
}

void end_task(spank_t context) noexcept {
    guarded("slurm_spank_task_exit", [&] {
        Life& life = agents_life();
        if (life.watched < 0 || !is_agents_task(context)) return;
        let_go(life.held);
        wait_for_agent(life.watched);
        let_go(life.watched);
    });
}

}  // namespace

extern "C" {
extern const JobPart sluice_spank_part{
    slurm::part_build, take_option, check_options, begin_step, begin_task, end_task,
};
}
