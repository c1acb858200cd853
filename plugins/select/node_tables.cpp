// SPDX-License-Identifier: GPL-2.0-or-later
#include "plugins/select/node_tables.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>

#include "common/base/file.hpp"
#include "common/model/step_time_book.hpp"
#include "plugins/slurm/conf.hpp"

#include "plugins/slurm/thread.hpp"

namespace sluice::slurm {

NodeTables::NodeTables(Options options)
    : options_(std::move(options)), snapshot_(std::make_shared<const Snapshot>()) {
    load(true);
    thread_ = make_thread("sluice_tables", [this] { run(); });
}

NodeTables::~NodeTables() {
    {
        const std::lock_guard lock(mutex_);
        stop_ = true;
    }
    wake_.notify_one();
    thread_.join();
}

void NodeTables::reload() {
    {
        const std::lock_guard lock(mutex_);
        reload_ = true;
        fingerprints_.clear();
    }
    wake_.notify_one();
}

std::shared_ptr<const NodeTables::Snapshot> NodeTables::snapshot() const {
    const std::lock_guard lock(mutex_);
    return snapshot_;
}

void NodeTables::publish(std::shared_ptr<const Snapshot> snapshot) {
    const std::lock_guard lock(mutex_);
    snapshot_ = std::move(snapshot);
}

bool NodeTables::wants(const std::string& node, std::uint64_t fingerprint) const {
    const std::lock_guard lock(mutex_);
    const auto offered = fingerprints_.find(node);
    return offered == fingerprints_.end() || offered->second != fingerprint;
}

void NodeTables::offer(const std::string& node, std::uint64_t fingerprint, GpuGraph graph) {
    {
        const std::lock_guard lock(mutex_);
        fingerprints_[node] = fingerprint;
        offered_.insert_or_assign(node, std::move(graph));
    }
    wake_.notify_one();
}

void NodeTables::refuse(const std::string& node, std::uint64_t fingerprint,
                        const std::string& why) {
    {
        const std::lock_guard lock(mutex_);
        fingerprints_[node] = fingerprint;
    }
    options_.log_error("gres.conf for node " + node + ": " + why +
                       "; stock Slurm chooses its GPUs");
}

void NodeTables::note(OtherSizes sizes) {
    {
        const std::lock_guard lock(mutex_);
        if (sizes == noted_) return;
        noted_ = sizes;
        sizes_ = std::move(sizes);
    }
    wake_.notify_one();
}

void NodeTables::tell(const OtherSizes& sizes) const {
    for (const auto& [gpus, nodes] : sizes) {
        std::string line = "node " + nodes.front();
        if (nodes.size() > 1) line += " and " + std::to_string(nodes.size() - 1) + " more";
        options_.log_error(line + ": " + std::to_string(gpus.second) +
                           " GPUs, where the topology file describes " +
                           std::to_string(gpus.first) + "; what gres.conf says counts there");
    }
}

void NodeTables::keep(const PlacementCounts& counts) {
    {
        const std::lock_guard lock(mutex_);
        counts_ = counts;
    }
    wake_.notify_one();
}

// What the deciding thread has written down since the last time: fitted here, where nobody waits.
void NodeTables::learn_models() {
    const std::string path = state_dir(snapshot()->config) + "/" + step_samples_file;
    const std::string seen = file_version(path);
    if (seen == samples_seen_) return;
    samples_seen_ = seen;
    const auto read = read_step_samples(path);
    if (!read) {
        if (read.error().code != ErrorCode::not_found)
            options_.log_error(read.error().message + "; the old models stay");
        return;
    }
    auto next = std::make_shared<Snapshot>(*snapshot());
    next->models.clear();
    for (const StepTimeBook::Row& row : read->book.rows()) {
        auto& models = next->models[row.model];
        if (!models.contains(row.gpu_type))
            models[row.gpu_type] = read->book.basis(row.model, row.gpu_type).model();
    }
    publish(std::move(next));
}

void NodeTables::write(const PlacementCounts& counts) {
    const std::string folder = state_dir(snapshot()->config);
    Status written;
    if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
        written =
            Error{ErrorCode::unreachable, folder + ": " + std::generic_category().message(errno)};
    else
        written = write_file(folder + "/" + PlacementCounts::file_name, to_text(counts));
    const std::string failure = written ? "" : written.error().message;
    if (!failure.empty() && failure != said_of_counts_)
        options_.log_error(failure + "; sluice status --controller shows old numbers");
    said_of_counts_ = failure;
}

void NodeTables::run() {
    constexpr auto between_writes = std::chrono::seconds(3);
    constexpr auto between_looks = std::chrono::seconds(5);
    auto next_write = std::chrono::steady_clock::now();
    for (;;) {
        bool reload = false;
        std::map<std::string, GpuGraph> offered;
        std::optional<PlacementCounts> counts;
        std::optional<OtherSizes> sizes;
        {
            std::unique_lock lock(mutex_);
            const auto at_once = [this] { return stop_ || reload_ || sizes_ || !offered_.empty(); };
            wake_.wait_for(lock, between_looks, [&] { return at_once() || counts_; });
            if (counts_) wake_.wait_until(lock, next_write, at_once);
            if (stop_ || std::chrono::steady_clock::now() >= next_write) counts.swap(counts_);
            if (stop_ && !counts) return;
            reload = std::exchange(reload_, false);
            offered.swap(offered_);
            sizes.swap(sizes_);
        }
        try {
            if (reload) load(false);
            if (!offered.empty()) compile(offered);
            if (sizes) tell(*sizes);
            learn_models();
            if (counts) {
                write(*counts);
                next_write = std::chrono::steady_clock::now() + between_writes;
            }
        } catch (const std::exception& failure) {
            options_.log_error(std::string("topology: ") + failure.what() +
                               "; the old tables stay");
        }
    }
}

std::shared_ptr<const BestSets> NodeTables::table_of(const GpuGraph& graph,
                                                     const std::string& name) {
    auto& table = by_fingerprint_[fingerprint(graph)];
    if (table) return table;
    auto compiled = BestSets::compile(graph);
    if (!compiled) {
        options_.log_error(name + ": " + compiled.error().message +
                           "; stock Slurm chooses the GPUs of such nodes");
        return nullptr;
    }
    table = *std::move(compiled);
    return table;
}

// slurmctld reconfigures its plugins right after their start, and people do it for other reasons:
// what stays as it was is not said again.
void NodeTables::say_once(const std::function<void(const std::string&)>& log,
                          const std::string& what, const std::string& more,
                          std::set<std::string>& said) const {
    if (!said_.contains(what)) log(what + more);
    said.insert(what);
}

void NodeTables::load(bool first) {
    std::set<std::string> said;
    Result<Config> config = read_config_file(options_.conf_path);
    if (!config) {
        if (config.error().code != ErrorCode::not_found && !options_.quiet_about_conf)
            say_once(options_.log_error, config.error().message,
                     first ? "; until it is right Sluice only advises"
                           : "; the configuration before stays in force",
                     said);
        if (!first) {
            said_ = std::move(said);
            return;
        }
        // What a broken one was meant to forbid cannot be known.
        const bool broken = config.error().code != ErrorCode::not_found;
        config = Config();
        config->advise_only = broken;
    }
    auto next = std::make_shared<Snapshot>();
    next->config = *std::move(config);
    next->by_gres = snapshot()->by_gres;
    for (const NodeClassLine& line : next->config.node_classes) {
        const std::string path =
            line.file.starts_with('/') ? line.file : next->config.topology_dir + "/" + line.file;
        const Result<GpuGraph> graph = read_topology_file(path);
        if (!graph) {
            say_once(options_.log_error, graph.error().message, "; its nodes go by gres.conf",
                     said);
            continue;
        }
        const auto table = table_of(*graph, path);
        if (!table) continue;
        for (const std::string& node : line.nodes) next->by_file[node] = table;
        say_once(options_.log,
                 path + ": " + std::to_string(line.nodes.size()) + " nodes with " +
                     std::to_string(graph->size()) + " GPUs, joined to Slurm's by index",
                 "", said);
    }
    said_ = std::move(said);
    publish(std::move(next));
}

void NodeTables::compile(const std::map<std::string, GpuGraph>& offered) {
    auto next = std::make_shared<Snapshot>(*snapshot());
    for (const auto& [node, graph] : offered)
        next->by_gres.insert_or_assign(node, table_of(graph, "gres.conf for node " + node));
    publish(std::move(next));
}

namespace {

std::shared_ptr<const BestSets> table_in(const NodeTables::Tables& tables, std::string_view node,
                                         int gpus) {
    const auto table = tables.find(node);
    const bool fits = table != tables.end() && table->second && table->second->size() == gpus;
    return fits ? table->second : nullptr;
}

}  // namespace

std::shared_ptr<const BestSets> NodeTables::Snapshot::find(std::string_view node, int gpus) const {
    auto table = table_in(by_file, node, gpus);
    return table ? table : table_in(by_gres, node, gpus);
}

const StepTimeModel* NodeTables::Snapshot::model(std::string_view key,
                                                 std::string_view gpu_type) const {
    const auto found = models.find(key);
    if (found == models.end()) return nullptr;
    const StepTimeModel* most = nullptr;
    for (const auto& [type, model] : found->second) {
        if (type == gpu_type) return &model;
        if (!most || model.samples > most->samples) most = &model;
    }
    return most;
}

int NodeTables::Snapshot::file_gpus(std::string_view node) const {
    const auto table = by_file.find(node);
    return table == by_file.end() ? 0 : table->second->size();
}

bool NodeTables::Snapshot::knows(std::string_view node) const {
    return by_file.contains(node) || by_gres.contains(node);
}

}  // namespace sluice::slurm
