// SPDX-License-Identifier: GPL-2.0-or-later
//
// The error rule of the whole tree: whatever can fail returns a Status or a Result<T>, both
// [[nodiscard]]. An Error holds one of a few codes and one sentence that says what was wrong,
// where, and what would be right. The codes double as exit codes of `sluice` and are translated to
// ESLURM_* only at the border (plugins/slurm). A function that fails has changed nothing.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace sluice {

enum class ErrorCode {
    not_found = 1,    ///< the thing asked for does not exist or cannot be
    usage = 2,        ///< the caller asked in a way that has no meaning
    bad_input = 3,    ///< a file, an option or a record does not follow its format
    unreachable = 4,  ///< Slurm or a file system did not answer
    busy = 5,         ///< somebody else has it
};

struct Error {
    ErrorCode code = ErrorCode::bad_input;
    std::string message;
};

/// Success, or one Error.
class [[nodiscard]] Status {
  public:
    Status() = default;
    Status(Error error) : error_(std::move(error)) {}
    Status(ErrorCode code, std::string message) : error_(Error{code, std::move(message)}) {}

    bool ok() const { return !error_.has_value(); }
    explicit operator bool() const { return ok(); }
    /// Only where !ok().
    const Error& error() const { return *error_; }

  private:
    std::optional<Error> error_;
};

/// A T, or one Error.
template <typename T>
class [[nodiscard]] Result {
  public:
    Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
    Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}
    Result(ErrorCode code, std::string message)
        : state_(std::in_place_index<1>, Error{code, std::move(message)}) {}

    bool ok() const { return state_.index() == 0; }
    explicit operator bool() const { return ok(); }
    /// Only where ok().
    T& operator*() & { return *std::get_if<0>(&state_); }
    const T& operator*() const& { return *std::get_if<0>(&state_); }
    T&& operator*() && { return std::move(*std::get_if<0>(&state_)); }
    T* operator->() { return std::get_if<0>(&state_); }
    const T* operator->() const { return std::get_if<0>(&state_); }
    /// Only where !ok().
    const Error& error() const { return *std::get_if<1>(&state_); }

  private:
    std::variant<T, Error> state_;
};

}  // namespace sluice
