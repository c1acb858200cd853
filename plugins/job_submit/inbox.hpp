// SPDX-License-Identifier: GPL-2.0-or-later
//
// Records on their way from job_modify(), which holds slurmctld's locks, to the deciding thread.
// Bounded; nobody waits.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/config.hpp"
#include "common/model/record.hpp"

namespace sluice::slurm {

class Inbox {
  public:
    using Clock = std::chrono::steady_clock;

    /// Since slurmctld's start.
    struct Counters {
        std::uint64_t accepted = 0;
        std::uint64_t malformed = 0;
        std::uint64_t foreign = 0;      ///< from a user who does not own the job
        std::uint64_t over_budget = 0;  ///< beyond MinSampleInterval or MaxRecordsPerSecond

        std::uint64_t dropped() const { return malformed + foreign + over_budget; }
    };

    /// Admits `record` within the budget. An answer to a checkpoint signal is always within it,
    /// once a run.
    bool admit(std::uint32_t job, const Record& record, const Config& config,
               Clock::time_point now);
    void count_malformed();
    void count_foreign();

    std::vector<std::pair<std::uint32_t, Record>> take();
    Counters counters() const;
    /// Forgets when a job last sent something.
    void forget(std::uint32_t job);

  private:
    struct Sender {
        Clock::time_point last;
        int restarts = -1;
        bool checkpointed = false;
    };
    static constexpr std::size_t most_waiting = 10000;

    mutable std::mutex mutex_;
    std::map<std::uint32_t, Sender> senders_;
    Clock::time_point second_{};
    int in_second_ = 0;
    std::vector<std::pair<std::uint32_t, Record>> waiting_;
    Counters counters_;
};

}  // namespace sluice::slurm
