// SPDX-License-Identifier: GPL-2.0-or-later
#include "plugins/select/chooser.hpp"

#include <algorithm>

#include "common/base/text.hpp"
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

std::string describe(const std::string& node, GpuSet best, GpuSet stock, const BestSets& table) {
    return "node " + node + ": GPUs " + to_string(best) + " (" +
           format_fixed(table.bandwidth(best).bottleneck_gbps, 1) + " GB/s), stock " +
           to_string(stock) + " (" + format_fixed(table.bandwidth(stock).bottleneck_gbps, 1) +
           " GB/s)";
}

}  // namespace

int Chooser::refine(const JobTest& test, bitstr_t* candidates) {
    if (explanations_.size() >= max_explanations) explanations_.clear();
    explanations_.erase(test.job());

    const Result<JobChoice> choice = job_choice(test.job(), test.nodes());
    if (!choice && choice.error().code == ErrorCode::usage) return SLURM_SUCCESS;  // no GPUs
    std::vector<NodeGpus> gpus;
    Explanation wanted = look_up(test.job(), choice, gpus);
    const bool changed = std::any_of(wanted.nodes.begin(), wanted.nodes.end(),
                                     [](const Chosen& node) { return node.best != node.stock; });
    int rc = SLURM_SUCCESS;
    if (changed && !wanted.advice && !apply(test, wanted, gpus)) {
        wanted.forwarded = "no cores near the best set";
        // The failed call left its traces in the job record: ask as stock Slurm did, for what it
        // gave.
        rc = test.ask_in_peace(stock_.job_test, candidates);
        bit_copybits(test.nodes(), candidates);
    }
    if (!wanted.forwarded.empty()) {
        ++forwarded_[wanted.forwarded];
        for (Chosen& node : wanted.nodes) node.best = node.stock;
    }
    explanations_.emplace(test.job(), std::move(wanted));
    return rc;
}

Chooser::Explanation Chooser::look_up(const job_record_t* job, const Result<JobChoice>& choice,
                                      std::vector<NodeGpus>& gpus) const {
    Explanation found;
    if (!choice) {
        found.forwarded = choice.error().message;
        return found;
    }
    const auto snapshot = tables_.snapshot();
    found.advice = snapshot->config.advise_only;
    if (const auto spec = job_spec(job); spec && spec->advise) found.advice = true;

    for (const NodeChoice& chosen : choice->nodes) {
        const auto here = node_gpus(node_record_table_ptr[chosen.node]);
        if (!here) {
            found.forwarded = "GPUs without device files";
            break;
        }
        if (here->shared) {
            found.forwarded = "GPUs that are shared by shard or mps";
            break;
        }
        if (here->types > 1 && choice->type_id == 0) {
            found.forwarded = "an untyped request on a node with several GPU types";
            break;
        }
        const auto table = snapshot->find(here->node, here->count);
        if (!table) {
            offer(*here);  // for the next job
            found.forwarded = snapshot->knows(here->node)
                                  ? "another number of GPUs than the node's topology"
                                  : "no topology known";
            break;
        }
        const auto best =
            table->best(here->free & gpus_of_type(*here, choice->type_id), chosen.gpus.size());
        if (!best) {
            found.forwarded = "fewer free GPUs than chosen";
            break;
        }
        gpus.push_back(*here);
        found.nodes.push_back({chosen.node, chosen.gpus, *best, table});
    }
    if (!found.forwarded.empty()) found.nodes.clear();
    return found;
}

bool Chooser::apply(const JobTest& test, const Explanation& wanted,
                    const std::vector<NodeGpus>& gpus) {
    const Bitmap narrowed(test.nodes());
    int rc = SLURM_ERROR;
    {
        HiddenGpus hidden;
        for (std::size_t i = 0; i < gpus.size(); ++i)
            hidden.hide(gpus[i].state, gpus[i].free - wanted.nodes[i].best);
        rc = test.ask_in_peace(stock_.job_test, narrowed.bits);
    }
    if (rc != SLURM_SUCCESS || !bit_equal(narrowed.bits, test.nodes())) return false;
    const Result<JobChoice> got = job_choice(test.job(), narrowed.bits);
    return got && std::equal(got->nodes.begin(), got->nodes.end(), wanted.nodes.begin(),
                             wanted.nodes.end(), [](const NodeChoice& a, const Chosen& b) {
                                 return a.node == b.node && a.gpus == b.best;
                             });
}

void Chooser::begin(job_record_t* job) {
    const auto entry = explanations_.find(job);
    if (entry == explanations_.end()) return;
    const Explanation chosen = std::move(entry->second);
    explanations_.erase(entry);

    std::string line;
    for (const Chosen& node : chosen.nodes) {
        line += line.empty() ? "" : "; ";
        line +=
            describe(node_record_table_ptr[node.node]->name, node.best, node.stock, *node.table);
    }
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
    for (const Chosen& node : chosen.nodes) {
        if (summary->placements.size() == Summary::max_placements) {
            ++summary->more_nodes;
            continue;
        }
        const GpuSet held = chosen.advice ? node.stock : node.best;
        summary->placements.push_back({node_record_table_ptr[node.node]->name, to_string(held),
                                       node.table->bandwidth(held).bottleneck_gbps,
                                       to_string(node.stock),
                                       node.table->bandwidth(node.stock).bottleneck_gbps});
    }
    if (chosen.advice) summary->advice = "would_choose_" + line;
    set_job_summary(job, *summary);
}

std::string Chooser::forwarded() const {
    std::string text;
    for (const auto& [reason, count] : forwarded_)
        text += (text.empty() ? "" : ", ") + reason + ": " + std::to_string(count);
    return text;
}

void Chooser::survey() {
    const auto snapshot = tables_.snapshot();
    for (int i = 0; i < node_record_count; ++i) {
        const auto here = node_gpus(node_record_table_ptr[i]);
        if (here && !snapshot->has_file_for(here->node, here->count)) offer(*here);
    }
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
