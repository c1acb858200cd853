// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/topology/xml_text.hpp"

#include <algorithm>

#include "common/base/text.hpp"

namespace sluice {
namespace {

constexpr std::string_view blanks = " \t\r\n";
constexpr std::string_view name_ends = " \t\r\n/>=<\"'";

std::string without_entities(std::string_view text) {
    struct Entity {
        std::string_view name;
        char value;
    };
    static constexpr Entity entities[] = {
        {"&lt;", '<'}, {"&gt;", '>'}, {"&amp;", '&'}, {"&quot;", '"'}, {"&apos;", '\''}};
    std::string out;
    while (!text.empty()) {
        const auto* const entity =
            std::find_if(std::begin(entities), std::end(entities),
                         [text](const Entity& e) { return text.starts_with(e.name); });
        if (entity != std::end(entities)) {
            out += entity->value;
            text.remove_prefix(entity->name.size());
        } else {
            out += text.front();
            text.remove_prefix(1);
        }
    }
    return out;
}

}  // namespace

std::string XmlText::attribute(std::string_view name) const {
    for (const auto& [key, value] : attributes_) {
        if (key == name) return without_entities(value);
    }
    return {};
}

Error XmlText::error(const std::string& what) const {
    return {ErrorCode::bad_input, std::to_string(line_) + ": " + what};
}

void XmlText::take(std::size_t length) {
    const std::string_view taken = rest_.substr(0, length);
    line_ += static_cast<int>(std::count(taken.begin(), taken.end(), '\n'));
    rest_.remove_prefix(taken.size());
}

bool XmlText::skip_past(std::string_view end) {
    const std::size_t at = rest_.find(end);
    if (at == std::string_view::npos) return false;
    take(at + end.size());
    return true;
}

Result<XmlText::Event> XmlText::next() {
    if (close_next_) {
        close_next_ = false;
        open_.pop_back();
        return Event::close;
    }
    for (;;) {
        if (!rest_.starts_with('<')) {
            text_ = rest_.substr(0, rest_.find('<'));
            take(text_.size());
            if (!trim(text_).empty() && !open_.empty()) return Event::text;
            if (!trim(text_).empty()) return error("text outside of all elements");
        }
        if (rest_.empty()) {
            if (open_.empty()) return Event::end;
            return error("the file ends within <" + printable(open_.back(), 40) + ">");
        }
        if (rest_.starts_with("<!--")) {
            if (!skip_past("-->")) return error("a comment does not end");
        } else if (rest_.starts_with("<?") || rest_.starts_with("<!")) {
            if (!skip_past(">")) return error("a declaration does not end");
        } else if (rest_.starts_with("</")) {
            return close_tag();
        } else {
            return open_tag();
        }
    }
}

Result<XmlText::Event> XmlText::close_tag() {
    const std::size_t end = rest_.find('>');
    const std::string_view name = trim(rest_.substr(2, end - 2));
    if (end == std::string_view::npos || open_.empty() || open_.back() != name) {
        return error(
            "</" + printable(name, 40) + "> closes nothing" +
            (open_.empty() ? std::string() : ", <" + printable(open_.back(), 40) + "> is open"));
    }
    take(end + 1);
    name_ = open_.back();
    open_.pop_back();
    return Event::close;
}

Result<XmlText::Event> XmlText::open_tag() {
    take(1);
    name_ = rest_.substr(0, rest_.find_first_of(name_ends));
    if (name_.empty()) return error("\"<\" without the name of an element");
    take(name_.size());
    attributes_.clear();
    for (;;) {
        take(std::min(rest_.find_first_not_of(blanks), rest_.size()));
        close_next_ = rest_.starts_with("/>");
        if (close_next_ || rest_.starts_with('>')) break;
        const std::string_view key = rest_.substr(0, rest_.find_first_of(name_ends));
        take(key.size());
        const char quote = rest_.size() > 1 ? rest_[1] : '\0';
        const std::size_t end = rest_.find(quote, 2);
        if (key.empty() || !rest_.starts_with('=') || (quote != '"' && quote != '\'') ||
            end == std::string_view::npos) {
            close_next_ = false;
            return error("<" + printable(name_, 40) + ">: attributes are written KEY=\"VALUE\"");
        }
        attributes_.emplace_back(key, rest_.substr(2, end - 2));
        take(end + 1);
    }
    take(close_next_ ? 2 : 1);
    if (open_.size() == most_depth) {
        close_next_ = false;
        return error("elements are nested more than " + std::to_string(most_depth) + " deep");
    }
    open_.push_back(name_);
    return Event::open;
}

}  // namespace sluice
