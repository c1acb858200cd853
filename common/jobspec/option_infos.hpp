// SPDX-License-Identifier: GPL-2.0-or-later
//
// The --train-* options by name: the single list behind sbatch --help, the parser and the man page.
// Plain constants, for what registers them has no C++ runtime (plugins/slurm/part.hpp).
#pragma once

#include <array>

namespace sluice {

/// One option as Slurm's SPANK layer knows it.
struct OptionInfo {
    const char* name;   ///< "train-gpus"
    const char* value;  ///< "SIZES"
    const char* legal;  ///< the legal form, for messages and for --help
};

inline constexpr std::array<OptionInfo, 9> option_infos{{
    {"train-model", "NAME", "1 to 64 letters, digits and . _ + / -"},
    {"train-batch", "SAMPLES", "the samples of one step on all GPUs together, 1 to 1000000000"},
    {"train-gpus", "SIZES", "4, 1-16, 2-16:2, 1-16:x2 or 2,4,8"},
    {"train-loss", "SOURCE",
     "a path of 1 to 512 bytes without control characters, or csv:PATH, jsonl:PATH, "
     "tfevents:PATH, state:PATH, mlflow:[RUN][@URI]"},
    {"train-loss-key", "KEY",
     "the name of the loss in the log, or /PATTERN/ that its name matches, 1 to 64 bytes"},
    {"train-target", "TARGET", "a loss like 2.5, steps:5000 or flat"},
    {"train-resize", "MODE", "off, start, restart"},
    {"train-signal", "[B:]SIG[@SECONDS]",
     "a signal like USR1, USR1@60 or B:TERM@120, not KILL, STOP or URG, at most 86400 seconds"},
    {"train-advise", "ANSWER", "yes, no"},
}};

}  // namespace sluice
