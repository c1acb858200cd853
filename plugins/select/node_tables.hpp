// SPDX-License-Identifier: GPL-2.0-or-later
//
// One BestSets table per node class, found by node name. Reading and compiling happen on a thread
// of its own; slurmctld's threads read a snapshot and never wait.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/config.hpp"
#include "common/model/step_time.hpp"
#include "common/placement/best_sets.hpp"
#include "common/report/placement_counts.hpp"

namespace sluice::slurm {

class NodeTables {
  public:
    /// `log` and `log_error` are called from the thread. Loads CONF_PATH once before it returns
    /// (start-up of slurmctld: no lock is held), then whenever reload() asks.
    struct Options {
        std::string conf_path;
        std::function<void(const std::string&)> log;
        std::function<void(const std::string&)> log_error;
        bool quiet_about_conf = false;  ///< another plugin tells what is wrong with CONF_PATH
    };
    explicit NodeTables(Options options);
    ~NodeTables();
    NodeTables(const NodeTables&) = delete;
    NodeTables& operator=(const NodeTables&) = delete;

    /// Reads sluice.conf and the topology files again, later, on the thread. What does not load
    /// leaves the old in force.
    void reload();

    using Tables = std::map<std::string, std::shared_ptr<const BestSets>, std::less<>>;
    struct Snapshot {
        Config config;
        Tables by_file;  ///< by node: what a topology file says
        Tables by_gres;  ///< by node: what gres.conf says
        /// By model_key(), then by GPU type: those that were measured.
        std::map<std::string, std::map<std::string, StepTimeModel>, std::less<>> models;

        /// The table of a node with so many GPUs; a topology file goes before gres.conf. Null where
        /// there is none of that size.
        std::shared_ptr<const BestSets> find(std::string_view node, int gpus) const;
        /// The model of a job on GPUs of this type, or else on the type that was measured most.
        /// Null where nothing was measured.
        const StepTimeModel* model(std::string_view key, std::string_view gpu_type) const;
        /// How many GPUs the node's topology file describes; 0: it has none.
        int file_gpus(std::string_view node) const;
        /// True where a topology file or gres.conf told about the node.
        bool knows(std::string_view node) const;
    };
    std::shared_ptr<const Snapshot> snapshot() const;

    /// True where offer() would bring news: the node was not offered with this fingerprint since
    /// the last reload(). Its links may be known later than its cores.
    bool wants(const std::string& node, std::uint64_t fingerprint) const;
    /// What gres.conf says about a node. Queued; the table appears in a later snapshot().
    void offer(const std::string& node, std::uint64_t fingerprint, GpuGraph graph);
    /// What gres.conf says about a node cannot be: logged, once.
    void refuse(const std::string& node, std::uint64_t fingerprint, const std::string& why);

    /// Nodes with another number of GPUs than their topology file describes: (file's, node's) and
    /// their names. All there are now; what was not so the last time is logged on the thread.
    using OtherSizes = std::map<std::pair<int, int>, std::vector<std::string>>;
    void note(OtherSizes sizes);

    /// Writes the counts to their file below StateDir: later, on the thread, every few seconds at
    /// most. Only while this slurmctld is in control.
    void keep(const PlacementCounts& counts);

  private:
    void run();
    void load(bool first);
    void write(const PlacementCounts& counts);
    void learn_models();
    void say_once(const std::function<void(const std::string&)>& log, const std::string& what,
                  const std::string& more, std::set<std::string>& said) const;
    void compile(const std::map<std::string, GpuGraph>& offered);
    void tell(const OtherSizes& sizes) const;
    std::shared_ptr<const BestSets> table_of(const GpuGraph& graph, const std::string& name);
    void publish(std::shared_ptr<const Snapshot> snapshot);

    const Options options_;
    mutable std::mutex mutex_;
    std::condition_variable wake_;
    bool stop_ = false;
    bool reload_ = false;
    std::optional<PlacementCounts> counts_;    // waiting for the thread
    std::optional<OtherSizes> sizes_;          // waiting for the thread
    OtherSizes noted_;                         // the last of them
    std::map<std::string, GpuGraph> offered_;  // waiting for the thread
    std::map<std::string, std::uint64_t>
        fingerprints_;  // of what was offered since the last reload
    std::shared_ptr<const Snapshot> snapshot_;
    std::map<std::string, std::shared_ptr<const BestSets>> by_fingerprint_;  // the thread's alone
    std::set<std::string> said_;  // in the last load(); the thread's alone
    std::string said_of_counts_;  // the thread's alone
    std::string samples_seen_;    // the version of the file read last; the thread's alone
    std::thread thread_;
};

}  // namespace sluice::slurm
