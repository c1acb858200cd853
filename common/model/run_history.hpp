// SPDX-License-Identifier: GPL-2.0-or-later
//
// How earlier runs of a job model went: what a new one of the same name is expected to do until it
// has shown it. Bounded; the oldest is forgotten first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.hpp"
#include "common/model/record.hpp"

namespace sluice {

/// A job that has ended.
struct PastRun {
    std::uint32_t job = 0;  ///< its id
    std::uint32_t user = 0;
    std::string account;     ///< 1 to 64 printable bytes without blanks, or empty
    std::string model;       ///< --train-model
    std::string gpu_type;    ///< as gres.conf calls it; empty without one
    std::int64_t batch = 0;  ///< --train-batch; 0: not said
    std::int64_t ended = 0;  ///< seconds since 1970
    bool completed = false;  ///< by itself, with exit status 0
    Record record;           ///< the last one that its agent sent
};

/// Whose runs may be seen by whom (sluice.conf: ShareRuns).
enum class Sharing {
    user,    ///< each user's own
    account  ///< also those of others in the same account
};

/// What is asked for.
struct RunQuery {
    std::uint32_t user = 0;
    std::string_view account;
    std::string_view model;
    std::string_view gpu_type;
    std::int64_t batch = 0;
    Sharing sharing = Sharing::user;
};

struct RunHistoryOptions {
    std::size_t most_models = 1024;  ///< of all users together
    std::size_t most_runs = 8;       ///< of one user's model
};

class RunHistory {
  public:
    explicit RunHistory(RunHistoryOptions options = {}) : options_(options) {}

    /// Takes the place of an earlier run of the same job. When a model is full its oldest run goes,
    /// when the history is full the model that was added to longest ago. bad_input for a name that
    /// is empty, too long or has blanks.
    Status add(PastRun run);

    /// The runs of that model that the asker may see, nearest first: the asker's own before those
    /// of others, of the same batch and GPU type before others, later ones before earlier ones.
    /// Valid until the next add().
    std::vector<const PastRun*> find(const RunQuery& query) const;

    /// Everything, in the order in which it was added: adding it again makes the same history.
    std::vector<const PastRun*> all() const;

  private:
    struct Entry {
        PastRun run;
        std::uint64_t added = 0;  ///< counts calls of add()
    };
    using Owner = std::uint32_t;
    /// By model and then user, so that a model's owners stand side by side.
    std::map<std::string, std::map<Owner, std::deque<Entry>>, std::less<>> shelves_;

    void forget_a_model();

    RunHistoryOptions options_;
    std::size_t models_ = 0;
    std::uint64_t adds_ = 0;
};

/// The file below StateDir in which the controller keeps its history.
constexpr const char* run_history_file = "runs";

/// One line a run (doc/formats/runs-v1.txt).
std::string to_text(const RunHistory& history);

struct ReadHistory {
    RunHistory history;
    std::size_t damaged = 0;  ///< lines left out
};
/// bad_input where the first line is not of a version that is known.
Result<ReadHistory> parse_run_history(std::string_view text);
/// That of a file (common/base/kept_lines.hpp).
Result<ReadHistory> read_run_history(const std::string& path);

}  // namespace sluice
