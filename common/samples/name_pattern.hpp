// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string_view>

namespace sluice {

/// Which names are the loss that was asked for. LossReader asks it; key_pattern has one.
class NamePattern {
  public:
    virtual ~NamePattern() = default;
    /// `name` as the log prints it, up to 64 bytes.
    virtual bool matches(std::string_view name) const = 0;
};

}  // namespace sluice
