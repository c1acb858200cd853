// SPDX-License-Identifier: GPL-2.0-or-later
//
// sluice.conf(5): Key=Value as in Slurm's own files.
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.hpp"

namespace sluice {

/// Topology=FILE Nodes=HOSTLIST: these nodes are of the class that FILE describes.
struct NodeClassLine {
    std::string file;                ///< relative names are below topology_dir
    std::vector<std::string> nodes;  ///< expanded
};

struct Config {
    std::string policy = "sluice";            ///< Policy: a name that make_policy() knows
    int policy_line = 0;                      ///< where Policy stands; 0: nowhere
    std::chrono::seconds interval{60};        ///< Interval between two plans, 1..3600
    bool advise_only = false;                 ///< AdviseOnly
    std::vector<std::string> partitions;      ///< Partitions that are decided for; empty: all
    std::string topology_dir;                 ///< TopologyDir; absolute
    std::vector<NodeClassLine> node_classes;  ///< Topology=... Nodes=..., any number of lines
    std::string state_dir;                    ///< StateDir; empty: StateSaveLocation/sluice
    bool summary_in_admin_comment = true;     ///< SummaryField=AdminComment|none
    bool share_runs_in_account = false;       ///< ShareRuns=user|account
    std::chrono::seconds min_sample_interval{
        60};                          ///< MinSampleInterval between two records of a job, 1..86400
    int max_records_per_second = 20;  ///< MaxRecordsPerSecond, whole cluster, 1..10000
    std::chrono::seconds resize_cooldown{
        600};                      ///< ResizeCooldown: least time between two resizes of a job
    int max_resizes_per_hour = 4;  ///< MaxResizesPerHour, of a job, 0..3600
    std::chrono::seconds restart_cost{60};  ///< RestartCost: time without progress of a resize
    double min_gain = 0.05;  ///< MinGain: least relative gain for which a job is resized
    double fragmentation_weight =
        0.1;  ///< FragmentationWeight: step time that a whole node is worth
};

/// Wholly valid or an error "NAME:LINE: Key: ... write ..."; unknown keys are errors that list the
/// known ones.
Result<Config> parse_config(std::string_view text, std::string_view name);

/// What legal values mean together that few will want, for a log; empty: nothing of the kind.
std::string note_on(const Config& config);

/// A missing file is the default configuration: not_found tells it apart from a broken one.
Result<Config> read_config_file(const std::string& path);

/// The keys of sluice.conf with their legal values, in the order of the man page.
struct ConfigKeyInfo {
    const char* key;
    const char* legal;
};
std::span<const ConfigKeyInfo> config_keys();

/// "n[1-3,7],login" -> n1 n2 n3 n7 login; leading zeros are kept; at most 65,536 names.
Result<std::vector<std::string>> expand_hostlist(std::string_view text);

/// The inverse, sorted, each name once: n1 n2 n3 n7 login -> "login,n[1-3,7]".
std::string compress_hostlist(const std::vector<std::string>& names);

}  // namespace sluice
