// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/allocator/progress.hpp"

#include "common/allocator/size_plan.hpp"
#include "common/base/text.hpp"

namespace sluice {
namespace {

class RelativeGain : public SizeValues {
  public:
    std::optional<double> value(const JobView& job, int size, double seconds) const override {
        return relative_gain(job, size, seconds);
    }
    std::string amount(const JobView&, double value, double) const override {
        return format_fixed(100 * value, 2) + "%";
    }
    std::string unit(double seconds) const override {
        return " of the loss still to fall within " + format_fixed(seconds, 0) + " s";
    }
};

}  // namespace

Plan ProgressPolicy::plan(const ClusterView& cluster) const {
    return plan_sizes(cluster, RelativeGain());
}

}  // namespace sluice
