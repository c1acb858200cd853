// SPDX-License-Identifier: GPL-2.0-or-later
#include "plugins/slurm/spank_options.hpp"

namespace sluice::slurm {

std::vector<std::pair<std::string, std::string>> options_in(char* const* environment,
                                                            std::size_t count) {
    std::vector<std::pair<std::string, std::string>> options;
    for (std::size_t i = 0; environment && i < count; ++i) {
        if (!environment[i]) continue;
        std::string_view entry = environment[i];
        // Job control variables may carry a second prefix (plugstack.c strips the same one).
        if (entry.starts_with("SPANK_")) entry.remove_prefix(6);
        if (!entry.starts_with(option_prefix)) continue;
        entry.remove_prefix(option_prefix.size());
        const std::size_t equals = entry.find('=');
        if (equals == std::string_view::npos) continue;
        options.emplace_back(entry.substr(0, equals), entry.substr(equals + 1));
    }
    return options;
}

}  // namespace sluice::slurm
