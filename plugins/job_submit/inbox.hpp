// SPDX-License-Identifier: GPL-2.0-or-later
//
// Records on their way from job_modify(), which holds slurmctld's locks, to the deciding thread.
// Bounded; nobody waits.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
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

    /// Admits `record` within the budget: a run's records record_pause() apart, and so many a
    /// second from all jobs. An answer to a checkpoint signal and the last record of a run are
    /// always within it, each once a run: Slurm itself has more to do for these than we have.
    bool admit(std::uint32_t job, const Record& record, const Config& config, Clock::time_point now,
               bool in_summary = true);
    void count_malformed();
    void count_foreign();

    struct Item {
        std::uint32_t job = 0;
        Record record;
        bool in_summary = true;  ///< the job's summary has it already
    };
    std::vector<Item> take();
    Counters counters() const;
    /// Forgets when a job last sent something.
    void forget(std::uint32_t job);

  private:
    struct Sender {
        Clock::time_point last;
        int restarts = -1;
        int taken = 0;  ///< of this run
        bool checkpointed = false;
        bool ended = false;
    };
    static constexpr std::size_t most_waiting = 10000;
    static constexpr int most_counted = 1000;  ///< more make no difference

    mutable std::mutex mutex_;
    std::map<std::uint32_t, Sender> senders_;
    Clock::time_point second_{};
    int in_second_ = 0;
    std::vector<Item> waiting_;
    Counters counters_;
};

}  // namespace sluice::slurm
