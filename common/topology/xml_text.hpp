// SPDX-License-Identifier: GPL-2.0-or-later
//
// The XML that machines write: elements, attributes, text, comments. No namespaces, no entities
// beyond the five of XML itself, no document type of its own. Reads in place, in one
// pass, without recursion; memory is bounded by the depth of the elements.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/result.hpp"

namespace sluice {

class XmlText {
  public:
    enum class Event { open, close, text, end };

    /// `text` has to outlive the reader.
    explicit XmlText(std::string_view text) : rest_(text) {}

    /// The next event. `<a/>` is an open and a close. Errors are of the form "LINE: what".
    Result<Event> next();

    /// The element that was opened or closed, valid as long as the text.
    std::string_view name() const { return name_; }
    /// Of the element just opened; "" where it has no such attribute.
    std::string attribute(std::string_view name) const;
    /// The characters between two tags, as written (entities not replaced).
    std::string_view text() const { return text_; }

  private:
    Error error(const std::string& what) const;
    bool skip_past(std::string_view end);
    void take(std::size_t length);
    Result<Event> open_tag();
    Result<Event> close_tag();

    static constexpr std::size_t most_depth = 64;

    std::string_view rest_;
    int line_ = 1;
    std::string_view name_;
    std::string_view text_;
    std::vector<std::pair<std::string_view, std::string_view>> attributes_;
    std::vector<std::string_view> open_;
    bool close_next_ = false;  // an element that closes itself was opened
};

}  // namespace sluice
