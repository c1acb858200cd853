// SPDX-License-Identifier: GPL-2.0-or-later
//
// The deciding thread of slurmctld: every Interval it looks at the cluster, asks the policy for a
// plan and starts what the plan says; every second it carries on the restarts under way. It holds
// slurmctld's locks only to copy and to act, never while it computes or touches a disk.
#pragma once

#include <atomic>
#include <cstdint>
#include <ctime>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "common/allocator/policy.hpp"
#include "common/base/config.hpp"
#include "plugins/job_submit/inbox.hpp"
#include "plugins/job_submit/learned.hpp"
#include "plugins/job_submit/tracker.hpp"
#include "plugins/slurm/controller.hpp"

namespace sluice::slurm {

class Decider {
  public:
    /// Reads sluice.conf once (start-up of slurmctld), then starts the thread.
    explicit Decider(std::string conf_path);
    ~Decider() = delete;  // its thread lives as long as the process
    Decider(const Decider&) = delete;
    Decider& operator=(const Decider&) = delete;

    /// Between pause() and resume() nothing is decided. Neither waits for the thread: slurmctld
    /// calls them under locks that the thread may be waiting for.
    void pause() { paused_ = true; }
    void resume() { paused_ = false; }

    Inbox& inbox() { return inbox_; }
    std::shared_ptr<const Config> config() const;

  private:
    void run();
    void tick(std::time_t now);
    void reload_config();
    void stand_by();
    /// False: not yet, try again.
    bool open_store();
    void learn();
    void tell_dropped_records(std::time_t now);
    void plan(std::time_t now);
    void see_requests(const ClusterFacts& facts);
    void carry_out(const Decision& decision, const JobFacts& job, std::time_t now);
    void start_restart(const Decision& decision, const JobFacts& job);
    void carry_on(std::uint32_t id, std::time_t now);
    void finish_restart(std::uint32_t id, std::time_t now);
    void give_up(std::uint32_t id, const Error& why);
    void note_resize(TrackedJob& tracked, std::time_t now);
    void unstick(const ClusterFacts& facts, std::time_t now);
    void fall_back(const JobFacts& job, std::time_t now);
    void forget_ended(const ClusterFacts& facts);
    void store(std::uint32_t id);

    const std::string conf_path_;
    mutable std::mutex mutex_;
    std::atomic<bool> paused_{false};
    std::shared_ptr<const Config> config_;
    Inbox inbox_;

    // The thread's alone.
    std::unique_ptr<Tracker> tracker_;
    std::unique_ptr<Policy> policy_;
    bool configured_ = false;  // sluice.conf was looked at
    std::string conf_seen_;    // what told the version looked at last
    int store_attempts_ = 0;
    Learned learned_;
    std::time_t next_plan_ = 0;
    std::map<std::uint32_t, int> absent_;           // plans in which a tracked job was not there
    std::map<std::uint32_t, std::string> advised_;  // what was last said about a job
    bool disk_failed_ = false;
    std::uint64_t dropped_told_ = 0;  // records left out, when the log last said so
    std::time_t next_dropped_ = 0;    // and before when it says no more

    std::thread thread_;
};

}  // namespace sluice::slurm
