// SPDX-License-Identifier: GPL-2.0-or-later
#include "plugins/select/chooser.hpp"

#include <algorithm>
#include <ctime>
#include <limits>
#include <numeric>
#include <span>

#include "common/base/text.hpp"
#include "common/model/step_time_book.hpp"
#include "plugins/slurm/job.hpp"
#include "plugins/slurm/log.hpp"

namespace sluice::slurm {
namespace {

// Owns a bitmap of Slurm's.
struct Bitmap {
    explicit Bitmap(bitstr_t* source) : bits(bit_copy(source)) {}
    ~Bitmap() { bit_free(bits); }
    Bitmap(const Bitmap&) = delete;
    Bitmap& operator=(const Bitmap&) = delete;

    bitstr_t* bits;
};

// Below this, two costs are the same.
constexpr double rounding = 1e-9;
// A placement that cons_tres does not take (too few cores or too little memory there) is followed
// by the next best, so often.
constexpr int most_attempts = 3;
constexpr std::size_t most_nodes = 64;
constexpr std::size_t most_shapes = 8;
// A model is trusted where it knows the ratio of step times between these rates (across sockets,
// two NVLinks) to a tenth.
constexpr double slow_gbps = 6;
constexpr double fast_gbps = 50;
constexpr double most_doubt = 0.1;

std::string rate(double gbps) {
    return " (" + format_fixed(gbps, 1) + " GB/s)";
}

}  // namespace

class Chooser::Refinement {
  public:
    Refinement(Chooser& chooser, const JobTest& test, bitstr_t* candidates)
        : chooser_(chooser), test_(test), candidates_(candidates) {
        options_.fragmentation_weight = chooser.offers_.snapshot().config.fragmentation_weight;
    }

    /// Looks up what stock Slurm chose. False, with explanation.forwarded, where that stands.
    bool look_up(const JobChoice& choice) {
        for (const NodeChoice& chosen : choice.nodes) {
            NodeOffers::Node node;
            const char* why = chooser_.offers_.look_up(chosen.node, choice.type_id, node);
            if (!why && node.usable.size() < chosen.gpus.size())
                why = "fewer free GPUs than chosen";
            if (why) {
                if (node.gpus.state && !node.table) chooser_.offer(node.gpus);  // for the next job
                explanation.forwarded = why;
                explanation.stock.clear();
                return false;
            }
            explanation.stock.push_back({chosen.node, chosen.gpus, node.table});
            stock_nodes_.push_back(std::move(node));
        }
        choice_ = &choice;
        if (cores_may_be_shared(test_.job())) {
            explanation.forwarded = "cores that jobs may share";
            explanation.stock.clear();
            return false;
        }
        cpus_ = cpus_chosen(test_.job());
        return true;
    }

    /// Predicts by what was measured of this model, where that says how much its links matter.
    void use_model(const JobSpec& spec) {
        const NodeOffers::Node& node = stock_nodes_.front();
        const StepTimeModel* model =
            chooser_.offers_.snapshot().model(model_key(test_.job()->user_id, spec.model),
                                              type_name(node.gpus, choice_->nodes.front().gpus));
        if (!model) return;
        std::vector<int> gpus;
        for (const NodeChoice& share : choice_->nodes) gpus.push_back(share.gpus.size());
        const auto batch = static_cast<double>(spec.batch.value_or(assumed_batch));
        const StepPlacement placement =
            step_placement(gpus, batch / std::accumulate(gpus.begin(), gpus.end(), 0));
        if (bandwidth_slowdown(*model, placement, slow_gbps, fast_gbps).log_sd > most_doubt) return;
        step_time_ = ModelStepTime{*model, placement.local_batch};
        options_.trust_model = true;
        explanation.in_seconds = true;
    }

    /// Gives the job the placement of least cost that cons_tres takes; in advise mode finds out
    /// which that is. Returns what job_test should.
    int choose() {
        assess_stock();
        explanation.nodes_given = nodes_are_given(test_.job());
        if (explanation.nodes_given.empty()) explanation.nodes_given = nodes_are_stocks();
        const bool as_stock = same(in_place_, stock_);
        const bool chosen = (explanation.nodes_given.empty() && choose_nodes_and_gpus()) ||
                            (!as_stock && try_placement(in_place_, stock_nodes_));
        if (!chosen) {
            if (!as_stock) explanation.forwarded = "no cores near the best set";
            settle(stock_, stock_nodes_);
        }
        if (!disturbed_ || (chosen && !explanation.advice)) return SLURM_SUCCESS;
        // What the job record says now is not what the job gets: ask as stock Slurm did.
        const int rc = test_.ask_in_peace(chooser_.stock_.job_test, candidates_);
        bit_copybits(test_.nodes(), candidates_);
        return rc;
    }

    Explanation explanation;

  private:
    /// Stock Slurm's choice, and the best that its nodes have.
    void assess_stock() {
        std::vector<NodeOffer> offers;
        std::vector<GpuSet> sets;
        for (std::size_t i = 0; i < stock_nodes_.size(); ++i) {
            offers.push_back(chooser_.offers_.offer(stock_nodes_[i], nullptr));
            sets.push_back(choice_->nodes[i].gpus);
        }
        stock_ = assess(offers, sets, step_time_, options_);
        in_place_ = best_in_place(offers, sets);
        // Nobody whose needs are not known is worse off than under stock Slurm, whatever is kept
        // for others.
        if (!options_.trust_model) options_.most_step_time = stock_.step_time;
        explanation.stock_placement = stock_;
    }

    /// As many GPUs of each node.
    NodePlacement best_in_place(std::vector<NodeOffer> offers,
                                const std::vector<GpuSet>& sets) const {
        const auto as_many = [](const NodeShare& share, GpuSet set) {
            return share.set.size() == set.size();
        };
        std::vector<int> counts(sets.size());
        std::transform(sets.begin(), sets.end(), counts.begin(),
                       [](GpuSet set) { return set.size(); });
        for (NodeOffer& offer : offers) offer.required = true;
        const auto together = choose_nodes(offers, counts, step_time_, options_);
        if (together && std::equal(together->nodes.begin(), together->nodes.end(), sets.begin(),
                                   sets.end(), as_many))
            return *together;
        // Other nodes would get the larger shares: each for itself.
        std::vector<GpuSet> best;
        for (std::size_t i = 0; i < offers.size(); ++i) {
            const auto alone = choose_nodes(std::span(&offers[i], 1), std::span(&counts[i], 1),
                                            step_time_, options_);
            best.push_back(alone ? alone->nodes.front().set : sets[i]);
        }
        return assess(offers, best, step_time_, options_);
    }

    static bool same(const NodePlacement& a, const NodePlacement& b) {
        return std::equal(a.nodes.begin(), a.nodes.end(), b.nodes.begin(), b.nodes.end(),
                          [](const NodeShare& left, const NodeShare& right) {
                              return left.node == right.node && left.set == right.set;
                          });
    }

    /// What of stock Slurm's choice says that its nodes have to be.
    std::string nodes_are_stocks() const {
        if (explanation.refused_before) return "limits that other nodes would exceed";
        if (stock_nodes_.size() > most_nodes) return "more nodes than are compared";
        const uint64_t preference = node_preference(stock_nodes_.front().index);
        for (const NodeOffers::Node& node : stock_nodes_) {
            if (node_preference(node.index) != preference) return "nodes of several weights";
        }
        return "";
    }

    bool choose_nodes_and_gpus() {
        auto nodes = chooser_.offers_.look_up_all(candidates_, choice_->type_id);
        // Weights are the site's; nodes that sleep stay asleep.
        const uint64_t preference = node_preference(stock_nodes_.front().index);
        std::erase_if(nodes, [preference](const NodeOffers::Node& node) {
            return node_preference(node.index) != preference;
        });
        const bitstr_t* required = test_.job()->details->req_node_bitmap;
        for (int attempt = 0; attempt < most_attempts; ++attempt) {
            std::vector<NodeOffer> offers;
            offers.reserve(nodes.size());
            for (const NodeOffers::Node& node : nodes)
                offers.push_back(chooser_.offers_.offer(node, required));
            const auto placement = best_of(offers);
            if (!placement || placement->cost > in_place_.cost - rounding) return false;
            std::vector<NodeOffers::Node> chosen;
            for (const NodeShare& share : placement->nodes)
                chosen.push_back(*std::find_if(nodes.begin(), nodes.end(), [&](const auto& node) {
                    return node.index == share.node;
                }));
            if (try_placement(*placement, chosen)) return true;
            // Which of them it was cannot be told; those of stock's choice are known to serve.
            std::erase_if(nodes, [&](const NodeOffers::Node& node) {
                const auto is_this = [&](const auto& share) { return share.node == node.index; };
                return std::any_of(placement->nodes.begin(), placement->nodes.end(), is_this) &&
                       std::none_of(stock_.nodes.begin(), stock_.nodes.end(), is_this);
            });
        }
        return false;
    }

    /// Over the shape that stock Slurm found, and where the request is for so many GPUs in all,
    /// over others of no more nodes.
    std::optional<NodePlacement> best_of(const std::vector<NodeOffer>& offers) {
        std::vector<int> counts;
        for (const NodeShare& share : stock_.nodes) counts.push_back(share.set.size());
        std::sort(counts.begin(), counts.end(), std::greater<>());
        std::vector<std::vector<int>> shapes{counts};
        if (choice_->open) {
            int most = 0;
            for (const NodeOffer& offer : offers) most = std::max(most, offer.free.size());
            for (auto& shape :
                 spreads(stock_.shape.gpus, most, test_.min_nodes(), stock_.shape.nodes))
                if (shape != counts && shapes.size() < most_shapes)
                    shapes.push_back(std::move(shape));
        }
        std::optional<NodePlacement> best;
        for (const auto& shape : shapes) {
            auto found = choose_nodes(offers, shape, step_time_, options_);
            if (!found) continue;
            note_fastest(*found);
            if (!best || found->cost < best->cost - rounding) best = std::move(found);
        }
        return best;
    }

    /// Has cons_tres give exactly this.
    bool try_placement(const NodePlacement& placement, const std::vector<NodeOffers::Node>& nodes) {
        const Bitmap narrowed(test_.nodes());
        bit_clear_all(narrowed.bits);
        int rc = SLURM_ERROR;
        {
            HiddenGpus hidden;
            for (std::size_t i = 0; i < nodes.size(); ++i) {
                hidden.hide(nodes[i].gpus.state, nodes[i].gpus.free - placement.nodes[i].set);
                bit_set(narrowed.bits, nodes[i].index);
            }
            disturbed_ = true;
            rc = test_.ask_in_peace(chooser_.stock_.job_test, narrowed.bits);
        }
        if (rc != SLURM_SUCCESS) return false;
        const Result<JobChoice> got = job_choice(test_.job(), narrowed.bits);
        // More CPUs (another number of threads a core) would be charged, and may exceed a limit.
        const bool exactly =
            got && cpus_chosen(test_.job()) <= cpus_ &&
            std::equal(got->nodes.begin(), got->nodes.end(), placement.nodes.begin(),
                       placement.nodes.end(), [](const NodeChoice& a, const NodeShare& b) {
                           return a.node == b.node && a.gpus == b.set;
                       });
        if (!exactly) return false;
        if (!explanation.advice) bit_copybits(test_.nodes(), narrowed.bits);
        settle(placement, nodes);
        return true;
    }

    void settle(const NodePlacement& placement, const std::vector<NodeOffers::Node>& nodes) {
        for (std::size_t i = 0; i < nodes.size(); ++i)
            explanation.chosen.push_back(
                {placement.nodes[i].node, placement.nodes[i].set, nodes[i].table});
        note_fastest(placement);
        explanation.placement = placement;
        explanation.placement.fastest_step_time = fastest_step_time_;
        explanation.placement.fastest_gbps = fastest_gbps_;
    }

    void note_fastest(const NodePlacement& found) {
        if (found.fastest_step_time >= fastest_step_time_) return;
        fastest_step_time_ = found.fastest_step_time;
        fastest_gbps_ = found.fastest_gbps;
    }

    Chooser& chooser_;
    const JobTest& test_;
    bitstr_t* candidates_;
    const JobChoice* choice_ = nullptr;
    NodeChoiceOptions options_;
    StepTimeOf step_time_ = PriorStepTime();
    std::vector<NodeOffers::Node> stock_nodes_;
    NodePlacement stock_;
    NodePlacement in_place_;  // the best sets of stock's nodes
    double fastest_step_time_ = std::numeric_limits<double>::infinity();  // of all that were found
    double fastest_gbps_ = 0;
    uint32_t cpus_ = 0;  // of stock's choice
    bool disturbed_ = false;
};

Chooser::Chooser(const SelectOps& stock, NodeTables& tables) : stock_(stock), tables_(tables) {
    counts_.since = std::time(nullptr);
}

int Chooser::refine(const JobTest& test, bitstr_t* candidates) {
    if (explanations_.size() >= max_explanations) explanations_.clear();
    // It was given other nodes than stock Slurm's, and has not begun: slurmctld compares what was
    // chosen with limits (of nodes a user may have, say) afterwards. Now they are stock's.
    const auto before = explanations_.find(test.job());
    const bool refused_before = before != explanations_.end() &&
                                before->second.job_id == test.job()->job_id &&
                                (before->second.elsewhere() || before->second.refused_before);
    explanations_.erase(test.job());

    const Result<JobChoice> choice = job_choice(test.job(), test.nodes());
    if (!choice && choice.error().code == ErrorCode::usage) return SLURM_SUCCESS;  // no GPUs
    offers_.use(tables_.snapshot());
    Refinement refinement(*this, test, candidates);
    Explanation& explanation = refinement.explanation;
    explanation.job_id = test.job()->job_id;
    explanation.refused_before = refused_before;
    explanation.advice = offers_.snapshot().config.advise_only;
    const auto spec = job_spec(test.job());
    if (spec && spec->advise) explanation.advice = true;
    int rc = SLURM_SUCCESS;
    if (!choice) {
        explanation.forwarded = choice.error().message;
    } else if (refinement.look_up(*choice)) {
        if (spec && !spec->model.empty()) refinement.use_model(*spec);
        rc = refinement.choose();
    }
    explanations_.emplace(test.job(), std::move(explanation));
    return rc;
}

bool Chooser::Explanation::elsewhere() const {
    return std::any_of(chosen.begin(), chosen.end(),
                       [this](const Share& share) { return !on_node(stock, share.node); });
}

const Chooser::Share* Chooser::on_node(const std::vector<Share>& shares, int node) {
    const auto found = std::find_if(shares.begin(), shares.end(),
                                    [node](const Share& share) { return share.node == node; });
    return found == shares.end() ? nullptr : &*found;
}

std::string Chooser::node_name(const Share& share) {
    return node_record_table_ptr[share.node]->name;
}

double Chooser::gbps(const Share& share) {
    return share.table->bandwidth(share.set).bottleneck_gbps;
}

std::string Chooser::line_of(const Explanation& explanation) {
    std::string line;
    std::string stock;
    for (const Share& share : explanation.chosen) {
        line += line.empty() ? "" : "; ";
        line += "node " + node_name(share) + ": GPUs " + to_string(share.set) + rate(gbps(share));
        if (const Share* here = on_node(explanation.stock, share.node))
            line += ", stock " + to_string(here->set) + rate(gbps(*here));
    }
    for (const Share& share : explanation.stock) {
        if (on_node(explanation.chosen, share.node)) continue;
        stock += (stock.empty() ? "; stock Slurm: node " : "; node ") + node_name(share) +
                 ": GPUs " + to_string(share.set) + rate(gbps(share));
    }
    return line + stock;
}

void Chooser::count(const Explanation& explanation) {
    const auto same_node = [](const Share& a, const Share& b) { return a.node == b.node; };
    const auto same = [](const Share& a, const Share& b) {
        return a.node == b.node && a.set == b.set;
    };
    const auto& chosen = explanation.chosen;
    const auto& stock = explanation.stock;
    const auto as = [&](const auto& equal) {
        return std::equal(chosen.begin(), chosen.end(), stock.begin(), stock.end(), equal);
    };
    if (!explanation.nodes_given.empty()) ++counts_.nodes_given[explanation.nodes_given];
    if (!explanation.forwarded.empty())
        ++counts_.forwarded[explanation.forwarded];
    else if (as(same))
        ++counts_.as_stock;
    else if (explanation.advice)
        ++counts_.advised;
    else
        ++(as(same_node) ? counts_.other_gpus : counts_.other_nodes);
    tables_.keep(counts_);
}

SummaryPrediction Chooser::prediction_of(const Explanation& explanation) {
    // What the job runs on: in advise mode that is stock Slurm's choice.
    const NodePlacement& placement =
        explanation.advice ? explanation.stock_placement : explanation.placement;
    SummaryPrediction out;
    out.step = placement.step_time;
    out.in_seconds = explanation.in_seconds;
    out.gbps = placement.shape.slowest_gbps;
    out.stock_step = explanation.stock_placement.step_time;
    out.stock_gbps = explanation.stock_placement.shape.slowest_gbps;
    out.best_step = explanation.placement.fastest_step_time;
    out.best_gbps = explanation.placement.fastest_gbps;
    const bool same_nodes = std::equal(
        explanation.chosen.begin(), explanation.chosen.end(), explanation.stock.begin(),
        explanation.stock.end(), [](const Share& a, const Share& b) { return a.node == b.node; });
    for (const Share& share : same_nodes ? std::vector<Share>() : explanation.stock)
        out.stock += (out.stock.empty() ? "" : ";") + node_name(share) + ":" + to_string(share.set);
    return out;
}

void Chooser::begin(job_record_t* job) {
    const auto entry = explanations_.find(job);
    if (entry == explanations_.end()) return;
    const Explanation chosen = std::move(entry->second);
    explanations_.erase(entry);
    count(chosen);

    const std::string line = line_of(chosen);
    const std::string job_name = "job " + std::to_string(job->job_id) + ": ";
    if (!chosen.forwarded.empty())
        log_verbose(job_name + "left to stock Slurm: " + chosen.forwarded);
    else if (chosen.advice)
        log_info(job_name + "would choose " + line);
    else
        log_info(job_name + line);

    if (!job_spec(job) || !tables_.snapshot()->config.summary_in_admin_comment) return;
    auto summary = job_summary(job);
    if (!summary) return;
    summary->forwarded = chosen.forwarded;
    summary->placements.clear();
    summary->more_nodes = 0;
    for (const Share& share : chosen.advice ? chosen.stock : chosen.chosen) {
        if (summary->placements.size() == Summary::max_placements) {
            ++summary->more_nodes;
            continue;
        }
        SummaryPlacement placement{node_name(share), to_string(share.set), gbps(share), "", 0};
        if (const Share* stock = on_node(chosen.stock, share.node)) {
            placement.stock_gpus = to_string(stock->set);
            placement.stock_gbps = gbps(*stock);
        }
        summary->placements.push_back(std::move(placement));
    }
    summary->prediction.reset();
    if (!chosen.chosen.empty()) summary->prediction = prediction_of(chosen);
    if (chosen.advice) summary->advice = "would_choose_" + line;
    set_job_summary(job, *summary);
}

void Chooser::reconfigured() {
    tables_.reload();
    offers_.learn_network();
}

void Chooser::survey() {
    offers_.follow_nodes();
    const auto snapshot = tables_.snapshot();
    NodeTables::OtherSizes others;
    for (int i = 0; i < node_record_count; ++i) {
        const auto here = node_gpus(node_record_table_ptr[i]);
        if (!here) continue;
        const int told = snapshot->file_gpus(here->node);
        if (told == here->count) continue;
        offer(*here);
        if (told > 0) others[{told, here->count}].push_back(here->node);
    }
    tables_.note(std::move(others));
}

void Chooser::offer(const NodeGpus& node) const {
    const uint64_t fingerprint = gres_fingerprint(node);
    if (!tables_.wants(node.node, fingerprint)) return;
    Result<GpuGraph> graph = gres_graph(node);
    if (!graph)
        tables_.refuse(node.node, fingerprint, graph.error().message);
    else if (graph->informative())
        tables_.offer(node.node, fingerprint, *std::move(graph));
}

}  // namespace sluice::slurm
