// SPDX-License-Identifier: GPL-2.0-or-later
#include "contrib/sluice/progress_line.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace sluice::cli {
namespace {

constexpr std::size_t width_of_bar = 20;
constexpr std::size_t width = 78;  // a line that breaks cannot be written over

}  // namespace

ProgressLine::ProgressLine()
    : wanted_(::isatty(STDERR_FILENO) == 1), next_(Clock::now() + std::chrono::seconds(2)) {}

ProgressLine::~ProgressLine() {
    if (shown_) std::fputs("\r\033[K", stderr);
}

void ProgressLine::show(const std::string& what, std::size_t done, std::size_t all,
                        const std::string& more) {
    if (!wanted_ || Clock::now() < next_) return;
    next_ = Clock::now() + std::chrono::milliseconds(250);
    shown_ = true;
    const std::size_t full = all == 0 ? 0 : done * width_of_bar / all;
    std::string line =
        what + " [" + std::string(full, '#') + std::string(width_of_bar - full, '.') + "] " + more;
    line.resize(std::min(line.size(), width));
    std::fprintf(stderr, "\r%s\033[K", line.c_str());
    std::fflush(stderr);
}

}  // namespace sluice::cli
