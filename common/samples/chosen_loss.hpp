// SPDX-License-Identifier: GPL-2.0-or-later
//
// Of the several losses that a source has under names of their own (tags of TensorBoard, metrics of
// MLflow), the one that is read: the most exact by the tables of log_names; of equals the first.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/samples/log_names.hpp"
#include "common/samples/loss_reader.hpp"

namespace sluice::log {

class ChosenLoss {
  public:
    /// With a key or a pattern, the loss is what that names.
    explicit ChosenLoss(const LossReaderOptions& options)
        : names_(options.key, options.pattern, options.max_keys_seen) {}

    enum class Answer {
        no,
        yes,
        instead,  ///< yes, and what came under the name before is void
    };
    /// Whether the number under this name is the loss.
    Answer ask(std::string_view name);

    /// The name that is read; empty: none was seen yet.
    const std::string& name() const { return name_; }
    const std::vector<std::string>& keys_seen() const { return names_.keys_seen(); }

  private:
    NameTable names_;
    std::string name_;
    int rank_ = 0;
};

}  // namespace sluice::log
