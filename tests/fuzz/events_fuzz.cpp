// SPDX-License-Identifier: GPL-2.0-or-later
//
// The bytes of a TensorBoard event file, scanned whole and in pieces as a file grows. The first
// byte says what follows it: the file itself, or data that get a frame with right checksums first,
// which no fuzzer would find; the second byte seeds where the input is cut.
#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "common/samples/event_records.hpp"
#include "common/samples/loss_point.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace {

using namespace sluice;

struct Scalar {
    std::optional<std::int64_t> step;
    std::string tag;
    std::uint64_t value = 0;  ///< its bits: nan equals itself
    friend bool operator==(const Scalar&, const Scalar&) = default;
};

struct Found {
    std::vector<Scalar> scalars;
    std::uint64_t used = 0;
    bool broken = false;
    int damaged = 0;
};

/// As EventFeed reads: `there` grows by small steps, each scan begins where the last one ended.
Found scan_pieces(std::string_view file, std::uint32_t seed) {
    Found found;
    std::size_t there = seed == 0 ? file.size() : 0;
    for (;;) {
        if (found.used <= there) {
            const auto scan =
                scan_events(file.substr(found.used, there - found.used), [&](const EventScalar& s) {
                    demand(!s.step || (*s.step >= 0 && *s.step <= max_step));
                    found.scalars.push_back(
                        {s.step, std::string(s.tag), std::bit_cast<std::uint64_t>(s.value)});
                });
            found.used += scan.used;
            found.damaged += scan.damaged;
            found.broken = scan.broken;
        }
        if (there == file.size()) return found;
        seed = seed * 1664525 + 1013904223;
        there = std::min<std::size_t>(file.size(), there + 1 + (seed >> 24) % 60);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 2) return 0;
    const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
    std::string file;
    if ((data[0] & 1) != 0) {
        file = event_record(text.substr(0, text.size() / 2));
        file += event_record(text.substr(text.size() / 2));
    } else {
        file = text;
    }
    const Found whole = scan_pieces(file, 0);
    const Found pieces = scan_pieces(file, 1U + data[1]);
    demand(whole.scalars == pieces.scalars);
    demand(whole.used == pieces.used && whole.broken == pieces.broken &&
           whole.damaged == pieces.damaged);
    if ((data[0] & 1) != 0)
        demand(!whole.broken && whole.damaged == 0 && whole.used == file.size());
    return 0;
}
