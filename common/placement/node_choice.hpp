// SPDX-License-Identifier: GPL-2.0-or-later
//
// Which nodes, and which GPUs on each, for a job that asks for so many GPUs on so many nodes.
//
// A placement costs
//
//     ln(step time) + weight * sum over its nodes of (left(F) - left(F \ S)) / left(all)
//
// The step time is the model's (relative to anything: only ratios count). left() is what stays for
// the next jobs (best_sets.hpp), F the node's free GPUs and S those taken; left(all) is that of the
// idle node, so a whole idle node counts 1 and a GPU that no pair is broken for counts 0. The
// weight is thus the relative step time that keeping one idle node whole is worth.
#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "common/model/step_time.hpp"
#include "common/placement/best_sets.hpp"

namespace sluice {

/// A node that may serve.
struct NodeOffer {
    int node = 0;                    ///< the caller's number; lower ones win ties
    const BestSets* sets = nullptr;  ///< of its class; outlives the call
    GpuSet free;                     ///< those that the request may use
    bool required = false;           ///< has to be part of any placement
    /// Switches above it from the top of the network down, by any numbers; nodes of equal lists
    /// share their last switch. Lists may differ in length. Empty where the network is unknown;
    /// else outlives the call.
    std::span<const int> switches;
};

/// For NodeOffer::switches, by node, where the description of a network leaves out some nodes:
/// gives each of them (an empty list) as many switches of its own as the longest list has. It then
/// shares none with any other node and is as far from all as the network reaches. Where all lists
/// are empty they stay so.
void set_apart_unknown(std::vector<std::vector<int>>& switches);

/// What a step-time model is asked about.
struct PlacementShape {
    int gpus = 0;
    int nodes = 0;
    int most_per_node = 0;    ///< GPUs of the job on the node where it has most
    double slowest_gbps = 0;  ///< least total() of the sets of two GPUs and more; 0 without any
    /// Levels of switches between the two of its nodes that are farthest apart, counted from the
    /// deeper one: the longer of their lists, less the switches they share, and 1. So 1 under one
    /// switch, and a level more than the longer list has where they share none; 0 on one node, or
    /// where all their lists are empty (unknown). Other nodes do not matter.
    int hops = 0;
    double network_share = 1;  ///< least BestSets::network_share() of its nodes; 1 on one node
};

/// No shorter at a lower rate, over more hops or with less of the network.
using StepTimeOf = std::function<double(const PlacementShape&)>;

/// What is assumed of a job that nothing is known of: a second of computing comes with `traffic_gb`
/// GB of all-reduce in each GPU, which go over the set's rings within a node and then over one port
/// of `network_gbps` between nodes, a quarter slower for each further level of switches, and as
/// much slower as the set is farther from the ports than others of its size. Nothing overlaps. (5
/// GB: BERT-large in half precision on a V100 exchanges 1.3 GB in a step of 0.25 s.)
///
/// Heavier than topology_step_time() (step_time_fit.hpp) on purpose. That one is where a fit starts
/// and is optimistic, since measurements correct it; this one orders placements of jobs that are
/// never measured, and a light job on a fast set loses less than a heavy one on a slow set.
struct PriorStepTime {
    double traffic_gb = 5;
    double network_gbps = 12.5;

    double operator()(const PlacementShape& shape) const;
};

/// By a model of the job, for a step of `local_batch` samples on each GPU; the network by levels as
/// above.
struct ModelStepTime {
    StepTimeModel model;
    double local_batch = 1;

    double operator()(const PlacementShape& shape) const;
};

struct NodeShare {
    int node = 0;
    GpuSet set;
};

struct NodePlacement {
    std::vector<NodeShare> nodes;  ///< in the order of the offers
    PlacementShape shape;
    double step_time = 0;
    double broken = 0;  ///< the sum above, without the weight
    double cost = 0;
    /// Of the fastest placement there was, whatever it breaks; this one's own where it was given.
    double fastest_step_time = 0;
    double fastest_gbps = 0;  ///< and its slowest_gbps
    long steps = 0;           ///< that the search took
};

struct NodeChoiceOptions {
    double fragmentation_weight = 0.1;
    /// Within a node: false, the fastest set, by its own links or, over several nodes, by the step
    /// time where sets differ in how near they are to the NICs; true, whichever set costs least by
    /// the model. (A job that nothing is known of is taken to need the fastest.)
    bool trust_model = false;
    /// Steps of the search for less cost than the fastest placement's, after which the best found
    /// so far is taken: some milliseconds, up to some tens where 20,000 nodes all differ. Over
    /// 1,000 nodes of 20 classes, 64 nodes of one or two shares and 32 of four need less. The
    /// fastest is found before, whatever this is.
    long most_steps = 1'000'000;
    /// Slower placements are none.
    double most_step_time = std::numeric_limits<double>::infinity();
};

/// The placement of least cost with counts[i] GPUs on one node, counts[i + 1] on another, and so
/// on: exact, within most_steps, over all ways to choose nodes and, with trust_model, sets (on
/// nodes of more than 8 GPUs: the fastest or the thriftiest set). Nothing where no such placement
/// exists, and only then: where most_steps do not suffice, the fastest or what was found to cost
/// less.
///
/// Nodes that differ in their number alone are one class, and what is said below of a part of the
/// network (all nodes under a switch; where their lists differ in length, those up to each length)
/// goes by its classes C, with K distinct counts. Whether a part has a placement of a rate and a
/// nearness to NICs is a matter of O(C K); the fastest is found by bisection over the rates, for
/// each nearness at which sets differ. Then, from there on to slower ones as long as any can cost
/// less, nodes are assigned by what they break: O(C K log C) and distribute() (assignment.hpp).
std::optional<NodePlacement> choose_nodes(std::span<const NodeOffer> offers,
                                          std::span<const int> counts, const StepTimeOf& step_time,
                                          const NodeChoiceOptions& options = {});

/// Cost of a given placement, as choose_nodes() counts it. The offers are those of its nodes, in
/// its order.
NodePlacement assess(std::span<const NodeOffer> offers, std::span<const GpuSet> sets,
                     const StepTimeOf& step_time, const NodeChoiceOptions& options = {});

/// How `gpus` may be spread over least_nodes to most_nodes nodes of up to per_node GPUs, for a
/// request that leaves it open: evenly over each number of nodes, and as full nodes and a rest;
/// each in descending order, no two alike.
std::vector<std::vector<int>> spreads(int gpus, int per_node, int least_nodes, int most_nodes);

}  // namespace sluice
