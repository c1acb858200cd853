// SPDX-License-Identifier: GPL-2.0-or-later
//
// The policy `sluice`: GPUs go where a second of theirs takes most off the average completion time,
// by what is known of each job's remaining work and of its speed on every shape of placement.
//
// Time is that of one GPU: T a job's remaining work on one, S(s) its speed on shape s relative to
// one. Each second that the job gets shape s is worth w S(s), less what its GPUs cost others.
//
// 1. w = mean over equally likely T of  u (T / S'^0.2 + 20000 s)^-0.8 (1 + age / 10000 s)^0.45
//    Short jobs first, the less so the less is known (the mean over T), and not without end (the
//    20000 s); old ones before young ones, which costs the average little and the tail gains by.
//    u = min over K of (1 + c K) / (2 S(K)): who gains little from more GPUs is dearer to serve, so
//    its first ones come sooner. c is what a GPU of the type does relative to the slowest, over all
//    jobs. S' is the speed at that K.
//    Concave speed-up as in heSRPT (Berg, Vesilo and Harchol-Balter, 2020), where the optimal share
//    falls with the rank of T.
// 2. The price of a GPU-second, at which the jobs ask for what there is (clearing_prices()); from
//    it what a second of the job itself is worth, o = max over s of w S(s) - price K, at least
//    0.02 w, and what a restart of R seconds costs, X = R (o + price K), over the H seconds until
//    the next change. H = 150 s sqrt(R / 30 s): the more a change costs, the rarer they are, as lot
//    sizes grow with the root of the cost of an order.
// 3. A second of a shape is worth w S(s): where the job is, and X / 2H; anywhere else, less X / 2H.
//    The sum is maximised over packings on the nodes (search_packing()).
//
// A job whose work is not known has its request for its size, grows no faster than linearly, and is
// expected to last as long again as it has had (at least 120 GPU-seconds).
//
// The numbers were chosen on two of Pollux's workloads and on others made from its applications
// (tests/bench/README.md).
//
// Nobody starves: who has waited longer than `longest_wait_s` is served before all others, with the
// least that it takes, and then stays for 20 restarts. Where jobs that cannot be stopped are in the
// way of one that has waited twice as long, no further job starts that could not be stopped.
//
// With J jobs of S shapes, G GPUs on a node: O(J S) rates, O(J S) for the prices, and the search.
#pragma once

#include "common/allocator/policy.hpp"

namespace sluice {

struct SluiceOptions {
    int steps = 400;  ///< of the search
    double size_power = 0.8;
    double size_floor_s = 20000;
    double age_power = 0.45;
    double age_scale_s = 10000;
    double speed_power = 0.2;
    double horizon_s = 150;  ///< with restarts of 30 s
    double longest_wait_s = 6 * 3600;
};

class SluicePolicy : public Policy {
  public:
    explicit SluicePolicy(const SluiceOptions& options = {}) : options_(options) {}

    std::string_view name() const override { return "sluice"; }
    Plan plan(const ClusterView& cluster) const override;

  private:
    SluiceOptions options_;
};

}  // namespace sluice
