// SPDX-License-Identifier: GPL-2.0-or-later
#include "plugins/slurm/network.hpp"

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "common/placement/node_choice.hpp"
#include "plugins/slurm/release.hpp"
#include "plugins/slurm/slurm.hpp"

namespace sluice::slurm {
namespace {

// "top.leaf.n1" without the node's own name; nothing where no topology is configured.
std::optional<std::string> switches_text(const node_record_t* node) {
    char* address = nullptr;
    char* pattern = nullptr;
    std::optional<std::string> text;
    if (node_address(node->name, &address, &pattern) == SLURM_SUCCESS && address && pattern &&
        std::string_view(pattern) != "node") {
        const std::string_view whole = address;
        const std::string own = std::string(".") + node->name;
        text = whole.ends_with(own) ? whole.substr(0, whole.size() - own.size()) : whole;
    }
    xfree(address);
    xfree(pattern);
    return text;
}

}  // namespace

std::vector<std::vector<int>> switches_of_nodes() {
    std::vector<std::vector<int>> switches(static_cast<std::size_t>(node_record_count));
    std::map<std::string, int, std::less<>> numbers;
    for (std::size_t i = 0; i < switches.size(); ++i) {
        const node_record_t* node = node_record_table_ptr[i];
        if (!node) continue;
        const auto text = switches_text(node);
        if (!text) continue;
        for (std::size_t end = 0; end != std::string::npos;) {
            end = text->find('.', end + 1);
            const auto prefix = text->substr(0, end);
            const auto known = numbers.try_emplace(prefix, static_cast<int>(numbers.size()));
            switches[i].push_back(known.first->second);
        }
    }
    if (numbers.empty()) return {};
    set_apart_unknown(switches);
    return switches;
}

}  // namespace sluice::slurm
