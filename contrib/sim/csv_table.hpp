// SPDX-License-Identifier: GPL-2.0-or-later
//
// A file of comma-separated values with a header, as the public traces are: no quotes, no escapes.
// Line ends of either kind and a byte order mark are as good as none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.hpp"

namespace sluice::sim {

class CsvTable {
  public:
    static constexpr std::size_t max_bytes = std::size_t{64} << 20;
    static constexpr std::size_t max_line_bytes = 65536;

    /// not_found or unreachable for a file that cannot be read; bad_input with file and line for a
    /// row of another width than the header, one of `columns` that the header lacks or has twice,
    /// and what is no text. A column of `may_lack` counts as empty where the header lacks it.
    static Result<CsvTable> read(const std::string& path, const std::vector<std::string>& columns,
                                 const std::vector<std::string>& may_lack = {});

    std::size_t rows() const { return lines_.size(); }
    /// `column` counts those that were asked for, may_lack's last.
    std::string_view text(std::size_t row, std::size_t column) const;
    /// bad_input with file, line and column for what is no finite number.
    Result<double> number(std::size_t row, std::size_t column) const;
    std::size_t line(std::size_t row) const { return lines_[row]; }
    /// "FILE, line N": where a row stands.
    std::string place(std::size_t row) const;

  private:
    std::string path_;
    std::string text_;
    std::vector<std::string> names_;
    struct Cell {  // there may be millions
        std::uint32_t begin = 0;
        std::uint32_t size = 0;
    };
    std::vector<Cell> cells_;  // of the columns that were asked for, row by row
    std::vector<std::size_t> lines_;
};

}  // namespace sluice::sim
