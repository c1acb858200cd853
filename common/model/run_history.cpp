// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/model/run_history.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>

#include "common/base/kept_lines.hpp"
#include "common/base/text.hpp"

namespace sluice {
namespace {

constexpr std::string_view header = "sluice runs 1";
constexpr std::string_view none = "-";
constexpr std::size_t most_name_bytes = 64;
constexpr std::size_t words_before_record = 8;

bool is_name(std::string_view text, bool may_be_empty) {
    if (text.empty()) return may_be_empty;
    return text.size() <= most_name_bytes && text != none &&
           std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7f; });
}

std::string word(std::string_view text) {
    return std::string(text.empty() ? none : text);
}

std::string name_in(std::string_view text) {
    return std::string(text == none ? std::string_view() : text);
}

std::optional<std::uint32_t> id_in(std::string_view text) {
    const auto id = parse_integer(text);
    if (!id || *id < 0 || *id > std::numeric_limits<std::uint32_t>::max()) return std::nullopt;
    return static_cast<std::uint32_t>(*id);
}

std::optional<PastRun> run_of(std::string_view line) {
    std::vector<std::string_view> words;
    for (std::size_t i = 0; i < words_before_record; ++i) {
        const std::size_t end = line.find(' ');
        if (end == std::string_view::npos) return std::nullopt;
        words.push_back(line.substr(0, end));
        line.remove_prefix(end + 1);
    }
    const auto job = id_in(words[0]);
    const auto user = id_in(words[1]);
    const auto batch = parse_integer(words[5]);
    const auto ended = parse_integer(words[6]);
    auto record = parse_record(line);
    const bool good = job && user && batch && *batch >= 0 && ended && *ended >= 0 && record &&
                      (words[7] == "0" || words[7] == "1");
    if (!good) return std::nullopt;
    PastRun run;
    run.job = *job;
    run.user = *user;
    run.account = name_in(words[2]);
    run.model = name_in(words[3]);
    run.gpu_type = name_in(words[4]);
    run.batch = *batch;
    run.ended = *ended;
    run.completed = words[7] == "1";
    run.record = *std::move(record);
    return run;
}

}  // namespace

Status RunHistory::add(PastRun run) {
    for (const auto& [text, may_be_empty] :
         {std::pair(&run.account, true), std::pair(&run.model, false),
          std::pair(&run.gpu_type, true)}) {
        if (!is_name(*text, may_be_empty)) {
            return Error{ErrorCode::bad_input,
                         "\"" + printable(*text) +
                             "\" is no name that is kept: write 1 to 64 printable characters "
                             "without blanks, and not - alone"};
        }
    }
    auto& shelf = shelves_[run.model][run.user];
    if (shelf.empty() && ++models_ > std::max<std::size_t>(options_.most_models, 1)) {
        forget_a_model();
        return add(std::move(run));
    }
    std::erase_if(shelf, [&run](const Entry& entry) { return entry.run.job == run.job; });
    if (shelf.size() >= options_.most_runs) shelf.pop_front();
    shelf.push_back({std::move(run), ++adds_});
    return {};
}

// The shelf that was just made is empty and goes with it, unless it is all there is.
void RunHistory::forget_a_model() {
    auto oldest_model = shelves_.end();
    Owner oldest_user = 0;
    std::uint64_t oldest = std::numeric_limits<std::uint64_t>::max();
    for (auto model = shelves_.begin(); model != shelves_.end();) {
        std::erase_if(model->second, [this](const auto& owner) {
            if (!owner.second.empty()) return false;
            --models_;
            return true;
        });
        for (const auto& [user, runs] : model->second) {
            if (runs.back().added >= oldest) continue;
            oldest = runs.back().added;
            oldest_model = model;
            oldest_user = user;
        }
        model = model->second.empty() ? shelves_.erase(model) : std::next(model);
    }
    if (oldest_model == shelves_.end()) return;
    oldest_model->second.erase(oldest_user);
    --models_;
    if (oldest_model->second.empty()) shelves_.erase(oldest_model);
}

std::vector<const PastRun*> RunHistory::find(const RunQuery& query) const {
    std::vector<const Entry*> found;
    const auto owners = shelves_.find(query.model);
    if (owners == shelves_.end()) return {};
    for (const auto& [user, runs] : owners->second) {
        for (const Entry& entry : runs) {
            const bool seen = user == query.user ||
                              (query.sharing == Sharing::account && !query.account.empty() &&
                               entry.run.account == query.account);
            if (seen) found.push_back(&entry);
        }
    }
    const auto distance = [&query](const Entry* entry) {
        const PastRun& run = entry->run;
        return std::tuple(run.user != query.user, run.batch != query.batch,
                          run.gpu_type != query.gpu_type,
                          std::numeric_limits<std::uint64_t>::max() - entry->added);
    };
    std::sort(found.begin(), found.end(),
              [&](const Entry* a, const Entry* b) { return distance(a) < distance(b); });
    std::vector<const PastRun*> out(found.size());
    std::transform(found.begin(), found.end(), out.begin(),
                   [](const Entry* entry) { return &entry->run; });
    return out;
}

std::vector<const PastRun*> RunHistory::all() const {
    std::vector<const Entry*> entries;
    for (const auto& [model, owners] : shelves_) {
        for (const auto& [user, runs] : owners) {
            for (const Entry& entry : runs) entries.push_back(&entry);
        }
    }
    std::sort(entries.begin(), entries.end(),
              [](const Entry* a, const Entry* b) { return a->added < b->added; });
    std::vector<const PastRun*> out(entries.size());
    std::transform(entries.begin(), entries.end(), out.begin(),
                   [](const Entry* entry) { return &entry->run; });
    return out;
}

std::string to_text(const RunHistory& history) {
    std::string out = std::string(header) + '\n';
    for (const PastRun* run : history.all()) {
        out += std::to_string(run->job) + ' ' + std::to_string(run->user) + ' ' +
               word(run->account) + ' ' + run->model + ' ' + word(run->gpu_type) + ' ' +
               std::to_string(run->batch) + ' ' + std::to_string(run->ended) + ' ' +
               (run->completed ? "1 " : "0 ") + to_text(run->record) + '\n';
    }
    return out;
}

Result<ReadHistory> parse_run_history(std::string_view text) {
    ReadHistory out;
    const auto damaged = take_kept_lines(text, header, [&out](std::string_view line) {
        auto run = run_of(line);
        return run && out.history.add(*std::move(run));
    });
    if (!damaged) return damaged.error();
    out.damaged = *damaged;
    return out;
}

Result<ReadHistory> read_run_history(const std::string& path) {
    return read_kept_file(path, parse_run_history);
}

}  // namespace sluice
