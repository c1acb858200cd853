// SPDX-License-Identifier: GPL-2.0-or-later
//
// Hugging Face's trainer_state.json as a feed. The file holds the run so far,
//
//     {"log_history": [{"epoch": 0.01, "loss": 2.5, "step": 10}, {"eval_loss": 2.4, "step": 10},
//     ...
//
// and is written whole at each checkpoint, into a folder checkpoint-STEP/ of its own. Given the
// folder around those, the latest is read. A file that is only half written yet is read again
// later; until then the latest that is whole is read, and what is known stays.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/samples/json_scanner.hpp"
#include "common/samples/known_points.hpp"
#include "common/samples/log_names.hpp"
#include "common/samples/loss_feed.hpp"
#include "common/samples/plain_file.hpp"

namespace sluice {

/// Points out of the text of one trainer_state.json, fed in pieces.
class TrainerStateReader {
  public:
    /// `names` has to live longer.
    explicit TrainerStateReader(log::NameTable& names) : history_(names), scanner_(history_) {}
    TrainerStateReader(const TrainerStateReader&) = delete;
    TrainerStateReader& operator=(const TrainerStateReader&) = delete;

    /// Appends the losses that are complete. False: the text is no JSON.
    bool feed(std::string_view bytes, std::vector<LossPoint>& out);
    /// The text was there to its end.
    bool complete() const { return scanner_.complete(); }
    std::optional<std::int64_t> last_step() const { return history_.last_step; }

  private:
    /// Hears of the entries of "log_history".
    struct History final : JsonScanner::Taker {
        explicit History(log::NameTable& table) : names(table) {}
        void open(std::string_view key, bool object) override;
        void close() override;
        void number(std::string_view key, double value) override;
        void text(std::string_view, std::string_view) override {}

        log::NameTable& names;
        int depth = 0;
        bool within = false;   ///< in the list
        bool summary = false;  ///< the entry sums up the whole run
        std::optional<double> loss;
        int loss_rank = 0;
        std::optional<std::int64_t> step;
        std::optional<std::int64_t> last_step;
        std::vector<LossPoint> points;
    };
    History history_;
    JsonScanner scanner_;
};

class TrainerStateFeed final : public LossFeed {
  public:
    /// Points that one poll() gives at most, and bytes that it reads of a file at most; the rest
    /// comes with the next.
    static constexpr std::size_t max_points = 65536;
    static constexpr std::size_t max_read = std::size_t{4} * 1024 * 1024;

    TrainerStateFeed(std::string path, const LossReaderOptions& options)
        : path_(std::move(path)), names_(options.key, options.pattern, options.max_keys_seen) {}

    Poll poll(double now_s) override;
    std::optional<std::int64_t> last_step() const override { return last_step_; }
    const std::vector<std::string>& keys_seen() const override { return names_.keys_seen(); }
    std::string name() const override { return path_; }

  private:
    /// What tells one state of a file from another.
    struct Version {
        dev_t device = 0;
        ino_t inode = 0;
        off_t size = -1;
        std::int64_t seconds = 0;
        std::int64_t nanoseconds = 0;
        friend bool operator==(const Version&, const Version&) = default;
    };
    static Version version_of(const struct stat& status);

    /// A file, and what it is called in the folder; empty where it is the path itself.
    struct Found {
        PlainFile file;
        std::string name;
        std::int64_t step = 0;  ///< of its checkpoint
    };
    /// The newest first. Where there are none `why` says so.
    std::vector<Found> find(std::string& why) const;

    /// How it went with a file; empty: it was read to its end.
    struct Tried {
        Version version;
        std::string problem;
        double pause_s = 0;
        double again_s = 0;  ///< when to try again, though it has not changed
    };

    /// The file that is read, up to where, and what was found in it since the last point was given.
    struct Reading {
        Reading(Found place, log::NameTable& names, const KnownPoints& given);

        Found found;
        Version version;
        off_t offset = 0;
        bool ended = false;
        TrainerStateReader reader;
        std::vector<LossPoint> read;  ///< from `next` on to be compared with what is known
        std::size_t next = 0;
        KnownPoints known;  ///< on a copy: only what is given out changes what is known
        std::vector<LossPoint> fresh;
    };

    Tried* tried(const Version& version);
    /// Begins with the newest file that is new and can be read, if there is one.
    void look(double now_s, Poll& out);
    /// Reads on. False: it was no good.
    bool read(double now_s, Poll& out);
    void give(Poll& out);
    /// Nothing more is read of it; empty: all has been.
    void put_aside(std::string problem, double now_s);

    const std::string path_;
    log::NameTable names_;
    KnownPoints known_;
    std::optional<std::int64_t> last_step_;
    double look_again_s_ = 0;
    std::optional<Reading> reading_;
    std::vector<Tried> tried_;  ///< of the files that were there at the last look
    std::string problem_;       ///< of the newest file
};

}  // namespace sluice
