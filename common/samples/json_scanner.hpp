// SPDX-License-Identifier: GPL-2.0-or-later
//
// JSON of any length in bounded memory: the text comes in pieces, and what stands in it is told as
// it comes. Python's NaN, Infinity and -Infinity are numbers here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sluice {

class JsonScanner {
  public:
    static constexpr int max_depth = 64;
    /// Of longer names and texts the first bytes are told.
    static constexpr std::size_t max_text = 1024;

    /// Gets what is found. `key` is the name in the object around it; empty in a list.
    class Taker {
      public:
        virtual ~Taker() = default;
        virtual void open(std::string_view key, bool object) = 0;
        virtual void close() = 0;
        virtual void number(std::string_view key, double value) = 0;
        /// Characters behind an escape that are not ASCII come as '?'.
        virtual void text(std::string_view key, std::string_view value) = 0;
    };

    explicit JsonScanner(Taker& taker) : taker_(taker) {}

    /// False from the first byte on that makes the text no JSON.
    bool feed(std::string_view bytes);
    /// One whole value was read, and nothing follows it.
    bool complete() const { return state_ == State::done; }

  private:
    enum class State { value, item, first_key, key, colon, next, string, escape, hex, word, done };

    bool take(char c);
    bool begin_value(char c);
    bool open(bool object);
    bool close(bool object);
    void after_value() { state_ = depth_ == 0 ? State::done : State::next; }
    void end_string();
    bool end_word();
    void keep(char c);
    bool in_object() const { return (objects_ >> (depth_ - 1) & 1) != 0; }

    Taker& taker_;
    State state_ = State::value;
    int depth_ = 0;
    std::uint64_t objects_ = 0;  ///< bit i: what was opened at depth i is an object
    bool string_is_key_ = false;
    std::string key_;
    std::string text_;
    std::uint32_t code_ = 0;  ///< of \uXXXX so far
    int hex_digits_ = 0;
    bool failed_ = false;
};

}  // namespace sluice
