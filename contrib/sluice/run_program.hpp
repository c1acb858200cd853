// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "common/base/result.hpp"

namespace sluice::cli {

struct ProgramOutput {
    int exit_status = 0;
    std::string out;
    std::string err;         ///< its first 4 KiB
    bool timed_out = false;  ///< it was ended at its time limit: out and err are what it printed
};

/// Runs words[0], found in PATH, with the other words as its arguments, and waits for its end. No
/// shell is involved and its standard input is empty. `environment` ("NAME=value") replaces or adds
/// to that of this process. unreachable where it cannot be started, dies of a signal, or prints
/// more than max_bytes. At time_limit it gets SIGTERM and 5 s later SIGKILL, and is left alone
/// where not even that ends it (a driver that hangs); 0: no limit.
Result<ProgramOutput> run_program(const std::vector<std::string>& words,
                                  const std::vector<std::string>& environment,
                                  std::size_t max_bytes,
                                  std::chrono::seconds time_limit = std::chrono::seconds(0));

/// The error of a program that failed: its name and what it printed, on one line.
Error failure(const std::string& program, const ProgramOutput& output,
              ErrorCode code = ErrorCode::unreachable);

}  // namespace sluice::cli
