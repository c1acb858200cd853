// SPDX-License-Identifier: GPL-2.0-or-later
//
// Every client of Slurm loads its plugins, and most need nothing of ours. So what Slurm loads is a
// front: Slurm's entry points, linked without libsluice and without a C++ runtime, which take a
// millisecond to load. The rest is a part, a file beside it that the front loads where there is
// work for it. A front includes nothing that needs the runtime.
#pragma once

namespace sluice::slurm {

struct Part {
    void* handle = nullptr;
    /// What the part exports for its front; nullptr where it could not be loaded.
    const void* entries = nullptr;
};

/// Loads `file` from the folder of the plugin that calls, and looks up `symbol` there. What the
/// symbol names begins with a `const char*`, the part's `part_build`, which has to be the front's:
/// an installation may be caught halfway. A failure is one line in the log.
Part load_part(const char* file, const char* symbol) noexcept;
void unload(Part& part) noexcept;

/// The build that a front and its part have in common.
inline constexpr char part_build[] = SLUICE_BUILD_NAME;

}  // namespace sluice::slurm
