// SPDX-License-Identifier: GPL-2.0-or-later
//
// Losses in comma-separated values (also ";" and tab): a header names the columns, rows follow. The
// header may come again, or another one, wherever a run was started anew. Where several columns
// hold a loss, rows need not fill the same one: the most exact that has ever been filled counts.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "common/samples/log_line.hpp"

namespace sluice::log {

class CsvColumns {
  public:
    /// Takes the line as the header when it is one: cells that are names, none a number. Where it
    /// has to be `certain`, one of them has to name a loss. False: it is no header, nothing has
    /// changed.
    bool take_header(std::string_view line, bool certain, NameTable& names);

    /// A header with a loss was taken.
    bool active() const { return !losses_.empty(); }

    /// The line as a row; nothing where it is none. Rows without a filled cell have no loss.
    std::optional<LineReading> row(std::string_view line);

  private:
    char separator_ = ',';
    std::size_t columns_ = 0;
    struct LossColumn {
        std::size_t index = 0;
        int rank = 0;
    };
    std::vector<LossColumn>
        losses_;  ///< the most exact name first; less exact than any filled: out
    std::optional<std::size_t> step_;
    std::optional<std::size_t> part_;  ///< "train" or "val"
};

}  // namespace sluice::log
