// SPDX-License-Identifier: GPL-2.0-or-later
#include "plugins/spank/agent/controller_link.hpp"

#include <sys/utsname.h>
#include <unistd.h>

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

// Asks with a record whether its job could run: an error, ESLURM_ALREADY_DONE where it was taken.
int ask_with(job_desc_msg_t request) {
    utsname machine{};
    if (uname(&machine) != 0) return errno;
    request.alloc_node = machine.nodename;
    request.user_id = getuid();
    request.group_id = getgid();
    will_run_response_msg_t* answer = nullptr;  // slurm.h has nothing to free it; the agent ends
    if (slurm_job_will_run2(&request, &answer) != SLURM_SUCCESS) return errno;
    return SLURM_ERROR;
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

Status send_record(std::uint32_t id, const std::string& record, bool last) {
    job_desc_msg_t request;
    slurm_init_job_desc_msg(&request);
    std::string comment = record;
    request.job_id = id;
    request.comment = comment.data();
    if (slurm_update_job(&request) == SLURM_SUCCESS) return {};
    int code = errno;
    if (last && code == ESLURM_JOB_FINISHED) {
        code = ask_with(request);
        if (code == ESLURM_ALREADY_DONE) return {};
    }
    return Error{code == ESLURM_INVALID_JOB_ID ? ErrorCode::not_found : ErrorCode::unreachable,
                 slurm_strerror(code)};
}

}  // namespace sluice::agent
