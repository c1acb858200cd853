// SPDX-License-Identifier: GPL-2.0-or-later
//
// What scontrol printed: names, comments and paths are the users'.
#include <cstdint>

#include "common/report/scontrol_jobs.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace {

using namespace sluice;

bool is_printable(const std::string& text) {
    for (const char c : text) {
        if (c < ' ' || c > '~') return false;
    }
    return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::set<std::string> ids{"1", "2", "42"};
    const ControlJobs read = read_scontrol({reinterpret_cast<const char*>(data), size}, ids);
    demand(read.jobs.size() <= ids.size());
    for (const ControlJob& job : read.jobs) {
        demand(ids.contains(job.id) && job.gpus >= 0 && job.restarts >= 0);
        demand(is_printable(job.state) && is_printable(job.nodes) && is_printable(job.array));
        demand(job.summary.ok() || !job.summary.error().message.empty());
    }
    for (const std::string& id : read.doubtful) demand(ids.contains(id));
    return 0;
}
