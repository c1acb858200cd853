// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/samples/text_feed.hpp"

#include <utility>

namespace sluice {

TextFeed::TextFeed(std::string path, LossReaderOptions options, const LogMark& begin)
    : path_(std::move(path)), options_(std::move(options)), reader_(options_) {
    follower_.emplace(path_, begin);
}

void TextFeed::begin_anew() {
    reader_ = LossReader(options_);
    known_.rewind();
}

bool TextFeed::sift(const std::vector<LossPoint>& points, std::vector<LossPoint>& out) {
    for (const LossPoint& point : points) {
        switch (known_.take(point)) {
            case KnownPoints::Verdict::known:
                break;
            case KnownPoints::Verdict::fresh:
                out.push_back(point);
                break;
            case KnownPoints::Verdict::changed:
                return false;
        }
    }
    return true;
}

LossFeed::Poll TextFeed::poll(double) {
    Poll result;
    LogFollower::Read read = follower_->read();
    result.problem = std::move(read.problem);
    result.more = read.more;
    if (read.restarted) begin_anew();
    reader_.learn_columns(read.before);
    std::vector<LossPoint> points;
    reader_.feed(read.bytes, points);
    if (sift(points, result.points)) {
        if (result.problem.empty()) result.problem = cut_lines();
        return result;
    }
    known_ = KnownPoints();
    follower_.emplace(path_);
    begin_anew();
    result.points.clear();
    result.restarted = true;
    result.more = true;
    return result;
}

std::string TextFeed::cut_lines() const {
    if (known_.count() > 0 || reader_.cut_lines() == 0) return "";
    std::string keys;
    for (const std::string& key : keys_seen()) keys += (keys.empty() ? "" : ", ") + key;
    return "lines are too long (" + std::to_string(reader_.cut_lines()) + "), of each only " +
           std::to_string(options_.max_line_bytes) +
           " bytes are read; keys seen: " + (keys.empty() ? "none" : keys);
}

std::vector<LossPoint> TextFeed::finish() {
    std::vector<LossPoint> points;
    std::vector<LossPoint> fresh;
    reader_.finish(points);
    static_cast<void>(sift(points, fresh));
    return fresh;
}

}  // namespace sluice
