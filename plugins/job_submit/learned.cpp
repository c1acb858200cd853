// SPDX-License-Identifier: GPL-2.0-or-later
#include "plugins/job_submit/learned.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/base/file.hpp"
#include "plugins/slurm/log.hpp"

namespace sluice::slurm {
namespace {

constexpr std::time_t kept_every_s = 10;

/// Takes what was kept over into `target`; `member` of what `read` gives. A file that could not be
/// read whole is set aside, since it is written anew: true where its good lines should be at once.
template <typename Read, typename T>
bool take_over(const Result<Read>& read, T Read::*member, const std::string& path, T& target) {
    if (!read && read.error().code == ErrorCode::not_found) return false;
    if (read) target = (*read).*member;
    if (read && read->damaged == 0) return false;
    const std::string what =
        read ? path + ": damaged lines left out: " + std::to_string(read->damaged)
             : read.error().message + "; what was learned there is left out";
    const auto aside = set_aside(path);
    log_error(what + (aside ? "; the file is kept as " + *aside : ""));
    return read.ok();
}

}  // namespace

void Learned::open(const std::string& directory) {
    steps_file_.path = directory + "/" + step_samples_file;
    runs_file_.path = directory + "/" + run_history_file;
    steps_file_.changed =
        take_over(read_step_samples(steps_file_.path), &ReadBook::book, steps_file_.path, steps_);
    runs_file_.changed =
        take_over(read_run_history(runs_file_.path), &ReadHistory::history, runs_file_.path, runs_);
}

void Learned::see(const ClusterFacts& facts, const std::map<std::uint32_t, TrackedJob>& tracked) {
    for (const JobFacts& job : facts.jobs) {
        const auto known = tracked.find(job.id);
        if (job.state != JobState::running || !job.spec || job.spec->model.empty() ||
            known == tracked.end() || !known->second.record)
            continue;
        measure(job, *known->second.record, running_[job.id]);
    }
    std::erase_if(running_, [&](const auto& each) { return !tracked.contains(each.first); });
}

// What its agent has told of its speed where it runs now.
void Learned::measure(const JobFacts& job, const Record& record, Running& running) {
    running.gpu_type = job.gpu_type;
    if (!record.steps_per_second || !record.step || record.restarts != job.restarts ||
        record.gpus != job.gpus || *record.step <= running.step)
        return;
    running.step = *record.step;
    std::vector<int> gpus(job.held.size());
    std::transform(job.held.begin(), job.held.end(), gpus.begin(),
                   [](const HeldGpus& held) { return held.gpus; });
    const auto summary = parse_summary(job.admin_comment);
    const double gbps = summary && summary->prediction ? summary->prediction->gbps : 0;
    const auto batch = static_cast<double>(job.spec->batch.value_or(assumed_batch));
    const StepPlacement placement = step_placement(gpus, batch / std::max(1, job.gpus), gbps);
    const std::string key = model_key(job.owner, job.spec->model);
    if (!steps_.add(key, job.gpu_type, {placement, 1 / *record.steps_per_second, 1})) return;
    steps_file_.changed = true;
    // its fits on other types rest on this one, too
    std::erase_if(models_, [&](const auto& each) { return each.first.first == key; });
}

const StepTimeModel* Learned::steps(std::uint32_t user, const std::string& model,
                                    const std::string& gpu_type) {
    if (model.empty()) return nullptr;
    const auto [at, is_new] = models_.try_emplace({model_key(user, model), gpu_type});
    if (is_new) {
        const StepTimeBasis basis = steps_.basis(at->first.first, gpu_type);
        if (!basis.own.empty()) at->second = std::make_unique<const StepTimeModel>(basis.model());
    }
    return at->second.get();
}

void Learned::remember(const JobFacts& job, const Record& record) {
    if (record.points == 0 || !job.spec || job.spec->model.empty()) return;
    PastRun run;
    run.job = job.id;
    run.user = job.owner;
    run.account = job.account;
    run.model = job.spec->model;
    const auto running = running_.find(job.id);
    if (running != running_.end()) run.gpu_type = running->second.gpu_type;
    run.batch = job.spec->batch.value_or(0);
    run.ended = job.end;
    run.completed = job.ended_by_itself && job.exit_status == 0;
    run.record = record;
    if (runs_.add(std::move(run))) runs_file_.changed = true;
}

void Learned::keep(std::time_t now) {
    if (steps_file_.changed && now >= steps_file_.next)
        write(steps_file_, to_text(steps_), "step times", now);
    if (runs_file_.changed && now >= runs_file_.next)
        write(runs_file_, to_text(runs_), "earlier runs", now);
}

void Learned::write(KeptFile& file, const std::string& text, const char* what, std::time_t now) {
    file.next = now + kept_every_s;
    const Status written = write_file(file.path, text, FileReaders::owner);
    if (!written && !file.failed)
        log_error(written.error().message + "; what was learned of " + what + " is kept in memory");
    file.failed = !written;
    file.changed = !written;
}

}  // namespace sluice::slurm
