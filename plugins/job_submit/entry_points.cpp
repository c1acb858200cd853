// SPDX-License-Identifier: GPL-2.0-or-later
//
// job_submit/sluice: checks --train-* options, takes the agents' records out of job updates, and
// runs the deciding thread.
#include <dlfcn.h>

#include <memory>
#include <string>
#include <string_view>

#include "plugins/job_submit/decider.hpp"
#include "plugins/job_submit/submit.hpp"
#include "plugins/slurm/conf.hpp"
#include "plugins/slurm/guard.hpp"
#include "plugins/slurm/job.hpp"
#include "plugins/slurm/release.hpp"

using namespace sluice;
using namespace sluice::slurm;

namespace {

Decider* decider = nullptr;

// The last record of a job that was cancelled or ran out of time: slurmctld lets nobody update it
// any more, but asked whether it could run it asks us first, under a lock to read. The deciding
// thread writes its summary.
int take_last_record(const job_desc_msg_t* request, uint32_t submit_uid) {
    const job_record_t* job = find_job_record(request->job_id);
    if (!job || submit_uid != job->user_id) {
        decider->inbox().count_foreign();
        return ESLURM_ACCESS_DENIED;
    }
    const Result<Record> record = parse_record(request->comment);
    if (!record || !record->ended || record->restarts != job->restart_cnt ||
        !IS_JOB_FINISHED(job) || !job_spec(job)) {
        decider->inbox().count_malformed();
        return ESLURM_ALREADY_DONE;
    }
    decider->inbox().admit(job->job_id, *record, *decider->config(), Inbox::Clock::now(), false);
    return ESLURM_ALREADY_DONE;
}

int submit(job_desc_msg_t* request, uint32_t submit_uid, char** message) {
    if (request->job_id != NO_VAL && request->comment &&
        std::string_view(request->comment).starts_with(Record::prefix))
        return take_last_record(request, submit_uid);
    const auto config = decider->config();
    std::string told;
    const Status checked = check_submission(request, config->summary_in_admin_comment, told);
    if (!checked.ok()) told = checked.error().message;
    if (message && !told.empty()) *message = xstrdup(told.c_str());
    return checked.ok() ? SLURM_SUCCESS : EINVAL;
}

// A record of the job's agent, in the comment of an update: taken out, so that the user's own
// comment stays.
int take_record(job_desc_msg_t* request, job_record_t* job, uint32_t submit_uid) {
    const std::string text = request->comment;
    xfree(request->comment);
    if (submit_uid != job->user_id) {
        decider->inbox().count_foreign();
        return ESLURM_ACCESS_DENIED;
    }
    const Result<Record> record = parse_record(text);
    // slurmctld counts a restart when it requeues the job, and only then ends its processes.
    if (record && record->ended && record->restarts + 1 == job->restart_cnt) return SLURM_SUCCESS;
    // A number of restarts that is not the job's own would open a budget of its own.
    if (!record || record->restarts != job->restart_cnt || !job_spec(job)) {
        decider->inbox().count_malformed();
        return SLURM_SUCCESS;
    }
    if (!decider->inbox().admit(job->job_id, *record, *decider->config(), Inbox::Clock::now()))
        return SLURM_SUCCESS;
    if (auto summary = job_summary(job)) {
        summary->record = *record;
        set_job_summary(job, *summary);
    }
    return SLURM_SUCCESS;
}

// Keeps this plugin in memory until the process ends, also over dlclose().
bool pin() {
    Dl_info self{};
    return dladdr(reinterpret_cast<void*>(&pin), &self) != 0 &&
           dlopen(self.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE) != nullptr;
}

}  // namespace

extern "C" {

extern const char plugin_name[] = "Sluice: options, records and decisions";
extern const char plugin_type[] = "job_submit/sluice";
extern const uint32_t plugin_version = built_for;

int init(void) noexcept {
    if (!running_in_slurmctld()) return SLURM_SUCCESS;
    if (decider) {
        decider->resume();
        return SLURM_SUCCESS;
    }
    // The thread outlives fini(): its code has to stay.
    if (!pin()) return SLURM_ERROR;
    // NOLINTNEXTLINE(bugprone-unhandled-exception-at-new): guarded() catches what it throws.
    guarded("init", [] { decider = new Decider(sluice_conf_path()); });
    return SLURM_SUCCESS;
}

int fini(void) noexcept {
    // Called under all of slurmctld's write locks when JobSubmitPlugins changes
    // (src/slurmctld/read_config.c): a thread that waits for them cannot be waited for.
    guarded("fini", [] {
        if (decider) decider->pause();
    });
    return SLURM_SUCCESS;
}

int job_submit(job_desc_msg_t* request, uint32_t submit_uid, char** message) noexcept {
    int rc = SLURM_SUCCESS;
    if (decider && request)
        guarded("job_submit", [&] { rc = submit(request, submit_uid, message); });
    return rc;
}

int job_modify(SLUICE_JOB_MODIFY_PARAMETERS) noexcept {
    int rc = SLURM_SUCCESS;
    if (!decider || !request || !job || !request->comment) return rc;
    guarded("job_modify", [&] {
        if (std::string_view(request->comment).starts_with(Record::prefix))
            rc = take_record(request, job, submit_uid);
    });
    return rc;
}

}  // extern "C"
