// SPDX-License-Identifier: GPL-2.0-or-later
#include "plugins/job_submit/inbox.hpp"

#include <algorithm>
#include <utility>

namespace sluice::slurm {

bool Inbox::admit(std::uint32_t job, const Record& record, const Config& config,
                  Clock::time_point now, bool in_summary) {
    const std::lock_guard lock(mutex_);
    const auto known = senders_.find(job);
    Sender sender;
    if (known != senders_.end() && known->second.restarts == record.restarts)
        sender = known->second;
    const bool answers = record.checkpointed && !sender.checkpointed;
    const bool ends = record.ended && !sender.ended;
    if (waiting_.size() >= most_waiting) {
        ++counters_.over_budget;
        return false;
    }
    if (!answers && !ends) {
        const auto pause = record_pause(config.min_sample_interval, sender.taken);
        if (sender.taken > 0 && now - sender.last < pause) {
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
    sender.last = now;
    sender.restarts = record.restarts;
    sender.taken = std::min(sender.taken + 1, most_counted);
    sender.checkpointed = sender.checkpointed || record.checkpointed;
    sender.ended = sender.ended || record.ended;
    senders_[job] = sender;
    waiting_.push_back({job, record, in_summary});
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

std::vector<Inbox::Item> Inbox::take() {
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
