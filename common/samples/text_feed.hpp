// SPDX-License-Identifier: GPL-2.0-or-later
//
// A growing log as a feed: the follower's bytes through the reader. Where the file is begun anew
// with what it held before, as Lightning does for a new column of metrics.csv, only what is new in
// it is given out.
#pragma once

#include <optional>
#include <string>

#include "common/samples/known_points.hpp"
#include "common/samples/log_follower.hpp"
#include "common/samples/loss_feed.hpp"

namespace sluice {

class TextFeed final : public LossFeed {
  public:
    TextFeed(std::string path, LossReaderOptions options, const LogMark& begin = {});

    Poll poll(double now_s) override;
    std::vector<LossPoint> finish() override;
    std::optional<std::int64_t> last_step() const override { return reader_.last_step(); }
    const std::vector<std::string>& keys_seen() const override { return reader_.keys_seen(); }
    std::string name() const override { return path_; }

  private:
    /// Reads from the beginning again.
    void begin_anew();
    /// Those of `points` that are new. False: the file holds other points than before.
    bool sift(const std::vector<LossPoint>& points, std::vector<LossPoint>& out);
    /// That lines were too long, where there is no loss; else empty.
    std::string cut_lines() const;

    const std::string path_;
    const LossReaderOptions options_;
    std::optional<LogFollower> follower_;
    LossReader reader_;
    KnownPoints known_;
};

}  // namespace sluice
