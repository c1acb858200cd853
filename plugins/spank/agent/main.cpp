// SPDX-License-Identifier: GPL-2.0-or-later
//
// sluice-agent: one small process beside each job that has --train-* options, as the job's user.
// Reads the loss as it is printed, fits the curve, and now and then sends a short record to
// slurmctld. Ends with the job; nobody waits for it.
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "common/base/descriptor.hpp"
#include "common/base/text.hpp"
#include "common/jobspec/jobspec.hpp"
#include "common/model/progress.hpp"
#include "common/model/record.hpp"
#include "common/remote/mlflow_server.hpp"
#include "common/samples/key_pattern.hpp"
#include "common/samples/loss_feed.hpp"
#include "plugins/spank/agent/checkpoint.hpp"
#include "plugins/spank/agent/controller_link.hpp"
#include "plugins/spank/job_files.hpp"
#include "plugins/spank/loss_begin.hpp"

namespace sluice::agent {
namespace {

constexpr double least_pace_seconds = 5;
constexpr double no_loss_after_seconds = 30;
// A curve needs log-spaced points: a record every tenth of the age of the run is enough.
constexpr double age_fraction = 0.1;
constexpr double longest_pause_seconds = 900;
constexpr double most_jitter = 0.1;  // of the interval
constexpr double pause_margin_fraction = 0.1;
constexpr double pause_margin_seconds = 0.5;
constexpr int most_questions = 20;
constexpr double question_pause_seconds = 3;
constexpr int most_polls_at_once = 8;
// After the script's end: slurmstepd waits a little longer (launch.hpp).
constexpr std::chrono::milliseconds last_word{900};
constexpr double last_reading_seconds = 0.4;
constexpr double hour = 3600;

volatile std::sig_atomic_t told_to_checkpoint = 0;

void on_order(int) {
    told_to_checkpoint = 1;
}

struct Setting {
    std::uint32_t job = 0;
    pid_t batch = 0;
    int restarts = 0;
    int min_interval_s = 60;
    std::string answer;
    std::string emit;
    JobSpec spec;
};

std::string environment(const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "";
}

std::optional<Setting> read_setting(int count, char** words) {
    Setting setting;
    const auto job = parse_integer(environment("SLURM_JOB_ID"));
    if (!job || *job < 1 || *job > UINT32_MAX) return std::nullopt;
    setting.job = static_cast<std::uint32_t>(*job);
    setting.restarts =
        static_cast<int>(parse_integer(environment("SLURM_RESTART_COUNT")).value_or(0));
    setting.answer = environment(answer_variable);
    setting.emit = environment(emit_variable);
    for (int i = 1; i < count; ++i) {
        const std::string_view word = words[i];
        if (word.starts_with("--pid="))
            setting.batch = static_cast<pid_t>(parse_integer(word.substr(6)).value_or(0));
        if (word.starts_with("--min-interval="))
            setting.min_interval_s = static_cast<int>(parse_integer(word.substr(15)).value_or(60));
        if (word.starts_with("--spec=")) {
            Result<JobSpec> spec = parse_spec(word.substr(7));
            if (!spec) return std::nullopt;
            setting.spec = *std::move(spec);
        }
    }
    if (setting.batch < 1 || setting.min_interval_s < 1) return std::nullopt;
    return setting;
}

// The job's losses: what it says to the agent itself, else what --train-loss names.
std::unique_ptr<LossFeed> open_feed(const Setting& setting) {
    const LossSource source =
        spank::loss_source(setting.spec, environment, environment(spank::output_variable),
                           environment(spank::folder_variable));
    const LogMark begin = spank::parse_log_mark(environment(spank::begin_variable));
    LossReaderOptions options;
    // It has been checked with the specification; were it not legal, the loss would be recognised.
    if (!setting.spec.loss_key.empty())
        static_cast<void>(set_loss_key(options, setting.spec.loss_key));
    std::unique_ptr<LossFeed> feed;
    if (source.kind == LossSource::Kind::mlflow) {
        auto opened = open_mlflow_feed(source, options, environment);
        feed = opened.ok() ? *std::move(opened)
                           : broken_feed(setting.spec.loss, opened.error().message);
    } else {
        feed = open_file_feed(source, options, begin);
    }
    if (setting.emit.empty()) return feed;
    LossSource told;
    told.format = LossReaderOptions::Format::json_lines;
    told.path = setting.emit;
    return prefer_told(open_file_feed(told, {}), std::move(feed));
}

double now_s() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// The process that becomes the batch script.
class Batch {
  public:
    explicit Batch(pid_t pid)
        : pid_(pid), descriptor_(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))) {}

    /// Waits for its end, at most so long; a signal ends that early. True: it has ended.
    bool wait(std::chrono::milliseconds most) const {
        if (!descriptor_.is_open()) {  // a kernel before 5.3, or it has ended
            std::this_thread::sleep_for(std::min(most, std::chrono::milliseconds(200)));
            return kill(pid_, 0) != 0;
        }
        pollfd ended{descriptor_.get(), POLLIN, 0};
        return poll(&ended, 1, static_cast<int>(most.count())) > 0;
    }
    bool ended() const { return wait(std::chrono::milliseconds(0)); }

  private:
    const pid_t pid_;
    const Descriptor descriptor_;
};

// Whatever the agent is doing: it does not outlive the batch script but for a last word.
void end_with(pid_t pid) {
    // Signals are for the main thread: they end its sleep.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread([pid] {
        const Batch batch(pid);
        while (!batch.wait(std::chrono::hours(1))) {
        }
        std::this_thread::sleep_for(last_word);
        _exit(0);
    }).detach();
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// One that dies is started once more; then the job goes on without it. Returns in the processes
// that work, with nothing, and in the one that watched them, with its exit status.
std::optional<int> watch(pid_t batch) {
    constexpr int lives = 2;
    for (int life = 0; life < lives; ++life) {
        const pid_t worker = fork();
        if (worker <= 0) return std::nullopt;  // also where no more processes can be had
        int status = 0;
        while (waitpid(worker, &status, 0) < 0 && errno == EINTR) {
        }
        if (!WIFSIGNALED(status) || kill(batch, 0) != 0) return WEXITSTATUS(status);
        sleep(1);
    }
    return 1;
}

class Agent {
  public:
    Agent(Setting setting, std::unique_ptr<LossFeed> feed)
        : setting_(std::move(setting)),
          batch_(setting_.batch),
          feed_(std::move(feed)),
          started_(now_s()) {}

    void run() {
        while (!batch_.ended()) {
            if (std::exchange(told_to_checkpoint, 0) != 0) obey();
            const bool more = observe();
            if (!meet()) return;
            hear_answer();
            // An answer is repeated until it has arrived.
            if (met_ && (answered_ || due())) send(false);
            if (gone_) return;
            if (!more) batch_.wait(std::chrono::milliseconds(waiting_ ? 100 : 1000));
        }
        finish();
    }

  private:
    // Asks slurmctld for the job until it has answered. False: there is nobody to send records to.
    bool meet() {
        if (met_ || now_s() < next_question_) return true;
        if (questions_ == 0) connect();
        const auto loaded = load_job(setting_.job);
        next_question_ = now_s() + question_pause_seconds;
        if (!loaded)
            return loaded.error().code != ErrorCode::not_found && ++questions_ < most_questions;
        met_ = true;
        gpus_ = loaded->gpus;
        // Where AccountingStorageTRES lacks gres/gpu slurmctld does not say how many a job holds.
        if (gpus_ == 0 && environment("SLURM_JOB_NUM_NODES") == "1")
            gpus_ = static_cast<int>(parse_integer(environment("SLURM_GPUS_ON_NODE")).value_or(0));
        // Under a slurmctld without job_submit/sluice a record would end up as the user's comment.
        return loaded->announced;
    }

    // Only what the job says from now on is an answer: it may save, and say so, at other times too.
    void obey() {
        if (!setting_.answer.empty()) {
            drop_answer_before(setting_.answer, std::chrono::seconds(2));
            ordered_ = true;
        }
        if (!setting_.spec.signal.batch_only)
            signal_catchers(setting_.batch, getpid(), setting_.spec.signal.number);
    }

    void hear_answer() {
        if (!ordered_ || !take_answer(setting_.answer)) return;
        ordered_ = false;
        answered_ = true;
    }

    // The script has ended, and nobody writes any more: the rest, as far as it is read in time, and
    // one last record. end_with() ends what takes too long.
    void finish() {
        // For feeds that look now and then it is time.
        feeds_ahead_ = hour;
        const double until = now_s() + last_reading_seconds;
        bool more = true;
        while ((more || waiting_) && now_s() < until) {
            more = observe();
            if (waiting_) std::this_thread::sleep_for(std::chrono::milliseconds(20));
        }
        for (const LossPoint& point : feed_->finish()) progress_.add(point, now_s(), caught_up_);
        hear_answer();
        next_question_ = 0;
        const bool told = progress_.count() == 0 && sent_points_ == 0;  // that there is no loss
        if (meet() && met_ && (answered_ || !told)) send(true);
    }

    // True when there is more to read: a log that grows faster than it is read must not keep the
    // agent from all else.
    bool observe() {
        for (int polls = 0; polls < most_polls_at_once; ++polls) {
            const LossFeed::Poll news = feed_->poll(now_s() + feeds_ahead_);
            problem_ = news.problem;
            if (news.restarted) {
                progress_ = Progress();
                caught_up_ = false;
            }
            for (const LossPoint& point : news.points) progress_.add(point, now_s(), caught_up_);
            if (news.more) continue;
            waiting_ = news.waiting;
            if (!waiting_) caught_up_ = true;
            return false;
        }
        return true;
    }

    bool due() const {
        const double age = now_s() - started_;
        const auto pause =
            record_pause(std::chrono::seconds(setting_.min_interval_s), sent_records_);
        double interval = std::max(static_cast<double>(pause.count()), age_fraction * age);
        // What comes a moment too soon is dropped.
        interval += std::min(pause_margin_seconds, pause_margin_fraction * interval);
        // Jobs that have begun together do not speak together, and a slurmctld that is busy or away
        // is asked less and less.
        interval *= 1 + most_jitter * static_cast<double>(setting_.job % 16) / 16;
        if (failures_ > 0)
            interval = std::min(interval * std::exp2(std::min(failures_, 10)),
                                std::max(interval, longest_pause_seconds));
        if (now_s() - last_try_ < interval && last_try_ > 0) return false;
        if (progress_.count() == 0) return age >= no_loss_after_seconds && sent_points_ != 0;
        return progress_.count() != sent_points_;
    }

    void send(bool ended) {
        Record record;
        record.restarts = setting_.restarts;
        record.gpus = gpus_;
        record.checkpointed = answered_;
        record.ended = ended;
        record.points = progress_.count();
        record.step = feed_->last_step();
        if (const auto last = progress_.last()) {
            record.loss = last->loss;
            if (last->step) record.step = last->step;
        }
        record.steps_per_second = progress_.steps_per_second(least_pace_seconds);
        if (const auto curve = fit_loss_curve(progress_.points())) record.curve = *curve;
        if (record.points == 0) record.no_loss = no_loss();
        last_try_ = now_s();
        const Status sent = send_record(setting_.job, to_text(record), ended);
        failures_ = sent.ok() ? 0 : failures_ + 1;
        gone_ = !sent.ok() && sent.error().code == ErrorCode::not_found;
        if (!sent.ok()) return;
        answered_ = false;
        ++sent_records_;
        sent_points_ = progress_.count();
    }

    std::string no_loss() const {
        std::string text = "no loss found in " + printable(feed_->name(), 200);
        if (!problem_.empty()) return text + ": " + problem_;
        std::string keys;
        for (const std::string& key : feed_->keys_seen())
            keys += (keys.empty() ? "" : ", ") + printable(key, 40);
        return text + (keys.empty() ? ", no named number either" : "; keys seen: " + keys);
    }

    const Setting setting_;
    const Batch batch_;
    const std::unique_ptr<LossFeed> feed_;
    const double started_;
    bool met_ = false;  // slurmctld has told of the job
    int questions_ = 0;
    double next_question_ = 0;
    int gpus_ = 0;
    Progress progress_;
    std::string problem_;
    bool caught_up_ = false;
    bool waiting_ = false;   // for a server
    bool ordered_ = false;   // told to checkpoint, and no answer yet
    bool answered_ = false;  // by the job, not yet told to slurmctld
    double last_try_ = 0;
    double feeds_ahead_ = 0;
    std::int64_t sent_points_ = -1;
    int sent_records_ = 0;
    int failures_ = 0;
    bool gone_ = false;  // slurmctld knows no such job
};

int main(int count, char** words) {
    if (getuid() == 0 && environment("SLURM_JOB_USER") != "root")
        return 1;  // never as root by mistake
    auto setting = read_setting(count, words);
    if (!setting) return 2;
    prctl(PR_SET_NAME, "sluice-agent");
    // The agent is in the job's process group: what is sent to the job is none of its business but
    // the order to checkpoint.
    for (int number = 1; number < SIGRTMIN; ++number) std::signal(number, SIG_IGN);
    std::signal(SIGCHLD, SIG_DFL);
    struct sigaction order {};
    order.sa_handler = on_order;
    sigaction(SIGURG, &order, nullptr);

    if (const auto status = watch(setting->batch)) return *status;
    end_with(setting->batch);
    std::unique_ptr<LossFeed> feed = open_feed(*setting);
    Agent(*std::move(setting), std::move(feed)).run();
    return 0;
}

}  // namespace
}  // namespace sluice::agent

int main(int count, char** words) {
    return sluice::agent::main(count, words);
}
