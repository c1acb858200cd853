// SPDX-License-Identifier: GPL-2.0-or-later
#include "contrib/sim/application.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <limits>
#include <numeric>
#include <system_error>

#include "common/base/text.hpp"
#include "contrib/sim/csv_table.hpp"

namespace sluice::sim {
namespace {

constexpr int most_nodes = 4096;
constexpr int most_gpus_on_node = 64;
constexpr std::size_t most_placed_nodes = 64;
constexpr double largest_batch = 1e9;
// Beyond these nothing is a measurement, and sums and quotients need not be numbers.
constexpr double least_step_s = 1e-9;
constexpr double most_step_s = 1e9;
constexpr double most_progress = 1e15;
constexpr std::size_t most_epochs = 10000;
constexpr double least_noise = 1e-100;
constexpr double most_noise = 1e100;

/// The placements of a table name neighbours in a ring: the smallest rotation stands for all.
std::vector<int> smallest_rotation(std::vector<int> gpus) {
    std::vector<int> best = gpus;
    for (std::size_t i = 1; i < gpus.size(); ++i) {
        std::rotate(gpus.begin(), gpus.begin() + 1, gpus.end());
        best = std::min(best, gpus);
    }
    return best;
}

StepSeconds between(const StepSeconds& a, const StepSeconds& b, double share) {
    return {a.step + share * (b.step - a.step), a.sync + share * (b.sync - a.sync)};
}

/// The two entries of a map around a key and where between them it lies; outside: the nearest.
template <typename Map>
struct Neighbours {
    typename Map::const_iterator low;
    typename Map::const_iterator high;
    double share = 0;
};
template <typename Map>
Neighbours<Map> around(const Map& map, double key) {
    auto high = std::find_if(map.begin(), map.end(),
                             [&](const auto& entry) { return double(entry.first) >= key; });
    if (high == map.end()) return {std::prev(high), std::prev(high), 0};
    if (high == map.begin() || double(high->first) == key) return {high, high, 0};
    const auto low = std::prev(high);
    return {low, high, (key - double(low->first)) / (double(high->first) - double(low->first))};
}

}  // namespace

Result<StepTable> StepTable::read(const std::string& placements, const std::string& scalability) {
    StepTable table;
    std::map<std::pair<int, int>, std::map<double, std::pair<StepSeconds, int>>> sums;
    const auto add = [&](int nodes, int gpus, const Row& row) {
        auto& [sum, count] = sums[{nodes, gpus}][row.local_batch];
        sum = {sum.step + row.seconds.step, sum.sync + row.seconds.sync};
        ++count;
    };
    const auto times = [](const CsvTable& csv, std::size_t row, std::size_t first) -> Result<Row> {
        std::array<double, 3> values{};
        for (std::size_t i = 0; i < values.size(); ++i) {
            const Result<double> value = csv.number(row, first + i);
            if (!value) return value.error();
            values[i] = *value;
        }
        if (values[0] < 1 || values[0] > largest_batch || values[1] < least_step_s ||
            values[1] > most_step_s || values[2] < 0 || values[2] > values[1])
            return {ErrorCode::bad_input,
                    csv.place(row) +
                        ": a local batch from 1 to 1e9, a step time from 1e-9 to 1e9 "
                        "and a sync time from 0 to the step time are needed"};
        return Row{values[0], {values[1], values[2]}};
    };

    const Result<CsvTable> measured =
        CsvTable::read(placements, {"placement", "local_bsz", "step_time", "sync_time"});
    if (!measured) return measured.error();
    if (measured->rows() == 0) return {ErrorCode::bad_input, placements + ": has no rows"};
    for (std::size_t row = 0; row < measured->rows(); ++row) {
        const std::string_view digits = measured->text(row, 0);
        std::vector<int> gpus;
        for (const char digit : digits) {
            if (digit < '1' || digit > '9')
                return {ErrorCode::bad_input,
                        measured->place(row) + ": placement \"" + printable(digits) +
                            "\": a digit from 1 to 9 for each node is needed"};
            gpus.push_back(digit - '0');
        }
        if (gpus.empty() || gpus.size() > most_placed_nodes)
            return {ErrorCode::bad_input,
                    measured->place(row) + ": placement " +
                        (gpus.empty() ? "is empty" : "\"" + printable(digits) + "\"") + ": 1 to " +
                        std::to_string(most_placed_nodes) + " digits are needed"};
        table.most_placed_nodes_ = std::max(table.most_placed_nodes_, gpus.size());
        const Result<Row> values = times(*measured, row, 1);
        if (!values) return values.error();
        table.placements_[smallest_rotation(gpus)].push_back(*values);
        add(static_cast<int>(gpus.size()), std::accumulate(gpus.begin(), gpus.end(), 0), *values);
    }
    if (!scalability.empty()) {
        const Result<CsvTable> large = CsvTable::read(
            scalability, {"num_nodes", "num_replicas", "local_bsz", "step_time", "sync_time"});
        if (!large) return large.error();
        for (std::size_t row = 0; row < large->rows(); ++row) {
            const auto nodes = parse_integer(large->text(row, 0));
            const auto gpus = parse_integer(large->text(row, 1));
            if (!nodes || !gpus || *nodes < 1 || *nodes > most_nodes || *gpus < *nodes ||
                *gpus > *nodes * most_gpus_on_node)
                return {ErrorCode::bad_input,
                        large->place(row) + ": num_nodes from 1 to " + std::to_string(most_nodes) +
                            ", num_replicas from num_nodes to " +
                            std::to_string(most_gpus_on_node) + " a node are needed"};
            const Result<Row> values = times(*large, row, 2);
            if (!values) return values.error();
            add(static_cast<int>(*nodes), static_cast<int>(*gpus), *values);
        }
    }
    for (auto& [gpus, line] : table.placements_)
        std::sort(line.begin(), line.end(),
                  [](const Row& a, const Row& b) { return a.local_batch < b.local_batch; });
    const int fewest_nodes = sums.begin()->first.first;
    for (const auto& [place, batches] : sums) {
        Line& line = table.by_nodes_[place.first][place.second];
        for (const auto& [local, sum] : batches)
            line.push_back({local, {sum.first.step / sum.second, sum.first.sync / sum.second}});
        const auto widen = [&](double local) {
            table.least_local_ =
                table.least_local_ == 0 ? local : std::min(table.least_local_, local);
            table.most_local_ = std::max(table.most_local_, local);
        };
        if (place.first <= std::max(4, fewest_nodes)) {
            widen(line.front().local_batch);
            widen(line.back().local_batch);
        }
    }
    return table;
}

StepTable StepTable::by_rule(int gpus, double exponent, double most_local_batch) {
    StepTable table;
    table.rule_ = Rule{gpus, exponent};
    table.least_local_ = 1;
    table.most_local_ = most_local_batch;
    return table;
}

std::vector<MeasuredStep> StepTable::measured() const {
    std::vector<MeasuredStep> steps;
    if (rule_) {
        const std::vector<int> one{1};
        steps.push_back({step_placement(one, most_local_), at(one, most_local_)});
    }
    for (const auto& [gpus, line] : placements_)
        for (const Row& row : line)
            steps.push_back({step_placement(gpus, row.local_batch), row.seconds});
    for (const auto& [nodes, sizes] : by_nodes_) {
        for (const auto& [gpus, line] : sizes) {
            if (nodes <= 4) continue;
            std::vector<int> even(static_cast<std::size_t>(nodes), gpus / nodes);
            for (int i = 0; i < gpus % nodes; ++i) ++even[static_cast<std::size_t>(i)];
            for (const Row& row : line)
                steps.push_back({step_placement(even, row.local_batch), row.seconds});
        }
    }
    return steps;
}

StepSeconds StepTable::on_line(const Line& line, double local_batch) {
    const auto high =
        std::lower_bound(line.begin(), line.end(), local_batch,
                         [](const Row& row, double local) { return row.local_batch < local; });
    if (high == line.begin()) return high->seconds;
    if (high == line.end()) return line.back().seconds;
    const auto low = std::prev(high);
    return between(low->seconds, high->seconds,
                   (local_batch - low->local_batch) / (high->local_batch - low->local_batch));
}

StepSeconds StepTable::on_nodes(const std::map<int, Line>& sizes, double gpus,
                                double local_batch) const {
    const auto [low, high, share] = around(sizes, gpus);
    return between(on_line(low->second, local_batch), on_line(high->second, local_batch), share);
}

StepSeconds StepTable::at(std::span<const int> gpus_on_nodes, double local_batch) const {
    if (rule_) {
        const int all = std::accumulate(gpus_on_nodes.begin(), gpus_on_nodes.end(), 0);
        return {std::pow(double(rule_->gpus) / all, rule_->exponent), 0};
    }
    std::vector<int> gpus;
    for (const int count : gpus_on_nodes)
        if (count > 0) gpus.push_back(count);
    if (gpus.size() <= most_placed_nodes_) {
        const auto found = placements_.find(smallest_rotation(gpus));
        if (found != placements_.end()) return on_line(found->second, local_batch);
    }
    return by_counts(static_cast<int>(gpus.size()), std::accumulate(gpus.begin(), gpus.end(), 0),
                     local_batch);
}

StepSeconds StepTable::by_counts(int nodes, int gpus, double local_batch) const {
    const double per_node = static_cast<double>(gpus) / nodes;
    const auto [low, high, share] = around(by_nodes_, nodes);
    return between(on_nodes(low->second, per_node * low->first, local_batch),
                   on_nodes(high->second, per_node * high->first, local_batch), share);
}

Application Application::by_rule(const std::string& name, int gpus, double seconds, double exponent,
                                 std::size_t types) {
    Application application;
    application.name_ = name;
    // as many samples as it may have GPUs, one each then
    const double batch = 2.0 * gpus;
    application.steps_.assign(types, StepTable::by_rule(gpus, exponent, batch));
    // a step a second; without noise its worth does not depend on the batch
    application.curves_[batch] = {{seconds, {1, 0}}};
    application.progress_.push_back(seconds);
    application.epochs_ = 1;
    return application;
}

double StepTable::fastest(int gpus, int most_on_node, int nodes, const BatchSplit& split) const {
    if (rule_) return at(std::vector<int>{gpus}, split.local).step * (1 + split.accumulated);
    double fastest = std::numeric_limits<double>::infinity();
    const auto add = [&](const StepSeconds& at) {
        fastest = std::min(fastest, at.step + split.accumulated * (at.step - at.sync));
    };
    for (const auto& [placement, line] : placements_)
        if (std::accumulate(placement.begin(), placement.end(), 0) == gpus &&
            static_cast<int>(placement.size()) <= nodes &&
            *std::max_element(placement.begin(), placement.end()) <= most_on_node)
            add(on_line(line, split.local));
    const int fewest = (gpus + most_on_node - 1) / most_on_node;
    for (int count = fewest; count <= std::min(gpus, nodes); ++count)
        add(by_counts(count, gpus, split.local));
    return fastest;
}

Result<Application> Application::read(const std::string& name,
                                      const std::vector<std::string>& folders,
                                      const std::vector<std::string>& types,
                                      const ApplicationOptions& options) {
    namespace fs = std::filesystem;
    Application application;
    application.name_ = name;
    application.options_ = options;
    // A link to nowhere and what cannot be looked at are for the reader to complain of.
    const auto is_there = [](const std::string& path) {
        std::error_code error;
        return fs::symlink_status(path, error).type() != fs::file_type::not_found;
    };
    // where the first folder that has it keeps it; else where it should be
    const auto find = [&](const std::string& file) {
        for (const std::string& folder : folders)
            if (std::string path = folder + "/" + name + "/" + file; is_there(path)) return path;
        return folders.front() + "/" + name + "/" + file;
    };
    for (const std::string& type : types) {
        const std::string end = (type.empty() ? "" : "-" + type) + ".csv";
        const std::string scalability = find("scalability" + end);
        Result<StepTable> steps = StepTable::read(
            find("placements" + end), is_there(scalability) ? scalability : std::string());
        if (!steps) return steps.error();
        application.steps_.push_back(std::move(*steps));
    }
    for (const std::string& each : folders)
        if (const Status read = application.read_curves(each + "/" + name); !read)
            return read.error();
    if (application.curves_.empty())
        return {ErrorCode::bad_input,
                folders.front() + "/" + name + ": has no validation-BATCH.csv"};
    application.epochs_ =
        static_cast<int>(std::min_element(application.curves_.begin(), application.curves_.end(),
                                          [](const auto& a, const auto& b) {
                                              return a.second.size() < b.second.size();
                                          })
                             ->second.size());
    for (int epoch = 0; epoch < application.epochs_; ++epoch) {
        double least = std::numeric_limits<double>::infinity();
        for (const auto& [batch, curve] : application.curves_)
            least = std::min(least, curve[static_cast<std::size_t>(epoch)].progress);
        application.progress_.push_back(least);
    }
    return application;
}

Status Application::read_curves(const std::string& folder) {
    namespace fs = std::filesystem;
    if (!curves_.empty()) return {};
    std::vector<std::string> files;
    std::error_code error;
    for (fs::directory_iterator each(folder, error), end; !error && each != end;
         each.increment(error))
        files.push_back(each->path().filename().string());
    if (error && error != std::errc::no_such_file_or_directory)
        return Error{ErrorCode::unreachable, folder + ": " + error.message()};
    std::sort(files.begin(), files.end());
    for (const std::string& file : files) {
        constexpr std::string_view prefix = "validation-";
        if (!file.starts_with(prefix) || !file.ends_with(".csv")) continue;
        const auto batch = parse_integer(
            std::string_view(file).substr(prefix.size(), file.size() - prefix.size() - 4));
        if (!batch || *batch < 1 || static_cast<double>(*batch) > largest_batch)
            return Error{ErrorCode::bad_input,
                         folder + "/" + file +
                             ": validation-BATCH.csv with a batch from 1 to 1e9 "
                             "is needed"};
        const Result<CsvTable> csv =
            CsvTable::read(folder + "/" + file, {"progress", "grad_sqr", "grad_var"}, {"metric"});
        if (!csv) return csv.error();
        std::vector<Epoch>& curve = curves_[static_cast<double>(*batch)];
        if (!curve.empty())
            return Error{ErrorCode::bad_input, folder + "/" + file + ": a second file of batch " +
                                                   std::to_string(*batch) + ", one is needed"};
        if (csv->rows() > most_epochs)
            return Error{ErrorCode::bad_input, csv->place(most_epochs) +
                                                   ": a row for each epoch, at most " +
                                                   std::to_string(most_epochs) + ", is needed"};
        for (std::size_t row = 0; row < csv->rows(); ++row) {
            std::array<double, 3> values{};
            for (std::size_t i = 0; i < values.size(); ++i) {
                const Result<double> value = csv->number(row, i);
                if (!value) return value.error();
                values[i] = *value;
            }
            const double before = curve.empty() ? 0 : curve.back().progress;
            if (values[0] <= before || values[0] > most_progress)
                return Error{
                    ErrorCode::bad_input,
                    csv->place(row) + ": progress has to rise, from above 0 to at most 1e15"};
            if (values[1] < 0 || values[2] < 0 || values[1] > most_noise ||
                values[2] > most_noise || values[1] + values[2] < least_noise)
                return Error{ErrorCode::bad_input,
                             csv->place(row) +
                                 ": grad_sqr and grad_var from 0 to 1e100, not both below 1e-100, "
                                 "are needed"};
            curve.push_back({values[0],
                             {values[1], values[2]},
                             parse_number(csv->text(row, 3))
                                 .value_or(std::numeric_limits<double>::quiet_NaN())});
        }
        if (curve.empty())
            return Error{ErrorCode::bad_input, folder + "/" + file + ": has no rows"};
    }
    return {};
}

StepSeconds Application::step(std::size_t type, std::span<const int> gpus_on_nodes,
                              double local_batch) const {
    const StepSeconds measured = steps_[type].at(gpus_on_nodes, local_batch);
    return {measured.step * options_.slower, measured.sync * options_.slower};
}

std::vector<MeasuredStep> Application::measured(std::size_t type) const {
    std::vector<MeasuredStep> steps = steps_[type].measured();
    for (MeasuredStep& each : steps) {
        each.seconds.step *= options_.slower;
        each.seconds.sync *= options_.slower;
    }
    return steps;
}

BatchLimits Application::limits(std::size_t type) const {
    double most = steps_[type].most_local_batch();
    if (options_.most_local_batch > 0) most = std::min(most, options_.most_local_batch);
    return {first_batch(), most_batch(), static_cast<int>(steps_[type].least_local_batch()),
            static_cast<int>(most)};
}

int Application::least_local_batch() const {
    double least = std::numeric_limits<double>::infinity();
    for (const StepTable& steps : steps_) least = std::min(least, steps.least_local_batch());
    return static_cast<int>(least);
}

std::vector<LossPoint> Application::losses() const {
    const std::vector<Epoch>& curve = curves_.begin()->second;
    // a score that rises: what it is below its best
    const bool rises = curve.back().metric > curve.front().metric;
    double best = curve.front().metric;
    for (const Epoch& epoch : curve) best = std::max(best, epoch.metric);
    std::vector<LossPoint> points;
    for (const Epoch& epoch : curve)
        points.push_back({static_cast<std::int64_t>(epoch.progress),
                          rises ? best - epoch.metric : epoch.metric});
    return points;
}

GradientNoise Application::noise(double batch, int epoch) const {
    const auto [low, high, share] = around(curves_, batch);
    const auto at = static_cast<std::size_t>(std::clamp(epoch, 0, epochs_ - 1));
    const GradientNoise& a = low->second[at].noise;
    const GradientNoise& b = high->second[at].noise;
    return {a.square + share * (b.square - a.square),
            a.variance + share * (b.variance - a.variance)};
}

double Application::gain(double batch, int epoch) const {
    const GradientNoise at = noise(batch, epoch);
    const double scale = batch / first_batch();
    return (at.variance + at.square) / (at.variance / scale + at.square);
}

}  // namespace sluice::sim
