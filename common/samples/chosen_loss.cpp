// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/samples/chosen_loss.hpp"

namespace sluice::log {

ChosenLoss::Answer ChosenLoss::ask(std::string_view name) {
    if (name.empty()) return Answer::no;
    if (name == name_) return Answer::yes;
    const std::optional<int> rank = names_.facts_of_number(name).loss_rank;
    if (!rank || (!name_.empty() && *rank >= rank_)) return Answer::no;
    const bool first = name_.empty();
    name_ = name;
    rank_ = *rank;
    return first ? Answer::yes : Answer::instead;
}

}  // namespace sluice::log
