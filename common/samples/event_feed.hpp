// SPDX-License-Identifier: GPL-2.0-or-later
//
// TensorBoard's event files as a feed: one file, or all of a folder in the order of the times in
// their names, as a run writes a new one each time it is started. Folders below it are runs of
// their own and not read.
#pragma once

#include <cstdint>
#include <ctime>
#include <string>
#include <vector>

#include "common/samples/chosen_loss.hpp"
#include "common/samples/loss_feed.hpp"
#include "common/samples/plain_file.hpp"

namespace sluice {

class EventFeed final : public LossFeed {
  public:
    /// Of more files in a folder the latest are read.
    static constexpr std::size_t max_files = 256;
    /// Bytes from which on a poll() begins no other file: the rest comes with the next. An event
    /// with a loss has more than ten.
    static constexpr std::size_t enough_bytes = std::size_t{256} * 1024;

    EventFeed(std::string path, const LossReaderOptions& options)
        : path_(std::move(path)), chosen_(options) {}

    Poll poll(double now_s) override;
    std::optional<std::int64_t> last_step() const override { return last_step_; }
    const std::vector<std::string>& keys_seen() const override { return chosen_.keys_seen(); }
    std::string name() const override { return path_; }

  private:
    struct File {
        std::string name;  ///< within the folder, if there is one
        std::uint64_t offset = 0;
        std::string problem;
    };

    /// Takes note of the files that are new in the folder, where it has changed.
    void list(const PlainFile& folder, double now_s);
    /// Reads a piece of one file; its size is added to `bytes_read`. True when there may be more of
    /// it.
    bool read(File& file, int folder, Poll& out, std::size_t& bytes_read);

    const std::string path_;
    log::ChosenLoss chosen_;
    std::vector<File> files_;  ///< in order
    std::size_t next_ = 0;     ///< where the last poll left off; 0: it came to the end
    timespec listed_{};        ///< when the folder had changed last
    double list_again_s_ = 0;  ///< at the latest
    std::optional<std::int64_t> last_step_;
};

}  // namespace sluice
