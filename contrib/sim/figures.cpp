// SPDX-License-Identifier: GPL-2.0-or-later
#include "contrib/sim/figures.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sluice::sim {
namespace {

/// A job that was alone takes as long as it would have alone, but for this.
constexpr double rounding = 1e-9;

/// The integral of the number of active jobs from 0 on.
class ActiveJobs {
  public:
    explicit ActiveJobs(const std::vector<JobResult>& jobs) {
        for (const JobResult& job : jobs) {
            points_.push_back({job.arrival_s, 0, 1});
            points_.push_back({job.end_s, 0, -1});
        }
        std::sort(points_.begin(), points_.end(),
                  [](const Point& a, const Point& b) { return a.at_s < b.at_s; });
        // from here on: the integral up to a point, and the number behind it
        for (std::size_t i = 1; i < points_.size(); ++i) {
            const Point& before = points_[i - 1];
            points_[i].integral = before.integral + before.jobs * (points_[i].at_s - before.at_s);
            points_[i].jobs += before.jobs;
        }
    }

    /// Of the job too that lives then.
    double mean(double from_s, double to_s) const {
        if (to_s <= from_s) return 1;
        return (integral(to_s) - integral(from_s)) / (to_s - from_s);
    }

  private:
    struct Point {
        double at_s;
        double integral;
        int jobs;
    };

    /// Only at points, or it would not be an arrival or an end.
    double integral(double at_s) const {
        return std::lower_bound(points_.begin(), points_.end(), at_s,
                                [](const Point& point, double at) { return point.at_s < at; })
            ->integral;
    }

    std::vector<Point> points_;
};

}  // namespace

double quantile(std::vector<double> values, double share) {
    std::sort(values.begin(), values.end());
    const double at = share * static_cast<double>(values.size() - 1);
    const auto low = static_cast<std::size_t>(at);
    const std::size_t high = std::min(low + 1, values.size() - 1);
    return values[low] + (at - std::floor(at)) * (values[high] - values[low]);
}

std::vector<double> finish_time_fairness(const SimulationResult& result) {
    const ActiveJobs active(result.jobs);
    std::vector<double> all;
    all.reserve(result.jobs.size());
    for (const JobResult& job : result.jobs) {
        const double share = result.gpus / active.mean(job.arrival_s, job.end_s);
        double alone_s = std::numeric_limits<double>::infinity();
        for (const AloneTime& time : job.alone)
            alone_s = std::min(alone_s, time.seconds * std::max(1.0, time.gpus / share));
        all.push_back(job.completion_s() / alone_s);
    }
    return all;
}

Figures figures_of(const SimulationResult& result) {
    Figures figures;
    std::vector<double> completion;
    double held_s = 0;
    double useful_s = 0;
    for (const JobResult& job : result.jobs) {
        completion.push_back(job.completion_s());
        figures.average_s += job.completion_s();
        held_s += job.gpu_s;
        useful_s += job.useful_gpu_s;
        figures.restarts += job.restarts;
        figures.resizes += job.resizes;
        figures.failures += job.failures;
        figures.longest_wait_s = std::max(figures.longest_wait_s, job.longest_wait_s);
    }
    const auto jobs = static_cast<double>(result.jobs.size());
    figures.average_s /= jobs;
    figures.restarts /= jobs;
    figures.resizes /= jobs;
    figures.failures /= jobs;
    figures.gpu_hours = held_s / 3600;
    figures.utilisation = held_s / (result.gpus * result.makespan_s);
    figures.useful = held_s > 0 ? useful_s / held_s : 1;
    figures.median_s = quantile(completion, 0.5);
    figures.p99_s = quantile(std::move(completion), 0.99);
    std::vector<double> rho = finish_time_fairness(result);
    const auto is_above_1 = [](double each) { return each > 1 + rounding; };
    figures.rho_above_1 =
        static_cast<double>(std::count_if(rho.begin(), rho.end(), is_above_1)) / jobs;
    figures.rho_worst = *std::max_element(rho.begin(), rho.end());
    figures.rho_median = quantile(std::move(rho), 0.5);
    return figures;
}

}  // namespace sluice::sim
