// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/samples/mlflow_feed.hpp"

#include <algorithm>
#include <utility>

#include "common/base/text.hpp"
#include "common/samples/json_scanner.hpp"
#include "common/samples/log_line.hpp"

namespace sluice {
namespace {

// Metrics come and go by while a run is young, so the list of them is asked for now and then.
constexpr int rounds_between_lists = 8;

/// Hears of "metrics", wherever in the reply the list stands, and of the members around it.
class Taker final : public JsonScanner::Taker {
  public:
    explicit Taker(MlflowReply& reply) : reply_(reply) {}

    void open(std::string_view key, bool object) override {
        ++depth_;
        if (!object && key == "metrics" && list_ == 0) list_ = depth_;
        if (list_ != 0 && depth_ == list_ + 1) metric_ = {};
    }
    void close() override {
        if (list_ != 0 && depth_ == list_ + 1 && !metric_.key.empty() && metric_.value)
            reply_.metrics.push_back(std::move(metric_));
        if (depth_ == list_) list_ = 0;
        --depth_;
    }
    void number(std::string_view key, double value) override {
        if (list_ == 0 || depth_ != list_ + 1) return;
        if (key == "value") metric_.value = value;
        if (key == "step") metric_.step = log::as_step(value);
    }
    void text(std::string_view key, std::string_view value) override {
        if (list_ != 0 && depth_ == list_ + 1) {
            if (key == "key") metric_.key = value;
            // "NaN", and 64-bit integers as protocol buffers write them in JSON
            if (const auto parsed = parse_number(value); parsed && key != "key")
                number(key, *parsed);
        } else if (depth_ == 1) {
            if (key == "next_page_token") reply_.next_page = value;
            if (key == "error_code") reply_.error = value;
        }
    }

  private:
    MlflowReply& reply_;
    int depth_ = 0;
    int list_ = 0;  ///< the depth of the list; 0: not in it
    MlflowMetric metric_;
};

/// As a value in a query (RFC 3986, 2.3: what is unreserved stays).
std::string percent_encoded(std::string_view text) {
    constexpr char digits[] = "0123456789ABCDEF";
    std::string out;
    for (const char c : text) {
        const char lower = static_cast<char>(c | 0x20);
        if ((c >= '0' && c <= '9') || (lower >= 'a' && lower <= 'z') || c == '-' || c == '.' ||
            c == '_' || c == '~') {
            out += c;
            continue;
        }
        const auto byte = static_cast<unsigned char>(c);
        out += '%';
        out += digits[byte >> 4];
        out += digits[byte & 15];
    }
    return out;
}

}  // namespace

Result<MlflowReply> parse_mlflow_reply(std::string_view body) {
    MlflowReply reply;
    Taker taker(reply);
    JsonScanner scanner(taker);
    if (!trim(body).starts_with('{') || !scanner.feed(body) || !scanner.complete())
        return {ErrorCode::bad_input, "the reply is no JSON object"};
    if (reply.next_page.size() >= JsonScanner::max_text)
        return {ErrorCode::bad_input, "the reply has a page token of 1024 bytes or more"};
    return reply;
}

void MlflowFeed::ask_run() {
    client_->get(uri_ + "/api/2.0/mlflow/runs/get?run_id=" + percent_encoded(run_));
    asked_ = Asked::run;
}

void MlflowFeed::ask_history() {
    std::string url = uri_ + "/api/2.0/mlflow/metrics/get-history?run_id=" + percent_encoded(run_) +
                      "&metric_key=" + percent_encoded(chosen_.name()) +
                      "&max_results=" + std::to_string(page_size);
    if (!page_.empty()) url += "&page_token=" + percent_encoded(page_);
    client_->get(url);
    asked_ = Asked::history;
}

void MlflowFeed::forget_history(Poll& out) {
    page_.clear();
    pages_ = 0;
    known_ = KnownPoints();
    at_zero_ = false;
    out.points.clear();
    out.restarted = true;
}

void MlflowFeed::rest(double now_s) {
    asked_ = Asked::nothing;
    problem_.clear();
    pause_s_ = interval_s;
    next_s_ = now_s + pause_s_;
}

void MlflowFeed::fail(std::string problem, double now_s) {
    asked_ = Asked::nothing;
    problem_ = std::move(problem);
    next_s_ = now_s + pause_s_;
    pause_s_ = std::min(2 * pause_s_, longest_interval_s);
}

void MlflowFeed::take_run(const MlflowReply& reply, double now_s, Poll& out) {
    for (const MlflowMetric& metric : reply.metrics) {
        if (chosen_.ask(metric.key) == log::ChosenLoss::Answer::instead) forget_history(out);
    }
    if (chosen_.name().empty())
        rest(now_s);
    else
        ask_history();
}

void MlflowFeed::take_history(const MlflowReply& reply, double now_s, Poll& out) {
    known_.rewind();
    for (const MlflowMetric& metric : reply.metrics) {
        LossPoint point{metric.step, *metric.value};
        const auto verdict = known_.take(point);
        if (verdict == KnownPoints::Verdict::changed) {
            forget_history(out);
            return rest(now_s);
        }
        if (verdict == KnownPoints::Verdict::known) continue;
        // Who logs without a step logs all at step 0.
        const bool zero = point.step == 0;
        if (zero && at_zero_) point.step.reset();
        at_zero_ = zero;
        if (point.step) last_step_ = std::max(last_step_.value_or(0), *point.step);
        out.points.push_back(point);
    }
    if (reply.next_page.empty() || reply.next_page == page_) {
        ++rounds_;
        return rest(now_s);
    }
    if (reply.metrics.empty())
        return fail("the server names a next page after one without points", now_s);
    if (pages_ >= most_pages) {
        return fail("the run has more than " +
                        std::to_string(std::int64_t{most_pages} * page_size) +
                        " points of this metric: the rest is not read",
                    now_s);
    }
    ++pages_;
    page_ = reply.next_page;
    known_ = KnownPoints();
    ask_history();
}

LossFeed::Poll MlflowFeed::poll(double now_s) {
    Poll result;
    if (asked_ == Asked::nothing && now_s >= next_s_) {
        if (chosen_.name().empty() || !problem_.empty() || rounds_ % rounds_between_lists == 0)
            ask_run();
        else
            ask_history();
    }
    if (asked_ != Asked::nothing) {
        if (const auto reply = client_->reply()) {
            const Asked asked = std::exchange(asked_, Asked::nothing);
            const auto parsed = parse_mlflow_reply(reply->body);
            if (!reply->problem.empty()) {
                fail(reply->problem, now_s);
            } else if (reply->status >= 300 && reply->status < 400) {
                fail("the server redirects (HTTP " + std::to_string(reply->status) +
                         "), which is not followed: give the address that it leads to",
                     now_s);
            } else if (reply->status != 200) {
                const std::string why = parsed.ok() ? parsed->error : "";
                fail("the server says HTTP " + std::to_string(reply->status) +
                         (why.empty() ? "" : ", " + printable(why, 80)),
                     now_s);
            } else if (!parsed.ok()) {
                fail(parsed.error().message, now_s);
            } else if (asked == Asked::run) {
                take_run(*parsed, now_s, result);
            } else {
                take_history(*parsed, now_s, result);
            }
        }
    }
    result.waiting = asked_ != Asked::nothing;
    result.problem = problem_;
    return result;
}

}  // namespace sluice
