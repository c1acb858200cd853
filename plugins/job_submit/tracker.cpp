// SPDX-License-Identifier: GPL-2.0-or-later
#include "plugins/job_submit/tracker.hpp"

#include "common/base/json.hpp"
#include "common/base/text.hpp"

namespace sluice::slurm {
namespace {

constexpr std::size_t most_speeds = 16;
constexpr std::size_t most_resize_times = 64;
constexpr std::string_view key_prefix = "job/";

std::string key_of(std::uint32_t id) {
    return std::string(key_prefix) + std::to_string(id);
}

const char* phase_name(Resize::Phase phase) {
    switch (phase) {
        case Resize::Phase::signalled:
            return "signalled";
        case Resize::Phase::requeued:
            return "requeued";
    }
    return "";
}

Json to_json(const Resize& resize) {
    Json json = json_object();
    json_put(json, "phase", json_text(phase_name(resize.phase)));
    json_put(json, "from", json_integer(resize.from));
    json_put(json, "to", json_integer(resize.to));
    json_put(json, "restarts", json_integer(resize.restarts));
    json_put(json, "deadline", json_integer(resize.deadline));
    json_put(json, "checkpointed", json_bool(resize.checkpointed));
    json_put(json, "reason", json_text(resize.reason));
    return json;
}

std::optional<Resize> resize_of(const json_t* json) {
    const auto phase = json_text_at(json, "phase");
    const auto from = json_integer_at(json, "from");
    const auto to = json_integer_at(json, "to");
    const auto restarts = json_integer_at(json, "restarts");
    const auto deadline = json_integer_at(json, "deadline");
    if (!phase || !from || !to || !restarts || !deadline || *to < 1) return std::nullopt;
    Resize resize;
    resize.phase = *phase == phase_name(Resize::Phase::requeued) ? Resize::Phase::requeued
                                                                 : Resize::Phase::signalled;
    resize.from = static_cast<int>(*from);
    resize.to = static_cast<int>(*to);
    resize.restarts = static_cast<int>(*restarts);
    resize.deadline = static_cast<std::time_t>(*deadline);
    resize.checkpointed = json_bool_at(json, "checkpointed").value_or(false);
    resize.reason = json_text_at(json, "reason").value_or("");
    return resize;
}

}  // namespace

bool TrackedJob::see_request(int gpus) {
    if (gpus == asked || gpus == requested) return false;
    requested = gpus;  // the first time, or the user has changed it since
    return true;
}

void TrackedJob::learn(const Record& next) {
    if (next.steps_per_second && next.gpus > 0 &&
        (speeds.size() < most_speeds || speeds.contains(next.gpus)))
        speeds[next.gpus] = {next.gpus, *next.steps_per_second, 1.0};
    if (resize && next.checkpointed && next.restarts == resize->restarts)
        resize->checkpointed = true;
    // What was read once is not unread by an agent that has lost sight of its source since.
    if (next.points == 0 && record && record->points > 0 && record->restarts == next.restarts)
        return;
    record = next;
}

std::string to_text(const TrackedJob& job) {
    Json json = json_object();
    if (job.record) json_put(json, "record", json_text(sluice::to_text(*job.record)));
    Json speeds = json_array();
    for (const auto& [gpus, sample] : job.speeds) {
        Json pair = json_array();
        json_add(pair, json_integer(gpus));
        json_add(pair, json_number(sample.steps_per_second));
        json_add(speeds, std::move(pair));
    }
    json_put(json, "speeds", std::move(speeds));
    Json times = json_array();
    for (const std::time_t time : job.resize_times) json_add(times, json_integer(time));
    json_put(json, "resize_times", std::move(times));
    json_put(json, "last_resize", json_integer(job.last_resize));
    json_put(json, "requested", json_integer(job.requested));
    json_put(json, "asked", json_integer(job.asked));
    json_put(json, "before", json_integer(job.before));
    json_put(json, "too_large", json_integer(job.too_large));
    json_put(json, "too_large_until", json_integer(job.too_large_until));
    if (job.resize) json_put(json, "resize", to_json(*job.resize));
    return json_line(json.get());
}

Result<TrackedJob> parse_tracked_job(std::string_view text) {
    const Result<Json> parsed = parse_json(text);
    if (!parsed) return parsed.error();
    const json_t* json = parsed->get();
    if (!json_is_object(json)) return {ErrorCode::bad_input, "a job's state is no JSON object"};
    TrackedJob job;
    if (const auto record = json_text_at(json, "record")) {
        Result<Record> read = parse_record(*record);
        if (!read) return read.error();
        job.record = *std::move(read);
    }
    const json_t* speeds = json_object_get(json, "speeds");
    for (std::size_t i = 0; i < json_array_size(speeds) && i < most_speeds; ++i) {
        const json_t* pair = json_array_get(speeds, i);
        const json_t* gpus = json_array_get(pair, 0);
        const json_t* speed = json_array_get(pair, 1);
        if (!json_is_integer(gpus) || !json_is_number(speed)) continue;
        const int count = static_cast<int>(json_integer_value(gpus));
        job.speeds[count] = {count, json_number_value(speed), 1.0};
    }
    const json_t* times = json_object_get(json, "resize_times");
    for (std::size_t i = 0; i < json_array_size(times) && i < most_resize_times; ++i)
        job.resize_times.push_back(
            static_cast<std::time_t>(json_integer_value(json_array_get(times, i))));
    job.last_resize = static_cast<std::time_t>(json_integer_at(json, "last_resize").value_or(0));
    job.requested = static_cast<int>(json_integer_at(json, "requested").value_or(0));
    job.asked = static_cast<int>(json_integer_at(json, "asked").value_or(0));
    job.before = static_cast<int>(json_integer_at(json, "before").value_or(0));
    job.too_large = static_cast<int>(json_integer_at(json, "too_large").value_or(0));
    job.too_large_until =
        static_cast<std::time_t>(json_integer_at(json, "too_large_until").value_or(0));
    if (const json_t* resize = json_object_get(json, "resize")) job.resize = resize_of(resize);
    return job;
}

Tracker::Tracker(std::unique_ptr<Journal> journal) : journal_(std::move(journal)) {
    if (!journal_) return;
    damaged_ = journal_->damaged_lines();
    for (const auto& [key, text] : journal_->values()) {
        if (!key.starts_with(key_prefix)) continue;
        const auto id = parse_integer(std::string_view(key).substr(key_prefix.size()));
        Result<TrackedJob> job = parse_tracked_job(text);
        if (!id || *id < 1 || *id > UINT32_MAX || !job) {
            ++damaged_;
            continue;
        }
        jobs_.emplace(static_cast<std::uint32_t>(*id), *std::move(job));
    }
}

TrackedJob* Tracker::find(std::uint32_t id) {
    const auto job = jobs_.find(id);
    return job == jobs_.end() ? nullptr : &job->second;
}

Status Tracker::store(std::uint32_t id) {
    const auto job = jobs_.find(id);
    if (!journal_ || job == jobs_.end()) return {};
    return journal_->put(key_of(id), to_text(job->second));
}

Status Tracker::forget(std::uint32_t id) {
    jobs_.erase(id);
    return journal_ ? journal_->erase(key_of(id)) : Status();
}

}  // namespace sluice::slurm
