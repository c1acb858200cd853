// SPDX-License-Identifier: GPL-2.0-or-later
//
// How far a long run is, for who waits for it: one line on standard error that is written over and
// gone at the end. Nothing where that is no terminal, and nothing in the first two seconds.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace sluice::cli {

class ProgressLine {
  public:
    ProgressLine();
    ~ProgressLine();
    ProgressLine(const ProgressLine&) = delete;
    ProgressLine& operator=(const ProgressLine&) = delete;

    bool wanted() const { return wanted_; }
    /// `what` is being done, so many of `all` are. A few times a second at most.
    void show(const std::string& what, std::size_t done, std::size_t all, const std::string& more);

  private:
    using Clock = std::chrono::steady_clock;
    bool wanted_;
    bool shown_ = false;
    Clock::time_point next_;
};

}  // namespace sluice::cli
