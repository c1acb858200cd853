// SPDX-License-Identifier: GPL-2.0-or-later
//
// Replies of an MLflow server, one after the other, parted by a byte 0: the feed asks on and on,
// and what it gives out is in range.
#include <cstdint>
#include <deque>
#include <memory>

#include "common/samples/mlflow_feed.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace {

using namespace sluice;

class Server final : public HttpClient {
  public:
    explicit Server(std::deque<std::string_view>& replies) : replies_(replies) {}

    void get(const std::string& url) override {
        demand(url.starts_with("http://h/api/2.0/mlflow/"));
        demand(url.find_first_of(" \r\n\"") == std::string::npos);
    }
    std::optional<Reply> reply() override {
        if (replies_.empty()) return std::nullopt;
        Reply reply{200, std::string(replies_.front()), ""};
        replies_.pop_front();
        // "!" and a digit stand for a status
        if (reply.body.size() >= 2 && reply.body[0] == '!')
            reply.status = 100 * (reply.body[1] - '0');
        return reply;
    }

  private:
    std::deque<std::string_view>& replies_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    std::string_view text(reinterpret_cast<const char*>(data), size);
    std::deque<std::string_view> replies;
    while (replies.size() < 64) {
        const std::size_t end = text.find('\0');
        replies.push_back(text.substr(0, end));
        if (end == std::string_view::npos) break;
        text.remove_prefix(end + 1);
    }
    for (const std::string_view reply : replies) {
        const auto parsed = parse_mlflow_reply(reply);
        demand(parsed.ok() || !parsed.error().message.empty());
    }
    MlflowFeed feed("http://h", "r", LossReaderOptions(), std::make_unique<Server>(replies));
    for (double now = 0; now < 200 * MlflowFeed::longest_interval_s;
         now += MlflowFeed::longest_interval_s) {
        const LossFeed::Poll news = feed.poll(now);
        for (const LossPoint& point : news.points) demand(!point.step || *point.step >= 0);
        demand(news.points.size() <= size);
        demand(!news.restarted || news.points.empty());
    }
    demand(feed.keys_seen().size() <= 32);
    return 0;
}
