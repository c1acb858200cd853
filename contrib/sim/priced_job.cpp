// SPDX-License-Identifier: GPL-2.0-or-later
#include "contrib/sim/priced_job.hpp"

#include <algorithm>
#include <cmath>

namespace sluice::sim {
namespace {

/// What is more is not counted.
constexpr double longest_restart_rounds = 100;
/// Whoever takes longer is taken to be that fast.
constexpr double longest_rounds = 20000;

/// Epochs that are treated as one, and how many cells they are divided into.
struct Stretch {
    int first = 0;
    int last = 0;  ///< behind it
    int cells = 1;
};

/// By the seconds that epochs take on the first size.
std::vector<Stretch> stretches_of(const std::vector<double>& seconds, std::size_t cells) {
    double total = 0;
    for (const double each : seconds) total += each;
    const double cell_s = total / static_cast<double>(cells);
    std::vector<Stretch> stretches;
    double sum = 0;
    int first = 0;
    for (int epoch = 0; epoch < static_cast<int>(seconds.size()); ++epoch) {
        sum += seconds[static_cast<std::size_t>(epoch)];
        const bool last = epoch + 1 == static_cast<int>(seconds.size());
        if (sum < cell_s && !last) continue;
        if (sum > 0)
            stretches.push_back(
                {first, epoch + 1, std::max(1, static_cast<int>(std::lround(sum / cell_s)))});
        first = epoch + 1;
        sum = 0;
    }
    return stretches;
}

}  // namespace

std::size_t Prices::cheapest(std::size_t round) const {
    std::size_t cheapest = 0;
    for (std::size_t type = 1; type < by_type.size(); ++type)
        if (by_type[type][round] < by_type[cheapest][round]) cheapest = type;
    return cheapest;
}

PricedJob::PricedJob(const Application& application, const std::vector<SizeRates>& sizes,
                     const PricedJobOptions& options)
    : options_(options) {
    const auto progress_of = [&](int epoch) {
        return application.progress_after(epoch + 1) - application.progress_after(epoch);
    };
    std::vector<double> first_s;
    for (int epoch = 0; epoch < application.epochs(); ++epoch)
        first_s.push_back(progress_of(epoch) /
                          sizes.front().by_epoch[static_cast<std::size_t>(epoch)]);
    const std::vector<Stretch> stretches = stretches_of(first_s, options.knots);
    for (const Stretch& stretch : stretches) cells_ += static_cast<std::size_t>(stretch.cells);

    // a restart begins with the rounds that it fills
    restart_s_ = std::min(options.restart_s, longest_restart_rounds * options.round_s);
    start_rounds_ = static_cast<std::size_t>(std::floor(restart_s_ / options.round_s)) + 1;
    start_s_ = options.round_s * static_cast<double>(start_rounds_) - restart_s_;
    depth_ = start_rounds_ + 1;

    std::vector<double> alone_s(cells_);  // on whatever is fastest in a cell
    for (const SizeRates& rates : sizes) {
        Size size;
        size.type = rates.type;
        size.gpus = rates.gpus;
        size.waiting.push_back(0);
        for (const Stretch& stretch : stretches) {
            double progress = 0;
            double rate = 0;
            for (int epoch = stretch.first; epoch < stretch.last; ++epoch) {
                progress += progress_of(epoch);
                rate = std::max(rate, rates.by_epoch[static_cast<std::size_t>(epoch)]);
            }
            const double seconds = progress / rate / stretch.cells;
            for (int cell = 0; cell < stretch.cells; ++cell)
                size.waiting.push_back(size.waiting.back() + seconds);
        }
        const double longest_s = longest_rounds * options.round_s;
        if (const double all_s = size.waiting.back(); all_s > longest_s)
            for (double& each : size.waiting) each *= longest_s / all_s;
        for (std::size_t cell = 0; cell < cells_; ++cell) {
            const double seconds = size.waiting[cell + 1] - size.waiting[cell];
            alone_s[cell] = sizes_.empty() ? seconds : std::min(alone_s[cell], seconds);
        }
        const double end = size.waiting.back();
        const double rounds = std::max(1.0, std::ceil(end / options.round_s));
        for (double left = rounds; left >= 0; --left)
            size.running.push_back(end - left * options.round_s);
        size.start = map_of(size.waiting, size.running, start_s_);
        size.stop = map_of(size.running, size.waiting, 0);
        size.layer = stride_;
        stride_ += size.running.size();
        sizes_.push_back(std::move(size));
    }
    alone_.resize(cells_ + 1);
    for (std::size_t cell = cells_; cell-- > 0;) alone_[cell] = alone_[cell + 1] + alone_s[cell];
}

PricedJob::Map PricedJob::map_of(const std::vector<double>& knots,
                                 const std::vector<double>& others, double later_s) {
    Map map;
    const double end = others.back();
    for (const double knot : knots) {
        const double then = knot + later_s;
        if (then >= end) {
            map.at.push_back(0);
            map.share.push_back(0);
            map.early_s.push_back(then - end);
            continue;
        }
        map.unfinished = map.at.size() + 1;
        map.early_s.push_back(0);
        const auto above = std::upper_bound(others.begin(), others.end(), then);
        if (above == others.begin()) {  // before the start: no dearer than there
            map.at.push_back(0);
            map.share.push_back(0);
            continue;
        }
        const double low = *std::prev(above);
        map.at.push_back(static_cast<std::uint32_t>(above - others.begin() - 1));
        map.share.push_back((then - low) / (*above - low));
    }
    for (std::size_t cell = 0; cell + 1 < knots.size(); ++cell) {
        const double from = knots[cell] + later_s;
        const double to = knots[cell + 1] + later_s;
        for (auto at = std::upper_bound(others.begin(), others.end(), from);
             at != others.end() && *at < to; ++at)
            map.kinks.push_back({static_cast<std::uint32_t>(cell),
                                 static_cast<std::uint32_t>(at - others.begin()),
                                 (*at - from) / (to - from)});
    }
    return map;
}

void PricedJob::lower(const Map& map, const double* others, double cost, double* values) const {
    if (!options_.below) return;
    for (const Map::Kink& kink : map.kinks) {
        double* ends = values + kink.cell;
        const double above =
            ends[0] + kink.share * (ends[1] - ends[0]) - (cost + others[kink.knot]);
        if (above <= 0) continue;
        ends[0] -= above;
        ends[1] -= above;
    }
}

void PricedJob::solve(const Prices& prices) {
    rounds_ = prices.rounds();
    const std::size_t knots = cells_ + 1;
    const bool keeps = !options_.below;
    if (keeps) {
        begins_.assign(rounds_ * knots, 0);
        stops_.assign(rounds_ * stride_, false);
    }
    cost_.assign(rounds_ + 1, 0);
    layers_.assign(depth_ * stride_, 0);
    const auto stopped = [](const Map& map, const double* waiting, std::size_t knot) {
        const double* at = waiting + map.at[knot];
        return at[0] + map.share[knot] * (at[1] - at[0]);
    };
    // when prices are over, everybody is alone
    for (const Size& size : sizes_) {
        double* values = layer(0, size);
        for (std::size_t knot = 0; knot < size.stop.unfinished; ++knot)
            values[knot] = stopped(size.stop, alone_.data(), knot);
        lower(size.stop, alone_.data(), 0, values);
        for (std::size_t round = 1; round < depth_; ++round)
            std::copy(values, values + size.running.size(), layer(round, size));
    }
    std::vector<double> waiting(alone_);
    for (double& value : waiting) value += restart_s_;
    cost_[rounds_] = waiting[0];

    std::vector<double> values(knots);
    for (std::size_t round = rounds_; round-- > 0;) {
        const auto price_in = [&](const Size& size, std::size_t at) {
            if (at >= rounds_) return 0.0;
            const double others = prices.by_type[prices.cheapest(at)][at];
            return prices.by_type[size.type][at] + (size.gpus - 1) * others;
        };
        for (double& value : waiting) value += options_.round_s;
        for (std::size_t number = 0; number < sizes_.size(); ++number) {
            const Size& size = sizes_[number];
            const Map& start = size.start;
            double cost = 0;
            double last = 0;
            for (std::size_t i = 0; i < start_rounds_; ++i) {
                last = price_in(size, round + i);
                cost += options_.round_s + last;
            }
            const double* then = layer(round + start_rounds_, size);
            for (std::size_t knot = 0; knot < start.unfinished; ++knot) {
                const double* at = then + start.at[knot];
                values[knot] = cost + at[0] + start.share[knot] * (at[1] - at[0]);
            }
            const double refund = 1 + last / options_.round_s;
            for (std::size_t knot = start.unfinished; knot < knots; ++knot)
                values[knot] = cost - refund * start.early_s[knot];
            lower(start, then, cost, values.data());
            for (std::size_t knot = 0; knot < knots; ++knot) {
                if (values[knot] >= waiting[knot]) continue;
                waiting[knot] = values[knot];
                if (keeps) begins_[round * knots + knot] = static_cast<std::uint8_t>(number + 1);
            }
        }
        for (const Size& size : sizes_) {
            // the layer of this round takes the place of one that nobody needs any more
            const double* next = layer(round + 1, size);
            double* now = layer(round, size);
            const double cost = options_.round_s + price_in(size, round);
            const std::size_t last = size.running.size() - 1;
            for (std::size_t knot = 0; knot < last; ++knot) {
                const double goes_on = cost + next[knot + 1];
                const double stops = stopped(size.stop, waiting.data(), knot);
                if (keeps && stops < goes_on) stops_[round * stride_ + size.layer + knot] = true;
                now[knot] = std::min(goes_on, stops);
            }
            now[last] = 0;
            lower(size.stop, waiting.data(), 0, now);
        }
        cost_[round] = waiting[0];
    }
}

double PricedJob::cost(std::size_t first_round) const {
    return cost_[std::min(first_round, rounds_)];
}

std::size_t PricedJob::running_knot(const Size& size, double place) const {
    const auto cell = static_cast<std::size_t>(place);
    const double low = size.waiting[cell];
    const double at = low + (place - std::floor(place)) * (size.waiting[cell + 1] - low);
    const double left = std::round((size.waiting.back() - at) / options_.round_s);
    return size.running.size() - 1 - static_cast<std::size_t>(left);
}

double PricedJob::shifted(const Size& size, double place, double seconds) const {
    const auto cell = static_cast<std::size_t>(place);
    const double low = size.waiting[cell];
    const double then =
        low + (place - std::floor(place)) * (size.waiting[cell + 1] - low) + seconds;
    const auto from = size.waiting.begin() + static_cast<std::ptrdiff_t>(cell);
    const auto above = std::upper_bound(from, size.waiting.end(), then);
    if (above == size.waiting.end()) return static_cast<double>(cells_);
    const double below = *std::prev(above);
    return static_cast<double>(above - size.waiting.begin() - 1) +
           (then - below) / (*above - below);
}

void PricedJob::add_held(std::size_t first_round, const Prices& prices,
                         std::vector<std::vector<double>>& held) const {
    const std::size_t knots = cells_ + 1;
    const auto hold = [&](const Size& size, std::size_t round) {
        if (round >= rounds_) return;
        held[size.type][round] += 1;
        held[prices.cheapest(round)][round] += size.gpus - 1;
    };
    double place = 0;
    std::size_t running = sizes_.size();
    for (std::size_t round = first_round; round < rounds_ && place < static_cast<double>(cells_);) {
        if (running < sizes_.size()) {
            const Size& size = sizes_[running];
            if (!stops_[round * stride_ + size.layer + running_knot(size, place)]) {
                hold(size, round);
                place = shifted(size, place, options_.round_s);
                ++round;
                continue;
            }
            running = sizes_.size();
        }
        const auto knot = static_cast<std::size_t>(place + 0.5);
        const std::uint8_t begins = begins_[round * knots + knot];
        if (begins == 0) {
            ++round;
            continue;
        }
        running = begins - 1U;
        for (std::size_t i = 0; i < start_rounds_; ++i) hold(sizes_[running], round + i);
        place = shifted(sizes_[running], place, start_s_);
        round += start_rounds_;
    }
}

}  // namespace sluice::sim
