// SPDX-License-Identifier: GPL-2.0-or-later
//
// sluice.conf and the lists of nodes in it.
#include <cstdint>

#include "common/base/config.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace sluice;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const auto config = parse_config(text, "f");
    if (config) {
        demand(config->interval.count() >= 1 && config->interval.count() <= 3600);
        demand(config->min_gain >= 0 && config->min_gain <= 1);
        std::size_t nodes = 0;
        for (const NodeClassLine& line : config->node_classes) {
            demand(!line.file.empty());
            nodes += line.nodes.size();
        }
        demand(nodes <= 65536);
    } else {
        demand(config.error().message.substr(0, 2) == "f:");
    }
    const auto names = expand_hostlist(text);
    demand(names ? names->size() <= 65536 : !names.error().message.empty());
    return 0;
}
