// SPDX-License-Identifier: GPL-2.0-or-later
//
// Nodes of equal topology become classes: a file each, and the lines that tie the files to nodes.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/topology/gpu_graph.hpp"

namespace sluice::cli {

struct NodeClass {
    std::string file;  ///< "8x-tesla-v100-sxm2-16gb-0123456789ab.topo": a function of its text
    std::string text;  ///< doc/formats/topology-v1.txt
    std::vector<std::string> nodes;  ///< sorted
};

/// Nodes are of one class where all but PCI bus ids and names of NICs is equal. The text of a class
/// has these where all its nodes have the same. By file name.
std::vector<NodeClass> classes_of(const std::map<std::string, GpuGraph>& graphs);

}  // namespace sluice::cli
