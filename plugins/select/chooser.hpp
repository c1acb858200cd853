// SPDX-License-Identifier: GPL-2.0-or-later
//
// Which GPUs of the nodes that stock Slurm found: asks select/cons_tres first, then, for the same
// nodes and counts, looks up the best sets and asks again with every other GPU hidden. Whatever
// stock Slurm would start, starts.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "plugins/select/node_tables.hpp"
#include "plugins/slurm/gpus.hpp"
#include "plugins/slurm/select_entry_points.hpp"

namespace sluice::slurm {

/// Called under slurmctld's job and node write locks, which is all the locking it needs.
class Chooser {
  public:
    Chooser(const SelectOps& stock, NodeTables& tables) : stock_(stock), tables_(tables) {}

    /// After stock's job_test succeeded with RUN_NOW: test.nodes and the job record hold stock's
    /// choice; afterwards they hold the best one, or stock's again. `candidates` is test.nodes as
    /// it came in. Returns what job_test should return.
    int refine(const JobTest& test, bitstr_t* candidates);

    /// The job begins with what the last refine() chose: logs it and writes it into the job's
    /// summary.
    void begin(job_record_t* job);

    /// Offers nodes that no table describes to NodeTables.
    void survey();

    /// "reason: count, ..." of what was left to stock Slurm since start; empty for nothing.
    std::string forwarded() const;

  private:
    struct Chosen {
        int node;
        GpuSet stock;
        GpuSet best;
        std::shared_ptr<const BestSets> table;
    };
    struct Explanation {
        std::vector<Chosen> nodes;
        std::string forwarded;  ///< why nothing was changed
        bool advice = false;    ///< best was not applied, by configuration
    };

    Explanation look_up(const job_record_t* job, const Result<JobChoice>& choice,
                        std::vector<NodeGpus>& gpus) const;
    bool apply(const JobTest& test, const Explanation& wanted, const std::vector<NodeGpus>& gpus);
    void offer(const NodeGpus& node) const;

    static constexpr std::size_t max_explanations = 4096;

    const SelectOps& stock_;
    NodeTables& tables_;
    // From job_test to job_begin, by record: an array task gets its own job id in between.
    std::map<const job_record_t*, Explanation> explanations_;
    std::map<std::string, uint64_t> forwarded_;  // reason -> how often
};

}  // namespace sluice::slurm
