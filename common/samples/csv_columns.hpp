// SPDX-License-Identifier: GPL-2.0-or-later
//
// Losses in comma-separated values (also ";" and tab): a header names the columns, rows follow. The
// header may come again, or another one, wherever a run was started anew.
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
    bool active() const { return loss_.has_value(); }

    /// The line as a row; nothing where it is none. Rows with an empty cell have no loss.
    std::optional<LineReading> row(std::string_view line) const;

  private:
    char separator_ = ',';
    std::size_t columns_ = 0;
    std::optional<std::size_t> loss_;
    std::optional<std::size_t> step_;
    std::optional<std::size_t> part_;  ///< "train" or "val"
};

}  // namespace sluice::log
