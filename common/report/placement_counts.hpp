// SPDX-License-Identifier: GPL-2.0-or-later
//
// What became of the jobs that asked for GPUs since a controller started
// (doc/formats/placements-v1.txt): the controller writes it to a file below StateDir, and
// `sluice status --controller` shows it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "common/base/result.hpp"

namespace sluice {

struct PlacementCounts {
    static constexpr std::size_t max_bytes = std::size_t{64} * 1024;
    static constexpr const char* file_name = "placements";  ///< below StateDir

    using Reasons = std::map<std::string, std::int64_t, std::less<>>;

    std::int64_t since = 0;        ///< Unix seconds
    std::int64_t as_stock = 0;     ///< stock Slurm's choice was the best
    std::int64_t other_gpus = 0;   ///< other GPUs of the same nodes
    std::int64_t other_nodes = 0;  ///< other nodes
    std::int64_t advised = 0;      ///< would have been one of the two, in advise mode
    Reasons nodes_given;           ///< jobs for which only the GPUs were chosen, by reason
    Reasons forwarded;             ///< jobs that were left to stock Slurm, by reason

    bool operator==(const PlacementCounts&) const = default;
};

std::string to_text(const PlacementCounts& counts);

/// bad_input that names the member that is not as in placements-v1.
Result<PlacementCounts> parse_placement_counts(std::string_view text);

}  // namespace sluice
