// SPDX-License-Identifier: GPL-2.0-or-later
//
// The summary of a job: one line of JSON under the key "sluice" in the job record's AdminComment,
// so that scontrol, squeue and sacct show it (doc/formats/summary-v1.txt). No blanks, at most
// max_bytes. Members that another tool put beside "sluice" are kept.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.hpp"
#include "common/model/record.hpp"

namespace sluice {

/// GPUs of one node, as chosen by Sluice and as stock Slurm would have chosen.
struct SummaryPlacement {
    std::string node;
    std::string gpus;        ///< "0,3"
    double gbps = 0;         ///< bottleneck of the set
    std::string stock_gpus;  ///< empty where stock was not asked
    double stock_gbps = 0;
};

/// What was predicted of the placement when the job started, beside stock Slurm's and the fastest
/// that existed then. Step times are relative to computing alone, or, where the job's model was
/// measured before, seconds.
struct SummaryPrediction {
    double step = 0;
    double gbps = 0;  ///< all rings of the slowest set; 0 where no set has two GPUs
    double stock_step = 0;
    double stock_gbps = 0;
    double best_step = 0;
    double best_gbps = 0;
    bool in_seconds = false;
    std::string stock;  ///< stock Slurm's choice where it was on other nodes: "n1:0,2;n2:4-7"
};

struct SummaryResize {
    std::int64_t time = 0;  ///< Unix seconds
    int from = 0;
    int to = 0;
    std::string reason;  ///< blanks become '_' in the text form
};

struct Summary {
    static constexpr std::size_t max_bytes = 4096;
    static constexpr std::size_t max_placements = 8;  ///< further nodes are counted, not listed
    static constexpr std::size_t max_resizes = 8;     ///< the newest are kept

    std::vector<SummaryPlacement> placements;
    int more_nodes = 0;
    std::optional<SummaryPrediction> prediction;
    std::string forwarded;  ///< why the placement was left to stock Slurm; empty where it was not
    std::optional<Record> record;  ///< the last one
    std::vector<SummaryResize> resizes;
    int resize_count = 0;    ///< all of them
    std::string advice;      ///< what would be done in advise mode
    int pending_target = 0;  ///< size that a restart under way is going to; 0: none
};

/// True where the field is empty or holds our member: then, and only then, we write to it.
bool may_write_summary(std::string_view field);
/// True where the field holds our member: the controller runs Sluice for this job.
bool has_summary(std::string_view field);

/// not_found where there is none, bad_input where it is broken.
Result<Summary> parse_summary(std::string_view field);
/// The field with our member replaced; other members and their order are kept. Blanks in Sluice's
/// own sentences become '_'.
std::string with_summary(std::string_view field, const Summary& summary);

}  // namespace sluice
