// SPDX-License-Identifier: GPL-2.0-or-later
//
// What slurmctld adds to the stacked plugin: sluice_select.so, which entry_points.cpp loads there
// and nowhere else.
#pragma once

#include "plugins/slurm/select_entry_points.hpp"

namespace sluice {

inline constexpr char controller_part_file[] = "sluice_select.so";
inline constexpr char controller_part_symbol[] = "sluice_select_part";

/// Exported as controller_part_symbol. Each does its part and, where that fails, what stock Slurm
/// does.
struct ControllerPart {
    const char* build;
    void (*start)(const slurm::SelectOps& stock) noexcept;
    void (*stop)() noexcept;
    /// For a job that starts now; stock's answer or a better one.
    int (*job_test)(SLUICE_JOB_TEST_PARAMETERS) noexcept;
    void (*job_begun)(job_record_t* job) noexcept;
    void (*nodes_changed)() noexcept;
    void (*reconfigured)() noexcept;
};

}  // namespace sluice
