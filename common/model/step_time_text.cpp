// SPDX-License-Identifier: GPL-2.0-or-later
#include <charconv>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "common/base/text.hpp"
#include "common/model/step_time.hpp"

namespace sluice {
namespace {

constexpr double largest = 1e18;
constexpr double least_alone = 1e-12;

struct Member {
    const char* name;
    double low;
    double high;
    double otherwise;  ///< where it is left out
};

// In the order of StepTerm.
constexpr std::array<Member, step_terms> terms{{{"compute_s", 0, largest, 0},
                                                {"sample_s", 0, largest, 0},
                                                {"host_s", 0, largest, 0},
                                                {"in_node_gb", 0, largest, 0},
                                                {"network_gb", 0, largest, 0},
                                                {"shared_gb", 0, largest, 0},
                                                {"pair_gb", 0, largest, 0},
                                                {"level_s", 0, largest, 0},
                                                {"node_s", 0, largest, 0},
                                                {"overlap", 1, 10, 1},
                                                {"serial", 0, 0.9, 0}}};
constexpr Member noise{"noise", 0, 10, 0.1};
constexpr Member batch_sd{"batch_sd", 0, 10, 0};
constexpr Member scale{"scale", 0, 10, 0};
constexpr Member samples{"samples", 0, 1e6, 0};
constexpr Member most_gpus{"most_gpus", 0, 1e6, 0};
constexpr Member a_batch{"batches", 1e-9, 1e12, 0};
constexpr Member an_offset{"batches", -5, 5, 0};
constexpr Member a_spread{"spread", -largest, largest, 0};

/// Digits, point, exponent and '-': no blank, no '+', no nan.
template <typename Number>
std::optional<Number> number_of(std::string_view text) {
    Number value{};
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc() || stop != end) return std::nullopt;
    return value;
}

template <typename Number>
std::string text_of(Number value) {
    if (value == 0) return "0";  // and not "-0"
    char buffer[32];
    const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value);
    return error == std::errc() ? std::string(buffer, end) : std::string();
}

/// The members of the text, each taken once; the first that is wrong is the error.
class Reader {
  public:
    void take(std::string_view name, std::string_view value) {
        for (const auto& [other, unused] : members_) {
            if (other == name) fail(std::string(other) + " stands twice");
        }
        members_.emplace_back(name, value);
    }

    template <typename Number>
    Number in_range(const Member& member, std::string_view text) {
        const auto value = number_of<Number>(text);
        if (value && static_cast<double>(*value) >= member.low &&
            static_cast<double>(*value) <= member.high) {
            return *value;
        }
        fail(std::string(member.name) + " is \"" + printable(text, 40) + "\", and has to be from " +
             format_number(member.low) + " to " + format_number(member.high));
        return {};
    }

    double number(const Member& member) {
        const auto text = text_at(member.name);
        return text ? in_range<double>(member, *text) : member.otherwise;
    }

    int count(const Member& member) {
        const auto text = text_at(member.name);
        return text ? in_range<int>(member, *text) : static_cast<int>(member.otherwise);
    }

    /// Marks it as known.
    std::optional<std::string_view> text_at(std::string_view name) {
        for (auto at = members_.begin(); at != members_.end(); ++at) {
            if (at->first != name) continue;
            const std::string_view value = at->second;
            members_.erase(at);
            return value;
        }
        return std::nullopt;
    }

    void fail(const std::string& what) {
        if (error_.empty()) error_ = "step time: " + what;
    }

    const std::string& finish() {
        if (!members_.empty()) {
            fail("there is no \"" + printable(members_.front().first, 40) +
                 "\"; the names stand in doc/formats/step-time-v1.txt");
        }
        return error_;
    }

  private:
    std::vector<std::pair<std::string_view, std::string_view>> members_;
    std::string error_;
};

void read_batches(Reader& reader, std::string_view text, StepTimeModel& model) {
    const auto entries = split(text, '/');
    if (entries.size() > StepTimeModel::most_batches) {
        reader.fail("batches has " + std::to_string(entries.size()) + " entries, and may have " +
                    std::to_string(StepTimeModel::most_batches));
        return;
    }
    for (std::size_t i = 0; i < entries.size(); ++i) {
        const auto pair = split(entries[i], ':');
        if (pair.size() != 2) {
            reader.fail("batches has \"" + printable(entries[i], 40) +
                        "\", and needs LOCAL_BATCH:OFFSET");
            return;
        }
        StepBatch& batch = model.batches[i];
        batch.local_batch = reader.in_range<double>(a_batch, pair[0]);
        batch.offset = reader.in_range<double>(an_offset, pair[1]);
        if (i > 0 && !(model.batches[i - 1].local_batch < batch.local_batch)) {
            reader.fail("batches have to rise, and " + printable(pair[0], 40) + " does not");
        }
    }
}

void read_spread(Reader& reader, std::string_view text, StepTimeModel& model) {
    const auto entries = split(text, '/');
    if (entries.size() != model.spread.size()) {
        reader.fail("spread has " + std::to_string(entries.size()) + " numbers, and needs " +
                    std::to_string(model.spread.size()));
        return;
    }
    for (std::size_t i = 0; i < entries.size(); ++i) {
        model.spread[i] = reader.in_range<float>(a_spread, entries[i]);
    }
}

}  // namespace

std::string to_text(const StepTimeModel& model) {
    std::string out;
    const auto member = [&out](const char* name, const std::string& value) {
        out += out.empty() ? std::string(StepTimeModel::prefix) : ",";
        out += std::string(name) + "=" + value;
    };
    const auto number = [&member](const Member& what, auto value) {
        if (static_cast<double>(value) != what.otherwise) member(what.name, text_of(value));
    };
    for (std::size_t i = 0; i < step_terms; ++i) number(terms[i], model.parameters[i]);
    number(noise, model.noise);
    number(batch_sd, model.batch_sd);
    number(scale, model.scale);
    number(samples, model.samples);
    number(most_gpus, model.most_gpus);
    std::string list;
    for (const StepBatch& batch : model.batches) {
        if (!(batch.local_batch > 0)) break;
        list +=
            (list.empty() ? "" : "/") + text_of(batch.local_batch) + ":" + text_of(batch.offset);
    }
    if (!list.empty()) member(a_batch.name, list);
    list.clear();
    bool certain = true;
    for (const float entry : model.spread) {
        certain = certain && entry == 0;
        list += (list.empty() ? "" : "/") + text_of(entry);
    }
    if (!certain) member(a_spread.name, list);
    return out;
}

Result<StepTimeModel> parse_step_time(std::string_view text) {
    const auto refuse = [](std::string what) {
        return Error{ErrorCode::bad_input, "step time: " + std::move(what)};
    };
    if (text.size() > StepTimeModel::max_bytes) {
        return refuse(std::to_string(text.size()) + " bytes are more than the " +
                      std::to_string(StepTimeModel::max_bytes) + " of a step time model");
    }
    if (text.substr(0, StepTimeModel::prefix.size()) != StepTimeModel::prefix) {
        return refuse("\"" + printable(text, 20) + "\" does not begin with " +
                      std::string(StepTimeModel::prefix));
    }
    Reader reader;
    for (const auto piece : split(text.substr(StepTimeModel::prefix.size()), ',')) {
        const auto equals = piece.find('=');
        if (equals == std::string_view::npos) {
            return refuse("\"" + printable(piece, 40) + "\" is no NAME=VALUE");
        }
        reader.take(piece.substr(0, equals), piece.substr(equals + 1));
    }
    StepTimeModel model;
    for (std::size_t i = 0; i < step_terms; ++i) model.parameters[i] = reader.number(terms[i]);
    model.noise = reader.number(noise);
    model.batch_sd = reader.number(batch_sd);
    model.scale = reader.number(scale);
    model.samples = reader.count(samples);
    model.most_gpus = reader.count(most_gpus);
    if (const auto list = reader.text_at(a_batch.name)) read_batches(reader, *list, model);
    if (const auto list = reader.text_at(a_spread.name)) read_spread(reader, *list, model);
    if (!(model[StepTerm::compute_s] + model[StepTerm::sample_s] >= least_alone)) {
        reader.fail("compute_s and sample_s are 0 together, and a step takes at least " +
                    format_number(least_alone) + " s");
    }
    if (const std::string& error = reader.finish(); !error.empty()) {
        return {ErrorCode::bad_input, error};
    }
    return model;
}

}  // namespace sluice
