// SPDX-License-Identifier: GPL-2.0-or-later
#include "plugins/spank/options.hpp"

#include "plugins/slurm/log.hpp"

namespace sluice::spank {
namespace {

Given* collected = nullptr;

int take(int index, const char* value, int /*remote*/) {
    const OptionInfo& option = option_infos()[static_cast<std::size_t>(index)];
    const std::pair<std::string, std::string> pair{option.name, value ? value : ""};
    const Result<JobSpec> checked = parse_options({pair});
    if (!checked) {
        slurm::log_error(checked.error().message);
        return ESPANK_BAD_ARG;
    }
    collected->push_back(pair);
    return ESPANK_SUCCESS;
}

extern "C" int take_option(int index, const char* value, int remote) noexcept {
    try {
        return take(index, value, remote);
    } catch (...) {
        return ESPANK_ERROR;
    }
}

}  // namespace

bool register_options(spank_t context, Given* given) {
    collected = given;
    int index = 0;
    for (const OptionInfo& info : option_infos()) {
        // SPANK copies what it is given.
        spank_option option{};
        option.name = const_cast<char*>(info.name);
        option.arginfo = const_cast<char*>(info.value);
        option.usage = const_cast<char*>(info.legal);
        option.has_arg = 1;
        option.val = index++;
        option.cb = take_option;
        if (spank_option_register(context, &option) != ESPANK_SUCCESS) return false;
    }
    return true;
}

Result<JobSpec> spec_of(const Given& given) {
    return parse_options(given);
}

}  // namespace sluice::spank
