// SPDX-License-Identifier: GPL-2.0-or-later
#include "contrib/sim/workload.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "common/base/text.hpp"
#include "contrib/sim/csv_table.hpp"

namespace sluice::sim {

double batch_of(const WorkloadJob& job, double first_batch) {
    return job.batch > 0 ? job.batch : first_batch;
}

Result<std::vector<WorkloadJob>> read_workload(const std::string& path) {
    const Result<CsvTable> csv =
        CsvTable::read(path, {"name", "time", "application", "num_replicas", "batch_size"});
    if (!csv) return csv.error();
    std::vector<WorkloadJob> jobs;
    jobs.reserve(csv->rows());
    for (std::size_t row = 0; row < csv->rows(); ++row) {
        std::array<double, 3> values{};  // time, num_replicas, batch_size
        constexpr std::array<std::size_t, 3> columns{1, 3, 4};
        for (std::size_t i = 0; i < columns.size(); ++i) {
            const Result<double> value = csv->number(row, columns[i]);
            if (!value) return value.error();
            values[i] = *value;
        }
        const auto [arrival, gpus, batch] = values;
        if (arrival < 0 || arrival > 1e9 || gpus < 1 || gpus > 65536 || gpus != std::floor(gpus) ||
            batch < 0 || batch > 1e9)
            return {ErrorCode::bad_input,
                    csv->place(row) +
                        ": time and batch_size from 0 and num_replicas from 1 to "
                        "65536 are needed"};
        if (csv->text(row, 2).empty())
            return {ErrorCode::bad_input, csv->place(row) + ": application is empty"};
        jobs.push_back({std::string(csv->text(row, 0)), 0, arrival, std::string(csv->text(row, 2)),
                        static_cast<int>(gpus), batch});
    }
    if (jobs.empty()) return {ErrorCode::bad_input, path + ": has no jobs"};
    std::stable_sort(jobs.begin(), jobs.end(), [](const WorkloadJob& a, const WorkloadJob& b) {
        return a.arrival_s < b.arrival_s;
    });
    for (std::size_t number = 0; number < jobs.size(); ++number) jobs[number].number = number;
    return jobs;
}

}  // namespace sluice::sim
