// SPDX-License-Identifier: GPL-2.0-or-later
//
// What `sluice topo discover --report` prints on a node and `sluice topo collect` reads from many
// at once, each line with the number of its task before it (srun --label):
//   SluiceNode=NAME
//   the topology (doc/formats/topology-v1.txt), or SluiceError=CODE MESSAGE
//   SluiceNote=TEXT, where there is something to say
//   SluiceEnd=NAME
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "common/base/result.hpp"
#include "common/topology/gpu_graph.hpp"

namespace sluice::cli {

struct NodeReport {
    Result<GpuGraph> graph;  ///< not_found: the node has no GPUs to choose from
    std::string note;        ///< for people, or empty
};

std::string report_text(const std::string& node, const NodeReport& report);

/// The reports that are whole, by node. A report that is not, or a second one of a node, is
/// bad_input. Lines outside reports are skipped.
std::map<std::string, NodeReport> read_reports(std::string_view labelled);

}  // namespace sluice::cli
