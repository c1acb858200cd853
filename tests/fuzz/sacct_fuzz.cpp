// SPDX-License-Identifier: GPL-2.0-or-later
//
// What sacct printed (names and comments are the users'), and the three forms of the report.
#include <cstdint>

#include "common/base/json.hpp"
#include "common/report/sacct_report.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace sluice;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto report = read_sacct({reinterpret_cast<const char*>(data), size}, 2000000000);
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
