// SPDX-License-Identifier: GPL-2.0-or-later
#include "contrib/sim/stock_starts.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace sluice::sim {
namespace {

std::vector<NodeShare> place(std::vector<int>& free, int gpus) {
    std::vector<NodeShare> shares;
    const auto take = [&](std::size_t node, int count) {
        shares.push_back({node, count});
        free[node] -= count;
    };
    std::size_t tightest = free.size();
    for (std::size_t node = 0; node < free.size(); ++node) {
        if (free[node] >= gpus && (tightest == free.size() || free[node] < free[tightest]))
            tightest = node;
    }
    if (tightest < free.size()) {
        take(tightest, gpus);
        return shares;
    }
    if (std::accumulate(free.begin(), free.end(), 0) < gpus) return shares;
    for (int left = gpus; left > 0;) {
        const auto most = std::max_element(free.begin(), free.end());
        const int count = std::min(*most, left);
        take(static_cast<std::size_t>(most - free.begin()), count);
        left -= count;
    }
    return shares;
}

}  // namespace

std::vector<StockStart> stock_starts(const std::vector<NodeView>& nodes,
                                     const std::vector<StockJob>& jobs, double now_s) {
    std::vector<int> free;
    for (const NodeView& node : nodes) free.push_back(node.gpus);
    struct End {
        double at_s;
        int gpus;
    };
    std::vector<End> ends;
    for (const StockJob& job : jobs) {
        if (!job.running) continue;
        for (const NodeShare& share : job.held) free[share.node] -= share.gpus;
        ends.push_back({std::max(job.end_s, now_s), job.gpus});
    }
    int left = std::accumulate(free.begin(), free.end(), 0);

    std::vector<StockStart> starts;
    double reserved_at_s = -1;  // when the first job that does not fit is expected to start
    int spare = 0;              // GPUs that it leaves then
    for (std::size_t i = 0; i < jobs.size(); ++i) {
        const StockJob& job = jobs[i];
        if (job.running) continue;
        const bool fits = job.gpus <= left;
        if (reserved_at_s >= 0) {
            if (!fits) continue;
            const bool ends_before = now_s + job.limit_s <= reserved_at_s;
            if (!ends_before && job.gpus > spare) continue;
            if (!ends_before) spare -= job.gpus;
        }
        if (fits) {
            starts.push_back({i, place(free, job.gpus)});
            ends.push_back({now_s + job.limit_s, job.gpus});
            left -= job.gpus;
            continue;
        }
        std::sort(ends.begin(), ends.end(),
                  [](const End& a, const End& b) { return a.at_s < b.at_s; });
        int then = left;
        reserved_at_s = std::numeric_limits<double>::infinity();
        for (const End& end : ends) {
            then += end.gpus;
            if (then < job.gpus) continue;
            reserved_at_s = end.at_s;
            break;
        }
        spare = std::max(0, then - job.gpus);
    }
    return starts;
}

}  // namespace sluice::sim
