// SPDX-License-Identifier: GPL-2.0-or-later
//
// What the deciding thread knows about each job beyond slurmctld's own record, and keeps across
// kill -9.
#pragma once

#include <cstdint>
#include <ctime>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/model/record.hpp"
#include "common/model/speed.hpp"
#include "common/report/summary.hpp"
#include "common/store/journal.hpp"

namespace sluice::slurm {

/// A restart under way: signalled -> requeued -> sized.
struct Resize {
    enum class Phase { signalled, requeued } phase = Phase::signalled;
    int from = 0;
    int to = 0;
    int restarts = 0;           ///< SLURM_RESTART_COUNT of the run that was signalled
    std::time_t deadline = 0;   ///< end of the grace
    bool checkpointed = false;  ///< the job has said that it is ready
    std::string reason;
};

struct TrackedJob {
    std::optional<Record> record;           ///< the last one
    std::map<int, SpeedSample> speeds;      ///< by GPUs, the latest measurement of each size
    std::vector<std::time_t> resize_times;  ///< within the last hour
    std::time_t last_resize = 0;
    int requested = 0;                ///< GPUs that the user asked for, last
    int asked = 0;                    ///< GPUs that Sluice had it ask for, last; 0: never
    int before = 0;                   ///< the size before `asked`, where it was a restart
    int waits = 0;                    ///< plans for which it was due with `asked`
    int too_large = 0;                ///< a size with which it did not start
    std::time_t too_large_until = 0;  ///< and until when that counts
    std::optional<Resize> resize;

    /// Plans after which a job that does not start with the size it was given goes back.
    static constexpr int most_waits = 3;
    static constexpr std::time_t too_large_s = 3600;

    /// What the job's request says now; true when that is news to be stored.
    bool see_request(int gpus);
    /// Sluice has had it ask for `gpus`; `from` is the size it was restarted from, if it was.
    void ask(int gpus, int from = 0) {
        asked = gpus;
        before = from;
        waits = 0;
    }
    /// Takes over a record of this job.
    void learn(const Record& record);
};

/// JSON text as the journal stores it (doc/formats/journal-v1.txt).
std::string to_text(const TrackedJob& job);
Result<TrackedJob> parse_tracked_job(std::string_view text);

/// All jobs, each stored as it changes. One thread's alone.
class Tracker {
  public:
    /// Reads what `journal` holds; a damaged entry is left out and counted.
    explicit Tracker(std::unique_ptr<Journal> journal);

    const std::map<std::uint32_t, TrackedJob>& jobs() const { return jobs_; }
    TrackedJob* find(std::uint32_t id);
    TrackedJob& at(std::uint32_t id) { return jobs_[id]; }
    /// Stores the job as it is now. An error is the disk's; memory has it all the same.
    Status store(std::uint32_t id);
    Status forget(std::uint32_t id);
    std::size_t damaged() const { return damaged_; }

  private:
    std::unique_ptr<Journal> journal_;  // null: StateDir cannot be written, memory only
    std::map<std::uint32_t, TrackedJob> jobs_;
    std::size_t damaged_ = 0;
};

}  // namespace sluice::slurm
