// SPDX-License-Identifier: GPL-2.0-or-later
//
// How well step times are predicted: tests/bench/README.md.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "common/base/text.hpp"
#include "common/model/step_time_fit.hpp"

using namespace sluice;

namespace {

namespace fs = std::filesystem;

/// Of this process: other people's load does not count.
double cpu_seconds() {
    return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

struct Row {
    StepPlacement placement;
    double step_s = 0;
    double sync_s = 0;
    std::string shape;  ///< "13", or "6/20" where the table says nodes and GPUs alone
};
using Rows = std::vector<Row>;

/// Where a table names nodes and replicas alone, they are spread as evenly as can be. Some of Sia's
/// tables have rows of the placement table again, without their shape: those are left out.
void read_rows(const fs::path& file, Rows& rows) {
    std::ifstream stream(file);
    std::string line;
    if (!std::getline(stream, line)) return;
    std::map<std::string, std::size_t, std::less<>> column;
    for (const auto name : split(trim(line), ',')) column.emplace(std::string(name), column.size());
    while (std::getline(stream, line)) {
        const auto cells = split(trim(line), ',');
        if (cells.size() != column.size()) continue;
        const auto number = [&](const char* name) {
            const auto found = column.find(name);
            return found == column.end() ? 0 : parse_number(cells[found->second]).value_or(0);
        };
        Row row;
        row.step_s = number("step_time");
        row.sync_s = number("sync_time");
        const double batch = number("local_bsz");
        std::vector<int> gpus;
        if (const auto found = column.find("placement"); found != column.end()) {
            row.shape = std::string(cells[found->second]);
            for (const char digit : row.shape) gpus.push_back(digit - '0');
        } else {
            const int nodes = static_cast<int>(number("num_nodes"));
            const int all = static_cast<int>(number("num_replicas"));
            for (int i = 0; i < nodes; ++i) gpus.push_back(all / nodes + (i < all % nodes ? 1 : 0));
            row.shape = std::to_string(nodes) + "/" + std::to_string(all);
        }
        row.placement = step_placement(gpus, batch);
        const auto is_again = [&row](const Row& other) {
            return other.step_s == row.step_s && other.placement.nodes == row.placement.nodes &&
                   other.placement.gpus == row.placement.gpus &&
                   other.placement.local_batch == row.placement.local_batch;
        };
        if (row.step_s > 0 && usable(row.placement) &&
            std::none_of(rows.begin(), rows.end(), is_again)) {
            rows.push_back(row);
        }
    }
}

// The library's own shuffles and distributions differ from one to the next.
void shuffle(Rows& rows, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    for (std::size_t i = rows.size(); i > 1; --i) std::swap(rows[i - 1], rows[random() % i]);
}

using Predictor = std::function<double(const StepPlacement&)>;

/// Least squares of relative errors with non-negative coefficients: the best of all subsets of at
/// most three terms.
Predictor linear_fit(const Rows& rows, std::size_t terms,
                     const std::function<std::array<double, 3>(const StepPlacement&)>& term_of) {
    std::array<double, 3> best{};
    double least = 1e300;
    for (unsigned chosen = 1; chosen < (1U << terms); ++chosen) {
        std::array<std::array<double, 4>, 3> a{};
        for (const Row& row : rows) {
            const auto x = term_of(row.placement);
            for (std::size_t i = 0; i < 3; ++i) {
                if (!(chosen >> i & 1U)) continue;
                for (std::size_t j = 0; j < 3; ++j) {
                    if (chosen >> j & 1U) a[i][j] += x[i] * x[j] / row.step_s / row.step_s;
                }
                a[i][3] += x[i] / row.step_s;
            }
        }
        for (std::size_t i = 0; i < 3; ++i) {
            if (!(chosen >> i & 1U)) a[i][i] = 1;
        }
        for (std::size_t i = 0; i < 3; ++i) {  // Gauss and Jordan
            for (std::size_t k = 0; k < 3; ++k) {
                if (k == i || a[i][i] == 0) continue;
                const double factor = a[k][i] / a[i][i];
                for (std::size_t j = i; j < 4; ++j) a[k][j] -= factor * a[i][j];
            }
        }
        std::array<double, 3> found{};
        bool legal = true;
        for (std::size_t i = 0; i < 3; ++i) {
            found[i] = a[i][i] == 0 ? 0 : a[i][3] / a[i][i];
            legal = legal && found[i] >= 0;
        }
        if (!legal) continue;
        double cost = 0;
        for (const Row& row : rows) {
            const auto x = term_of(row.placement);
            const double predicted = found[0] * x[0] + found[1] * x[1] + found[2] * x[2];
            cost += std::pow(predicted / row.step_s - 1, 2);
        }
        if (cost < least) {
            least = cost;
            best = found;
        }
    }
    return [best, term_of](const StepPlacement& placement) {
        const auto x = term_of(placement);
        return best[0] * x[0] + best[1] * x[1] + best[2] * x[2];
    };
}

/// Throughput grows with the GPUs: the step time is that of one GPU at the same local batch.
Predictor fit_linear(const Rows& rows) {
    return linear_fit(rows, 2, [](const StepPlacement& placement) {
        return std::array<double, 3>{1, placement.local_batch, 0};
    });
}

/// 1 / f = t0 M / w + t1 + t2 w (EuroSys 2018, section 3.2, for all-reduce).
Predictor fit_optimus(const Rows& rows) {
    return linear_fit(rows, 3, [](const StepPlacement& placement) {
        return std::array<double, 3>{placement.local_batch, 1, static_cast<double>(placement.gpus)};
    });
}

/// a, b of T_grad; a, b inside a node; a, b across nodes; gamma.
using PolluxParameters = std::array<double, 7>;

double pollux_grad(const PolluxParameters& p, const StepPlacement& placement) {
    return p[0] + p[1] * placement.local_batch;
}

double pollux_step(const PolluxParameters& p, const StepPlacement& placement) {
    const double grad = pollux_grad(p, placement);
    if (placement.gpus < 2) return grad;
    const std::size_t at = placement.nodes > 1 ? 4 : 2;
    const double sync = p[at] + p[at + 1] * (placement.gpus - 2);
    const double larger = std::max(grad, sync);
    return larger *
           std::pow(std::pow(grad / larger, p[6]) + std::pow(sync / larger, p[6]), 1 / p[6]);
}

/// Its objective (OSDI 2021, section 4.1): the root mean squares of the logarithms of T_grad and of
/// T_iter, with its two regularisers and its optimism about what was not measured; T_grad is given
/// to it as measured. Minimised in the logarithms of the parameters.
Predictor fit_pollux(const Rows& rows) {
    bool one_batch = true;
    bool one_node = false;
    bool several_nodes = false;
    int most_gpus = 0;
    double mean_grad = 0;
    for (const Row& row : rows) {
        const StepPlacement& at = row.placement;
        one_batch = one_batch && at.local_batch == rows.front().placement.local_batch;
        one_node = one_node || (at.nodes == 1 && at.gpus > 1);
        several_nodes = several_nodes || at.nodes > 1;
        most_gpus = std::max(most_gpus, at.gpus);
        mean_grad += std::max(row.step_s - row.sync_s, 1e-8) / static_cast<double>(rows.size());
    }
    const auto parameters_of = [&](const std::array<double, 7>& logs) {
        PolluxParameters p;
        for (std::size_t i = 0; i < 7; ++i) p[i] = std::exp(std::max(logs[i], std::log(1e-8)));
        p[6] = std::clamp(p[6], 1.0, 10.0);
        constexpr double none = 1e-8;
        if (one_batch) p[0] = mean_grad / 2;
        if (!several_nodes) p[4] = p[5] = none;
        if (!one_node) p[2] = p[3] = none;
        if (most_gpus <= 2) p[3] = p[5] = none;
        if (!several_nodes && one_node) {
            p[4] = std::max(p[4], 1.1 * p[2]);
            p[5] = std::max(p[5], 1.1 * p[3]);
        }
        return p;
    };
    const auto cost = [&](const std::array<double, 7>& logs) {
        const PolluxParameters p = parameters_of(logs);
        double grad = 0;
        double iter = 0;
        for (const Row& row : rows) {
            const double measured = std::max(row.step_s - row.sync_s, 1e-8);
            grad += std::pow(std::log(pollux_grad(p, row.placement) / measured), 2);
            iter += std::pow(std::log(pollux_step(p, row.placement) / row.step_s), 2);
        }
        const auto count = static_cast<double>(rows.size());
        return std::sqrt(grad / count) + std::sqrt(iter / count) + 1e-3 * std::pow(p[6] - 1, 2) +
               1e-2 * (std::pow(p[3] / p[2], 2) + std::pow(p[5] / p[4], 2));
    };
    // Nelder and Mead, started anew where it ended: slow and sure.
    double mean = 0;
    double batch = 0;
    for (const Row& row : rows) {
        mean += row.step_s / static_cast<double>(rows.size());
        batch += row.placement.local_batch / static_cast<double>(rows.size());
    }
    using Point = std::array<double, 7>;
    Point best{std::log(mean / 3),   std::log(mean / 3 / batch), std::log(mean / 10),
               std::log(mean / 100), std::log(mean / 3),         std::log(mean / 100),
               std::log(1.5)};
    for (int round = 0; round < 4; ++round) {
        std::vector<std::pair<double, Point>> simplex{{cost(best), best}};
        for (std::size_t i = 0; i < 7; ++i) {
            Point point = best;
            point[i] += round % 2 == 0 ? 0.7 : -0.5;
            simplex.emplace_back(cost(point), point);
        }
        for (int step = 0; step < 800; ++step) {
            std::sort(simplex.begin(), simplex.end());
            Point centre{};
            for (std::size_t k = 0; k < 7; ++k) {
                for (std::size_t i = 0; i < 7; ++i) centre[i] += simplex[k].second[i] / 7;
            }
            const auto along = [&](double t) {
                Point point;
                for (std::size_t i = 0; i < 7; ++i) {
                    point[i] = centre[i] + t * (simplex[7].second[i] - centre[i]);
                }
                return std::pair{cost(point), point};
            };
            const auto mirrored = along(-1);
            if (mirrored.first < simplex[0].first) {
                const auto further = along(-2);
                simplex[7] = further.first < mirrored.first ? further : mirrored;
            } else if (mirrored.first < simplex[6].first) {
                simplex[7] = mirrored;
            } else {
                const auto nearer = along(mirrored.first < simplex[7].first ? -0.5 : 0.5);
                if (nearer.first < std::min(mirrored.first, simplex[7].first)) {
                    simplex[7] = nearer;
                } else {
                    for (std::size_t k = 1; k < 8; ++k) {
                        for (std::size_t i = 0; i < 7; ++i) {
                            simplex[k].second[i] =
                                (simplex[k].second[i] + simplex[0].second[i]) / 2;
                        }
                        simplex[k].first = cost(simplex[k].second);
                    }
                }
            }
        }
        std::sort(simplex.begin(), simplex.end());
        best = simplex[0].second;
    }
    const PolluxParameters p = parameters_of(best);
    return [p](const StepPlacement& placement) { return pollux_step(p, placement); };
}

std::vector<StepSample> samples_of(const Rows& rows) {
    std::vector<StepSample> samples;
    for (const Row& row : rows) samples.push_back({row.placement, row.step_s, 1});
    return samples;
}

double error_of(const Predictor& predict, const Rows& rows) {
    double sum = 0;
    for (const Row& row : rows) sum += std::fabs(predict(row.placement) / row.step_s - 1);
    return 100 * sum / static_cast<double>(rows.size());
}

/// Mean and worst over seeds.
struct Score {
    double sum = 0;
    double worst = 0;
    int count = 0;

    void add(double value) {
        sum += value;
        worst = std::max(worst, value);
        ++count;
    }
    double mean() const { return count == 0 ? 0 : sum / count; }
};

constexpr std::size_t methods = 4;
constexpr std::array<const char*, methods> method_names{"sluice", "pollux", "optimus", "linear"};

struct Scores {
    std::array<Score, methods> error;
    Score inside;  ///< share of held-out rows in the 80% interval, in percent
    Score fit_ms;
};

/// In percent.
double share_inside(const StepTimeModel& model, const Rows& rows) {
    double inside = 0;
    for (const Row& row : rows) {
        const StepTime predicted = predict_step(model, row.placement);
        inside += row.step_s >= predicted.low() && row.step_s <= predicted.high() ? 1 : 0;
    }
    return 100 * inside / static_cast<double>(rows.size());
}

/// Every method is fitted to `training` and predicts `rest`.
void measure(const Rows& training, const Rows& rest, Scores& out) {
    const auto samples = samples_of(training);
    const double begin = cpu_seconds();
    const StepTimeModel model = fit_step_time(samples);
    out.fit_ms.add(1e3 * (cpu_seconds() - begin));
    out.error[0].add(
        error_of([&model](const StepPlacement& p) { return step_seconds(model, p); }, rest));
    out.error[1].add(error_of(fit_pollux(training), rest));
    out.error[2].add(error_of(fit_optimus(training), rest));
    out.error[3].add(error_of(fit_linear(training), rest));
    out.inside.add(share_inside(model, rest));
}

void print_head(const char* what) {
    std::printf("\n%-26s %6s", what, "rows");
    for (const char* name : method_names) std::printf("  %8s %6s", name, "worst");
    std::printf("  %6s  %6s\n", "in 80%", "fit ms");
}

void print_line(const std::string& name, std::size_t rows, const Scores& result) {
    std::printf("%-26s %6zu", name.c_str(), rows);
    for (const Score& score : result.error)
        std::printf("  %7.2f%% %6.2f", score.mean(), score.worst);
    std::printf("  %5.1f%%  %6.2f\n", result.inside.mean(), result.fit_ms.mean());
}

struct Table {
    std::string name;
    Rows rows;
};

constexpr std::array<const char*, 6> applications{"bert",     "cifar10", "deepspeech2",
                                                  "imagenet", "ncf",     "yolov3"};
constexpr std::array<const char*, 5> sia_types{"azure", "dgx", "dgx-ext", "quad", "rtx"};

std::vector<Table> pollux_tables(const fs::path& data) {
    std::vector<Table> out;
    for (const std::string application : applications) {
        Table table{application + " T4", {}};
        const fs::path folder = data / "adaptdl-osdi21/simulator/traces" / application;
        read_rows(folder / "placements.csv", table.rows);
        read_rows(folder / "scalability.csv", table.rows);
        if (!table.rows.empty()) out.push_back(std::move(table));
    }
    return out;
}

std::vector<Table> sia_tables(const fs::path& data) {
    std::vector<Table> out;
    for (const std::string type : sia_types) {
        for (const std::string application : applications) {
            Table table{application + " " + type, {}};
            const fs::path folder = data / "sia-artifacts/sia-simulator/traces" / application;
            read_rows(folder / ("placements-" + type + ".csv"), table.rows);
            read_rows(folder / ("scalability-" + type + ".csv"), table.rows);
            if (!table.rows.empty()) out.push_back(std::move(table));
        }
    }
    return out;
}

void thirds(const char* what, const std::vector<Table>& tables, std::uint64_t seed, int seeds) {
    print_head(what);
    Scores all;
    std::size_t rows = 0;
    for (const Table& table : tables) {
        Scores result;
        for (int i = 0; i < seeds; ++i) {
            Rows shuffled = table.rows;
            shuffle(shuffled, seed + static_cast<std::uint64_t>(i));
            const auto third = shuffled.begin() + static_cast<std::ptrdiff_t>(shuffled.size() / 3);
            measure({shuffled.begin(), third}, {third, shuffled.end()}, result);
        }
        print_line(table.name, table.rows.size(), result);
        rows += table.rows.size();
        for (std::size_t i = 0; i < methods; ++i) all.error[i].add(result.error[i].mean());
        all.inside.add(result.inside.mean());
        all.fit_ms.add(result.fit_ms.mean());
    }
    print_line("mean of tables", rows, all);
}

/// As a job with one local batch sees it: n placements at the median batch of its table, for the
/// other placements at that batch.
void few_placements(const std::vector<Table>& tables, std::uint64_t seed, int seeds) {
    print_head("n placements, one batch");
    for (const std::size_t count : {1, 2, 3, 5, 10, 20, 40}) {
        Scores result;
        std::size_t rows = 0;
        for (const Table& table : tables) {
            std::vector<double> batches;
            for (const Row& row : table.rows) batches.push_back(row.placement.local_batch);
            std::sort(batches.begin(), batches.end());
            Rows same;
            for (const Row& row : table.rows) {
                if (row.placement.local_batch == batches[batches.size() / 2]) same.push_back(row);
            }
            rows += same.size();
            for (int i = 0; i < seeds; ++i) {
                shuffle(same, seed + static_cast<std::uint64_t>(i));
                const auto split = same.begin() + static_cast<std::ptrdiff_t>(count);
                measure({same.begin(), split}, {split, same.end()}, result);
            }
        }
        print_line(std::to_string(count), rows, result);
    }
}

/// What another GPU type's measurements of the same application are worth: 3 rows of this type with
/// them, and without.
void from_other_type(const std::vector<Table>& pollux, const std::vector<Table>& sia,
                     std::uint64_t seed, int seeds) {
    std::printf("\n%-26s %6s  %9s %8s  %9s %8s\n", "3 rows here, all of T4", "rows", "with T4",
                "in 80%", "without", "in 80%");
    Score all[4];
    for (const Table& table : sia) {
        const std::string application = table.name.substr(0, table.name.find(' '));
        const auto donor = std::find_if(pollux.begin(), pollux.end(), [&](const Table& other) {
            return other.name == application + " T4";
        });
        if (donor == pollux.end()) continue;
        const StepTimeModel similar = fit_step_time(samples_of(donor->rows));
        Score score[4];
        for (int i = 0; i < seeds; ++i) {
            Rows rows = table.rows;
            shuffle(rows, seed + static_cast<std::uint64_t>(i));
            const auto samples = samples_of({rows.begin(), rows.begin() + 3});
            const Rows rest(rows.begin() + 3, rows.end());
            for (std::size_t without = 0; without < 2; ++without) {
                const auto model = fit_step_time(samples, without == 1 ? nullptr : &similar);
                score[2 * without].add(error_of(
                    [&model](const StepPlacement& at) { return step_seconds(model, at); }, rest));
                score[2 * without + 1].add(share_inside(model, rest));
            }
        }
        std::printf("%-26s %6zu", table.name.c_str(), table.rows.size());
        for (std::size_t k = 0; k < 4; ++k) {
            std::printf("  %8.1f%%", score[k].mean());
            all[k].add(score[k].mean());
        }
        std::puts("");
    }
    std::printf("%-26s %6s", "mean of tables", "");
    for (const Score& score : all) std::printf("  %8.1f%%", score.mean());
    std::puts("");
}

/// What runs of few GPUs say of many.
void from_small(const std::vector<Table>& tables) {
    print_head("fitted on K <= 8, for K > 16");
    for (const Table& table : tables) {
        Rows small;
        Rows large;
        for (const Row& row : table.rows) {
            if (row.placement.gpus <= 8) small.push_back(row);
            if (row.placement.gpus > 16) large.push_back(row);
        }
        if (small.empty() || large.empty()) continue;
        Scores result;
        measure(small, large, result);
        print_line(table.name, large.size(), result);
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 2 || argc > 4) {
        std::fputs("usage: step_time_bench PATH_OF_DATA [SEED [SEEDS]]\n", stderr);
        return 2;
    }
    const fs::path data = argv[1];
    const auto seed = static_cast<std::uint64_t>(argc > 2 ? parse_integer(argv[2]).value_or(1) : 1);
    const int seeds = static_cast<int>(argc > 3 ? parse_integer(argv[3]).value_or(5) : 5);
    const auto pollux = pollux_tables(data);
    const auto sia = sia_tables(data);
    if (pollux.empty() && sia.empty()) {
        std::fprintf(stderr,
                     "step_time_bench: %s has neither adaptdl-osdi21/simulator/traces nor "
                     "sia-artifacts/sia-simulator/traces\n",
                     argv[1]);
        return 1;
    }
    std::printf("mean absolute percentage error on rows that were held out; seeds %llu to %llu\n",
                static_cast<unsigned long long>(seed),
                static_cast<unsigned long long>(seed) + static_cast<unsigned long long>(seeds) - 1);
    thirds("Pollux, a third fitted", pollux, seed, seeds);
    few_placements(pollux, seed, seeds);
    from_small(pollux);
    thirds("Sia, a third fitted", sia, seed, seeds);
    from_other_type(pollux, sia, seed, seeds);

    const auto samples = samples_of(pollux.empty() ? sia.front().rows : pollux.front().rows);
    const StepTimeModel model = fit_step_time(samples);
    const auto timed = [&samples](const char* what, const auto& call) {
        double sum = 0;
        const double begin = cpu_seconds();
        for (int i = 0; i < 500; ++i) {
            for (const StepSample& sample : samples) sum += call(sample.placement);
        }
        const double ns = 1e9 * (cpu_seconds() - begin);
        std::printf("%s: %.0f ns (%g)\n", what, ns / 500 / static_cast<double>(samples.size()),
                    sum);
    };
    std::puts("");
    timed("step_seconds", [&model](const StepPlacement& p) { return step_seconds(model, p); });
    timed("predict_step",
          [&model](const StepPlacement& p) { return predict_step(model, p).log_sd; });
    return 0;
}
