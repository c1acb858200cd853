// SPDX-License-Identifier: GPL-2.0-or-later
#include "contrib/sim/stock_starts.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "common/allocator/worst_fit.hpp"

namespace sluice::sim {

std::vector<StockStart> stock_starts(const std::vector<NodeView>& nodes,
                                     const std::vector<StockJob>& jobs, double now_s) {
    WorstFit free(nodes);
    struct End {
        double at_s;
        int gpus;
    };
    std::vector<End> ends;
    for (const StockJob& job : jobs) {
        if (!job.running) continue;
        free.take(job.held);
        ends.push_back({std::max(job.end_s, now_s), job.gpus});
    }

    std::vector<StockStart> starts;
    double reserved_at_s = -1;  // when the first job that does not fit is expected to start
    int spare = 0;              // GPUs that it leaves then
    for (std::size_t i = 0; i < jobs.size(); ++i) {
        const StockJob& job = jobs[i];
        if (job.running) continue;
        const bool fits = job.gpus <= free.free_gpus();
        if (reserved_at_s >= 0) {
            if (!fits) continue;
            const bool ends_before = now_s + job.limit_s <= reserved_at_s;
            if (!ends_before && job.gpus > spare) continue;
            if (!ends_before) spare -= job.gpus;
        }
        if (fits) {
            std::vector<NodeShare> shares = free.place_on_one(job.gpus);
            if (shares.empty()) shares = free.place(job.gpus);
            starts.push_back({i, std::move(shares)});
            ends.push_back({now_s + job.limit_s, job.gpus});
            continue;
        }
        std::sort(ends.begin(), ends.end(),
                  [](const End& a, const End& b) { return a.at_s < b.at_s; });
        int then = free.free_gpus();
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
