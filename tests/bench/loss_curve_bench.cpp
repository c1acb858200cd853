// SPDX-License-Identifier: GPL-2.0-or-later
//
// How well the end of a training run is foretold, on public curves: tests/bench/README.md.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/text.hpp"
#include "common/model/loss_curve.hpp"
#include "common/model/progress.hpp"

using namespace sluice;

namespace {

namespace fs = std::filesystem;
using Points = std::vector<LossPoint>;

constexpr std::array<double, 3> moments{0.10, 0.25, 0.50};
// The end: the last 2% of the steps, and five points or more.
constexpr double end_fraction = 0.02;
constexpr std::size_t least_end = 5;

/// Of this process: other people's load does not count.
double cpu_seconds() {
    return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

double quantile(std::vector<double> values, double share) {
    if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
    std::sort(values.begin(), values.end());
    const double place = share * static_cast<double>(values.size() - 1);
    const auto below = static_cast<std::size_t>(place);
    const std::size_t above = std::min(below + 1, values.size() - 1);
    return values[below] + (place - std::floor(place)) * (values[above] - values[below]);
}

struct Run {
    std::string name;
    bool held_out = false;  ///< nothing was tuned on it
    Points points;          ///< every one has a step
};

/// The column of the loss of single training batches; rows without one (evaluations) are left out.
Points read_points(const fs::path& file) {
    Points points;
    std::ifstream stream(file);
    std::string line;
    if (!std::getline(stream, line)) return points;
    std::map<std::string, std::size_t, std::less<>> column;
    for (const auto name : split(trim(line), ',')) column.emplace(std::string(name), column.size());
    const auto place = [&column](const char* name, const char* other) {
        const auto found = column.find(name);
        return found != column.end() ? found : column.find(other);
    };
    const auto step_at = place("global_step", "step");
    const auto loss_at = place("loss", "train_loss");
    if (step_at == column.end() || loss_at == column.end()) return points;
    while (std::getline(stream, line)) {
        const auto cells = split(trim(line), ',');
        if (cells.size() <= std::max(step_at->second, loss_at->second)) continue;
        const auto step = parse_integer(cells[step_at->second]);
        const auto loss = parse_number(cells[loss_at->second]);
        if (step && loss) points.push_back({*step, *loss});
    }
    return points;
}

/// Tuned on: the first two trials of each AlgoPerf workload. Held out: the third, and all others.
std::vector<Run> read_runs(const fs::path& data) {
    std::vector<Run> runs;
    for (const char* folder : {"algoperf-loss-curves", "modded-nanogpt-loss-curves"}) {
        std::error_code error;
        std::vector<fs::path> files;
        for (const auto& entry : fs::directory_iterator(data / folder, error)) {
            if (entry.path().extension() == ".csv") files.push_back(entry.path());
        }
        std::sort(files.begin(), files.end());
        for (const fs::path& file : files) {
            const std::string name = file.stem().string();
            const bool tuned = name.ends_with("_trial1") || name.ends_with("_trial2");
            Run run{name, !tuned, read_points(file)};
            if (run.points.size() >= 50) runs.push_back(std::move(run));
        }
    }
    return runs;
}

// --- the rivals

/// A point outside [min of the next five, max of the five before] becomes its neighbours' mean.
void remove_outliers(std::vector<double>& losses) {
    const std::vector<double> raw = losses;
    for (std::size_t i = 1; i + 1 < raw.size(); ++i) {
        const auto from = [&raw](std::size_t k) {
            return raw.begin() + static_cast<std::ptrdiff_t>(k);
        };
        const double least = *std::min_element(from(i + 1), from(std::min(i + 6, raw.size())));
        const double most = *std::max_element(from(i >= 5 ? i - 5 : 0), from(i));
        if (raw[i] < least || raw[i] > most) losses[i] = (raw[i - 1] + raw[i + 1]) / 2;
    }
}

/// Optimus's form 1 / (b0 k + b1) + b2 (Peng et al., EuroSys 2018, section 3.1), all points weighed
/// alike. With t = b1 / b0 and a = 1 / b1 it is a / (1 + k / t) + b2: for a fixed t a linear least
/// squares problem under a, b2 >= 0, for which t is searched.
class PlainFit {
  public:
    explicit PlainFit(const Points& points) {
        for (const LossPoint& point : points) {
            steps_.push_back(static_cast<double>(*point.step));
            losses_.push_back(point.loss);
        }
        remove_outliers(losses_);
        const double last = std::max(1.0, steps_.back());
        double best = infinity;
        double middle = 0;
        for (double octave = -16; octave <= 6; octave += 0.25) {
            const double now = solve(last * std::exp2(octave));
            if (now < best) {
                best = now;
                middle = octave;
            }
        }
        double low = middle - 0.25;
        double high = middle + 0.25;
        for (int i = 0; i < 60; ++i) {
            const double left = low + (high - low) / 3;
            const double right = high - (high - low) / 3;
            if (solve(last * std::exp2(left)) < solve(last * std::exp2(right))) {
                high = right;
            } else {
                low = left;
            }
        }
        solve(last * std::exp2((low + high) / 2));
    }

    double at(double step) const { return a_ / (1 + step / t_) + b_; }

  private:
    static constexpr double infinity = std::numeric_limits<double>::infinity();

    double solve(double t) {
        double s = 0, ss = 0, y = 0, sy = 0;
        const auto n = static_cast<double>(steps_.size());
        for (std::size_t i = 0; i < steps_.size(); ++i) {
            const double shape = 1 / (1 + steps_[i] / t);
            s += shape;
            ss += shape * shape;
            y += losses_[i];
            sy += shape * losses_[i];
        }
        const double spread = ss - s * s / n;
        t_ = t;
        a_ = spread > 1e-12 * ss ? std::max(0.0, (sy - s * y / n) / spread) : 0;
        b_ = (y - a_ * s) / n;
        if (b_ < 0) {
            b_ = 0;
            a_ = std::max(0.0, sy / ss);
        }
        double cost = 0;
        for (std::size_t i = 0; i < steps_.size(); ++i) {
            const double error = losses_[i] - at(steps_[i]);
            cost += error * error;
        }
        return cost;
    }

    std::vector<double> steps_;
    std::vector<double> losses_;
    double t_ = 1;
    double a_ = 0;
    double b_ = 0;
};

// --- the comparison

struct Answer {
    std::optional<Forecast> sluice;  ///< nothing: cannot say yet
    double plain = 0;
    double last = 0;
    double truth = 0;
    double range = 1;  ///< first loss - truth

    double error_of(double value) const { return std::fabs(value - truth) / range; }
};

Answer ask(const Run& run, double moment) {
    const auto step_of = [&run](std::size_t i) { return static_cast<double>(*run.points[i].step); };
    const std::size_t count = run.points.size();
    const double last_step = step_of(count - 1);
    std::size_t end = count - least_end;
    while (end > 0 && step_of(end - 1) >= (1 - end_fraction) * last_step) --end;
    std::vector<double> losses;
    double asked = 0;
    for (std::size_t i = end; i < count; ++i) {
        losses.push_back(run.points[i].loss);
        asked += step_of(i) / static_cast<double>(count - end);
    }
    Answer answer;
    answer.truth = quantile(losses, 0.5);
    answer.range = run.points.front().loss - answer.truth;
    Points seen;
    for (const LossPoint& point : run.points) {
        if (static_cast<double>(*point.step) <= moment * last_step) seen.push_back(point);
    }
    answer.last = seen.back().loss;
    answer.plain = PlainFit(seen).at(asked);
    if (const auto curve = fit_loss_curve(seen)) answer.sluice = forecast_loss(*curve, asked);
    return answer;
}

void print_row(const char* group, double moment, const std::vector<Answer>& answers) {
    std::vector<double> sluice, plain, last, width;
    std::size_t covered = 0;
    for (const Answer& answer : answers) {
        // who cannot say is taken at the last value's word, and covers nothing
        sluice.push_back(answer.error_of(answer.sluice ? answer.sluice->value : answer.last));
        plain.push_back(answer.error_of(answer.plain));
        last.push_back(answer.error_of(answer.last));
        if (!answer.sluice) continue;
        const Forecast& forecast = *answer.sluice;
        width.push_back((forecast.high - forecast.low) / answer.range);
        if (forecast.low <= answer.truth && answer.truth <= forecast.high) ++covered;
    }
    std::printf(
        "%-9s %3.0f%% %3zu | %6.4f %6.4f | %6.4f %6.4f | %6.4f %6.4f | %3.0f%% %6.4f  %zu\n", group,
        100 * moment, answers.size(), quantile(sluice, 0.5), quantile(sluice, 0.9),
        quantile(plain, 0.5), quantile(plain, 0.9), quantile(last, 0.5), quantile(last, 0.9),
        100 * static_cast<double>(covered) / static_cast<double>(answers.size()),
        quantile(width, 0.5), answers.size() - width.size());
}

void compare(const std::vector<Run>& runs, bool each) {
    std::map<double, std::vector<Answer>> all;
    std::map<double, std::vector<Answer>> tuned;
    std::map<double, std::vector<Answer>> held_out;
    if (each) std::puts("run, moment: truth | Sluice low value high | plain | last value");
    for (const Run& run : runs) {
        for (const double moment : moments) {
            const Answer answer = ask(run, moment);
            all[moment].push_back(answer);
            (run.held_out ? held_out : tuned)[moment].push_back(answer);
            if (!each) continue;
            const Forecast said = answer.sluice.value_or(Forecast{NAN, NAN, NAN});
            std::printf("%-34s %2.0f%% %7.4f | %7.4f %7.4f %7.4f | %7.4f | %7.4f\n",
                        run.name.c_str(), 100 * moment, answer.truth, said.low, said.value,
                        said.high, answer.plain, answer.last);
        }
    }
    std::puts(
        "the loss at the end, |error| / (first loss - truth): median, 90th percentile; of Sluice's "
        "80% intervals the share that hold and the median width; runs of which it cannot say\n"
        "runs           n  | Sluice        | plain fit     | last value    | 80% intervals");
    for (const double moment : moments) print_row("tuned on", moment, tuned[moment]);
    for (const double moment : moments) print_row("held out", moment, held_out[moment]);
    for (const double moment : moments) print_row("all", moment, all[moment]);
}

// --- cost

constexpr int streamed = 1'000'000;

/// One million noisy losses, one by one into what an agent keeps, and the curve of it.
void time_stream() {
    Progress progress;
    std::uint64_t state = 20261130;
    const auto uniform = [&state] {
        state = state * 6364136223846793005u + 1442695040888963407u;
        return static_cast<double>(state >> 11) * 0x1p-53;
    };
    Points points;
    for (std::int64_t step = 0; step < streamed; ++step) {
        const double noise = uniform() + uniform() + uniform() - 1.5;
        points.push_back({step, 1 / (0.0002 * static_cast<double>(step) + 0.15) + 2 + 0.1 * noise});
    }
    const double begin = cpu_seconds();
    for (const LossPoint& point : points) progress.add(point, 0, false);
    const double kept = cpu_seconds();
    const auto curve = fit_loss_curve(progress.points());
    const double ours = cpu_seconds() - begin;
    std::printf(
        "1 million points: %.3f s, of which the fit %.4f s, %zu points kept; at the end "
        "%.4f (truth %.4f)\n",
        ours, ours - (kept - begin), progress.points().samples().size(),
        curve ? curve->at(streamed) : NAN, 1 / (0.0002 * streamed + 0.15) + 2);
    std::fflush(stdout);
    const char* python = std::getenv("PYTHON");
    const std::string script =
        "import sys\n"
        "try:\n"
        "    import numpy, time\n"
        "    from scipy.optimize import curve_fit\n"
        "except ImportError:\n"
        "    print('no scipy for', sys.executable, '(Debian: python3-scipy): nothing to compare "
        "with')\n"
        "    sys.exit(0)\n"
        "k = numpy.arange(1000000.0)\n"
        "noise = numpy.random.default_rng(1).random((3, k.size)).sum(0) - 1.5\n"
        "l = 1 / (0.0002 * k + 0.15) + 2 + 0.1 * noise\n"
        "begin = time.process_time()\n"
        "p, _ = curve_fit(lambda k, a, b, c: 1 / (a * k + b) + c, k, l, p0=(1e-4, 0.1, 1),\n"
        "                 bounds=(0, numpy.inf))\n"
        "seconds = time.process_time() - begin\n"
        "print('curve_fit: %.3f s, %.1f times as long; at the end %.4f'\n"
        "      % (seconds, seconds / float(sys.argv[1]), 1 / (p[0] * k[-1] + p[1]) + p[2]))\n";
    const std::string command =
        std::string(python && *python ? python : "/usr/bin/python3") + " - " + format_number(ours);
    std::FILE* pipe = ::popen(command.c_str(), "w");
    if (pipe) std::fputs(script.c_str(), pipe);
    if (!pipe || ::pclose(pipe) != 0) {
        std::printf("%s did not run: nothing to compare with\n", command.c_str());
    }
}

}  // namespace

int main(int argc, char** argv) {
    const std::string_view option = argc == 3 ? argv[2] : "";
    if (argc < 2 || argc > 3 || (argc == 3 && option != "--each")) {
        std::fputs("usage: loss_curve_bench PATH_OF_DATA [--each]\n", stderr);
        return 2;
    }
    const std::vector<Run> runs = read_runs(argv[1]);
    if (runs.empty()) {
        std::fprintf(stderr,
                     "loss_curve_bench: %s has neither algoperf-loss-curves/*.csv nor "
                     "modded-nanogpt-loss-curves/*.csv\n",
                     argv[1]);
    } else {
        compare(runs, option == "--each");
    }
    time_stream();
    return runs.empty() ? 1 : 0;
}
