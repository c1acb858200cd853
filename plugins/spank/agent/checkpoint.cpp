// SPDX-License-Identifier: GPL-2.0-or-later
#include "plugins/spank/agent/checkpoint.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string_view>

#include "common/base/text.hpp"

namespace sluice::agent {
namespace {

struct Process {
    pid_t parent = 0;
    std::string name;
    std::uint64_t caught = 0;  // SigCgt: bit n - 1 is signal n
};

// /proc/PID/status (proc(5)); a process that ends meanwhile gives an empty one.
Process read_process(const std::filesystem::path& folder) {
    std::ifstream file(folder / "status");
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    Process process;
    for (const std::string_view line : split(text, '\n')) {
        const std::size_t colon = line.find(':');
        if (colon == std::string_view::npos) continue;
        const std::string_view name = line.substr(0, colon);
        const std::string_view value = trim(line.substr(colon + 1));
        if (name == "Name") process.name = value;
        if (name == "PPid") process.parent = static_cast<pid_t>(parse_integer(value).value_or(0));
        if (name == "SigCgt")
            std::from_chars(value.data(), value.data() + value.size(), process.caught, 16);
    }
    return process;
}

}  // namespace

std::vector<pid_t> catchers_below(pid_t root, pid_t self, int signal) {
    std::map<pid_t, Process> processes;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
        const auto pid = parse_integer(entry.path().filename().native());
        if (pid) processes[static_cast<pid_t>(*pid)] = read_process(entry.path());
    }
    std::vector<pid_t> found;
    for (const auto& [pid, process] : processes) {
        if (pid == self || process.name == "srun") continue;
        if ((process.caught >> (signal - 1) & 1) == 0) continue;
        pid_t ancestor = pid;
        // A table read while processes come and go may hold a loop; no chain is longer than the
        // table.
        for (std::size_t i = 0; ancestor > 1 && ancestor != root && i < processes.size(); ++i) {
            const auto next = processes.find(ancestor);
            ancestor = next == processes.end() ? 0 : next->second.parent;
        }
        if (ancestor == root) found.push_back(pid);
    }
    return found;
}

int signal_catchers(pid_t root, pid_t self, int signal) {
    int taken = 0;
    for (const pid_t pid : catchers_below(root, self, signal)) {
        if (kill(pid, signal) == 0) ++taken;
    }
    return taken;
}

void drop_answer_before(const std::string& path, std::chrono::seconds age) {
    struct stat status {};
    if (lstat(path.c_str(), &status) == 0 && status.st_mtim.tv_sec < time(nullptr) - age.count())
        unlink(path.c_str());
}

bool take_answer(const std::string& path) {
    struct stat status {};
    if (lstat(path.c_str(), &status) != 0) return false;
    if (!S_ISREG(status.st_mode) || status.st_uid != getuid()) return false;
    return unlink(path.c_str()) == 0;
}

}  // namespace sluice::agent
