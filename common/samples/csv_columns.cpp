// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/samples/csv_columns.hpp"

#include <algorithm>

#include "common/base/text.hpp"

namespace sluice::log {
namespace {

/// The cells without blanks and quotes at their ends. A separator inside quotes parts nothing.
std::vector<std::string_view> cells_of(std::string_view line, char separator) {
    std::vector<std::string_view> cells;
    std::size_t begin = 0;
    bool quoted = false;
    for (std::size_t i = 0; i <= line.size(); ++i) {
        if (i < line.size() && line[i] == '"') quoted = !quoted;
        if (i < line.size() && (quoted || line[i] != separator)) continue;
        std::string_view cell = trim(line.substr(begin, i - begin));
        if (cell.size() >= 2 && cell.front() == '"' && cell.back() == '"') {
            cell = trim(cell.substr(1, cell.size() - 2));
        }
        cells.push_back(cell);
        begin = i + 1;
    }
    return cells;
}

bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool is_separator(char c) {
    return c == ',' || c == ';' || c == '\t';
}

bool may_be_in_name(char c) {
    return c != ':' && c != '=' && c != '{' && c != '}' && c != '|' && c != '\\';
}

bool is_name(std::string_view cell) {
    return !cell.empty() && is_letter(cell.front()) && !parse_number(cell);
}

bool is_part(std::string_view words) {
    return words == "split" || words == "phase" || words == "mode" || words == "stage" ||
           words == "subset" || words == "set";
}

}  // namespace

bool CsvColumns::take_header(std::string_view line, bool certain, NameTable& names) {
    constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
    if (line.starts_with(byte_order_mark)) line.remove_prefix(byte_order_mark.size());
    std::size_t found = std::string_view::npos;
    for (std::size_t i = 0; i < line.size(); ++i) {
        if (certain && !may_be_in_name(line[i])) return false;  // most lines of a log
        if (found == std::string_view::npos && is_separator(line[i])) found = i;
    }
    if (found == std::string_view::npos && certain) return false;
    CsvColumns columns;
    if (found != std::string_view::npos) columns.separator_ = line[found];
    const std::vector<std::string_view> cells = cells_of(line, columns.separator_);
    columns.columns_ = cells.size();
    StepKind best_kind = StepKind::batch;
    for (std::size_t i = 0; i < cells.size(); ++i) {
        // pandas leaves the name of its index column empty
        if (cells[i].empty() && i == 0) continue;
        if (!is_name(cells[i])) return false;
        const NameFacts& facts = names.facts(cells[i]);
        if (facts.loss_rank) {
            columns.losses_.push_back({i, *facts.loss_rank});
        } else if (facts.step && (!columns.step_ || *facts.step < best_kind)) {
            columns.step_ = i;
            best_kind = *facts.step;
        } else if (is_part(Words(cells[i]).text())) {
            columns.part_ = i;
        }
    }
    if (certain && columns.losses_.empty()) return false;
    std::stable_sort(columns.losses_.begin(), columns.losses_.end(),
                     [](const LossColumn& a, const LossColumn& b) { return a.rank < b.rank; });
    for (const std::string_view cell : cells) {
        if (!cell.empty()) names.facts_of_number(cell);
    }
    *this = columns;
    return true;
}

std::optional<LineReading> CsvColumns::row(std::string_view line) {
    if (!active()) return std::nullopt;
    if (static_cast<std::size_t>(std::count(line.begin(), line.end(), separator_)) + 1 < columns_) {
        return std::nullopt;
    }
    const std::vector<std::string_view> cells = cells_of(line, separator_);
    if (cells.size() != columns_) return std::nullopt;
    LineReading reading;
    const auto filled =
        std::find_if(losses_.begin(), losses_.end(),
                     [&cells](const LossColumn& column) { return !cells[column.index].empty(); });
    if (filled != losses_.end()) {
        reading.loss = parse_number(cells[filled->index]);
        if (!reading.loss) return std::nullopt;
        reading.loss_rank = filled->rank;
        losses_.erase(filled + 1, losses_.end());
    }
    if (step_) {
        if (const auto step = parse_number(cells[*step_])) reading.step = as_step(*step);
        reading.step_kind = StepKind::global;
        reading.progress = true;
    }
    if (part_ && facts_of(cells[*part_]).scope == Scope::validation) reading.loss.reset();
    return reading;
}

}  // namespace sluice::log
