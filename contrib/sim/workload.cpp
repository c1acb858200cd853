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

void number_by_arrival(std::vector<WorkloadJob>& jobs) {
    std::stable_sort(jobs.begin(), jobs.end(), [](const WorkloadJob& a, const WorkloadJob& b) {
        return a.arrival_s < b.arrival_s;
    });
    for (std::size_t number = 0; number < jobs.size(); ++number) jobs[number].number = number;
}

Result<std::vector<WorkloadJob>> read_workload(const std::string& path) {
    const Result<CsvTable> csv =
        CsvTable::read(path, {"name", "time", "application", "num_replicas", "batch_size"});
    if (!csv) return csv.error();
    std::vector<WorkloadJob> jobs;
    jobs.reserve(csv->rows());
    for (std::size_t row = 0; row < csv->rows(); ++row) {
        struct Number {
            std::size_t column;
            double least;
            double most;
            const char* needed;
            double value = 0;
        };
        std::array<Number, 3> numbers{
            {{1, 0, 1e9, "time: seconds from 0 to 1e9 are needed, counted from the beginning"},
             {3, 1, 65536, "num_replicas: a whole number from 1 to 65536 is needed"},
             {4, 0, 1e9, "batch_size: a number from 0 to 1e9 is needed"}}};
        for (Number& number : numbers) {
            const Result<double> value = csv->number(row, number.column);
            if (!value) return value.error();
            number.value = *value;
            if (*value < number.least || *value > number.most ||
                (number.column == 3 && *value != std::floor(*value)))
                return {ErrorCode::bad_input, csv->place(row) + ": \"" +
                                                  printable(csv->text(row, number.column)) +
                                                  "\" is no " + number.needed};
        }
        const auto& [arrival, gpus, batch] = numbers;
        if (csv->text(row, 2).empty())
            return {ErrorCode::bad_input, csv->place(row) + ": application is empty"};
        jobs.push_back({std::string(csv->text(row, 0)), 0, arrival.value,
                        std::string(csv->text(row, 2)), static_cast<int>(gpus.value), batch.value,
                        csv->line(row)});
    }
    if (jobs.empty()) return {ErrorCode::bad_input, path + ": has no jobs"};
    number_by_arrival(jobs);
    return jobs;
}

}  // namespace sluice::sim
