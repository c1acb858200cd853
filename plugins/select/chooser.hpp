// SPDX-License-Identifier: GPL-2.0-or-later
//
// Which nodes and which of their GPUs: asks select/cons_tres first, then chooses among the same
// candidates and asks again with every other node and GPU hidden. Whatever stock Slurm would start,
// starts.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/placement/node_choice.hpp"
#include "common/report/placement_counts.hpp"
#include "common/report/summary.hpp"
#include "plugins/select/node_offers.hpp"
#include "plugins/select/node_tables.hpp"
#include "plugins/slurm/gpus.hpp"
#include "plugins/slurm/select_entry_points.hpp"

namespace sluice::slurm {

/// Called under slurmctld's job and node write locks, which is all the locking it needs.
class Chooser {
  public:
    Chooser(const SelectOps& stock, NodeTables& tables);

    /// After stock's job_test succeeded with RUN_NOW: test.nodes and the job record hold stock's
    /// choice; afterwards they hold the best one, or stock's again. `candidates` is test.nodes as
    /// it came in. Returns what job_test should return.
    int refine(const JobTest& test, bitstr_t* candidates);

    /// The job begins with what the last refine() chose: logs it and writes it into the job's
    /// summary.
    void begin(job_record_t* job);

    /// Looks what has become of the nodes: offers those that no table describes to NodeTables.
    void survey();

    /// Slurm has read its configuration.
    void reconfigured();

  private:
    /// A set on a node, kept until the job begins.
    struct Share {
        int node = 0;
        GpuSet set;
        std::shared_ptr<const BestSets> table;
    };
    struct Explanation {
        std::vector<Share> chosen;  ///< empty where nothing could be looked up
        std::vector<Share> stock;
        NodePlacement placement;  ///< of chosen
        NodePlacement stock_placement;
        std::string forwarded;    ///< why stock's choice stands
        std::string nodes_given;  ///< why its nodes do
        uint32_t job_id = 0;
        bool refused_before = false;  ///< an earlier choice on other nodes did not begin
        bool in_seconds = false;      ///< step times are a measured model's
        bool advice = false;          ///< chosen was not applied, by configuration

        /// True where a chosen node is none of stock's.
        bool elsewhere() const;
    };
    /// One job_test, from stock's answer to ours.
    class Refinement;

    void offer(const NodeGpus& node) const;
    /// The one on this node, or null.
    static const Share* on_node(const std::vector<Share>& shares, int node);
    static std::string node_name(const Share& share);
    static double gbps(const Share& share);
    static std::string line_of(const Explanation& explanation);
    void count(const Explanation& explanation);
    static SummaryPrediction prediction_of(const Explanation& explanation);

    static constexpr std::size_t max_explanations = 4096;

    const SelectOps& stock_;
    NodeTables& tables_;
    NodeOffers offers_;
    // From job_test to job_begin, by record: an array task gets its own job id in between.
    std::map<const job_record_t*, Explanation> explanations_;
    PlacementCounts counts_;
};

}  // namespace sluice::slurm
