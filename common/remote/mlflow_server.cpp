// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/remote/mlflow_server.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "common/base/text.hpp"
#include "common/remote/curl_client.hpp"
#include "common/samples/mlflow_feed.hpp"
#include "common/samples/plain_file.hpp"

namespace sluice {
namespace {

constexpr const char* token_variable = "SLUICE_MLFLOW_TOKEN_FILE";
constexpr std::size_t max_token_bytes = 4096;

Result<std::string> read_token(const std::string& path) {
    const auto bad = [&path](const std::string& why) {
        return Error{ErrorCode::bad_input,
                     std::string(token_variable) + ": " + printable(path, 200) + ": " + why};
    };
    const PlainFile file = open_plain(path);
    if (!file.descriptor.is_open()) return bad(file.problem);
    if (file.status.st_uid != ::geteuid()) return bad("it belongs to somebody else");
    if ((file.status.st_mode & 077) != 0)
        return bad("others may read it: allow that to its owner only (chmod 600)");
    std::string text(max_token_bytes + 1, '\0');
    const ssize_t count = ::pread(file.descriptor.get(), text.data(), text.size(), 0);
    if (count < 0) return bad(std::strerror(errno));
    text.resize(static_cast<std::size_t>(count));
    std::string token(trim(text));
    const bool plain =
        std::all_of(token.begin(), token.end(), [](char c) { return c > ' ' && c < 0x7f; });
    if (token.empty() || token.size() > max_token_bytes || !plain)
        return bad("it holds no token: 1 to 4096 characters without a blank");
    return token;
}

/// Without encryption a token goes no farther than to this very machine.
bool is_private(std::string_view uri) {
    if (uri.starts_with("https://")) return true;
    for (const std::string_view host : {"localhost", "127.0.0.1", "[::1]"}) {
        std::string_view rest = uri.substr(7);
        if (!rest.starts_with(host)) continue;
        rest.remove_prefix(host.size());
        if (rest.empty() || rest.front() == ':' || rest.front() == '/') return true;
    }
    return false;
}

}  // namespace

Result<std::unique_ptr<LossFeed>> open_mlflow_feed(const LossSource& source,
                                                   const LossReaderOptions& reading,
                                                   const Environment& environment) {
    const auto bad = [](std::string why) { return Error{ErrorCode::bad_input, std::move(why)}; };
    const std::string uri = source.uri.empty() ? environment("MLFLOW_TRACKING_URI") : source.uri;
    const std::string run = source.run.empty() ? environment("MLFLOW_RUN_ID") : source.run;
    if (uri.empty()) return bad("no server: write mlflow:@URI or set MLFLOW_TRACKING_URI");
    if (run.empty()) return bad("no run: write mlflow:RUN or set MLFLOW_RUN_ID");
    // What the environment says is as hostile as what the option says.
    const auto checked = parse_loss_source("mlflow:" + run + "@" + uri);
    if (!checked.ok()) return bad("MLFLOW_TRACKING_URI, MLFLOW_RUN_ID: " + checked.error().message);

    CurlClientOptions options;
    options.certificates = environment("MLFLOW_TRACKING_SERVER_CERT_PATH");
    if (const std::string path = environment(token_variable); !path.empty()) {
        if (!is_private(checked->uri))
            return bad("no token is sent to " + printable(checked->uri, 200) +
                       " without encryption: write https://");
        const auto token = read_token(path);
        if (!token.ok()) return token.error();
        options.token = *token;
    }
    auto client = make_curl_client(std::move(options));
    if (!client.ok()) return bad(client.error().message);
    return std::unique_ptr<LossFeed>(
        std::make_unique<MlflowFeed>(checked->uri, checked->run, reading, *std::move(client)));
}

}  // namespace sluice
