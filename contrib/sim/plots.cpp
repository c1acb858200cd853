// SPDX-License-Identifier: GPL-2.0-or-later
#include "contrib/sim/plots.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "common/base/text.hpp"
#include "contrib/sim/figures.hpp"

namespace sluice::sim {
namespace {

constexpr double width = 860;
constexpr double left = 130;  // of the plots, behind labels
constexpr double right = 780;
constexpr double height_of_curves = 240;
constexpr double height_of_strip = 52;
constexpr double height_of_bar = 26;
constexpr std::size_t steps_of_curve = 400;
constexpr std::size_t bins_of_strip = 325;
// Distinct, and readable on white and on black.
constexpr std::array colours{"#3b82c4", "#e07b39", "#2f9e6e", "#d64550",
                             "#9467bd", "#a8763e", "#d66fb0", "#808a94"};
constexpr std::array dashes{"", "7 3", "2 3"};

constexpr const char* style =
    "<style>\n"
    "text{font:13px sans-serif;fill:#222}\n"
    ".head{font-size:15px;font-weight:bold}\n"
    ".page{fill:#fff}\n"
    ".axis{stroke:#666;fill:none}\n"
    ".grid{stroke:#ddd;fill:none}\n"
    "@media (prefers-color-scheme:dark){\n"
    "text{fill:#ddd}\n"
    ".page{fill:#161616}\n"
    ".axis{stroke:#999}\n"
    ".grid{stroke:#3a3a3a}\n"
    "}\n"
    "</style>\n";

std::string escaped(std::string_view text) {
    std::string out;
    for (const char c : printable(text)) {
        if (c == '&')
            out += "&amp;";
        else if (c == '<')
            out += "&lt;";
        else if (c == '>')
            out += "&gt;";
        else if (c == '"')
            out += "&quot;";
        else
            out += c;
    }
    return out;
}

/// Elements, one a line.
class Svg {
  public:
    enum class Anchor { start, middle, end };

    void text(double x, double y, Anchor anchor, std::string_view words, bool head = false) {
        constexpr std::array names{"start", "middle", "end"};
        body_ += "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\" text-anchor=\"" +
                 names[static_cast<std::size_t>(anchor)] + "\"" + (head ? " class=\"head\"" : "") +
                 ">" + escaped(words) + "</text>\n";
    }
    /// kind: "axis" or "grid"
    void line(double x1, double y1, double x2, double y2, const char* kind) {
        body_ += std::string("<path class=\"") + kind + "\" d=\"M" + point(x1, y1) + "L" +
                 point(x2, y2) + "\"/>\n";
    }
    void curve(const std::string& path, std::size_t run) {
        const std::string_view dash = dashes[run / colours.size() % dashes.size()];
        body_ += "<path fill=\"none\" stroke-width=\"2\" stroke=\"" + colour(run) + "\"";
        if (!dash.empty()) body_.append(" stroke-dasharray=\"").append(dash).append("\"");
        body_ += " d=\"" + path + "\"/>\n";
    }
    void area(const std::string& path, std::size_t run) {
        body_ += "<path fill=\"" + colour(run) + "\" d=\"" + path + "\"/>\n";
    }

    static std::string number(double value) { return format_fixed(value, 1); }
    static std::string point(double x, double y) { return number(x) + " " + number(y); }

    std::string finish(double height) const {
        const std::string size = number(width) + "\" height=\"" + number(height);
        return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + size + "\" viewBox=\"0 0 " +
               point(width, height) +
               "\" role=\"img\">\n<title>Completion times and GPUs by policy</title>\n" + style +
               "<rect class=\"page\" width=\"" + size + "\"/>\n" + body_ + "</svg>\n";
    }

  private:
    static std::string colour(std::size_t run) { return colours[run % colours.size()]; }

    std::string body_;
};

struct Unit {
    double seconds;
    const char* name;
};

/// The largest that `seconds` has one of.
Unit unit_of(double seconds) {
    for (const Unit& unit : {Unit{86400, " d"}, Unit{3600, " h"}, Unit{60, " min"}})
        if (seconds >= unit.seconds) return unit;
    return {1, " s"};
}

/// "90 s", "35 min", "5.2 h".
std::string time_text(double seconds, int decimals, const Unit& unit) {
    return format_fixed(seconds / unit.seconds, decimals) + unit.name;
}

/// 0 to 1 between two times, in the logarithm.
class LogTimes {
  public:
    LogTimes(double least, double most) {
        least = std::max(1.0, least);
        most = std::max(2 * least, most);
        for (double tick : {1., 10., 60., 600., 3600., 36e3, 864e2, 864e3, 864e4, 864e5, 864e6})
            if (tick > least / 10 && tick < most * 10) ticks_.push_back(tick);
        // from the last tick below to the first above
        while (ticks_.size() > 2 && ticks_[1] <= least) ticks_.erase(ticks_.begin());
        while (ticks_.size() > 2 && ticks_[ticks_.size() - 2] >= most) ticks_.pop_back();
    }

    const std::vector<double>& ticks() const { return ticks_; }
    double at(double seconds) const {
        return std::clamp(std::log(std::max(1.0, seconds) / ticks_.front()) /
                              std::log(ticks_.back() / ticks_.front()),
                          0.0, 1.0);
    }

  private:
    std::vector<double> ticks_;
};

double across(double share) {
    return left + share * (right - left);
}

/// The shares of jobs that had completed by then. Returns where it ends.
double draw_completed(Svg& svg, double top, const std::vector<PlottedRun>& runs) {
    std::vector<std::vector<double>> times;
    double least = 1e18;
    double most = 0;
    for (const PlottedRun& run : runs) {
        std::vector<double>& all = times.emplace_back();
        for (const JobResult& job : run.result->jobs) all.push_back(job.completion_s());
        std::sort(all.begin(), all.end());
        least = std::min(least, all.front());
        most = std::max(most, all.back());
    }
    const LogTimes scale(least, most);
    const double bottom = top + height_of_curves;
    const auto y = [&](double share) { return bottom - share * height_of_curves; };
    svg.text(left, top - 14, Svg::Anchor::start, "Share of the jobs that had completed after",
             true);
    for (int percent = 0; percent <= 100; percent += 25) {
        svg.line(left, y(percent / 100.0), right, y(percent / 100.0),
                 percent == 0 ? "axis" : "grid");
        svg.text(left - 8, y(percent / 100.0) + 4, Svg::Anchor::end,
                 std::to_string(percent) + " %");
    }
    for (const double tick : scale.ticks()) {
        const double x = across(scale.at(tick));
        svg.line(x, top, x, bottom, "grid");
        svg.text(x, bottom + 18, Svg::Anchor::middle, time_text(tick, 0, unit_of(tick)));
    }
    svg.text((left + right) / 2, bottom + 38, Svg::Anchor::middle,
             "completion time, from arrival to end");
    for (std::size_t run = 0; run < runs.size(); ++run) {
        const std::vector<double>& all = times[run];
        std::string path = "M" + Svg::point(across(scale.at(all.front())), bottom);
        const std::size_t steps = std::min(steps_of_curve, all.size());
        for (std::size_t step = 1; step <= steps; ++step) {
            const std::size_t jobs = step * all.size() / steps;
            path += "H" + Svg::number(across(scale.at(all[jobs - 1]))) + "V" +
                    Svg::number(y(double(jobs) / double(all.size())));
        }
        svg.curve(path + "H" + Svg::number(right), run);
    }
    return bottom + 38;
}

/// Means of what is held over equal parts of the time from 0 on.
std::vector<double> means_of_held(const SimulationResult& result, double end_s) {
    std::vector<double> means(bins_of_strip);
    const double bin_s = end_s / double(bins_of_strip);
    for (std::size_t i = 0; i < result.held.size(); ++i) {
        const GpusHeld& held = result.held[i];
        const double until = i + 1 < result.held.size() ? result.held[i + 1].since_s : end_s;
        // what rounding puts behind the end is in the last bin
        auto bin = static_cast<std::size_t>(held.since_s / bin_s);
        for (double from = held.since_s; from < until; ++bin) {
            const double to = std::max(from, std::min(until, double(bin + 1) * bin_s));
            means[std::min(bin, bins_of_strip - 1)] += held.gpus * (to - from) / bin_s;
            from = to;
        }
    }
    return means;
}

/// A step that people count time in, at most `most` of them in `whole`.
double time_step(double whole, int most) {
    for (const double step :
         {1., 10., 60., 300., 600., 1800., 3600., 7200., 14400., 21600., 43200.})
        if (whole <= step * most) return step;
    double step = 86400;
    for (int i = 0; whole > step * most; ++i) step *= i % 3 == 1 ? 2.5 : 2;
    return step;
}

double draw_held(Svg& svg, double top, const std::vector<PlottedRun>& runs) {
    double end_s = 1;
    for (const PlottedRun& run : runs) end_s = std::max(end_s, run.result->makespan_s);
    svg.text(left, top - 14, Svg::Anchor::start,
             "GPUs held over time, of " + std::to_string(runs.front().result->gpus), true);
    const double step = time_step(end_s, 8);
    const double bottom = top + height_of_strip * double(runs.size());
    const auto ticks = static_cast<int>(end_s / step);
    for (int tick = 0; tick <= ticks; ++tick) {
        const double x = across(tick * step / end_s);
        svg.line(x, top, x, bottom, "grid");
        svg.text(x, bottom + 18, Svg::Anchor::middle,
                 tick == 0 ? "0" : time_text(tick * step, 0, unit_of(step)));
    }
    svg.text((left + right) / 2, bottom + 38, Svg::Anchor::middle, "time since the beginning");
    for (std::size_t run = 0; run < runs.size(); ++run) {
        const double floor = top + height_of_strip * double(run + 1);
        const double full = height_of_strip - 10;
        svg.line(left, floor - full, right, floor - full, "grid");
        const std::vector<double> means = means_of_held(*runs[run].result, end_s);
        std::string path = "M" + Svg::point(left, floor);
        for (std::size_t bin = 0; bin < means.size(); ++bin)
            path += "V" + Svg::number(floor - full * means[bin] / runs[run].result->gpus) + "H" +
                    Svg::number(across(double(bin + 1) / double(means.size())));
        svg.area(path + "V" + Svg::number(floor) + "Z", run);
        svg.line(left, floor, right, floor, "axis");
        svg.text(left - 8, floor - full / 2 + 4, Svg::Anchor::end, runs[run].policy);
        svg.text(right + 6, floor - full + 10, Svg::Anchor::start,
                 std::to_string(runs[run].result->gpus));
        svg.text(right + 6, floor + 2, Svg::Anchor::start, "0");
    }
    return bottom + 38;
}

double draw_averages(Svg& svg, double top, const std::vector<PlottedRun>& runs) {
    std::vector<double> averages;
    for (const PlottedRun& run : runs) averages.push_back(figures_of(*run.result).average_s);
    const double most = std::max(1.0, *std::max_element(averages.begin(), averages.end()));
    const Unit unit = unit_of(*std::min_element(averages.begin(), averages.end()));
    svg.text(left, top - 14, Svg::Anchor::start, "Average completion time", true);
    for (std::size_t run = 0; run < runs.size(); ++run) {
        const double y = top + height_of_bar * double(run);
        const double x = across(0.92 * averages[run] / most);  // room for the number
        svg.area("M" + Svg::point(left, y + 3) + "H" + Svg::number(x) + "V" +
                     Svg::number(y + height_of_bar - 3) + "H" + Svg::number(left) + "Z",
                 run);
        svg.text(left - 8, y + height_of_bar / 2 + 4, Svg::Anchor::end, runs[run].policy);
        svg.text(x + 6, y + height_of_bar / 2 + 4, Svg::Anchor::start,
                 time_text(averages[run], 1, unit));
    }
    const double bottom = top + height_of_bar * double(runs.size());
    svg.line(left, top, left, bottom, "axis");
    return bottom;
}

double draw_legend(Svg& svg, double top, const std::vector<PlottedRun>& runs) {
    constexpr std::size_t columns = 4;
    constexpr double column = (right - left) / columns;
    for (std::size_t run = 0; run < runs.size(); ++run) {
        const double x = left + column * double(run % columns);
        const double y = top + 20 * double(run / columns);
        svg.curve("M" + Svg::point(x, y - 4) + "h24", run);
        svg.text(x + 30, y, Svg::Anchor::start, runs[run].policy);
    }
    return top + 20 * double((runs.size() - 1) / columns);
}

}  // namespace

std::string to_svg(const std::vector<PlottedRun>& runs) {
    Svg svg;
    double y = draw_legend(svg, 28, runs);
    y = draw_completed(svg, y + 48, runs);
    y = draw_held(svg, y + 54, runs);
    y = draw_averages(svg, y + 54, runs);
    return svg.finish(y + 20);
}

}  // namespace sluice::sim
