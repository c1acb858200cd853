// SPDX-License-Identifier: GPL-2.0-or-later
//
// The GPU request of a job as text: "gres:gpu:v100:4" (22.05) or "gres/gpu:v100:4" (23.11 and
// newer).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace sluice::slurm {

struct GpuRequest {
    enum class Form {
        none,      ///< no GPUs
        per_job,   ///< --gpus=N
        per_node,  ///< --gpus-per-node=N, --gres=gpu:N
        other,  ///< per socket, per task, several forms or several types: never changed by Sluice
    } form = Form::none;
    int count = 0;  ///< per job or per node, as form says
};

/// Any of the four may be null.
GpuRequest parse_gpu_request(const char* per_job, const char* per_node, const char* per_socket,
                             const char* per_task);

/// `tres` with the number of its GPUs replaced, everything else kept; `tres` names GPUs once.
std::string with_gpu_count(std::string_view tres, int count);

}  // namespace sluice::slurm
