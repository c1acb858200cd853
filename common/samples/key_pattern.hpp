// SPDX-License-Identifier: GPL-2.0-or-later
//
// Keys with a pattern ("/(train|lm) loss/"; syntax in common/base/loss_key.hpp), by RE2, which
// takes time linear in the name whatever the pattern, and bounded memory. Not a part of libsluice,
// which slurmctld loads: only programs that read logs link this and libre2.
#pragma once

#include <cstdint>
#include <string_view>

#include "common/base/result.hpp"
#include "common/samples/loss_reader.hpp"

namespace sluice {

/// What RE2 may take for a pattern, compiled, and for what it learns while matching.
constexpr std::int64_t max_pattern_memory = 1 << 20;

/// options.key and, where it is a pattern, options.pattern. bad_input, and nothing is changed,
/// where the key is not legal.
Status set_loss_key(LossReaderOptions& options, std::string_view key);

}  // namespace sluice
