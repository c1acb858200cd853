// SPDX-License-Identifier: GPL-2.0-or-later
//
// The loss of a run on an MLflow tracking server as a feed, by its REST API
// (https://mlflow.org/docs/latest/rest-api.html):
//
//     GET URI/api/2.0/mlflow/runs/get?run_id=RUN                 which metrics are there?
//     GET
//     URI/api/2.0/mlflow/metrics/get-history?run_id=RUN&metric_key=KEY&max_results=N&page_token=T
//
// The history comes in pages; the last page, which is not full, is asked for again until there is a
// page after it, so that only what is new travels. A server that knows no pages sends all of it
// each time. Who is not answered asks ever more seldom.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/samples/chosen_loss.hpp"
#include "common/samples/http_client.hpp"
#include "common/samples/known_points.hpp"
#include "common/samples/loss_feed.hpp"

namespace sluice {

/// One metric value of a reply.
struct MlflowMetric {
    std::string key;
    std::optional<double> value;
    std::optional<std::int64_t> step;
};

struct MlflowReply {
    std::vector<MlflowMetric> metrics;
    std::string next_page;  ///< the token of the page after this one; empty: there is none
    std::string error;      ///< what the server says is wrong: "RESOURCE_DOES_NOT_EXIST"
};
/// The metrics of a reply to runs/get or metrics/get-history; bad_input where it is no JSON object.
Result<MlflowReply> parse_mlflow_reply(std::string_view body);

class MlflowFeed final : public LossFeed {
  public:
    static constexpr double interval_s = 15;
    static constexpr double longest_interval_s = 600;
    static constexpr int page_size = 500;
    static constexpr int most_pages = 20'000;  ///< a server may make them up

    /// `uri` without a slash at its end.
    MlflowFeed(std::string uri, std::string run, const LossReaderOptions& options,
               std::unique_ptr<HttpClient> client)
        : uri_(std::move(uri)),
          run_(std::move(run)),
          chosen_(options),
          client_(std::move(client)) {}

    Poll poll(double now_s) override;
    std::optional<std::int64_t> last_step() const override { return last_step_; }
    const std::vector<std::string>& keys_seen() const override { return chosen_.keys_seen(); }
    std::string name() const override { return "run " + run_ + " at " + uri_; }

  private:
    enum class Asked { nothing, run, history };

    void ask_run();
    void ask_history();
    void forget_history(Poll& out);
    void take_run(const MlflowReply& reply, double now_s, Poll& out);
    void take_history(const MlflowReply& reply, double now_s, Poll& out);
    void fail(std::string problem, double now_s);
    void rest(double now_s);

    const std::string uri_;
    const std::string run_;
    log::ChosenLoss chosen_;
    const std::unique_ptr<HttpClient> client_;

    Asked asked_ = Asked::nothing;
    double next_s_ = 0;  ///< when to ask again
    double pause_s_ = interval_s;
    int rounds_ = 0;        ///< of asking for the history
    std::string page_;      ///< the token of the page that is read; empty: the first
    int pages_ = 0;         ///< before it
    KnownPoints known_;     ///< of this page
    bool at_zero_ = false;  ///< the last point has step 0
    std::optional<std::int64_t> last_step_;
    std::string problem_;
};

}  // namespace sluice
