// SPDX-License-Identifier: GPL-2.0-or-later
//
// Passing the checkpoint signal on to the training processes below a batch script, and hearing
// their answer.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

namespace sluice::agent {

/// `root` and the processes below it, but not `self`, that catch `signal`, without srun, which
/// would pass it on a second time to steps that slurmctld signals itself. A process that does not
/// catch it is left alone: it would die.
std::vector<pid_t> catchers_below(pid_t root, pid_t self, int signal);

/// Sends `signal` to each of them; how many took it.
int signal_catchers(pid_t root, pid_t self, int signal);

/// Removes an answer that is older than `age`: it belongs to nothing that was asked for. A younger
/// one may be the answer to a signal that came before the order to listen.
void drop_answer_before(const std::string& path, std::chrono::seconds age);

/// True when `path` is a file of this user: the job has written its checkpoint. Removes it.
bool take_answer(const std::string& path);

}  // namespace sluice::agent
