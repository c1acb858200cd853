// SPDX-License-Identifier: GPL-2.0-or-later
//
// What every fuzz target has.
#pragma once

#include <cstdint>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

/// What has to hold for any input; a fuzzer and the replay both notice when it does not.
inline void demand(bool condition) {
    if (!condition) std::abort();
}
