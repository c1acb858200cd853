// SPDX-License-Identifier: GPL-2.0-or-later
//
// The subcommands of `sluice`. Each gets its own arguments (without "sluice NAME") and returns the
// exit code: 0 done, 1 the thing asked for does not exist or cannot be, 2 wrong usage, 3 bad input
// file, 4 Slurm not reachable or the output not written (main.cpp sees to that). --help never
// reaches them: main.cpp answers it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/base/result.hpp"
#include "common/model/loss_curve.hpp"

namespace sluice::cli {

using Arguments = std::vector<std::string>;

// sets.cpp
int topo(const Arguments& arguments);
int pick(const Arguments& arguments);
// discover.cpp, collect.cpp: what topo() calls for "discover" and "collect"
int topo_discover(const Arguments& arguments);
int topo_collect(const Arguments& arguments);
// curves.cpp
int losses(const Arguments& arguments);
int fit(const Arguments& arguments);
// emit.cpp
int emit(const Arguments& arguments);
// jobs.cpp
int status(const Arguments& arguments);
int report(const Arguments& arguments);
// sim.cpp
int sim(const Arguments& arguments);

/// The options of one subcommand, parsed: "--name VALUE", "--name=VALUE" and flags, the rest are
/// operands, as is everything after "--" and "-" alone.
class Options {
  public:
    struct Known {
        const char* name;  ///< "--topology": the name that has() and value() know
        bool has_value;
        const char* also = nullptr;  ///< another spelling, "-S"
    };
    /// usage for an unknown option, a missing value, a value for a flag, or more operands than
    /// `max_operands`.
    static Result<Options> parse(const Arguments& arguments, const std::vector<Known>& known,
                                 std::size_t max_operands);

    bool has(const std::string& name) const;
    /// The last value given, or `otherwise`.
    std::string value(const std::string& name, const std::string& otherwise = "") const;
    const Arguments& operands() const { return operands_; }

  private:
    std::vector<std::pair<std::string, std::string>> values_;
    Arguments operands_;
};

/// The curve as a person reads it, "1 / (0.001 k + 0.2) + 1.5". In curves.cpp.
std::string formula(const LossCurve& curve);

/// "2026-11-30 12:00:00" in the local time zone.
std::string local_time(std::int64_t seconds);

/// Prints "sluice NAME: message" on standard error and returns the error's exit code.
int fail(const char* name, const Error& error);

}  // namespace sluice::cli
