// SPDX-License-Identifier: GPL-2.0-or-later
//
// Words that several readers of topologies check alike.
#pragma once

#include <optional>
#include <string_view>

#include "common/topology/gpu_graph.hpp"

namespace sluice {

/// The inverse of path_name().
std::optional<PciPath> path_of_name(std::string_view name);

/// "0-19,40-59": rising, below 65536.
bool is_cpu_list(std::string_view text);

/// "0000:06:00.0": domain of 4 to 8 hexadecimal digits, bus, device, function.
bool is_pci_bus_id(std::string_view text);

}  // namespace sluice
