// SPDX-License-Identifier: GPL-2.0-or-later
//
// What has been measured of step times, by job model and GPU type, and the best that can be said
// from it. Bounded; it forgets what teaches least.
//
// Filling it and asking it for a basis are cheap and allocate little; the fit is a function of the
// basis alone, so that a caller copies a basis under its lock and fits outside it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/result.hpp"
#include "common/model/step_time_fit.hpp"

namespace sluice {

/// The samples that a fit of one job model on one GPU type rests on.
struct StepTimeBasis {
    std::vector<StepSample> own;
    std::vector<StepSample> other;  ///< of the same job model on the GPU type that has most

    /// fit_step_time() of own, with the fit of `other` as the similar model where there is one;
    /// from topology alone where there is nothing.
    StepTimeModel model(const StepPriorOptions& options = {}) const;
};

struct StepTimeBookOptions {
    std::size_t most_keys = 512;    ///< pairs of job model and GPU type
    std::size_t most_samples = 96;  ///< of each
    double most_weight = 8;         ///< of a sample; later repeats make earlier ones fade
    std::size_t longest_name = 80;  ///< bytes
};

class StepTimeBook {
  public:
    explicit StepTimeBook(StepTimeBookOptions options = {}) : options_(options) {}

    /// A repeat (same placement, batch and rates) is merged with what was measured before: the
    /// weighted mean of the logarithms. When a key is full, the placement with most samples (of
    /// different batches) loses its oldest one; when the book is full, the key that was added to
    /// longest ago goes. bad_input for an unusable sample, an empty or too long name.
    Status add(std::string_view model, std::string_view gpu_type, const StepSample& sample);

    StepTimeBasis basis(std::string_view model, std::string_view gpu_type) const;

    struct Row {
        std::string model;
        std::string gpu_type;
        StepSample sample;
    };
    /// Everything, in the order in which it was added: adding it again makes the same book.
    std::vector<Row> rows() const;

    std::size_t keys() const { return shelves_.size(); }
    std::size_t samples() const;

  private:
    struct Entry {
        StepSample sample;
        std::uint64_t added = 0;  ///< counts calls of add()
    };
    struct Shelf {
        std::vector<Entry> entries;
        std::uint64_t added = 0;
    };
    using Key = std::pair<std::string, std::string>;

    void forget_one(Shelf& shelf) const;

    StepTimeBookOptions options_;
    std::map<Key, Shelf> shelves_;
    std::uint64_t adds_ = 0;
};

/// The file below StateDir in which the controller keeps its book.
constexpr const char* step_samples_file = "step-samples";

/// A user's own models are the user's own: "1000/gpt2".
std::string model_key(std::uint32_t user, std::string_view model);

/// Samples of a step, all GPUs together, where a job does not say (JobSpec::batch).
constexpr std::int64_t assumed_batch = 1024;

/// One line a sample (doc/formats/step-samples-v1.txt), as a store keeps it.
std::string to_text(const StepTimeBook& book);

struct ReadBook {
    StepTimeBook book;
    std::size_t damaged = 0;  ///< lines left out
};
/// bad_input where the first line is not of a version that is known.
Result<ReadBook> parse_step_samples(std::string_view text);
/// That of a file (common/base/kept_lines.hpp).
Result<ReadBook> read_step_samples(const std::string& path);

}  // namespace sluice
