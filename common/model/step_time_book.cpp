// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/model/step_time_book.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "common/base/text.hpp"

namespace sluice {
namespace {

std::tuple<int, int, int> shape_of(const StepSample& sample) {
    return {sample.placement.nodes, sample.placement.gpus, sample.placement.most_on_node};
}

bool same_place(const StepPlacement& a, const StepPlacement& b) {
    return a.nodes == b.nodes && a.gpus == b.gpus && a.most_on_node == b.most_on_node &&
           a.local_batch == b.local_batch && a.in_node_gbps == b.in_node_gbps &&
           a.network_gbps == b.network_gbps;
}

}  // namespace

StepTimeModel StepTimeBasis::model(const StepPriorOptions& options) const {
    if (other.empty()) return fit_step_time(own, nullptr, options);
    const StepTimeModel similar = fit_step_time(other, nullptr, options);
    return fit_step_time(own, &similar, options);
}

Status StepTimeBook::add(std::string_view model, std::string_view gpu_type,
                         const StepSample& sample) {
    if (model.empty() || model.size() > options_.longest_name ||
        gpu_type.size() > options_.longest_name) {
        return {ErrorCode::bad_input, "step times of \"" + printable(model, 40) + "\" on \"" +
                                          printable(gpu_type, 40) + "\": a name has 1 to " +
                                          std::to_string(options_.longest_name) + " bytes"};
    }
    if (!usable(sample)) {
        return {ErrorCode::bad_input,
                "step time of \"" + printable(model, 40) + "\": " + format_number(sample.seconds) +
                    " s on " + gpus_text(sample.placement.gpus) + " of " +
                    std::to_string(sample.placement.nodes) +
                    " nodes, and has to be 1e-9 to 1e9 s on at least one GPU a node"};
    }
    Shelf& shelf = shelves_[Key(model, gpu_type)];
    shelf.added = ++adds_;
    for (Entry& entry : shelf.entries) {
        StepSample& known = entry.sample;
        if (!same_place(known.placement, sample.placement)) continue;
        const double all = known.weight + sample.weight;
        known.seconds = std::exp(
            (known.weight * std::log(known.seconds) + sample.weight * std::log(sample.seconds)) /
            all);
        known.weight = std::min(all, options_.most_weight);
        entry.added = adds_;
        return {};
    }
    shelf.entries.push_back({sample, adds_});
    shelf.entries.back().sample.weight = std::min(sample.weight, options_.most_weight);
    if (shelf.entries.size() > options_.most_samples) forget_one(shelf);
    if (shelves_.size() > options_.most_keys) {
        shelves_.erase(std::min_element(
            shelves_.begin(), shelves_.end(),
            [](const auto& a, const auto& b) { return a.second.added < b.second.added; }));
    }
    return {};
}

void StepTimeBook::forget_one(Shelf& shelf) const {
    std::map<std::tuple<int, int, int>, std::size_t> count;
    for (const Entry& entry : shelf.entries) ++count[shape_of(entry.sample)];
    const auto worth_less = [&count](const Entry& a, const Entry& b) {
        const std::size_t as_a = count[shape_of(a.sample)];
        const std::size_t as_b = count[shape_of(b.sample)];
        return as_a != as_b ? as_a > as_b : a.added < b.added;
    };
    shelf.entries.erase(std::min_element(shelf.entries.begin(), shelf.entries.end(), worth_less));
}

StepTimeBasis StepTimeBook::basis(std::string_view model, std::string_view gpu_type) const {
    StepTimeBasis out;
    const Shelf* other = nullptr;
    for (auto at = shelves_.lower_bound(Key(model, "")); at != shelves_.end(); ++at) {
        if (at->first.first != model) break;
        const Shelf& shelf = at->second;
        if (at->first.second == gpu_type) {
            for (const Entry& entry : shelf.entries) out.own.push_back(entry.sample);
        } else if (!other || shelf.entries.size() > other->entries.size()) {
            other = &shelf;
        }
    }
    if (other) {
        for (const Entry& entry : other->entries) out.other.push_back(entry.sample);
    }
    return out;
}

std::vector<StepTimeBook::Row> StepTimeBook::rows() const {
    std::vector<std::pair<std::uint64_t, Row>> all;
    for (const auto& [key, shelf] : shelves_) {
        for (const Entry& entry : shelf.entries)
            all.push_back({entry.added, {key.first, key.second, entry.sample}});
    }
    std::sort(all.begin(), all.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<Row> out;
    out.reserve(all.size());
    for (auto& [added, row] : all) out.push_back(std::move(row));
    return out;
}

std::size_t StepTimeBook::samples() const {
    std::size_t all = 0;
    for (const auto& [key, shelf] : shelves_) all += shelf.entries.size();
    return all;
}

}  // namespace sluice
