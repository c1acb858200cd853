// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/samples/event_feed.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "common/base/text.hpp"
#include "common/samples/event_records.hpp"

namespace sluice {
namespace {

// A record that is read fits in whole.
constexpr std::size_t piece_bytes = 2 * max_event_bytes;
constexpr std::size_t max_names = 16384;
// Two files may come in one tick of a file system's clock.
constexpr double list_again_after_s = 30;
constexpr std::string_view mark = "tfevents.";

/// The time behind "tfevents." in the name of an event file; nothing for another file.
std::optional<std::int64_t> time_in(std::string_view name) {
    const std::size_t at = name.find(mark);
    if (at == std::string_view::npos) return std::nullopt;
    name.remove_prefix(at + mark.size());
    return parse_integer(name.substr(0, name.find_first_not_of("0123456789"))).value_or(0);
}

bool earlier(const std::string& a, const std::string& b) {
    return std::pair(time_in(a), std::string_view(a)) < std::pair(time_in(b), std::string_view(b));
}

}  // namespace

void EventFeed::list(const PlainFile& folder, double now_s) {
    const timespec changed = folder.status.st_mtim;
    if (changed.tv_sec == listed_.tv_sec && changed.tv_nsec == listed_.tv_nsec &&
        now_s < list_again_s_)
        return;
    listed_ = changed;
    list_again_s_ = now_s + list_again_after_s;
    std::vector<std::string> names = names_in(folder.descriptor, max_names);
    std::erase_if(names, [](const std::string& name) { return !time_in(name); });
    std::sort(names.begin(), names.end(), earlier);
    if (names.size() > max_files) names.erase(names.begin(), names.end() - max_files);
    std::vector<File> files;
    for (std::string& name : names) {
        const auto known = std::find_if(files_.begin(), files_.end(),
                                        [&name](const File& file) { return file.name == name; });
        if (known != files_.end())
            files.push_back(std::move(*known));
        else
            files.push_back({std::move(name), 0, {}});
    }
    files_ = std::move(files);
    next_ = 0;
}

bool EventFeed::read(File& file, int folder, Poll& out, std::size_t& bytes_read) {
    const PlainFile open = open_plain(file.name, false, folder);
    file.problem = open.problem;
    if (!open.descriptor.is_open()) return false;
    const auto size = static_cast<std::uint64_t>(open.status.st_size);
    if (size <= file.offset) return false;
    std::string bytes(std::min<std::uint64_t>(piece_bytes, size - file.offset), '\0');
    const ssize_t count =
        ::pread(open.descriptor.get(), bytes.data(), bytes.size(), static_cast<off_t>(file.offset));
    if (count < 0) {
        file.problem = std::strerror(errno);
        return false;
    }
    const std::string_view there(bytes.data(), static_cast<std::size_t>(count));
    bytes_read += there.size();
    const EventScan scan = scan_events(there, [&](const EventScalar& scalar) {
        if (scalar.step) last_step_ = std::max(last_step_.value_or(0), *scalar.step);
        switch (chosen_.ask(scalar.tag)) {
            case log::ChosenLoss::Answer::no:
                return;
            case log::ChosenLoss::Answer::instead:
                out.points.clear();
                out.restarted = true;
                break;
            case log::ChosenLoss::Answer::yes:
                break;
        }
        out.points.push_back({scalar.step, scalar.value});
    });
    file.offset += scan.used;
    // It is looked at again: what a network file system has not brought yet reads as zeros.
    if (scan.broken)
        file.problem = "byte " + std::to_string(file.offset) +
                       " begins no record of an event file; what follows is not read";
    else if (scan.damaged > 0)
        file.problem = std::to_string(scan.damaged) + " records before byte " +
                       std::to_string(file.offset) + " do not fit their checksum and are left out";
    return scan.used > 0 && file.offset < size;
}

LossFeed::Poll EventFeed::poll(double now_s) {
    Poll result;
    const PlainFile place = open_plain(path_, true);
    if (!place.descriptor.is_open()) {
        result.problem = place.problem;
        return result;
    }
    int folder = AT_FDCWD;
    if (place.folder) {
        list(place, now_s);
        folder = place.descriptor.get();
        if (files_.empty()) result.problem = "no event file (*tfevents.*) is in this folder";
    } else if (files_.empty()) {
        files_.push_back({path_, 0, {}});
    }
    std::size_t bytes = 0;
    while (next_ < files_.size() && bytes < enough_bytes) {
        if (read(files_[next_], folder, result, bytes)) break;  // to its end before the next one
        ++next_;
    }
    result.more = next_ < files_.size();
    if (!result.more) next_ = 0;
    for (const File& file : files_) {
        if (!file.problem.empty())
            result.problem =
                place.folder ? printable(file.name) + ": " + file.problem : file.problem;
    }
    return result;
}

}  // namespace sluice
