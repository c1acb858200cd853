// SPDX-License-Identifier: GPL-2.0-or-later
//
// Files that are written anew as a whole (a CSV file with one more column, trainer_state.json) hold
// what they held before, and more. The points given out so far are remembered as a few checksums,
// so that of the new file those after them can be told.
#pragma once

#include <array>
#include <cstdint>

#include "common/samples/loss_point.hpp"

namespace sluice {

class KnownPoints {
  public:
    /// The source is read from its beginning again.
    void rewind() { again_ = Prefix(); }

    enum class Verdict {
        known,    ///< was given out before, as far as can be told yet
        fresh,    ///< is new, and counted from now on
        changed,  ///< this is another row of points than the one given out
    };
    /// Takes the points in order. `changed` comes at the latest with the last of the known points.
    Verdict take(const LossPoint& point);

    std::int64_t count() const { return given_.count; }

  private:
    struct Prefix {
        std::int64_t count = 0;
        std::uint64_t checksum = 0;
        void add(const LossPoint& point);
    };
    Prefix given_;
    Prefix again_;
    std::array<std::uint64_t, 64> marks_{};  ///< the checksum of the first 2^i points given out
};

}  // namespace sluice
