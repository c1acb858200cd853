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
constexpr double retry_s = 10;  ///< and then twice as long
constexpr double longest_retry_s = 600;

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

std::vector<TrainerStateFeed::Found> TrainerStateFeed::find(std::string& why) const {
    std::vector<Found> found;
    PlainFile place = open_plain(path_, true);
    if (!place.folder) {
        why = place.problem;
        if (place.descriptor.is_open()) found.push_back({std::move(place), "", 0});
        return found;
    }
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

    const auto take = [&](PlainFile file, const std::string& name, std::int64_t step) {
        if (file.descriptor.is_open())
            found.push_back({std::move(file), name, step});
        else if (why.empty() && !file.missing)
            why = name + ": " + file.problem;
    };
    take(open_plain(file_name, false, place.descriptor.get()), file_name, 0);
    for (const Folder& each : folders) {
        PlainFile folder = open_plain(each.name, true, place.descriptor.get());
        if (folder.folder)
            take(open_plain(file_name, false, folder.descriptor.get()), each.name + "/" + file_name,
                 each.step);
        else if (!folder.descriptor.is_open())
            take(std::move(folder), each.name, 0);
    }
    std::stable_sort(found.begin(), found.end(), [&age](const Found& a, const Found& b) {
        return age(a.file.status.st_mtim, a.step) > age(b.file.status.st_mtim, b.step);
    });
    if (why.empty())
        why = "neither trainer_state.json nor checkpoint-*/trainer_state.json is there";
    return found;
}

TrainerStateFeed::Reading::Reading(Found place, log::NameTable& names, const KnownPoints& given)
    : found(std::move(place)), version(version_of(found.file.status)), reader(names), known(given) {
    known.rewind();
}

TrainerStateFeed::Tried* TrainerStateFeed::tried(const Version& version) {
    const auto known = std::find_if(tried_.begin(), tried_.end(), [&version](const Tried& each) {
        return each.version == version;
    });
    return known != tried_.end() ? &*known : nullptr;
}

void TrainerStateFeed::put_aside(std::string problem, double now_s) {
    if (!problem.empty() && !reading_->found.name.empty())
        problem = reading_->found.name + ": " + problem;
    if (problem_.empty()) problem_ = problem;
    Tried* known = tried(reading_->version);
    if (!known) known = &tried_.emplace_back(Tried{reading_->version, "", 0, 0});
    known->problem = std::move(problem);
    known->pause_s = std::clamp(2 * known->pause_s, retry_s, longest_retry_s);
    known->again_s = now_s + known->pause_s;
    reading_.reset();
}

void TrainerStateFeed::give(Poll& out) {
    known_ = reading_->known;
    if (reading_->reader.last_step()) last_step_ = reading_->reader.last_step();
    out.points = std::move(reading_->fresh);
    reading_->fresh.clear();
}

bool TrainerStateFeed::read(double now_s, Poll& out) {
    Reading& file = *reading_;
    const auto fail = [&](std::string problem) {
        put_aside(std::move(problem), now_s);
        return false;
    };
    if (file.version.size > max_bytes) return fail("it is longer than 256 MiB");
    std::string bytes(piece_bytes, '\0');
    std::size_t left = max_read;
    while (file.fresh.size() < max_points) {
        if (file.next < file.read.size()) {
            const LossPoint& point = file.read[file.next++];
            const auto verdict = file.known.take(point);
            if (verdict == KnownPoints::Verdict::fresh) file.fresh.push_back(point);
            if (verdict != KnownPoints::Verdict::changed) continue;
            // Another run: all of it from the beginning, with the next poll.
            known_ = KnownPoints();
            out.restarted = true;
            reading_.emplace(Found(std::move(file.found)), names_, known_);
            return true;
        }
        if (file.ended) {
            if (!file.reader.complete())
                return fail("it is no JSON, or not written to its end yet");
            give(out);
            put_aside("", now_s);
            return true;
        }
        if (left == 0) return true;
        const ssize_t count =
            ::pread(file.found.file.descriptor.get(), bytes.data(), bytes.size(), file.offset);
        if (count < 0) return fail(std::strerror(errno));
        file.ended = count == 0;
        file.offset += count;
        left -= std::min(left, static_cast<std::size_t>(count));
        file.read.clear();
        file.next = 0;
        if (!file.reader.feed({bytes.data(), static_cast<std::size_t>(count)}, file.read))
            return fail("it is no JSON, or not written to its end yet");
    }
    give(out);
    return true;
}

void TrainerStateFeed::look(double now_s, Poll& out) {
    look_again_s_ = now_s + look_interval_s;
    problem_.clear();
    std::string why;
    std::vector<Found> files = find(why);
    if (files.empty()) problem_ = why;
    std::erase_if(tried_, [&files](const Tried& each) {
        return std::none_of(files.begin(), files.end(), [&each](const Found& found) {
            return version_of(found.file.status) == each.version;
        });
    });
    for (Found& found : files) {
        const Tried* const before = tried(version_of(found.file.status));
        if (before && before->problem.empty()) return;  // it holds what older ones do, and more
        if (before && now_s < before->again_s) {
            if (problem_.empty()) problem_ = before->problem;
            continue;
        }
        reading_.emplace(std::move(found), names_, known_);
        if (read(now_s, out)) return;
    }
}

LossFeed::Poll TrainerStateFeed::poll(double now_s) {
    Poll result;
    struct stat status {};
    if (!reading_) {
        if (now_s >= look_again_s_) look(now_s, result);
    } else if (::fstat(reading_->found.file.descriptor.get(), &status) != 0 ||
               !(version_of(status) == reading_->version)) {
        problem_ = "it was written to while it was read";
        reading_.reset();
    } else if (!read(now_s, result)) {
        look_again_s_ = now_s;  // for an older one
        result.more = true;
    }
    result.more = result.more || reading_;
    result.problem = problem_;
    return result;
}

}  // namespace sluice
