// SPDX-License-Identifier: GPL-2.0-or-later
#include "plugins/job_submit/inbox.hpp"

namespace sluice::slurm {

bool Inbox::admit(std::uint32_t job, const Record& record, const Config& config,
                  Clock::time_point now) {
    const std::lock_guard lock(mutex_);
    const auto known = senders_.find(job);
    const bool first = known == senders_.end() || known->second.restarts != record.restarts;
    const bool answers = record.checkpointed && (first || !known->second.checkpointed);
    if (waiting_.size() >= most_waiting) {
        ++counters_.over_budget;
        return false;
    }
    if (!answers) {
        if (!first && now - known->second.last < config.min_sample_interval) {
            ++counters_.over_budget;
            return false;
        }
        if (now - second_ >= std::chrono::seconds(1)) {
            second_ = now;
            in_second_ = 0;
        }
        if (in_second_ >= config.max_records_per_second) {
            ++counters_.over_budget;
            return false;
        }
        ++in_second_;
    }
    const bool answered = record.checkpointed || (!first && known->second.checkpointed);
    senders_[job] = {now, record.restarts, answered};
    waiting_.emplace_back(job, record);
    ++counters_.accepted;
    return true;
}

void Inbox::count_malformed() {
    const std::lock_guard lock(mutex_);
    ++counters_.malformed;
}

void Inbox::count_foreign() {
    const std::lock_guard lock(mutex_);
    ++counters_.foreign;
}

std::vector<std::pair<std::uint32_t, Record>> Inbox::take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(waiting_, {});
}

Inbox::Counters Inbox::counters() const {
    const std::lock_guard lock(mutex_);
    return counters_;
}

void Inbox::forget(std::uint32_t job) {
    const std::lock_guard lock(mutex_);
    senders_.erase(job);
}

}  // namespace sluice::slurm
