// SPDX-License-Identifier: GPL-2.0-or-later
//
// What jobs leave for later ones of the same model: step times by placement, and how the runs went.
// Files below StateDir, replaced some seconds after they have changed.
#pragma once

#include <cstdint>
#include <ctime>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "common/model/run_history.hpp"
#include "common/model/step_time_book.hpp"
#include "plugins/job_submit/tracker.hpp"
#include "plugins/slurm/controller.hpp"

namespace sluice::slurm {

/// The deciding thread's alone.
class Learned {
  public:
    /// Reads what was kept below `directory`. What cannot be read is logged and left out.
    void open(const std::string& directory);
    /// Forgets everything, without a word to the disk: another slurmctld is in control.
    void close() { *this = Learned(); }

    /// Takes over what running jobs have shown.
    void see(const ClusterFacts& facts, const std::map<std::uint32_t, TrackedJob>& tracked);
    /// A job has ended, with this as its last record.
    void remember(const JobFacts& job, const Record& record);
    /// Writes what has changed, seldom.
    void keep(std::time_t now);

    const RunHistory& runs() const { return runs_; }
    /// Of a user's model on a type of GPU; null where nothing of it was measured. Fitted when it is
    /// first asked for after a measurement, some milliseconds. Valid until the next see().
    const StepTimeModel* steps(std::uint32_t user, const std::string& model,
                               const std::string& gpu_type);

  private:
    struct KeptFile {
        std::string path;
        bool changed = false;
        bool failed = false;
        std::time_t next = 0;
    };
    /// What is known of a job while it runs.
    struct Running {
        std::int64_t step = -1;  ///< up to which its speed is in the book
        std::string gpu_type;
    };

    static void write(KeptFile& file, const std::string& text, const char* what, std::time_t now);
    void measure(const JobFacts& job, const Record& record, Running& running);

    StepTimeBook steps_;
    /// Fits of it, by model_key() and type; null where there is nothing to fit.
    std::map<std::pair<std::string, std::string>, std::unique_ptr<const StepTimeModel>> models_;
    RunHistory runs_;
    KeptFile steps_file_;
    KeptFile runs_file_;
    std::map<std::uint32_t, Running> running_;
};

}  // namespace sluice::slurm
