// SPDX-License-Identifier: GPL-2.0-or-later
//
// sluice status --controller: what the controller keeps below StateDir.
#include "contrib/sluice/controller.hpp"

#include <cerrno>
#include <cstdio>

#include "common/base/config.hpp"
#include "common/base/file.hpp"
#include "common/base/json.hpp"
#include "common/base/text.hpp"
#include "common/report/placement_counts.hpp"
#include "contrib/sluice/command.hpp"
#include "contrib/sluice/run_program.hpp"

namespace sluice::cli {
namespace {

constexpr std::size_t max_bytes = 1 << 20;

/// "Key = value" of scontrol show config.
std::string value_of(std::string_view config, std::string_view key) {
    for (const std::string_view line : split(config, '\n')) {
        const std::size_t equals = line.find('=');
        if (equals == std::string_view::npos || trim(line.substr(0, equals)) != key) continue;
        return std::string(trim(line.substr(equals + 1)));
    }
    return "";
}

/// Where slurm.conf and sluice.conf say that the controller keeps its state.
Result<std::string> find_state_dir() {
    const auto output = run_program({"scontrol", "show", "config"}, {}, max_bytes);
    if (!output) return output.error();
    if (output->exit_status != 0)
        return {ErrorCode::unreachable,
                "scontrol: " + printable(trim(output->err), 500) +
                    "; --state-dir says where the controller keeps its state"};
    const std::string slurm_conf = value_of(output->out, "SLURM_CONF");
    const std::string folder = slurm_conf.substr(0, slurm_conf.rfind('/') + 1);
    if (const auto config = read_config_file(folder + "sluice.conf");
        config && !config->state_dir.empty())
        return config->state_dir;
    return value_of(output->out, "StateSaveLocation") + "/sluice";
}

void print_reasons(const char* title, const PlacementCounts::Reasons& reasons) {
    for (const auto& [reason, count] : reasons) {
        std::printf("  %-24s%-9lld%s\n", title, static_cast<long long>(count), reason.c_str());
        title = "";
    }
}

void print_counts(const PlacementCounts& counts) {
    const auto row = [](const char* title, std::int64_t count, const char* what) {
        std::printf("  %-24s%-9lld%s\n", title, static_cast<long long>(count), what);
    };
    std::printf("jobs with GPUs since %s\n", local_time(counts.since).c_str());
    row("placed by Sluice", counts.other_nodes, "on other nodes than stock Slurm would have");
    row("", counts.other_gpus, "on other GPUs of the same nodes");
    row("", counts.as_stock, "as stock Slurm would have: nothing was better");
    if (counts.advised > 0) row("", counts.advised, "would have been, without advise mode");
    print_reasons("on stock Slurm's nodes", counts.nodes_given);
    print_reasons("left to stock Slurm", counts.forwarded);
}

}  // namespace

int status_of_controller(const std::string& given_state_dir, bool json) {
    const Result<std::string> state_dir =
        given_state_dir.empty() ? find_state_dir() : Result<std::string>(given_state_dir);
    if (!state_dir) return fail("status", state_dir.error());
    const std::string path = *state_dir + "/" + PlacementCounts::file_name;
    const auto text = read_file(path, PlacementCounts::max_bytes);
    if (!text) {
        Error error = text.error();
        error.message += error.code == ErrorCode::not_found
                             ? ": no job with GPUs has started under Sluice yet, or the controller "
                               "is another machine"
                             : ": run this as root or SlurmUser where slurmctld runs";
        return fail("status", error);
    }
    const auto counts = parse_placement_counts(*text);
    if (!counts)
        return fail("status", {ErrorCode::bad_input, path + ": " + counts.error().message});
    if (json)
        std::fputs(to_text(*counts).c_str(), stdout);
    else
        print_counts(*counts);
    return 0;
}

}  // namespace sluice::cli
