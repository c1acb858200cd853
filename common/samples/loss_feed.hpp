// SPDX-License-Identifier: GPL-2.0-or-later
//
// Where a job's losses come from, as --train-loss names it, and the one interface behind which all
// kinds of sources stand: whoever wants losses asks again and again what is new.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.hpp"
#include "common/samples/log_follower.hpp"
#include "common/samples/loss_point.hpp"
#include "common/samples/loss_reader.hpp"

namespace sluice {

/// "PATH", "csv:PATH", "jsonl:PATH", "tfevents:PATH", "state:PATH", "mlflow:[RUN][@URI]".
struct LossSource {
    enum class Kind {
        log,            ///< a growing file of lines
        events,         ///< a TensorBoard event file, or a folder of them
        trainer_state,  ///< Hugging Face's trainer_state.json, or a folder with checkpoint-*/ of it
        mlflow,         ///< a run on an MLflow tracking server
    };
    Kind kind = Kind::log;
    LossReaderOptions::Format format = LossReaderOptions::Format::automatic;  ///< of a log
    std::string path;                                                         ///< not for mlflow
    std::string uri;  ///< mlflow: http(s)://HOST[:PORT][/PATH]; empty: of the environment
    std::string run;  ///< mlflow: [A-Za-z0-9_-]{1,64}; empty: of the environment
};
/// A path that ends in .csv, .jsonl or trainer_state.json, or whose name has ".tfevents." in it,
/// needs no prefix.
Result<LossSource> parse_loss_source(std::string_view text);

/// Not thread-safe. Never waits for anybody, never follows a symbolic link, reads no FIFO and no
/// device; memory is bounded.
class LossFeed {
  public:
    virtual ~LossFeed() = default;

    struct Poll {
        std::vector<LossPoint> points;  ///< new ones, in the order in which they were written
        bool restarted = false;         ///< what was given before is void; `points` are the first
        bool more = false;              ///< there is more to read at once
        bool waiting = false;           ///< somebody else was asked and has not answered yet
        std::string problem;            ///< what is wrong, in words; empty where all is well
    };
    /// What is new. `now_s`: seconds since some fixed moment, never less than at the last call.
    virtual Poll poll(double now_s) = 0;

    /// Nothing more is coming: points that were held back because a later line might have replaced
    /// them.
    virtual std::vector<LossPoint> finish() { return {}; }

    /// The largest progress seen, with a loss or without.
    virtual std::optional<std::int64_t> last_step() const = 0;
    /// Names that stood before a number, in order of first appearance.
    virtual const std::vector<std::string>& keys_seen() const = 0;
    /// For messages: the path or the address.
    virtual std::string name() const = 0;
};

/// A feed of files; nothing for mlflow, whose feed needs a network (mlflow_feed.hpp). Of `options`
/// the key and the pattern count. A log begins behind `begin`.
std::unique_ptr<LossFeed> open_file_feed(const LossSource& source, const LossReaderOptions& options,
                                         const LogMark& begin = {});

/// A feed without a loss, and the reason for it.
std::unique_ptr<LossFeed> broken_feed(std::string name, std::string problem);

/// Two sources of one job: `told` has what the job says for this purpose alone. With its first
/// point, what `read` has given is void, and `read` is not asked any more: the same loss is not
/// counted twice.
std::unique_ptr<LossFeed> prefer_told(std::unique_ptr<LossFeed> told,
                                      std::unique_ptr<LossFeed> read);

}  // namespace sluice
