// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstddef>
#include <vector>

#include "common/allocator/packing_search.hpp"
#include "common/allocator/policy.hpp"

namespace sluice {

struct ShapeSpeed {
    std::size_t shape = 0;
    double speed = 0;
};

/// What the policies that look at placements start from: the shapes, and how fast each job is on
/// those that it may have. Jobs that run and cannot be changed are no part of it, nor are their
/// GPUs.
class ShapeSpeeds {
  public:
    struct Job {
        const JobView* view = nullptr;
        /// Useful ones: no fewer GPUs on no more nodes of the type come within 1 %. By shape.
        std::vector<ShapeSpeed> speeds;
        double held_speed = 0;
        double alone_rate = 0;  ///< that of one GPU, which speeds are relative to; 0: no speeds
    };

    explicit ShapeSpeeds(const ClusterView& cluster);

    const std::vector<Job>& jobs() const { return jobs_; }
    const std::vector<Shape>& shapes() const { return shapes_; }
    const std::vector<NodeView>& nodes() const { return nodes_; }
    int gpus_of(const ShapeSpeed& speed) const { return shapes_[speed.shape].placement.gpus; }
    /// Of what the job holds.
    std::size_t held_type(const Job& job) const { return nodes_[job.view->held.front().node].type; }

    /// What is different from now; `results` in the order of jobs().
    Plan plan_of(const std::vector<PackingResult>& results) const;

  private:
    Job speeds_of(const JobView& view) const;

    std::vector<NodeView> nodes_;
    std::vector<Shape> shapes_;
    std::vector<Job> jobs_;
};

}  // namespace sluice
