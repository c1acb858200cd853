// SPDX-License-Identifier: GPL-2.0-or-later
//
// Clusters of any kind and jobs of any knowledge, as bytes: what no plan of a policy may do.
#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <set>
#include <vector>

#include "common/allocator/fifo.hpp"
#include "common/allocator/goodput.hpp"
#include "common/allocator/las.hpp"
#include "common/allocator/optimus.hpp"
#include "common/allocator/progress.hpp"
#include "common/allocator/sluice.hpp"
#include "common/allocator/srtf.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace sluice;

namespace {

/// 0 where there are no more.
class Bytes {
  public:
    Bytes(const std::uint8_t* data, std::size_t size) : at_(data), left_(size) {}

    bool more() const { return left_ > 0; }
    int next() {
        if (left_ == 0) return 0;
        --left_;
        return *at_++;
    }
    int below(int limit) { return next() % limit; }
    bool one_in(int many) { return more() && below(many) == 0; }
    /// From 1e-6 to 1e9, seldom 0.
    double amount() {
        const int byte = next();
        return byte == 255 ? 0 : std::pow(10.0, byte / 17.0 - 6);
    }

  private:
    const std::uint8_t* at_;
    std::size_t left_;
};

class Work : public WorkForecast {
  public:
    explicit Work(Bytes& bytes) {
        left_.resize(static_cast<std::size_t>(1 + bytes.below(3)));
        for (double& each : left_) each = bytes.amount();
        std::sort(left_.begin(), left_.end());
        for (double& each : of_types_) each = bytes.one_in(6) ? 0 : bytes.amount();
        power_ = bytes.below(16) / 12.0;
        across_ = bytes.below(8) / 4.0;
    }
    double remaining() const override { return left_.back(); }
    std::vector<double> remaining_quantiles() const override { return left_; }
    double rate(const StepPlacement& placement, std::size_t type) const override {
        return of_types_.at(type) * std::pow(placement.gpus, power_) /
               (1 + across_ * (placement.nodes - 1));
    }

  private:
    std::vector<double> left_;
    std::array<double, 3> of_types_{};
    double power_ = 1;
    double across_ = 0;
};

std::vector<NodeShare> some_free(Bytes& bytes, std::vector<int>& free,
                                 const std::vector<NodeView>& nodes) {
    std::vector<NodeShare> shares;
    for (int left = 1 + bytes.below(12), tries = 4; left > 0 && tries > 0; --tries) {
        const auto node = static_cast<std::size_t>(bytes.below(static_cast<int>(nodes.size())));
        const int gpus = std::min(left, free[node]);
        const bool other =
            !shares.empty() && (nodes[shares.front().node].type != nodes[node].type ||
                                std::any_of(shares.begin(), shares.end(),
                                            [&](const auto& share) { return share.node == node; }));
        if (gpus < 1 || other) continue;
        free[node] -= gpus;
        left -= gpus;
        shares.push_back({node, gpus});
    }
    return shares;
}

JobView job_of(Bytes& bytes, std::vector<int>& free, const std::vector<NodeView>& nodes) {
    JobView job;
    if (bytes.one_in(2) && !nodes.empty()) job.held = some_free(bytes, free, nodes);
    job.running = !job.held.empty();
    job.current = job.running ? gpus_of(job.held) : 1 + bytes.below(20);
    job.requested = bytes.one_in(2) ? job.current : 1 + bytes.below(20);
    job.resizable = !bytes.one_in(4);
    std::set<int> sizes;
    for (int i = bytes.below(8); i > 0; --i) sizes.insert(1 + bytes.below(40));
    if (bytes.one_in(2))
        for (int size = 1 + bytes.below(4), most = bytes.below(64); size < most; ++size)
            sizes.insert(size);
    if (sizes.empty()) sizes.insert(job.current);
    job.sizes.assign(sizes.begin(), sizes.end());
    if (bytes.one_in(5)) job.node_count = 1 + bytes.below(4);
    if (!bytes.one_in(4)) job.work = std::make_shared<Work>(bytes);
    if (bytes.one_in(3)) job.attained_gpu_s = bytes.amount();
    if (bytes.one_in(3)) job.restart_cost_s = bytes.amount();
    job.age_s = bytes.amount();
    if (bytes.one_in(3)) job.waited_s = bytes.amount();
    job.since_resize_s = job.running ? bytes.amount() : 0;
    job.resizes = bytes.below(9);
    job.resizes_last_hour = std::min(job.resizes, bytes.below(6));
    return job;
}

ClusterView cluster_of(Bytes& bytes) {
    ClusterView cluster;
    cluster.options.may_stop = bytes.one_in(2);
    cluster.options.interval_s = 1 + bytes.next();
    cluster.options.cooldown_s = bytes.next();
    cluster.options.min_gain = bytes.below(100) / 100.0;
    const int types = 1 + bytes.below(3);
    cluster.nodes.resize(static_cast<std::size_t>(bytes.below(14)));
    std::vector<int> free;
    for (NodeView& node : cluster.nodes) {
        node.gpus = bytes.below(9);
        node.type = static_cast<std::size_t>(bytes.below(types));
        free.push_back(node.gpus);
    }
    while (bytes.more() && cluster.jobs.size() < 40) {
        cluster.jobs.push_back(job_of(bytes, free, cluster.nodes));
        cluster.jobs.back().id = static_cast<std::uint32_t>(cluster.jobs.size());
    }
    return cluster;
}

/// `chooses`: sizes and places; the others run jobs as they were requested, or stop them.
void check(const ClusterView& cluster, const Plan& plan, bool chooses) {
    std::vector<std::vector<NodeShare>> at;
    for (const JobView& job : cluster.jobs) at.push_back(job.held);
    std::set<std::uint32_t> named;
    bool says_where = true;
    for (const Decision& decision : plan.decisions) {
        demand(decision.job >= 1 && decision.job <= cluster.jobs.size());
        demand(named.insert(decision.job).second);
        demand(!decision.reason.empty());
        const JobView& job = cluster.jobs[decision.job - 1];
        if (decision.gpus == 0) {
            demand(job.running && cluster.options.may_stop);
        } else if (chooses) {
            demand(std::binary_search(job.sizes.begin(), job.sizes.end(), decision.gpus));
        } else {
            demand(decision.gpus == job.requested || decision.gpus == job.current ||
                   std::binary_search(job.sizes.begin(), job.sizes.end(), decision.gpus));
        }
        if (chooses && !job.resizable) demand(!job.running && cluster.options.may_stop);
        if (!decision.shares.empty()) demand(gpus_of(decision.shares) == decision.gpus);
        if (decision.shares.empty() && decision.gpus > 0) says_where = false;
        at[decision.job - 1] = decision.shares;
    }
    if (!says_where) return;
    std::vector<int> used(cluster.nodes.size());
    for (const std::vector<NodeShare>& shares : at)
        for (const NodeShare& share : shares) {
            demand(share.node < cluster.nodes.size() && share.gpus > 0);
            used[share.node] += share.gpus;
        }
    for (std::size_t node = 0; node < used.size(); ++node)
        demand(used[node] <= cluster.nodes[node].gpus);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Bytes bytes(data, size);
    ClusterView cluster = cluster_of(bytes);
    check(cluster, SluicePolicy().plan(cluster), true);
    if (!cluster.options.may_stop) {
        check(cluster, ProgressPolicy().plan(cluster), true);
        check(cluster, FifoPolicy().plan(cluster), true);
        return 0;
    }
    check(cluster, GoodputPolicy().plan(cluster), true);
    // these have no jobs but such as can be stopped, and run as they were requested
    for (JobView& job : cluster.jobs) {
        job.resizable = true;
        if (job.running) job.requested = job.current;
    }
    check(cluster, LasPolicy().plan(cluster), false);
    check(cluster, SrtfPolicy().plan(cluster), false);
    check(cluster, OptimusPolicy().plan(cluster), false);
    return 0;
}
