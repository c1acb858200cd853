// SPDX-License-Identifier: GPL-2.0-or-later
//
// HttpClient by libcurl. http and https only, the server's certificate is verified, redirects are
// not followed, and both time and size are bounded, whatever the server does.
#pragma once

#include <memory>
#include <string>

#include "common/base/result.hpp"
#include "common/samples/http_client.hpp"

namespace sluice {

struct CurlClientOptions {
    std::string token;         ///< sent as bearer token; empty: none
    std::string certificates;  ///< file with those of the authorities to trust; empty: the system's
    long connect_timeout_ms = 5000;
    long timeout_ms = 20000;  ///< for all of a reply
    std::size_t max_body_bytes = std::size_t{4} * 1024 * 1024;
    std::size_t max_head_bytes = std::size_t{64} * 1024;
};

/// not_found where libcurl is not installed.
Result<std::unique_ptr<HttpClient>> make_curl_client(CurlClientOptions options);

}  // namespace sluice
