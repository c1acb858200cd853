// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/samples/trainer_state.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <tuple>

#include "common/base/text.hpp"
#include "common/samples/log_line.hpp"

namespace sluice {
namespace {

constexpr const char* file_name = "trainer_state.json";
constexpr std::size_t piece_bytes = std::size_t{64} * 1024;
constexpr off_t max_bytes = off_t{256} * 1024 * 1024;
constexpr std::size_t max_names = 16384;
constexpr std::size_t max_looked_into = 4;
// The file is written every few minutes, and looking for it may mean looking at many folders.
constexpr double look_interval_s = 10;
// What could not be read is tried again after so long, though it has not changed.
constexpr double retry_s = 10;

}  // namespace

void TrainerStateReader::History::open(std::string_view key, bool object) {
    ++depth;
    if (depth == 2) within = !object && key == "log_history";
    if (depth != 3 || !within) return;
    summary = false;
    loss.reset();
    step.reset();
}

void TrainerStateReader::History::close() {
    --depth;
    if (depth == 1) within = false;
    if (depth != 2 || !within) return;
    if (step) last_step = std::max(last_step.value_or(0), *step);
    if (loss && !summary) points.push_back({step, *loss});
    loss.reset();
}

void TrainerStateReader::History::number(std::string_view key, double value) {
    if (!within || depth != 3) return;
    const log::NameFacts& facts = names.facts_of_number(key);
    summary = summary || facts.summary;
    if (facts.step) step = log::as_step(value);
    if (facts.loss_rank && (!loss || *facts.loss_rank < loss_rank)) {
        loss = value;
        loss_rank = *facts.loss_rank;
    }
}

bool TrainerStateReader::feed(std::string_view bytes, std::vector<LossPoint>& out) {
    const bool good = scanner_.feed(bytes);
    out.insert(out.end(), history_.points.begin(), history_.points.end());
    history_.points.clear();
    return good;
}

TrainerStateFeed::Version TrainerStateFeed::version_of(const struct stat& status) {
    return {status.st_dev, status.st_ino, status.st_size, status.st_mtim.tv_sec,
            status.st_mtim.tv_nsec};
}

PlainFile TrainerStateFeed::latest() const {
    PlainFile place = open_plain(path_, true);
    if (!place.folder) return place;
    // A folder changes when the file is made in it, so the newest file is in one of the newest.
    struct Folder {
        timespec changed{};
        std::int64_t step = 0;
        std::string name;
    };
    std::vector<Folder> folders;
    for (std::string& name : names_in(place.descriptor, max_names)) {
        constexpr std::string_view prefix = "checkpoint-";
        if (!name.starts_with(prefix)) continue;
        const auto step = parse_integer(std::string_view(name).substr(prefix.size()));
        struct stat status {};
        if (!step ||
            ::fstatat(place.descriptor.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        folders.push_back({status.st_mtim, *step, std::move(name)});
    }
    const auto age = [](const timespec& changed, std::int64_t step) {
        return std::tuple(changed.tv_sec, changed.tv_nsec, step);
    };
    std::sort(folders.begin(), folders.end(), [&age](const Folder& a, const Folder& b) {
        return age(a.changed, a.step) > age(b.changed, b.step);
    });
    if (folders.size() > max_looked_into) folders.resize(max_looked_into);

    PlainFile found = open_plain(file_name, false, place.descriptor.get());
    std::int64_t found_step = 0;
    for (const Folder& each : folders) {
        const PlainFile folder = open_plain(each.name, true, place.descriptor.get());
        if (!folder.folder) continue;
        PlainFile file = open_plain(file_name, false, folder.descriptor.get());
        if (!file.descriptor.is_open()) continue;
        if (found.descriptor.is_open() &&
            age(file.status.st_mtim, each.step) < age(found.status.st_mtim, found_step))
            continue;
        found = std::move(file);
        found_step = each.step;
    }
    if (!found.descriptor.is_open())
        found.problem = "neither trainer_state.json nor checkpoint-*/trainer_state.json is there";
    return found;
}

void TrainerStateFeed::read(const PlainFile& file, Poll& out) {
    problem_.clear();
    more_ = false;
    if (file.status.st_size > max_bytes) {
        problem_ = "it is longer than 256 MiB";
        return;
    }
    // On a copy: only a file that is there to its end changes what is known.
    KnownPoints known = known_;
    known.rewind();
    TrainerStateReader reader(names_);
    std::vector<LossPoint> points;
    std::vector<LossPoint> fresh;
    std::string bytes(piece_bytes, '\0');
    bool good = true;
    bool changed = false;
    for (off_t offset = 0; good && !more_;) {
        const ssize_t count = ::pread(file.descriptor.get(), bytes.data(), bytes.size(), offset);
        if (count < 0) problem_ = std::strerror(errno);
        if (count <= 0) break;
        offset += count;
        points.clear();
        good = reader.feed({bytes.data(), static_cast<std::size_t>(count)}, points);
        for (const LossPoint& point : points) {
            if (fresh.size() == max_points) {
                more_ = true;
                break;
            }
            const auto verdict = known.take(point);
            if (verdict == KnownPoints::Verdict::fresh) fresh.push_back(point);
            if (verdict == KnownPoints::Verdict::changed && !changed) {
                // Another run: all of it from the beginning, with the next poll.
                changed = true;
                good = false;
                break;
            }
        }
    }
    if (changed) {
        known_ = KnownPoints();
        out.restarted = true;
        more_ = true;
        return;
    }
    if (!problem_.empty()) return;
    if (!more_ && (!good || !reader.complete())) {
        problem_ = "it is no JSON, or not written to its end yet";
        return;
    }
    known_ = known;
    if (reader.last_step()) last_step_ = reader.last_step();
    out.points = std::move(fresh);
}

LossFeed::Poll TrainerStateFeed::poll(double now_s) {
    Poll result;
    if (!more_ && now_s < look_again_s_) {
        result.problem = problem_;
        return result;
    }
    look_again_s_ = now_s + look_interval_s;
    const PlainFile file = latest();
    if (!file.descriptor.is_open()) {
        more_ = false;
        tried_ = Version();
        result.problem = problem_ = file.problem;
        return result;
    }
    const Version version = version_of(file.status);
    const bool again = more_ || (!problem_.empty() && now_s - tried_at_s_ >= retry_s);
    if (!(version == tried_) || again) {
        tried_ = version;
        tried_at_s_ = now_s;
        read(file, result);
    }
    result.problem = problem_;
    result.more = more_;
    return result;
}

}  // namespace sluice
