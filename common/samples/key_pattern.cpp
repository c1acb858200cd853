// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/samples/key_pattern.hpp"

#include <re2/re2.h>

#include <memory>
#include <string>

#include "common/base/loss_key.hpp"
#include "common/base/text.hpp"

namespace sluice {
namespace {

RE2::Options re2_options() {
    RE2::Options options;
    options.set_encoding(RE2::Options::EncodingLatin1);  // names are ASCII
    options.set_case_sensitive(false);
    options.set_log_errors(false);
    options.set_never_capture(true);
    options.set_max_mem(max_pattern_memory);
    return options;
}

class KeyPattern : public NamePattern {
  public:
    explicit KeyPattern(std::string_view pattern)
        : expression_(re2::StringPiece(pattern.data(), pattern.size()), re2_options()) {}

    bool matches(std::string_view name) const override {
        return RE2::FullMatch(re2::StringPiece(name.data(), name.size()), expression_);
    }
    /// Empty where the pattern is in order.
    const std::string& problem() const { return expression_.error(); }

  private:
    RE2 expression_;
};

Error refused(std::string_view key, const std::string& what) {
    return {ErrorCode::bad_input, "\"" + printable(key) + "\" " + what +
                                      ": write the name of the loss as the log prints it, or "
                                      "/PATTERN/, in 1 to 64 bytes"};
}

}  // namespace

Status set_loss_key(LossReaderOptions& options, std::string_view key) {
    if (const Status status = check_loss_key(key); !status)
        return refused(key, status.error().message);
    std::shared_ptr<const KeyPattern> pattern;
    if (const std::string_view text = pattern_of_key(key); !text.empty()) {
        pattern = std::make_shared<const KeyPattern>(text);
        if (!pattern->problem().empty())
            return refused(key, "is no pattern: " + printable(pattern->problem()));
    }
    options.key = key;
    options.pattern = std::move(pattern);
    return {};
}

}  // namespace sluice
