// SPDX-License-Identifier: GPL-2.0-or-later
//
// The cheapest course of a job that is alone with the prices of GPUs: completion time plus what it
// pays, over everything that it could do in every round. By dynamic programming backwards in time
// over what the job does (waits, or runs with so many GPUs) and its progress. All jobs of an
// application are read off one table, whenever they come.
//
// Progress is rounded in the job's favour. A table holds values at knots, linear between. For each
// number of GPUs the knots are a round of work apart, counted from the end: a round later is a knot
// further, and nothing is rounded as long as the job runs. Who waits has knots of his own, where
// nothing is rounded either. At a start or a stop values go from one set of knots to the other:
// where the line between two knots would be above a kink, both are lowered by as much. By induction
// from the end no table is anywhere above the true cost.
//
// In the last round a job pays for the part that it needs.
//
// With T rounds, P knots of waiting, S sizes, R rounds that the job takes on one GPU: at most
// O(T (P S + R log S)) time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "contrib/sim/best_rates.hpp"

namespace sluice::sim {

/// What a GPU costs that is held for a round, in seconds of completion time. Nothing once the
/// rounds are over.
struct Prices {
    explicit Prices(std::size_t types, std::size_t rounds)
        : by_type(types, std::vector<double>(rounds)) {}

    std::size_t rounds() const { return by_type.front().size(); }
    /// The type whose GPUs cost least in a round.
    std::size_t cheapest(std::size_t round) const;

    std::vector<std::vector<double>> by_type;
};

struct PricedJobOptions {
    double round_s = 60;
    double restart_s = 30;
    std::size_t knots = 300;  ///< of progress, about
    /// Nowhere above the true cost; else close to it, faster, and add_held() can be asked.
    bool below = true;
};

class PricedJob {
  public:
    static constexpr std::size_t most_sizes = 254;

    PricedJob(const Application& application, const std::vector<SizeRates>& sizes,
              const PricedJobOptions& options);

    /// The table at these prices. Later calls forget it.
    void solve(const Prices& prices);

    /// Of a job that could start in this round: seconds from its beginning to completion, and what
    /// is paid.
    double cost(std::size_t first_round) const;

    /// Adds the GPUs that it holds: [type][round]. Which is close to what the table means.
    void add_held(std::size_t first_round, const Prices& prices,
                  std::vector<std::vector<double>>& held) const;

  private:
    /// Knots of one set among those of another, some work later. Positions are seconds of work.
    struct Map {
        struct Kink {
            std::uint32_t cell = 0;
            std::uint32_t knot = 0;  // of the others, that lies inside of the cell
            double share = 0;        // of the cell, where
        };
        std::size_t unfinished = 0;  // knots that are not at the end then: the first
        std::vector<std::uint32_t> at;
        std::vector<double> share;    // behind `at`
        std::vector<double> early_s;  // of the finished: beyond the end
        std::vector<Kink> kinks;
    };
    struct Size {
        std::size_t type = 0;
        int gpus = 0;
        std::vector<double> waiting;  // the positions of the knots of waiting
        std::vector<double> running;  // its own, a round apart; the first may be before the start
        Map start;
        Map stop;
        std::size_t layer = 0;  // where its values begin in a layer
    };

    static Map map_of(const std::vector<double>& knots, const std::vector<double>& others,
                      double later_s);
    /// Lowers `values` where they are above those of others, plus `cost`, between knots.
    void lower(const Map& map, const double* others, double cost, double* values) const;
    double shifted(const Size& size, double place, double seconds) const;
    std::size_t running_knot(const Size& size, double place) const;
    double* layer(std::size_t round, const Size& size) {
        return &layers_[(round % depth_) * stride_ + size.layer];
    }

    PricedJobOptions options_;
    double restart_s_ = 0;
    double start_s_ = 0;  // of work in the rounds of a start
    std::size_t start_rounds_ = 1;
    std::size_t cells_ = 0;   // of waiting
    std::size_t stride_ = 0;  // values of a layer
    std::size_t depth_ = 2;
    std::vector<Size> sizes_;
    std::vector<double> alone_;  // without prices, from each knot of waiting to the end
    std::vector<double> layers_;
    std::vector<double> cost_;  // by first round
    std::size_t rounds_ = 0;
    std::vector<std::uint8_t> begins_;  // [round][knot] who waits: 0 goes on, else size + 1
    std::vector<bool> stops_;           // [round][as in a layer]
};

}  // namespace sluice::sim
