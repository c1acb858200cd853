// SPDX-License-Identifier: GPL-2.0-or-later
//
// Starting the agent beside a task, as the task's user.
#pragma once

#include <string>

#include "common/base/result.hpp"
#include "common/jobspec/jobspec.hpp"
#include "plugins/spank/spank.hpp"

namespace sluice::spank {

/// What plugstack.conf says behind the plugin's name: "agent=PATH min_interval=SECONDS".
struct Arguments {
    std::string agent;        ///< default: where it was installed
    int min_interval_s = 60;  ///< least time between two records
};
/// bad_input names the argument and the legal ones.
Result<Arguments> parse_arguments(int count, char** values);

/// True in the slurmstepd of the one task of the job beside which its agent runs: the batch script,
/// or task 0 of step 0 where there is none.
bool is_agents_step(spank_t context);
/// True in that task, and when it has ended.
bool is_agents_task(spank_t context);

/// In a task whose job has its agent already: gives back the variables of job_files.hpp that
/// `srun --export` dropped.
void restore_variables(spank_t context);

/// From slurm_spank_task_init, where privileges are already the user's: forks and executes the
/// agent. It stays a child of the task, so that every proctrack plugin counts it to the job: it
/// hears what the job is told, and it ends with it. An agent that cannot be started leaves the job
/// alone.
///
/// Returns when the agent's process knows how far the file of losses has come, so that all that the
/// script writes counts; or after most_begin_ms, for a file server may be away.
///
/// `alive` stays open as long as the agent runs.
void launch_agent(spank_t context, const Arguments& arguments, const JobSpec& spec, int alive);
inline constexpr int most_begin_ms = 300;

/// From slurm_spank_task_exit: until the agent has said what it has read up to the script's end, at
/// most most_end_ms, for then slurmstepd kills it. `watched`: the other end of `alive`.
void wait_for_agent(int watched);
inline constexpr int most_end_ms = 1000;

}  // namespace sluice::spank
