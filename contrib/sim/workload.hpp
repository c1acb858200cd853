// SPDX-License-Identifier: GPL-2.0-or-later
//
// Which jobs come when: a CSV with the columns of Pollux's and Sia's public workloads,
//
//     name,time,application,num_replicas,batch_size       time in seconds, by arrival or not
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "common/base/result.hpp"

namespace sluice::sim {

struct WorkloadJob {
    std::string name;
    std::size_t number = 0;  ///< in order of arrival
    double arrival_s = 0;
    std::string application;
    int gpus = 1;          ///< what a person would have asked for
    double batch = 0;      ///< and set; 0: not said
    std::size_t line = 0;  ///< of the file
    double runs_s = 0;     ///< how long it ran on these GPUs; 0: not known
    double limit_s = 0;    ///< its time limit; 0: not said
};

/// What the job was set to, else the first batch that its application was measured with.
double batch_of(const WorkloadJob& job, double first_batch);

/// Sorts by arrival and numbers them.
void number_by_arrival(std::vector<WorkloadJob>& jobs);

/// By arrival. bad_input with file and line.
Result<std::vector<WorkloadJob>> read_workload(const std::string& path);

}  // namespace sluice::sim
