// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <pthread.h>

#include <csignal>
#include <thread>
#include <utility>

namespace sluice::slurm {

/// A thread of ours inside slurmctld: named (at most 15 bytes), and with every signal blocked, for
/// those are for slurmctld's own threads. A new thread inherits the mask of the one that makes it.
template <typename Body>
std::thread make_thread(const char* name, Body&& body) {
    class SignalsBlocked {
      public:
        SignalsBlocked() {
            sigset_t all;
            sigfillset(&all);
            pthread_sigmask(SIG_SETMASK, &all, &before_);
        }
        ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
        SignalsBlocked(const SignalsBlocked&) = delete;
        SignalsBlocked& operator=(const SignalsBlocked&) = delete;

      private:
        sigset_t before_;
    };
    const SignalsBlocked blocked;
    std::thread thread(std::forward<Body>(body));
    pthread_setname_np(thread.native_handle(), name);
    return thread;
}

}  // namespace sluice::slurm
