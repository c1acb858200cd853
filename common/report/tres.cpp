// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/report/tres.hpp"

#include <algorithm>

#include "common/base/text.hpp"

namespace sluice {

std::optional<TresGpus> parse_tres(std::string_view text) {
    std::optional<std::int64_t> untyped;
    std::int64_t typed = 0;
    TresGpus out;
    for (const std::string_view item : split(text, ',')) {
        constexpr std::string_view gpu = "gres/gpu";
        const std::size_t equals = item.find('=');
        const std::string_view name = item.substr(0, equals);
        if (name.substr(0, gpu.size()) != gpu) continue;
        const bool has_type = name.size() > gpu.size();
        if (has_type && name[gpu.size()] != ':') continue;  // gres/gpumem and the like
        if (equals == item.npos) return std::nullopt;
        const auto count = parse_integer(item.substr(equals + 1));
        if (!count || *count < 0 || *count > TresGpus::max_gpus) return std::nullopt;
        out.named = true;
        if (has_type)
            typed = std::min(TresGpus::max_gpus, typed + *count);
        else
            untyped = *count;
    }
    out.count = untyped.value_or(typed);
    return out;
}

}  // namespace sluice
