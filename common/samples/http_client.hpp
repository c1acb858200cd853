// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <optional>
#include <string>

namespace sluice {

/// Fetches from one server without waiting for it (common/remote has the one over a network).
class HttpClient {
  public:
    virtual ~HttpClient() = default;

    struct Reply {
        int status = 0;  ///< 200, 404, ...; 0 where there was none
        std::string body;
        std::string problem;  ///< why there is no whole reply, in words
    };
    /// Asks for an address. Not before the reply to the last one was taken.
    virtual void get(const std::string& url) = 0;
    /// The reply, once; nothing while it is not there yet.
    virtual std::optional<Reply> reply() = 0;
};

}  // namespace sluice
