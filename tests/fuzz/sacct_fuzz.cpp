// SPDX-License-Identifier: GPL-2.0-or-later
//
// What sacct printed (names and comments are the users'): the three forms of the report, and the
// workload that the simulator makes of it.
#include <cstdint>

#include "common/base/json.hpp"
#include "common/report/sacct_report.hpp"
#include "contrib/sim/sacct_workload.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace sluice;

namespace {

void check_workload(std::string_view text) {
    const auto read = sim::read_sacct_workload(text, "input");
    if (!read) return demand(!read.error().message.empty());
    demand(!read->jobs.empty() && read->warnings.size() <= 10);
    demand(read->jobs.front().arrival_s == 0);
    double last = 0;
    for (const sim::WorkloadJob& job : read->jobs) {
        demand(job.arrival_s >= last && job.gpus > 0 && job.runs_s > 0 && job.limit_s >= 0);
        last = job.arrival_s;
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    check_workload(text);
    const auto report = read_sacct(text, 2000000000);
    if (!report) {
        demand(!report.error().message.empty());
        return 0;
    }
    demand(report->warnings.size() <= 10 && report->gpu_seconds >= 0);
    for (const JobReport& job : report->jobs)
        demand(job.records > 0 && job.gpu_seconds >= 0 && job.wait_s >= 0 && job.max_gpus >= 0);
    for (const char c : to_table(*report)) demand(c == '\n' || (c >= ' ' && c <= '~'));
    to_csv(*report);
    const std::string json = to_json(*report);
    demand(parse_json(json, json.size()).ok());
    return 0;
}
