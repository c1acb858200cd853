// SPDX-License-Identifier: GPL-2.0-or-later
//
// What a user asks of Sluice: the --train-* options of one job. Parsed on the login node, again in
// slurmctld and again on the compute node, each time by this code (doc/formats/jobspec-v1.txt).
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/result.hpp"
#include "common/jobspec/option_infos.hpp"

namespace sluice {

enum class ResizeMode { off, start, restart, live };

/// --train-signal=[B:]SIG[@SECONDS], as Slurm's own --signal.
struct CheckpointSignal {
    bool batch_only = false;  ///< "B:": only the batch shell, else every process of the job's steps
    int number = 10;          ///< SIGUSR1
    std::chrono::seconds grace{
        60};  ///< the job is requeued when it says it is ready, at the latest after this
};

/// --train-target: a loss to reach, a number of steps ("steps:5000"), or "flat".
struct Target {
    enum class Kind { loss, steps, flat } kind = Kind::flat;
    double loss = 0;
    std::int64_t steps = 0;
};

struct JobSpec {
    static constexpr std::size_t max_bytes = 1024;
    static constexpr int max_gpus = 65536;
    static constexpr std::int64_t max_batch = 1'000'000'000;

    std::string model;                  ///< --train-model: [A-Za-z0-9._+/-]{1,64}
    std::optional<std::int64_t> batch;  ///< --train-batch: samples of a step on all GPUs together
    std::vector<int> sizes;  ///< --train-gpus, ascending, at most 256; empty: not malleable
    std::string
        loss;  ///< --train-loss: SOURCE with Slurm's %j %A %a %x patterns; empty: the job's output
    std::string loss_key;  ///< --train-loss-key: a name or /PATTERN/ (common/base/loss_key.hpp)
    std::optional<Target> target;           ///< --train-target
    ResizeMode resize = ResizeMode::start;  ///< --train-resize; off where sizes is empty
    CheckpointSignal signal;                ///< --train-signal
    bool advise = false;  ///< --train-advise=yes: say what would be done to this job, do nothing

    friend bool operator==(const JobSpec& a, const JobSpec& b);
};

/// The spec of (name, value) pairs; names with or without "train-", with '_' for '-' (as SPANK's
/// environment spells them). bad_input: "--train-gpus: \"1-x\" is ...: write ...".  A later pair
/// replaces an earlier one of the same name. `live` is refused until growing live exists.
Result<JobSpec> parse_options(const std::vector<std::pair<std::string, std::string>>& options);

/// Canonical text: "v1;gpus=1-16;resize=restart;..." in the order of option_infos, nothing for
/// defaults.
std::string to_text(const JobSpec& spec);
Result<JobSpec> parse_spec(std::string_view text);

/// Slurm's file names: --train-loss with %j (job id), %A (array job id), %a (array index), %x (job
/// name), %u (user), %% expanded, each with a width for zeros (%4j); a backslash switches patterns
/// off. What is not in this list stays as it is written.
struct PatternValues {
    std::uint32_t job_id = 0;
    std::uint32_t array_job_id = 0;  ///< 0 for a job that is no member of an array
    std::optional<std::uint32_t> array_task_id;
    std::string job_name;
    std::string user;
};
std::string expand_pattern(std::string_view pattern, const PatternValues& values);

}  // namespace sluice
