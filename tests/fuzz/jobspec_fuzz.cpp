// SPDX-License-Identifier: GPL-2.0-or-later
//
// What a user asks for: 't' and the text form, or anything else and a line NAME=VALUE for each
// option. What is let through has to keep within its bounds and survive its own text form.
#include <algorithm>
#include <cstdint>

#include "common/base/text.hpp"
#include "common/jobspec/jobspec.hpp"
#include "common/samples/key_pattern.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace {

using namespace sluice;

Result<JobSpec> read(std::string_view text) {
    if (text[0] == 't') return parse_spec(text.substr(1));
    std::vector<std::pair<std::string, std::string>> options;
    for (const std::string_view line : split(text, '\n')) {
        const std::size_t equals = std::min(line.find('='), line.size());
        options.emplace_back(line.substr(0, equals),
                             line.substr(std::min(equals + 1, line.size())));
    }
    return parse_options(options);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const auto spec = read({reinterpret_cast<const char*>(data), size});
    if (!spec) {
        demand(!spec.error().message.empty());
        return 0;
    }
    demand(spec->sizes.size() <= 256);
    demand(std::is_sorted(spec->sizes.begin(), spec->sizes.end()));
    demand(spec->sizes.empty() ||
           (spec->sizes.front() >= 1 && spec->sizes.back() <= JobSpec::max_gpus));
    const std::string text = to_text(*spec);
    demand(text.size() <= JobSpec::max_bytes);
    demand(text.find_first_of(std::string_view("\0\n", 2)) == std::string::npos);
    const auto again = parse_spec(text);
    demand(again.ok() && *again == *spec && to_text(*again) == text);
    // a key that slurmctld lets pass is one that the agent can use
    LossReaderOptions reading;
    demand(spec->loss_key.empty() || set_loss_key(reading, spec->loss_key).ok());
    expand_pattern(spec->loss, {42, 40, 2, "name", "user"});
    return 0;
}
