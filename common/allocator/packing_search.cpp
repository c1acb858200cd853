// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/allocator/packing_search.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <utility>

namespace sluice {
namespace {

constexpr int most_pieces = 4;        ///< nodes of a shape that says what is on each
constexpr std::size_t most_new = 32;  ///< waiting jobs that a step tries to place
constexpr double better = 1e-9;
constexpr double infinity = std::numeric_limits<double>::infinity();

struct TypeOfNodes {
    std::size_t nodes = 0;
    int gpus_of_node = 0;  ///< most
    int gpus = 0;
};

std::vector<TypeOfNodes> types_of(const std::vector<NodeView>& nodes) {
    std::vector<TypeOfNodes> types;
    for (const NodeView& node : nodes) {
        if (node.type >= types.size()) types.resize(node.type + 1);
        if (node.gpus < 1) continue;
        TypeOfNodes& type = types[node.type];
        ++type.nodes;
        type.gpus += node.gpus;
        type.gpus_of_node = std::max(type.gpus_of_node, node.gpus);
    }
    return types;
}

/// What a job would take at a price: the best of its offers, by GPUs and type.
class Market {
  public:
    Market(const std::vector<NodeView>& nodes, const std::vector<Shape>& shapes,
           const std::vector<PackingJob>& jobs)
        : types_(types_of(nodes)) {
        for (const PackingJob& job : jobs) {
            std::vector<Good> goods;
            for (const PackingOffer& offer : job.offers)
                goods.push_back(
                    {shapes[offer.shape].type, shapes[offer.shape].placement.gpus, offer.value});
            if (!job.held.empty())
                goods.push_back(
                    {nodes[job.held.front().node].type, gpus_of(job.held), job.stay_value});
            std::sort(goods.begin(), goods.end(), [](const Good& a, const Good& b) {
                if (a.type != b.type) return a.type < b.type;
                return a.gpus != b.gpus ? a.gpus < b.gpus : a.value > b.value;
            });
            // more GPUs have to be worth more
            std::vector<Good> useful;
            for (const Good& good : goods)
                if (useful.empty() || useful.back().type != good.type ||
                    good.value > useful.back().value)
                    useful.push_back(good);
            for (const Good& good : useful) dearest_ = std::max(dearest_, good.value / good.gpus);
            goods_.insert(goods_.end(), useful.begin(), useful.end());
            ends_.push_back(goods_.size());
        }
    }

    std::vector<double> clear() const {
        std::vector<double> prices(types_.size(), 0);
        const int rounds = types_.size() > 1 ? 4 : 1;
        for (int round = 0; round < rounds; ++round)
            for (std::size_t type = 0; type < types_.size(); ++type) clear(type, prices);
        return prices;
    }

  private:
    struct Good {
        std::size_t type;
        int gpus;
        double value;
    };

    long demand(std::size_t type, const std::vector<double>& prices) const {
        long demand = 0;
        std::size_t at = 0;
        for (const std::size_t end : ends_) {
            double best = 0;
            const Good* taken = nullptr;
            for (; at < end; ++at) {
                const double gain = goods_[at].value - prices[goods_[at].type] * goods_[at].gpus;
                if (gain > best) {
                    best = gain;
                    taken = &goods_[at];
                }
            }
            if (taken && taken->type == type) demand += taken->gpus;
        }
        return demand;
    }

    void clear(std::size_t type, std::vector<double>& prices) const {
        prices[type] = 0;
        if (demand(type, prices) <= types_[type].gpus) return;
        double low = dearest_ * 1e-7;
        double high = dearest_ * 1.01;
        for (int i = 0; i < 24; ++i) {
            prices[type] = std::sqrt(low * high);
            (demand(type, prices) > types_[type].gpus ? low : high) = prices[type];
        }
        prices[type] = high;
    }

    std::vector<TypeOfNodes> types_;
    std::vector<Good> goods_;  // job after job
    std::vector<std::size_t> ends_;
    double dearest_ = 0;
};

class Packing {
  public:
    Packing(const std::vector<NodeView>& nodes, const std::vector<Shape>& shapes,
            const std::vector<PackingJob>& jobs)
        : nodes_(nodes), shapes_(shapes), jobs_(jobs), types_(types_of(nodes)), at_(jobs.size()) {
        const auto widest = std::max_element(
            types_.begin(), types_.end(),
            [](const auto& a, const auto& b) { return a.gpus_of_node < b.gpus_of_node; });
        levels_ = types_.empty() ? 1 : static_cast<std::size_t>(widest->gpus_of_node) + 1;
        buckets_.resize(types_.size() * levels_ * 2);
        in_.resize(nodes.size());
        for (std::size_t node = nodes.size(); node-- > 0;) {
            in_[node].first_bucket = static_cast<int>(nodes[node].type * levels_ * 2);
            in_[node].free = std::max(0, nodes[node].gpus);
            free_gpus_ += in_[node].free;
            enter(node);
        }
    }

    double sum() const { return sum_; }
    bool placed(std::size_t job) const { return !at_[job].shares.empty(); }
    const PackingResult& at(std::size_t job) const { return at_[job]; }

    /// From here on changes can be taken back.
    void mark() { changes_.clear(); }
    void take_back() {
        while (!changes_.empty()) {
            auto [job, before] = std::move(changes_.back());
            changes_.pop_back();
            put(job, std::move(before));
        }
    }

    void stay_if_it_fits(std::size_t job) {
        if (!jobs_[job].held.empty() && fits(jobs_[job].held)) stay(job);
    }
    void remove(std::size_t job) {
        if (placed(job)) change(job, {});
    }

    /// Where its value less the price is largest, if that is above `least`.
    void insert(std::size_t job, const std::vector<double>& prices, double factor,
                double least = 0) {
        if (const Choice choice = choose(job, prices, factor, least); choice.found)
            change(job, result_of(job, choice));
    }

    /// The same for one that is placed, with what becomes free by it; left alone where nothing is
    /// better.
    void insert_again(std::size_t job, const std::vector<double>& prices, double factor) {
        // where GPUs cost nothing more of them are better, and there are none
        if (factor == 0 && free_gpus_ == 0) return;
        const double before = surplus(job, prices, factor);
        use(at_[job].shares, -1);
        const Choice choice = choose(job, prices, factor, before * (1 + better) + 1e-300);
        use(at_[job].shares, 1);
        if (!choice.found) return;
        change(job, {});
        change(job, result_of(job, choice));
    }

    /// Those that are not urgent.
    void jobs_on(std::size_t node, std::vector<std::size_t>& found) const {
        for (std::size_t job = 0; job < at_.size(); ++job)
            if (!jobs_[job].urgent)
                for (const NodeShare& share : at_[job].shares)
                    if (share.node == node) {
                        found.push_back(job);
                        break;
                    }
    }

  private:
    struct Choice {
        bool found = false;
        const Shape* shape = nullptr;  ///< none: it stays
        double value = 0;
    };

    Choice choose(std::size_t job, const std::vector<double>& prices, double factor, double least) {
        const PackingJob& wanted = jobs_[job];
        double best = least;
        Choice choice;
        if (!wanted.held.empty() && fits(wanted.held)) {
            const double gain =
                wanted.stay_value -
                factor * prices[nodes_[wanted.held.front().node].type] * gpus_of(wanted.held);
            if (gain > best) {
                best = gain;
                choice = {true, nullptr, wanted.stay_value};
            }
        }
        std::size_t type = types_.size();
        for (const PackingOffer& offer : wanted.offers) {
            const Shape& shape = shapes_[offer.shape];
            const double gain = offer.value - factor * prices[shape.type] * shape.placement.gpus;
            if (gain <= best) continue;
            if (shape.type != type) count_nodes(type = shape.type);
            if (!room_for(shape)) continue;
            best = gain;
            choice = {true, &shape, offer.value};
        }
        return choice;
    }
    PackingResult result_of(std::size_t job, const Choice& choice) {
        if (!choice.shape) return {true, jobs_[job].held, jobs_[job].stay_value};
        return {false, choose_nodes(*choice.shape), choice.value};
    }
    void stay(std::size_t job) { change(job, result_of(job, {true, nullptr, 0})); }
    /// Nodes with equally many GPUs free, with or without a spread job; a list through in_.
    struct Bucket {
        int first = -1;
        int nodes = 0;
    };
    struct Node {
        int first_bucket = 0;  ///< of its type
        int free = 0;
        int spread = 0;  ///< 1: a job of several nodes is there
        int before = -1;
        int next = -1;
    };

    const Bucket& bucket(std::size_t type, std::size_t gpus, bool spread) const {
        return buckets_[(type * levels_ + gpus) * 2 + (spread ? 1 : 0)];
    }
    Bucket& bucket_of(const Node& node) {
        return buckets_[static_cast<std::size_t>(node.first_bucket + node.free * 2 + node.spread)];
    }
    void enter(std::size_t number) {
        Node& node = in_[number];
        Bucket& bucket = bucket_of(node);
        node.before = -1;
        node.next = bucket.first;
        if (node.next >= 0) in_[static_cast<std::size_t>(node.next)].before = int(number);
        bucket.first = static_cast<int>(number);
        ++bucket.nodes;
    }
    void leave(std::size_t number) {
        const Node& node = in_[number];
        Bucket& bucket = bucket_of(node);
        (node.before < 0 ? bucket.first : in_[static_cast<std::size_t>(node.before)].next) =
            node.next;
        if (node.next >= 0) in_[static_cast<std::size_t>(node.next)].before = node.before;
        --bucket.nodes;
    }
    void use(const std::vector<NodeShare>& shares, int sign) {
        const bool spread = shares.size() > 1;
        for (const NodeShare& share : shares) {
            Node& node = in_[share.node];
            leave(share.node);
            node.free -= sign * share.gpus;
            free_gpus_ -= sign * share.gpus;
            if (spread) node.spread = sign > 0 ? 1 : 0;
            enter(share.node);
        }
    }
    void put(std::size_t job, PackingResult result) {
        PackingResult& now = at_[job];
        use(now.shares, -1);
        sum_ += result.value - now.value;
        now = std::move(result);
        use(now.shares, 1);
    }
    void change(std::size_t job, PackingResult result) {
        use(at_[job].shares, -1);
        sum_ += result.value - at_[job].value;
        changes_.emplace_back(job, std::move(at_[job]));
        at_[job] = std::move(result);
        use(at_[job].shares, 1);
    }

    bool fits(const std::vector<NodeShare>& shares) const {
        return std::all_of(shares.begin(), shares.end(), [&](const NodeShare& share) {
            const Node& node = in_[share.node];
            return share.gpus <= node.free && (shares.size() < 2 || node.spread == 0);
        });
    }
    double surplus(std::size_t job, const std::vector<double>& prices, double factor) const {
        const PackingResult& now = at_[job];
        if (now.shares.empty()) return 0;
        return now.value -
               factor * prices[nodes_[now.shares.front().node].type] * gpus_of(now.shares);
    }

    /// Nodes without a spread job that have at least so many free, and any that has.
    void count_nodes(std::size_t type) {
        alone_.assign(levels_ + 1, 0);
        most_free_ = 0;
        for (std::size_t level = levels_; level-- > 0;) {
            const auto nodes = static_cast<std::size_t>(bucket(type, level, false).nodes);
            alone_[level] = alone_[level + 1] + nodes;
            if (most_free_ == 0 && (nodes > 0 || bucket(type, level, true).nodes > 0))
                most_free_ = static_cast<int>(level);
        }
    }
    std::size_t alone(int gpus) const {
        return static_cast<std::size_t>(gpus) < levels_ ? alone_[static_cast<std::size_t>(gpus)]
                                                        : 0;
    }
    bool room_for(const Shape& shape) const {
        if (shape.pieces.size() == 1) return shape.pieces.front() <= most_free_;
        if (!shape.pieces.empty()) {
            for (std::size_t i = 0; i < shape.pieces.size(); ++i)
                if (alone(shape.pieces[i]) < i + 1) return false;
            return true;
        }
        const auto nodes = static_cast<std::size_t>(shape.placement.nodes);
        if (alone(1) < nodes) return false;
        long gpus = 0;  // of the nodes that have most
        for (std::size_t level = 1; level < levels_; ++level)
            gpus += static_cast<long>(std::min(nodes, alone_[level]));
        return gpus >= shape.placement.gpus;
    }
    /// The node that has least of those that have enough; a node with a spread job before others.
    std::size_t tightest(std::size_t type, int gpus, bool may_be_spread) const {
        for (auto free = static_cast<std::size_t>(gpus);; ++free)
            for (const bool spread : {true, false}) {
                const int first = bucket(type, free, spread).first;
                if (first >= 0 && (may_be_spread || !spread))
                    return static_cast<std::size_t>(first);
            }
    }
    /// There is room for it.
    std::vector<NodeShare> choose_nodes(const Shape& shape) {
        std::vector<NodeShare> shares;
        if (shape.pieces.size() == 1) {
            const int gpus = shape.pieces.front();
            shares.push_back({tightest(shape.type, gpus, true), gpus});
        } else if (!shape.pieces.empty()) {
            for (const int gpus : shape.pieces) {
                const std::size_t node = tightest(shape.type, gpus, false);
                leave(node);
                shares.push_back({node, gpus});
            }
            for (const NodeShare& share : shares) enter(share.node);
        } else {
            const auto nodes = static_cast<std::size_t>(shape.placement.nodes);
            int surplus = -shape.placement.gpus;
            for (std::size_t level = levels_; level-- > 1 && shares.size() < nodes;) {
                int node = bucket(shape.type, level, false).first;
                for (; node >= 0 && shares.size() < nodes;
                     node = in_[static_cast<std::size_t>(node)].next) {
                    shares.push_back({static_cast<std::size_t>(node), static_cast<int>(level)});
                    surplus += static_cast<int>(level);
                }
            }
            // what is left stays in as large pieces as can be
            for (NodeShare& share : shares) {
                const int less = std::min(surplus, share.gpus - 1);
                share.gpus -= less;
                surplus -= less;
            }
        }
        return shares;
    }

    const std::vector<NodeView>& nodes_;
    const std::vector<Shape>& shapes_;
    const std::vector<PackingJob>& jobs_;
    std::vector<TypeOfNodes> types_;
    std::size_t levels_ = 1;       // counts of GPUs on a node, 0 included
    std::vector<Bucket> buckets_;  // by type, GPUs free, spread
    std::vector<Node> in_;
    int free_gpus_ = 0;
    std::vector<PackingResult> at_;
    std::vector<std::pair<std::size_t, PackingResult>> changes_;
    double sum_ = 0;
    std::vector<std::size_t> alone_;
    int most_free_ = 0;
};

}  // namespace

std::vector<Shape> shapes_of(const std::vector<NodeView>& nodes, int most,
                             const std::set<int>& also) {
    std::vector<Shape> shapes;
    const std::vector<TypeOfNodes> types = types_of(nodes);
    for (std::size_t type = 0; type < types.size(); ++type) {
        const int full = types[type].gpus_of_node;
        const auto add = [&](int count, int gpus, int most_on_node, std::vector<int> pieces) {
            if (gpus > most) return;
            Shape shape;
            shape.placement.nodes = count;
            shape.placement.gpus = gpus;
            shape.placement.most_on_node = most_on_node;
            shape.type = type;
            shape.pieces = std::move(pieces);
            shapes.push_back(std::move(shape));
        };
        for (int gpus = 1; gpus <= full; ++gpus) add(1, gpus, gpus, {gpus});
        const auto count = static_cast<int>(types[type].nodes);
        for (int parts = 2; parts <= std::min(count, most_pieces); ++parts)
            for (int each = 1; each <= full; ++each)
                for (int last = 1; last <= each; ++last) {
                    std::vector<int> pieces(static_cast<std::size_t>(parts), each);
                    pieces.back() = last;
                    add(parts, each * (parts - 1) + last, each, std::move(pieces));
                }
        for (int parts = most_pieces + 1; parts <= count; parts += std::max(1, parts / 4)) {
            int before = 0;
            for (const int gpus :
                 {parts, parts * full / 2, parts * full - full / 2, parts * full}) {
                if (gpus < parts || gpus == before) continue;
                before = gpus;
                add(parts, gpus, std::min(full, gpus - parts + 1), {});
            }
        }
    }
    const std::size_t usual = shapes.size();
    for (std::size_t type = 0; type < types.size(); ++type)
        for (const int gpus : also) {
            const auto is_there = [&](const Shape& shape) {
                return shape.type == type && shape.placement.gpus == gpus;
            };
            if (gpus < 1 || gpus > std::min(most, types[type].gpus) ||
                std::any_of(shapes.begin(), shapes.begin() + static_cast<std::ptrdiff_t>(usual),
                            is_there))
                continue;
            Shape shape;
            shape.placement = packed_placement(types[type].gpus_of_node, gpus);
            shape.type = type;
            shapes.push_back(std::move(shape));
        }
    return shapes;
}

std::vector<double> clearing_prices(const std::vector<NodeView>& nodes,
                                    const std::vector<Shape>& shapes,
                                    const std::vector<PackingJob>& jobs) {
    return Market(nodes, shapes, jobs).clear();
}

std::vector<PackingResult> search_packing(const std::vector<NodeView>& nodes,
                                          const std::vector<Shape>& shapes,
                                          const std::vector<PackingJob>& jobs, int steps) {
    const std::vector<double> prices = clearing_prices(nodes, shapes, jobs);
    std::vector<std::size_t> urgent;
    std::vector<std::size_t> order;  // the others, by what the first GPUs are worth
    std::vector<double> first(jobs.size());
    std::vector<double> size(jobs.size());  // that it would take at the price
    for (std::size_t job = 0; job < jobs.size(); ++job) {
        (jobs[job].urgent ? urgent : order).push_back(job);
        double best = 0;
        for (const PackingOffer& offer : jobs[job].offers) {
            const StepPlacement& placement = shapes[offer.shape].placement;
            first[job] = std::max(first[job], offer.value / placement.gpus);
            const double gain = offer.value - prices[shapes[offer.shape].type] * placement.gpus;
            if (gain <= best) continue;
            best = gain;
            size[job] = placement.gpus;
        }
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return first[a] > first[b]; });
    const auto polish = [&](Packing& packing, double factor) {
        for (const double price : {factor, 0.0}) {
            for (const std::size_t job : order)
                if (!packing.placed(job)) packing.insert(job, prices, price);
            for (const std::size_t job : order) packing.insert_again(job, prices, price);
        }
        packing.mark();
    };

    std::vector<std::size_t> large_first = order;
    std::stable_sort(large_first.begin(), large_first.end(),
                     [&](std::size_t a, std::size_t b) { return size[a] > size[b]; });
    Packing start(nodes, shapes, jobs);
    for (const std::size_t job : urgent) start.insert(job, prices, 1, -infinity);
    std::vector<Packing> packings(3, start);
    for (const std::size_t job : order) packings[0].stay_if_it_fits(job);
    polish(packings[0], 1);
    for (const std::size_t job : large_first) packings[1].insert(job, prices, 1);
    polish(packings[1], 1);
    for (const std::size_t job : large_first) packings[2].insert(job, prices, 0.8);
    polish(packings[2], 0.8);
    Packing& best =
        *std::max_element(packings.begin(), packings.end(),
                          [](const Packing& a, const Packing& b) { return a.sum() < b.sum(); });

    std::minstd_rand random(1);
    std::vector<std::size_t> out;
    for (int step = 0; step < steps && order.size() > 1 && !nodes.empty(); ++step) {
        out.clear();
        if (step % 2 == 0) {
            best.jobs_on(random() % nodes.size(), out);
            best.jobs_on(random() % nodes.size(), out);
        } else {
            for (std::size_t i = 1 + random() % 4; i > 0; --i)
                out.push_back(order[random() % order.size()]);
        }
        const double before = best.sum();
        best.mark();
        for (const std::size_t job : out) best.remove(job);
        std::size_t added = 0;
        for (const std::size_t job : order) {
            if (best.placed(job) || std::find(out.begin(), out.end(), job) != out.end()) continue;
            out.push_back(job);
            if (++added == most_new) break;
        }
        for (std::size_t i = out.size(); i > 1; --i) std::swap(out[i - 1], out[random() % i]);
        const double factor = 0.5 + static_cast<double>(random() % 1024) / 1024;
        for (const std::size_t job : out)
            if (!best.placed(job)) best.insert(job, prices, factor);
        for (const std::size_t job : out) best.insert_again(job, prices, 0);
        for (int i = 0; i < 3; ++i) best.insert_again(order[random() % order.size()], prices, 0);
        if (best.sum() <= before * (1 + better)) best.take_back();
    }
    std::vector<PackingResult> results;
    results.reserve(jobs.size());
    for (std::size_t job = 0; job < jobs.size(); ++job) results.push_back(best.at(job));
    return results;
}

}  // namespace sluice
