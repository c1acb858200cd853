// SPDX-License-Identifier: GPL-2.0-or-later
#include "contrib/sim/csv_table.hpp"

#include <algorithm>
#include <cmath>

#include "common/base/file.hpp"
#include "common/base/text.hpp"

namespace sluice::sim {

Result<CsvTable> CsvTable::read(const std::string& path, const std::vector<std::string>& columns,
                                const std::vector<std::string>& may_lack) {
    Result<std::string> text = read_file(path, max_bytes, FileKind::any);
    if (!text) return text.error();
    CsvTable table;
    table.path_ = path;
    table.text_ = std::move(*text);
    table.names_ = columns;
    table.names_.insert(table.names_.end(), may_lack.begin(), may_lack.end());
    constexpr std::size_t lacking = std::string::npos;
    const std::string_view all = table.text_;
    constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
    std::vector<std::size_t> wanted;  // of `columns`, the index in a row
    std::size_t width = 0;
    std::size_t line_number = 0;
    const auto wrong = [&](const std::string& what) {
        return Error{ErrorCode::bad_input,
                     path + ", line " + std::to_string(line_number) + ": " + what};
    };
    for (std::size_t at = all.starts_with(byte_order_mark) ? byte_order_mark.size() : 0;
         at < all.size();) {
        const std::size_t end = std::min(all.find('\n', at), all.size());
        const std::string_view line = trim(all.substr(at, end - at));
        at = end + 1;
        ++line_number;
        if (line.empty()) continue;
        if (line.size() > max_line_bytes)
            return wrong("longer than " + std::to_string(max_line_bytes) + " bytes");
        if (line.find('\0') != std::string_view::npos)
            return wrong("a zero byte, text is needed: " + printable(line));
        const std::vector<std::string_view> cells = split(line, ',');
        if (width == 0) {
            width = cells.size();
            for (const std::string& name : table.names_) {
                const auto is_it = [&](std::string_view cell) { return trim(cell) == name; };
                const auto found = std::find_if(cells.begin(), cells.end(), is_it);
                if (found == cells.end() && wanted.size() >= columns.size()) {
                    wanted.push_back(lacking);
                    continue;
                }
                if (found == cells.end())
                    return wrong("the header has no column \"" + name + "\": " + printable(line));
                if (std::find_if(found + 1, cells.end(), is_it) != cells.end())
                    return wrong("the header has two columns \"" + name + "\": " + printable(line));
                wanted.push_back(static_cast<std::size_t>(found - cells.begin()));
            }
            continue;
        }
        if (cells.size() != width)
            return wrong(std::to_string(cells.size()) + " cells where the header has " +
                         std::to_string(width) + ": " + printable(line));
        for (const std::size_t column : wanted) {
            const std::string_view cell = column == lacking ? line.substr(0, 0) : cells[column];
            table.cells_.push_back({static_cast<std::uint32_t>(cell.data() - all.data()),
                                    static_cast<std::uint32_t>(cell.size())});
        }
        table.lines_.push_back(line_number);
    }
    if (width == 0) return {ErrorCode::bad_input, path + ": is empty, a header is needed"};
    return table;
}

std::string_view CsvTable::text(std::size_t row, std::size_t column) const {
    const Cell& cell = cells_[row * names_.size() + column];
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
