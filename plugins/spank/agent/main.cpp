// SPDX-License-Identifier: GPL-2.0-or-later
//
// sluice-agent: one small process beside each job that has --train-* options, as the job's user.
// Reads the loss as it is printed, fits the curve, and now and then sends a short record to
// slurmctld. Ends with the job; nobody waits for it.
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "common/base/text.hpp"
#include "common/jobspec/jobspec.hpp"
#include "common/model/progress.hpp"
#include "common/model/record.hpp"
#include "common/remote/mlflow_server.hpp"
#include "common/samples/key_pattern.hpp"
#include "common/samples/log_follower.hpp"
#include "common/samples/loss_feed.hpp"
#include "plugins/spank/agent/checkpoint.hpp"
#include "plugins/spank/agent/controller_link.hpp"
#include "plugins/spank/job_files.hpp"

namespace sluice::agent {
namespace {

constexpr double least_pace_seconds = 5;
constexpr double no_loss_after_seconds = 30;
// A curve needs log-spaced points: a record every tenth of the age of the run is enough.
constexpr double age_fraction = 0.1;
constexpr double longest_pause_seconds = 900;
constexpr double most_jitter = 0.1;  // of the interval
constexpr int most_questions = 20;
constexpr int most_polls_at_once = 8;

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

std::string link_of(pid_t pid, const char* name) {
    std::array<char, 4096> target{};
    const std::string link = "/proc/" + std::to_string(pid) + "/" + name;
    const ssize_t size = readlink(link.c_str(), target.data(), target.size());
    return size > 0 ? std::string(target.data(), static_cast<std::size_t>(size)) : std::string();
}

// --train-loss with its patterns, relative to the job's folder, or the output of the script itself.
LossSource source_of(const Setting& setting) {
    LossSource source;
    if (setting.spec.loss.empty()) {
        source.path = link_of(setting.batch, "fd/1");
        return source;
    }
    PatternValues values;
    values.job_id = setting.job;
    if (const auto array = parse_integer(environment("SLURM_ARRAY_JOB_ID")))
        values.array_job_id = static_cast<std::uint32_t>(*array);
    if (const auto task = parse_integer(environment("SLURM_ARRAY_TASK_ID")))
        values.array_task_id = static_cast<std::uint32_t>(*task);
    values.job_name = environment("SLURM_JOB_NAME");
    values.user = environment("SLURM_JOB_USER");
    const Result<LossSource> parsed = parse_loss_source(expand_pattern(setting.spec.loss, values));
    if (parsed) source = *parsed;
    if (source.kind != LossSource::Kind::mlflow && !source.path.starts_with('/'))
        source.path = link_of(setting.batch, "cwd") + "/" + source.path;
    return source;
}

// What a log holds before the job's first line is of other jobs; after a requeue the curve is this
// job's own.
LogMark first_line(const Setting& setting, const LossSource& source) {
    const bool whole = setting.restarts > 0 || source.kind != LossSource::Kind::log;
    return whole ? LogMark() : LogFollower::mark(source.path);
}

// The job's losses: what it says to the agent itself, else what --train-loss names.
std::unique_ptr<LossFeed> open_feed(const Setting& setting, const LossSource& source,
                                    const LogMark& begin) {
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

// Whatever the agent is doing: it does not outlive the batch script.
void end_with(pid_t batch) {
    // Signals are for the main thread: they end its sleep.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread([batch] {
        pollfd ended{static_cast<int>(syscall(SYS_pidfd_open, batch, 0)), POLLIN, 0};
        if (ended.fd >= 0) {
            while (poll(&ended, 1, -1) < 0 && errno == EINTR) {
            }
        } else if (errno != ESRCH) {  // a kernel before 5.3
            while (kill(batch, 0) == 0) usleep(200000);
        }
        _exit(0);
    }).detach();
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

double now_s() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
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
    Agent(Setting setting, std::unique_ptr<LossFeed> feed, int gpus)
        : setting_(std::move(setting)), feed_(std::move(feed)), gpus_(gpus), started_(now_s()) {}

    void run() {
        while (kill(setting_.batch, 0) == 0 && !gone_) {
            if (std::exchange(told_to_checkpoint, 0) != 0) obey();
            const bool more = observe();
            if (ordered_ && take_answer(setting_.answer)) {
                ordered_ = false;
                answered_ = true;
            }
            // An answer is repeated until it has arrived.
            if (answered_)
                answered_ = !send(true);
            else if (due())
                send(false);
            // A signal ends it early.
            const timespec pause = waiting_ ? timespec{0, 100'000'000} : timespec{1, 0};
            if (!more) nanosleep(&pause, nullptr);
        }
    }

  private:
    // Only what the job says from now on is an answer: it may save, and say so, at other times too.
    void obey() {
        if (!setting_.answer.empty()) {
            drop_answer_before(setting_.answer, std::chrono::seconds(2));
            ordered_ = true;
        }
        if (!setting_.spec.signal.batch_only)
            signal_catchers(setting_.batch, getpid(), setting_.spec.signal.number);
    }

    // True when there is more to read: a log that grows faster than it is read must not keep the
    // agent from all else.
    bool observe() {
        for (int polls = 0; polls < most_polls_at_once; ++polls) {
            const LossFeed::Poll news = feed_->poll(now_s());
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
        double interval = std::max<double>(setting_.min_interval_s, age_fraction * age);
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

    // True when it has arrived.
    bool send(bool checkpointed) {
        Record record;
        record.restarts = setting_.restarts;
        record.gpus = gpus_;
        record.checkpointed = checkpointed;
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
        const Status sent = send_record(setting_.job, to_text(record));
        failures_ = sent.ok() ? 0 : failures_ + 1;
        gone_ = !sent.ok() && sent.error().code == ErrorCode::not_found;
        if (sent.ok()) sent_points_ = progress_.count();
        return sent.ok();
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
    const std::unique_ptr<LossFeed> feed_;
    const int gpus_;
    const double started_;
    Progress progress_;
    std::string problem_;
    bool caught_up_ = false;
    bool waiting_ = false;   // for a server
    bool ordered_ = false;   // told to checkpoint, and no answer yet
    bool answered_ = false;  // by the job, not yet told to slurmctld
    double last_try_ = 0;
    std::int64_t sent_points_ = -1;
    int failures_ = 0;
    bool gone_ = false;  // slurmctld knows no such job
};

int main(int count, char** words) {
    if (getuid() == 0 && environment("SLURM_JOB_USER") != "root")
        return 1;  // never as root by mistake
    auto setting = read_setting(count, words);
    if (!setting) return 2;
    prctl(PR_SET_NAME, "sluice-agent");
    setpriority(PRIO_PROCESS, 0, 10);
    // The agent is in the job's process group: what is sent to the job is none of its business but
    // the order to checkpoint.
    for (int number = 1; number < SIGRTMIN; ++number) std::signal(number, SIG_IGN);
    std::signal(SIGCHLD, SIG_DFL);
    struct sigaction order {};
    order.sa_handler = on_order;
    sigaction(SIGURG, &order, nullptr);

    const LossSource source = source_of(*setting);
    const LogMark begin = first_line(*setting, source);
    if (const auto status = watch(setting->batch)) return *status;
    end_with(setting->batch);
    std::unique_ptr<LossFeed> feed = open_feed(*setting, source, begin);

    connect();
    std::optional<JobInfo> info;
    for (int attempt = 0; attempt < most_questions && !info; ++attempt) {
        const auto loaded = load_job(setting->job);
        if (loaded)
            info = *loaded;
        else if (loaded.error().code == ErrorCode::not_found || kill(setting->batch, 0) != 0)
            return 1;
        else
            sleep(3);
    }
    // Under a slurmctld without job_submit/sluice a record would end up as the user's comment.
    if (!info || !info->announced) return 0;
    // Where AccountingStorageTRES lacks gres/gpu slurmctld does not say how many a job holds.
    if (info->gpus == 0 && environment("SLURM_JOB_NUM_NODES") == "1")
        info->gpus = static_cast<int>(parse_integer(environment("SLURM_GPUS_ON_NODE")).value_or(0));
    Agent(*std::move(setting), std::move(feed), info->gpus).run();
    return 0;
}

}  // namespace
}  // namespace sluice::agent

int main(int count, char** words) {
    return sluice::agent::main(count, words);
}
