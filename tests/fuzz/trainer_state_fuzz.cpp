// SPDX-License-Identifier: GPL-2.0-or-later
//
// A trainer_state.json, read whole and in pieces: the points have to be the same. The first byte
// chooses the key, the second where the text is cut.
#include <cstdint>

#include "common/base/text.hpp"
#include "common/samples/trainer_state.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace {

using namespace sluice;

struct Found {
    std::vector<LossPoint> points;
    bool good = true;
    bool complete = false;
    std::optional<std::int64_t> last_step;
    std::vector<std::string> keys;
};

Found read_pieces(std::string_view text, const std::string& key, std::uint32_t seed) {
    log::NameTable names(key, nullptr, 32);
    TrainerStateReader reader(names);
    Found found;
    while (!text.empty() && found.good) {
        std::size_t size = text.size();
        if (seed != 0) {
            seed = seed * 1664525 + 1013904223;
            size = std::min<std::size_t>(size, 1 + (seed >> 24) % 40);
        }
        found.good = reader.feed(text.substr(0, size), found.points);
        text.remove_prefix(size);
    }
    found.complete = reader.complete();
    found.last_step = reader.last_step();
    found.keys = names.keys_seen();
    return found;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 2) return 0;
    const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
    const std::string key = (data[0] & 1) != 0 ? "eval_loss" : "";
    const Found whole = read_pieces(text, key, 0);
    const Found pieces = read_pieces(text, key, 1U + data[1]);
    demand(whole.points.size() == pieces.points.size());
    for (std::size_t i = 0; i < whole.points.size(); ++i) {
        demand(whole.points[i].step == pieces.points[i].step);
        demand(format_number(whole.points[i].loss) == format_number(pieces.points[i].loss));
        demand(!whole.points[i].step || *whole.points[i].step >= 0);
    }
    demand(whole.good == pieces.good && whole.last_step == pieces.last_step);
    demand(whole.keys == pieces.keys);
    if (whole.good) demand(whole.complete == pieces.complete);
    return 0;
}
