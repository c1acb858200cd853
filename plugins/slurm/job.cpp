// SPDX-License-Identifier: GPL-2.0-or-later
#include "plugins/slurm/job.hpp"

#include <ctime>

#include "plugins/slurm/spank_options.hpp"

namespace sluice::slurm {

std::optional<JobSpec> job_spec(const job_record_t* job) {
    const auto options = options_in(job->spank_job_env, job->spank_job_env_size);
    if (options.empty()) return std::nullopt;
    Result<JobSpec> spec = parse_options(options);
    if (!spec) return std::nullopt;
    return *std::move(spec);
}

std::optional<Summary> job_summary(const job_record_t* job) {
    const std::string field = job->admin_comment ? job->admin_comment : "";
    if (!may_write_summary(field)) return std::nullopt;
    Result<Summary> summary = parse_summary(field);
    if (!summary) return Summary();
    return *std::move(summary);
}

void set_job_summary(job_record_t* job, const Summary& summary) {
    const std::string field = job->admin_comment ? job->admin_comment : "";
    if (!may_write_summary(field)) return;
    const std::string text = with_summary(field, summary);
    if (text == field) return;
    xfree(job->admin_comment);
    job->admin_comment = xstrdup(text.c_str());
    last_job_update = std::time(nullptr);
}

}  // namespace sluice::slurm
