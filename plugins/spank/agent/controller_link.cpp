// SPDX-License-Identifier: GPL-2.0-or-later
#include "plugins/spank/agent/controller_link.hpp"

#include <cerrno>
#include <memory>

#include "common/report/summary.hpp"
#include "common/report/tres.hpp"

extern "C" {
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
}

namespace sluice::agent {
namespace {

struct FreeJobInfo {
    void operator()(job_info_msg_t* message) const { slurm_free_job_info_msg(message); }
};

int gpus_in(const char* tres) {
    const auto gpus = parse_tres(tres ? tres : "");
    return gpus ? static_cast<int>(gpus->count) : 0;
}

}  // namespace

void connect() {
    slurm_init(nullptr);
}

Result<JobInfo> load_job(std::uint32_t id) {
    job_info_msg_t* raw = nullptr;
    if (slurm_load_job(&raw, id, SHOW_DETAIL) != SLURM_SUCCESS) {
        const int code = errno;
        return {code == ESLURM_INVALID_JOB_ID ? ErrorCode::not_found : ErrorCode::unreachable,
                slurm_strerror(code)};
    }
    const std::unique_ptr<job_info_msg_t, FreeJobInfo> message(raw);
    for (std::uint32_t i = 0; i < message->record_count; ++i) {
        const slurm_job_info_t& job = message->job_array[i];
        if (job.job_id != id) continue;
        return JobInfo{has_summary(job.admin_comment ? job.admin_comment : ""),
                       gpus_in(job.tres_alloc_str)};
    }
    return {ErrorCode::not_found, "slurmctld does not know job " + std::to_string(id)};
}

Status send_record(std::uint32_t id, const std::string& record) {
    job_desc_msg_t request;
    slurm_init_job_desc_msg(&request);
    std::string comment = record;
    request.job_id = id;
    request.comment = comment.data();
    if (slurm_update_job(&request) == SLURM_SUCCESS) return {};
    const int code = errno;
    return Error{code == ESLURM_INVALID_JOB_ID ? ErrorCode::not_found : ErrorCode::unreachable,
                 slurm_strerror(code)};
}

}  // namespace sluice::agent
