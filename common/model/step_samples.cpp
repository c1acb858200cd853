// SPDX-License-Identifier: GPL-2.0-or-later
#include <array>
#include <optional>

#include "common/base/kept_lines.hpp"
#include "common/base/text.hpp"
#include "common/model/step_time_book.hpp"

namespace sluice {
namespace {

constexpr std::string_view header = "sluice step samples 1";
constexpr std::string_view no_type = "-";

std::optional<int> count_in(std::string_view text) {
    const auto value = parse_integer(text);
    if (!value || *value < 0 || *value > 1000000) return std::nullopt;
    return static_cast<int>(*value);
}

std::optional<StepTimeBook::Row> row_of(std::string_view line) {
    const auto words = split(line, ' ');
    if (words.size() != 10) return std::nullopt;
    StepTimeBook::Row row;
    row.model = words[0];
    row.gpu_type = words[1] == no_type ? "" : words[1];
    StepPlacement& placement = row.sample.placement;
    const auto nodes = count_in(words[2]);
    const auto gpus = count_in(words[3]);
    const auto most = count_in(words[4]);
    if (!nodes || !gpus || !most) return std::nullopt;
    placement.nodes = *nodes;
    placement.gpus = *gpus;
    placement.most_on_node = *most;
    const std::array<double*, 5> numbers{&placement.local_batch, &placement.in_node_gbps,
                                         &placement.network_gbps, &row.sample.seconds,
                                         &row.sample.weight};
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        const auto number = parse_number(words[5 + i]);
        if (!number) return std::nullopt;
        *numbers[i] = *number;
    }
    return row;
}

}  // namespace

std::string model_key(std::uint32_t user, std::string_view model) {
    return std::to_string(user) + '/' + std::string(model);
}

std::string to_text(const StepTimeBook& book) {
    std::string out = std::string(header) + '\n';
    for (const auto& [model, gpu_type, sample] : book.rows()) {
        const StepPlacement& placement = sample.placement;
        out += model + ' ' + (gpu_type.empty() ? std::string(no_type) : gpu_type);
        for (const int count : {placement.nodes, placement.gpus, placement.most_on_node})
            out += ' ' + std::to_string(count);
        for (const double number : {placement.local_batch, placement.in_node_gbps,
                                    placement.network_gbps, sample.seconds, sample.weight})
            out += ' ' + format_number(number);
        out += '\n';
    }
    return out;
}

Result<ReadBook> parse_step_samples(std::string_view text) {
    ReadBook out;
    const auto damaged = take_kept_lines(text, header, [&out](std::string_view line) {
        const auto row = row_of(line);
        return row && out.book.add(row->model, row->gpu_type, row->sample);
    });
    if (!damaged) return damaged.error();
    out.damaged = *damaged;
    return out;
}

Result<ReadBook> read_step_samples(const std::string& path) {
    return read_kept_file(path, parse_step_samples);
}

}  // namespace sluice
