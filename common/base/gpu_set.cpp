// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/base/gpu_set.hpp"

#include "common/base/text.hpp"

namespace sluice {

std::vector<int> GpuSet::indices() const {
    std::vector<int> out;
    for (GpuSet rest = *this; !rest.empty(); rest.erase(rest.lowest()))
        out.push_back(rest.lowest());
    return out;
}

std::string to_string(GpuSet set) {
    std::string out;
    for (GpuSet rest = set; !rest.empty();) {
        const int first = rest.lowest();
        int last = first;
        while (rest.contains(last)) {
            rest.erase(last);
            if (last + 1 == GpuSet::max_gpus) break;
            if (!rest.contains(last + 1)) break;
            ++last;
        }
        if (!out.empty()) out += ',';
        out += std::to_string(first);
        if (last > first) out += '-' + std::to_string(last);
    }
    return out;
}

Result<GpuSet> parse_gpu_set(std::string_view text) {
    GpuSet set;
    if (trim(text).empty()) return set;
    for (const std::string_view piece : split(text, ',')) {
        const std::string_view range = trim(piece);
        const std::size_t dash = range.find('-');
        const auto first = parse_integer(range.substr(0, dash));
        const auto last =
            dash == std::string_view::npos ? first : parse_integer(range.substr(dash + 1));
        if (!first || !last || *first < 0 || *last < *first || *last >= GpuSet::max_gpus) {
            return {ErrorCode::bad_input, "\"" + printable(range) +
                                              "\" is no GPU index or range: write indices below 64 "
                                              "like 0,2,4-6"};
        }
        for (auto gpu = *first; gpu <= *last; ++gpu) {
            if (set.contains(static_cast<int>(gpu))) {
                return {ErrorCode::bad_input, "GPU " + std::to_string(gpu) +
                                                  " is named twice in \"" + printable(text) +
                                                  "\": name each once"};
            }
            set.insert(static_cast<int>(gpu));
        }
    }
    return set;
}

}  // namespace sluice
