// SPDX-License-Identifier: GPL-2.0-or-later
//
// Exceptions end here: one that crossed into C would abort slurmctld.
#pragma once

#include <atomic>
#include <exception>
#include <string>
#include <utility>

#include "plugins/slurm/log.hpp"

namespace sluice::slurm {

/// Where the build says so (tests only), every entry point throws after it has done its work: what
/// it changed has to be put right by the caller.
inline void fault_point() {
#ifdef SLUICE_THROW_EVERYWHERE
    throw std::exception();
#endif
}

/// Runs our part of the entry point `entry`; whatever it throws is logged, the first time at error
/// level and then silently, and the caller goes on with what stock Slurm does. True when our part
/// ran to its end.
template <typename Ours>
bool guarded(const char* entry, Ours&& ours) noexcept {
    static std::atomic<unsigned> failures{0};  // one counter per entry point: Ours is its own type
    try {
        std::forward<Ours>(ours)();
        fault_point();
        return true;
    } catch (const std::exception& failure) {
        if (failures.fetch_add(1) == 0) {
            try {
                log_error(std::string(entry) + ": " + failure.what() +
                          "; doing what stock Slurm does, further failures here are not logged");
            } catch (...) {
                // Out of memory while logging: there is nothing left to say.
            }
        }
    } catch (...) {
        failures.fetch_add(1);
    }
    return false;
}

}  // namespace sluice::slurm
