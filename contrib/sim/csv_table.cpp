// SPDX-License-Identifier: GPL-2.0-or-later
#include "contrib/sim/csv_table.hpp"

#include <algorithm>
#include <cmath>

#include "common/base/file.hpp"
#include "common/base/text.hpp"

namespace sluice::sim {

Result<CsvTable> CsvTable::read(const std::string& path, const std::vector<std::string>& columns) {
    Result<std::string> text = read_file(path, max_bytes, FileKind::any);
    if (!text) return text.error();
    CsvTable table;
    table.path_ = path;
    table.text_ = std::move(*text);
    table.names_ = columns;
    const std::string_view all = table.text_;
    std::size_t line_number = 0;
    for (std::size_t at = 0; at < all.size();) {
        const std::size_t end = std::min(all.find('\n', at), all.size());
        const std::string_view line = trim(all.substr(at, end - at));
        const auto begin = static_cast<std::size_t>(line.data() - all.data());
        at = end + 1;
        ++line_number;
        if (line.empty()) continue;
        const std::vector<std::string_view> cells = split(line, ',');
        if (table.width_ == 0) {
            table.width_ = cells.size();
            for (const std::string& name : columns) {
                const auto found =
                    std::find_if(cells.begin(), cells.end(),
                                 [&](std::string_view cell) { return trim(cell) == name; });
                if (found == cells.end())
                    return {ErrorCode::bad_input, path + ", line " + std::to_string(line_number) +
                                                      ": the header has no column \"" + name +
                                                      "\": " + printable(line)};
                table.columns_.push_back(static_cast<std::size_t>(found - cells.begin()));
            }
            continue;
        }
        if (cells.size() != table.width_)
            return {ErrorCode::bad_input,
                    path + ", line " + std::to_string(line_number) + ": " +
                        std::to_string(cells.size()) + " cells where the header has " +
                        std::to_string(table.width_) + ": " + printable(line)};
        std::size_t cell_at = begin;
        for (const std::string_view cell : cells) {
            table.cells_.push_back({cell_at, cell.size()});
            cell_at += cell.size() + 1;
        }
        table.lines_.push_back(line_number);
    }
    if (table.width_ == 0) return {ErrorCode::bad_input, path + ": is empty, a header is needed"};
    return table;
}

std::string_view CsvTable::text(std::size_t row, std::size_t column) const {
    const Cell& cell = cells_[row * width_ + columns_[column]];
    return trim(std::string_view(text_).substr(cell.begin, cell.size));
}

Result<double> CsvTable::number(std::size_t row, std::size_t column) const {
    const std::optional<double> value = parse_number(text(row, column));
    if (value && std::isfinite(*value)) return *value;
    return {ErrorCode::bad_input, place(row) + ": " + names_[column] + " is \"" +
                                      printable(text(row, column)) + "\": a number is needed"};
}

std::string CsvTable::place(std::size_t row) const {
    return path_ + ", line " + std::to_string(lines_[row]);
}

}  // namespace sluice::sim
