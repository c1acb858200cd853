// SPDX-License-Identifier: GPL-2.0-or-later
#include "plugins/spank/loss_begin.hpp"

#include <algorithm>
#include <cstdint>

#include "common/base/text.hpp"

namespace sluice::spank {
namespace {

constexpr std::string_view digits = "0123456789abcdef";

}  // namespace

LossSource loss_source(const JobSpec& spec, const Environment& environment,
                       const std::string& output, const std::string& folder) {
    LossSource source;
    if (spec.loss.empty()) {
        source.path = output;
        return source;
    }
    const auto number = [&](const char* name) { return parse_integer(environment(name)); };
    PatternValues values;
    values.job_id = static_cast<std::uint32_t>(number("SLURM_JOB_ID").value_or(0));
    if (const auto array = number("SLURM_ARRAY_JOB_ID"))
        values.array_job_id = static_cast<std::uint32_t>(*array);
    if (const auto task = number("SLURM_ARRAY_TASK_ID"))
        values.array_task_id = static_cast<std::uint32_t>(*task);
    values.job_name = environment("SLURM_JOB_NAME");
    values.user = environment("SLURM_JOB_USER");
    const Result<LossSource> parsed = parse_loss_source(expand_pattern(spec.loss, values));
    if (parsed) source = *parsed;
    if (source.kind != LossSource::Kind::mlflow && !source.path.starts_with('/'))
        source.path = folder + "/" + source.path;
    return source;
}

LogMark loss_begin(const LossSource& source, const Environment& environment) {
    const bool requeued = parse_integer(environment("SLURM_RESTART_COUNT")).value_or(0) > 0;
    const bool whole = requeued || source.kind != LossSource::Kind::log;
    return whole ? LogMark() : LogFollower::mark(source.path);
}

std::string to_text(const LogMark& mark) {
    // Numbers of files may use all 64 bits; parse_integer() has a sign for the highest.
    std::string text = std::to_string(static_cast<std::int64_t>(mark.device)) + ":" +
                       std::to_string(static_cast<std::int64_t>(mark.inode)) + ":" +
                       std::to_string(mark.size) + ":";
    for (const char c : mark.tail) {
        const auto byte = static_cast<unsigned char>(c);
        text += digits[byte >> 4];
        text += digits[byte & 15];
    }
    return text;
}

LogMark parse_log_mark(std::string_view text) {
    const auto parts = split(text, ':');
    if (parts.size() != 4) return {};
    const auto device = parse_integer(parts[0]);
    const auto inode = parse_integer(parts[1]);
    const auto size = parse_integer(parts[2]);
    if (!device || !inode || !size || *size < 0 || parts[3].size() % 2 != 0) return {};
    LogMark mark{static_cast<dev_t>(*device), static_cast<ino_t>(*inode), *size, {}};
    for (std::size_t i = 0; i < parts[3].size(); i += 2) {
        const std::size_t high = digits.find(parts[3][i]);
        const std::size_t low = digits.find(parts[3][i + 1]);
        if (std::max(high, low) >= digits.size()) return {};
        mark.tail += static_cast<char>(high << 4 | low);
    }
    return mark;
}

}  // namespace sluice::spank
