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
    std::vector<LossPoint> points;
    reader_.feed(read.bytes, points);
    if (sift(points, result.points)) return result;
    known_ = KnownPoints();
    follower_.emplace(path_);
    begin_anew();
    result.points.clear();
    result.restarted = true;
    result.more = true;
    return result;
}

std::vector<LossPoint> TextFeed::finish() {
    std::vector<LossPoint> points;
    std::vector<LossPoint> fresh;
    reader_.finish(points);
    static_cast<void>(sift(points, fresh));
    return fresh;
}

}  // namespace sluice
