// SPDX-License-Identifier: GPL-2.0-or-later
#include "contrib/sluice/run_program.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <string_view>
#include <system_error>
#include <thread>

#include "common/base/descriptor.hpp"
#include "common/base/text.hpp"

extern char** environ;

namespace sluice::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t max_err_bytes = 4096;
constexpr std::chrono::seconds grace{5};  // from SIGTERM to SIGKILL
constexpr std::chrono::milliseconds look_again{20};

struct Pipe {
    Descriptor read;
    Descriptor write;
};

Pipe make_pipe() {
    std::array<int, 2> ends{-1, -1};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) ends = {-1, -1};
    return {Descriptor(ends[0]), Descriptor(ends[1])};
}

// What posix_spawn does to the child's descriptors.
class FileActions {
  public:
    FileActions() { ::posix_spawn_file_actions_init(&actions_); }
    ~FileActions() { ::posix_spawn_file_actions_destroy(&actions_); }
    FileActions(const FileActions&) = delete;
    FileActions& operator=(const FileActions&) = delete;
    void open_null(int fd) {
        ::posix_spawn_file_actions_addopen(&actions_, fd, "/dev/null", O_RDONLY, 0);
    }
    void duplicate(int from, int to) { ::posix_spawn_file_actions_adddup2(&actions_, from, to); }
    const posix_spawn_file_actions_t* get() const { return &actions_; }

  private:
    posix_spawn_file_actions_t actions_{};
};

std::vector<char*> pointers(std::vector<std::string>& texts) {
    std::vector<char*> out;
    out.reserve(texts.size() + 1);
    for (std::string& text : texts) out.push_back(text.data());
    out.push_back(nullptr);
    return out;
}

std::vector<std::string> merged_environment(const std::vector<std::string>& changes) {
    std::vector<std::string> out = changes;
    for (char** entry = environ; *entry != nullptr; ++entry) {
        const std::string_view text = *entry;
        const std::string_view name = text.substr(0, text.find('=') + 1);
        const bool replaced =
            std::any_of(changes.begin(), changes.end(),
                        [&](const std::string& change) { return change.starts_with(name); });
        if (!replaced) out.emplace_back(text);
    }
    return out;
}

// Appends what is there, up to `limit` bytes in all (more is read and dropped). False at the end.
bool drain(const Descriptor& from, std::string& to, std::size_t limit) {
    std::array<char, 65536> buffer{};
    const ssize_t count = ::read(from.get(), buffer.data(), buffer.size());
    if (count < 0) return errno == EINTR || errno == EAGAIN;
    to.append(buffer.data(), std::min(static_cast<std::size_t>(count), limit - to.size()));
    return count > 0;
}

// Ends a child step by step.
class Watch {
  public:
    Watch(pid_t child, std::chrono::seconds limit)
        : child_(child), limited_(limit.count() > 0), next_(Clock::now() + limit) {}

    /// For poll(): until the next step.
    int milliseconds() const {
        if (!limited_) return -1;
        const auto left =
            std::chrono::duration_cast<std::chrono::milliseconds>(next_ - Clock::now()).count();
        return static_cast<int>(std::clamp<std::int64_t>(left + 1, 0, 60'000));
    }

    /// Takes a step where it is time; false when there is none left.
    bool go_on() {
        if (!limited_ || Clock::now() < next_) return true;
        if (signals_ == 2) return false;
        ::kill(child_, signals_ == 0 ? SIGTERM : SIGKILL);
        next_ = Clock::now() + (signals_ == 0 ? grace : std::chrono::seconds(1));
        ++signals_;
        return true;
    }

    void kill_now() {
        ::kill(child_, SIGKILL);
        limited_ = true;
        signals_ = 2;
        next_ = Clock::now() + std::chrono::seconds(1);
    }

    /// Its end; false where it does not come.
    bool wait(int& status) {
        for (;;) {
            const pid_t ended = ::waitpid(child_, &status, limited_ ? WNOHANG : 0);
            if (ended == child_) return true;
            if (ended < 0 && errno != EINTR) return false;
            if (!go_on()) return false;
            if (ended == 0) std::this_thread::sleep_for(look_again);
        }
    }

    bool passed() const { return signals_ > 0; }

  private:
    const pid_t child_;
    bool limited_;
    Clock::time_point next_;
    int signals_ = 0;
};

}  // namespace

Result<ProgramOutput> run_program(const std::vector<std::string>& words,
                                  const std::vector<std::string>& environment,
                                  std::size_t max_bytes, std::chrono::seconds time_limit) {
    const auto failed = [&](const std::string& what) {
        return Error{ErrorCode::unreachable, words[0] + ": " + what};
    };
    Pipe out = make_pipe();
    Pipe err = make_pipe();
    if (!out.read.is_open() || !err.read.is_open())
        return failed("no pipe: " + std::generic_category().message(errno));
    FileActions actions;
    actions.open_null(STDIN_FILENO);
    actions.duplicate(out.write.get(), STDOUT_FILENO);
    actions.duplicate(err.write.get(), STDERR_FILENO);
    std::vector<std::string> arguments = words;
    std::vector<std::string> variables = merged_environment(environment);
    pid_t child = 0;
    if (const int error = ::posix_spawnp(&child, words[0].c_str(), actions.get(), nullptr,
                                         pointers(arguments).data(), pointers(variables).data())) {
        return failed("cannot be started (" + std::generic_category().message(error) +
                      "): it has to be in PATH");
    }
    out.write.reset();
    err.write.reset();

    ProgramOutput result;
    Watch watch(child, time_limit);
    while (out.read.is_open() || err.read.is_open()) {
        std::array<pollfd, 2> waits{{{out.read.get(), POLLIN, 0}, {err.read.get(), POLLIN, 0}}};
        if (::poll(waits.data(), waits.size(), watch.milliseconds()) < 0 && errno != EINTR) break;
        // One byte beyond the limit tells that there was more.
        if (waits[0].revents != 0 && !drain(out.read, result.out, max_bytes + 1)) out.read.reset();
        if (waits[1].revents != 0 && !drain(err.read, result.err, max_err_bytes)) err.read.reset();
        if (result.out.size() > max_bytes) {
            watch.kill_now();
            break;
        }
        if (!watch.go_on()) break;
    }
    int status = 0;
    const bool ended = watch.wait(status);
    if (result.out.size() > max_bytes)
        return failed("printed more than " + std::to_string(max_bytes >> 20) + " MiB");
    result.timed_out = watch.passed();
    if (result.timed_out) return result;
    if (!ended || !WIFEXITED(status))
        return failed("died of signal " + std::to_string(WTERMSIG(status)));
    result.exit_status = WEXITSTATUS(status);
    return result;
}

Error failure(const std::string& program, const ProgramOutput& output, ErrorCode code) {
    std::string text(trim(output.err));
    std::replace(text.begin(), text.end(), '\n', ' ');
    if (text.empty()) text = "exit status " + std::to_string(output.exit_status);
    return {code, program + ": " + printable(text, 500)};
}

}  // namespace sluice::cli
