// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/allocator/policy.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "common/allocator/fifo.hpp"
#include "common/allocator/progress.hpp"
#include "common/allocator/sluice.hpp"
#include "common/base/text.hpp"

namespace sluice {
namespace {

struct KnownPolicy {
    const char* name;
    std::unique_ptr<Policy> (*make)();
};

template <typename T>
std::unique_ptr<Policy> make() {
    return std::make_unique<T>();
}

constexpr std::array known_policies{
    KnownPolicy{"fifo", make<FifoPolicy>},
    KnownPolicy{"progress", make<ProgressPolicy>},
    KnownPolicy{"sluice", make<SluicePolicy>},
};

}  // namespace

Result<std::unique_ptr<Policy>> make_policy(std::string_view name) {
    std::string names;
    for (const KnownPolicy& policy : known_policies) {
        if (name == policy.name) return policy.make();
        names += std::string(names.empty() ? "" : ", ") + policy.name;
    }
    return {ErrorCode::usage, "\"" + printable(name) + "\" is no policy: write one of " + names};
}

std::vector<std::string> policy_names() {
    std::vector<std::string> names;
    names.reserve(known_policies.size());
    for (const KnownPolicy& policy : known_policies) names.emplace_back(policy.name);
    return names;
}

int gpus_of(const std::vector<NodeShare>& shares) {
    return std::accumulate(shares.begin(), shares.end(), 0,
                           [](int sum, const NodeShare& share) { return sum + share.gpus; });
}

int gpus_of_largest(const std::vector<NodeView>& nodes) {
    int most = 1;
    for (const NodeView& node : nodes) most = std::max(most, node.gpus);
    return most;
}

StepPlacement packed_placement(int gpus_of_node, int gpus) {
    StepPlacement placement;
    placement.gpus = gpus;
    placement.nodes = (gpus + gpus_of_node - 1) / gpus_of_node;
    placement.most_on_node = std::min(gpus, gpus_of_node);
    return placement;
}

std::optional<double> relative_gain(const JobView& job, int gpus, double seconds) {
    if (!job.curve || !job.step || !job.speed || gpus < 1) return std::nullopt;
    const double limit = std::max(job.curve->b2, job.target_loss.value_or(job.curve->b2));
    const double now = job.curve->at(*job.step);
    const double then =
        job.curve->at(*job.step + job.speed->steps_per_second(gpus) * std::max(0.0, seconds));
    if (!std::isfinite(now) || !std::isfinite(then)) return std::nullopt;
    if (now <= limit) return 0;
    return std::clamp((now - then) / (now - limit), 0.0, 1.0);
}

}  // namespace sluice
