// SPDX-License-Identifier: GPL-2.0-or-later
#include "plugins/spank/launch.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "common/base/descriptor.hpp"
#include "common/base/text.hpp"
#include "plugins/slurm/log.hpp"
#include "plugins/spank/job_files.hpp"
#include "plugins/spank/loss_begin.hpp"

namespace sluice::spank {
namespace {

// slurm.h: the step ids of a batch script and of an external step.
constexpr std::uint32_t batch_step = 0xfffffffb;
// Tells steps that the job has its agent. What begins with SLURM_ srun hands on whatever its
// --export says.
constexpr const char* agents_job = "SLURM_SLUICE_AGENT_JOB";
// The files' variables are the user's to hand on; these are their copies for steps that lost them.
constexpr const char* copies_of[][2] = {{answer_variable, "SLURM_SLUICE_CHECKPOINT_DONE"},
                                        {emit_variable, "SLURM_SLUICE_EMIT"}};
constexpr int agent_nice = 10;

std::string environment_of(spank_t context, const char* name) {
    std::array<char, 4096> value{};
    if (spank_getenv(context, name, value.data(), static_cast<int>(value.size())) != ESPANK_SUCCESS)
        return {};
    return value.data();
}

bool has_agent(spank_t context) {
    const std::string job = environment_of(context, agents_job);
    return !job.empty() && job == environment_of(context, "SLURM_JOB_ID");
}

// No call of the file system: the kernel knows the name.
std::string output_of_this_task() {
    std::array<char, 4096> target{};
    const ssize_t size = readlink("/proc/self/fd/1", target.data(), target.size());
    return size > 0 ? std::string(target.data(), static_cast<std::size_t>(size)) : std::string();
}

std::string folder_of_this_task() {
    std::array<char, 4096> folder{};
    return getcwd(folder.data(), folder.size()) ? folder.data() : "";
}

// Until nobody holds the other end of the pipe any more.
void wait_for_close(int pipe_end, int most_ms) {
    using Clock = std::chrono::steady_clock;
    const auto until = Clock::now() + std::chrono::milliseconds(most_ms);
    for (;;) {
        const auto left =
            std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
        pollfd end{pipe_end, 0, 0};  // POLLHUP comes unasked
        if (left <= 0 || poll(&end, 1, static_cast<int>(left)) >= 0 || errno != EINTR) return;
    }
}

std::vector<char*> pointers_to(std::vector<std::string>& words) {
    std::vector<char*> pointers;
    pointers.reserve(words.size() + 1);
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    return pointers;
}

// noexcept: an exception must not get to where the task goes on.
[[noreturn]] void become_agent(std::vector<std::string> words, std::vector<std::string> variables,
                               const LossSource& source, const Environment& job, int marked,
                               int alive) noexcept {
    variables.push_back(std::string(begin_variable) + "=" + to_text(loss_begin(source, job)));
    // The script first: to get a program going takes some milliseconds.
    setpriority(PRIO_PROCESS, 0, agent_nice);
    close(marked);
    // It stays in the process group of the task: that is whom slurmstepd signals when slurmctld
    // signals a whole job (src/slurmd/slurmstepd/req.c). It ends itself when the task has.
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null >= 0) {
        dup2(null, 0);
        dup2(null, 1);
        dup2(null, 2);
    }
    // slurmstepd's descriptors are not the agent's, but for the one that says that it lives.
    if (alive == 3)
        fcntl(alive, F_SETFD, 0);
    else if (alive >= 0)
        dup2(alive, 3);
    close_range(alive >= 0 ? 4 : 3, ~0U, 0);
    const std::vector<char*> command = pointers_to(words);
    execve(command[0], command.data(), pointers_to(variables).data());
    _exit(127);
}

}  // namespace

Result<Arguments> parse_arguments(int count, char** values) {
    Arguments arguments;
    arguments.agent = SLUICE_AGENT;
    for (int i = 0; i < count; ++i) {
        const std::string_view text = values[i];
        if (text.starts_with("agent=/")) {
            arguments.agent = text.substr(6);
            continue;
        }
        if (text.starts_with("min_interval=")) {
            const auto seconds = parse_integer(text.substr(13));
            if (seconds && *seconds >= 1 && *seconds <= 86400) {
                arguments.min_interval_s = static_cast<int>(*seconds);
                continue;
            }
        }
        return {ErrorCode::bad_input, "plugstack.conf: \"" + printable(text) +
                                          "\" is no argument of spank_sluice.so: write "
                                          "agent=/PATH or min_interval=SECONDS (1 to 86400)"};
    }
    return arguments;
}

bool is_agents_step(spank_t context) {
    std::uint32_t step = 0;
    std::uint32_t node = 0;
    if (spank_get_item(context, S_JOB_STEPID, &step) != ESPANK_SUCCESS ||
        spank_get_item(context, S_JOB_NODEID, &node) != ESPANK_SUCCESS || node != 0)
        return false;
    if (step == batch_step) return true;
    // Steps of a batch job have their agent beside the script.
    return step == 0 && !environment_of(context, "SLURM_JOB_ID").empty() && !has_agent(context);
}

void restore_variables(spank_t context) {
    if (!has_agent(context)) return;
    for (const auto& [name, copy] : copies_of) {
        const std::string value = environment_of(context, copy);
        if (!value.empty()) spank_setenv(context, name, value.c_str(), 0);
    }
}

bool is_agents_task(spank_t context) {
    int task = 0;
    return spank_get_item(context, S_TASK_ID, &task) == ESPANK_SUCCESS && task == 0 &&
           is_agents_step(context);
}

void wait_for_agent(int watched) {
    wait_for_close(watched, most_end_ms);
}

void launch_agent(spank_t context, const Arguments& arguments, const JobSpec& spec, int alive) {
    // After a resize these would still tell steps the size at submission; without them a step takes
    // the job's own.
    if (spec.resize != ResizeMode::off) {
        for (const char* stale : {"SLURM_GPUS", "SLURM_GPUS_PER_NODE"})
            spank_unsetenv(context, stale);
    }
    if (access(arguments.agent.c_str(), X_OK) != 0) {
        slurm::log_error(arguments.agent + " cannot be executed: this job's loss is not watched");
        return;
    }
    const std::string job = environment_of(context, "SLURM_JOB_ID");
    spank_setenv(context, agents_job, job.c_str(), 1);
    for (const auto& [name, copy] : copies_of) {
        spank_unsetenv(context, name);
        spank_unsetenv(context, copy);
    }
    std::string restarts = environment_of(context, "SLURM_RESTART_COUNT");
    if (restarts.empty()) restarts = "0";
    if (const std::string folder = job_files_folder(getuid()); !folder.empty()) {
        const char* const conf = std::getenv("SLURM_CONF");
        const std::string name = job_name_for_files(
            job, environment_of(context, "SLURM_CLUSTER_NAME"), conf ? conf : "");
        spank_setenv(context, answer_variable, answer_path(folder, name, restarts).c_str(), 1);
        if (const std::string emit = make_emit_file(folder, name, restarts == "0"); !emit.empty())
            spank_setenv(context, emit_variable, emit.c_str(), 1);
    }
    for (const auto& [name, copy] : copies_of) {
        const std::string value = environment_of(context, name);
        if (!value.empty()) spank_setenv(context, copy, value.c_str(), 1);
    }

    std::vector<std::string> words = {arguments.agent, "--pid=" + std::to_string(getpid()),
                                      "--min-interval=" + std::to_string(arguments.min_interval_s),
                                      "--spec=" + to_text(spec)};
    const Environment of_job = [context](const char* name) {
        return environment_of(context, name);
    };
    const std::string output = output_of_this_task();
    const std::string folder = folder_of_this_task();
    const LossSource source = loss_source(spec, of_job, output, folder);
    std::vector<std::string> variables = {std::string(output_variable) + "=" + output,
                                          std::string(folder_variable) + "=" + folder};
    for (const char* name :
         {"SLURM_JOB_ID", "SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID", "SLURM_JOB_NAME",
          "SLURM_JOB_USER", "SLURM_RESTART_COUNT", "SLURM_JOB_GPUS", "SLURM_GPUS_ON_NODE",
          "SLURM_JOB_NUM_NODES", "SLURM_SUBMIT_DIR", answer_variable, emit_variable,
          // where an MLflow server is, and how to get there
          "MLFLOW_TRACKING_URI", "MLFLOW_RUN_ID", "MLFLOW_TRACKING_SERVER_CERT_PATH",
          "SLUICE_MLFLOW_TOKEN_FILE", "https_proxy", "no_proxy"}) {
        const std::string value = environment_of(context, name);
        if (!value.empty()) variables.push_back(std::string(name) + "=" + value);
    }
    // slurmstepd's own: where Slurm's configuration is.
    if (const char* conf = std::getenv("SLURM_CONF"))
        variables.push_back(std::string("SLURM_CONF=") + conf);
    // Closed when the losses' beginning is marked.
    int marked[2];
    if (pipe2(marked, O_CLOEXEC) != 0) return;
    const Descriptor waiting(marked[0]);
    Descriptor marking(marked[1]);
    // Not a child of the task, which may wait for all of its children.
    const pid_t between = fork();
    if (between == 0) {
        if (fork() == 0) become_agent(words, variables, source, of_job, marking.get(), alive);
        _exit(0);
    }
    marking.reset();
    int status = 0;
    while (between > 0 && waitpid(between, &status, 0) < 0 && errno == EINTR) {
    }
    wait_for_close(waiting.get(), most_begin_ms);
}

}  // namespace sluice::spank
