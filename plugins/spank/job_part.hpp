// SPDX-License-Identifier: GPL-2.0-or-later
//
// What a job with --train-* options needs: sluice_spank.so, which spank_sluice.cpp loads when the
// first of them is given.
#pragma once

#include "plugins/spank/spank.hpp"

namespace sluice::spank {

inline constexpr char job_part_file[] = "sluice_spank.so";
inline constexpr char job_part_symbol[] = "sluice_spank_part";

/// Exported as job_part_symbol.
struct JobPart {
    const char* build;
    /// option_infos[index] with its value: an ESPANK code; what is wrong with the value is logged.
    int (*take_option)(int index, const char* value) noexcept;
    /// All options that were taken, together.
    int (*check_options)() noexcept;
    /// In slurmstepd, before it makes tasks.
    void (*begin_step)(spank_t context) noexcept;
    /// In the task, as its user: starts the agent where it belongs. `values` are the `count`
    /// arguments in plugstack.conf.
    void (*begin_task)(spank_t context, int count, char** values) noexcept;
    /// In slurmstepd, when a task has ended: gives its agent time for a last word.
    void (*end_task)(spank_t context) noexcept;
};

}  // namespace sluice::spank
