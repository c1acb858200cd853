// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "common/base/result.hpp"

namespace sluice::cli {

struct ProgramOutput {
    int exit_status = 0;
    std::string out;
    std::string err;  ///< its first 4 KiB
};

/// Runs words[0], found in PATH, with the other words as its arguments, and waits for its end. No
/// shell is involved and its standard input is empty. `environment` ("NAME=value") replaces or adds
/// to that of this process. unreachable where it cannot be started, dies of a signal, or prints
/// more than max_bytes.
Result<ProgramOutput> run_program(const std::vector<std::string>& words,
                                  const std::vector<std::string>& environment,
                                  std::size_t max_bytes);

}  // namespace sluice::cli
