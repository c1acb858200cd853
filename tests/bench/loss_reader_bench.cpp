// SPDX-License-Identifier: GPL-2.0-or-later
//
// How fast is a log read, next to `grep -c loss` on the same file? Made-up logs, read from the page
// cache on one core; CPU time, the best of several rounds that take turns.
//
//     loss_reader_bench [--megabytes N] [--rounds N] [--log N] [--least MB/s]
//
// --log: the N-th log alone.
// --least: fail where the log with few losses is read slower than that.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/text.hpp"
#include "common/samples/loss_reader.hpp"

namespace sluice {
namespace {

struct Log {
    const char* name;
    std::function<std::string(std::mt19937&, std::int64_t line)> line;
};

std::string number(std::mt19937& random, int below) {
    return std::to_string(random() % static_cast<unsigned>(below));
}

std::string loss_line(std::int64_t step) {
    return " [2025-09-08 00:19:09] iteration " + std::to_string(step) +
           "/  900000000 | consumed samples: " + std::to_string(step * 256) +
           " | lm loss: " + format_number(2 + 1.0 / static_cast<double>(step)) +
           " | loss scale: 131072.0 | grad norm: 7.831 |\n";
}

// What a training run prints beside its losses: its libraries, its data, its storage.
std::string chatter(std::mt19937& random) {
    switch (random() % 6) {
        case 0:
            return "2025-09-08 00:19:09,123 - nccl - INFO - [rank" + number(random, 8) +
                   "] Channel 0" + number(random, 8) +
                   " : 3[3] -> 2[2] via P2P/CUMEM/read comm 0x55d2c8b7f0a0 nRanks 8\n";
        case 1:
            return "WARNING: "
                   "/opt/venv/lib/python3.11/site-packages/torch/utils/data/dataloader.py:" +
                   number(random, 900) +
                   ": UserWarning: This DataLoader will create 16 worker processes in total\n";
        case 2:
            return "DEBUG connectionpool: https://objects.example.org:443 \"GET /bucket/shard-" +
                   number(random, 90000) + ".tar HTTP/1.1\" 206 5242880\n";
        case 3:
            return "I0908 00:19:09." + number(random, 900000) +
                   " 1234 cache.cc:88] evicted 12 pages of dataset 'train' after 3.5 ms, hit rate "
                   "0.93\n";
        case 4:
            return "worker " + number(random, 64) +
                   ": tokenised document 8f3a9c1e-77b2-4a61 with 4096 tokens, queue is 12 deep\n";
        default:
            return "  File \"/home/user/project/data/reader.py\", line " + number(random, 500) +
                   ", in fetch, retrying after timeout\n";
    }
}

const std::array<Log, 5>& logs() {
    static const std::array<Log, 5> all{{
        {"few losses (1 line in 1,000)",
         [](std::mt19937& random, std::int64_t line) {
             return line % 1000 == 999 ? loss_line(line / 1000 + 1) : chatter(random);
         }},
        {"few losses, lines in colour",
         [](std::mt19937& random, std::int64_t line) {
             if (line % 1000 == 999) return loss_line(line / 1000 + 1);
             std::string text = chatter(random);
             text.insert(0, "\33[36m");
             text.insert(text.size() - 1, "\33[0m");
             return text;
         }},
        {"every line has a loss",
         [](std::mt19937&, std::int64_t line) { return loss_line(line + 1); }},
        {"progress bars, \\r and no \\n",
         [](std::mt19937&, std::int64_t line) {
             return "\rEpoch 0:   1%|\u258f         | " + std::to_string(line + 1) +
                    "/77225000 [9:07:58<878:01:48, 41.36s/it, loss=" +
                    format_number(3 + 1.0 / static_cast<double>(line + 1)) + ", v_num=]";
         }},
        {"JSON lines",
         [](std::mt19937&, std::int64_t line) {
             return "{\"step\": " + std::to_string(line + 1) +
                    ", \"loss\": " + format_number(2 + 1.0 / static_cast<double>(line + 1)) +
                    ", \"learning_rate\": 4.8358287365379566e-05, \"epoch\": 0.0328}\n";
         }},
    }};
    return all;
}

double cpu_s(int who) {
    rusage usage{};
    getrusage(who, &usage);
    const auto seconds = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

std::size_t read_losses(const std::string& path) {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    LossReader reader;
    std::vector<LossPoint> points;
    std::vector<char> buffer(std::size_t{1} << 18);
    std::size_t count = 0;
    for (;;) {
        const ssize_t size = read(fd, buffer.data(), buffer.size());
        if (size <= 0) break;
        reader.feed({buffer.data(), static_cast<std::size_t>(size)}, points);
        count += points.size();
        points.clear();
    }
    close(fd);
    reader.finish(points);
    return count + points.size();
}

bool grep(const std::string& path) {
    const pid_t child = fork();
    if (child == 0) {
        setenv("LC_ALL", "C", 1);
        // not /dev/null: grep would stop at the first line that matches
        const int answer = open((path + ".grep").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
        dup2(answer, 1);
        execlp("grep", "grep", "-c", "loss", path.c_str(), static_cast<char*>(nullptr));
        _exit(127);
    }
    int status = 0;
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
           WEXITSTATUS(status) < 2;
}

int run(std::size_t megabytes, int rounds, std::size_t only, double least) {
    std::string folder = "/tmp/sluice-bench-XXXXXX";
    if (mkdtemp(folder.data()) == nullptr) {
        std::perror("mkdtemp");
        return 1;
    }
    const std::string path = folder + "/log";
    std::printf("%-32s %10s %10s %8s %10s\n", "log", "MB/s", "grep MB/s", "ratio", "points");
    bool fast = true;
    for (const Log& log : logs()) {
        if (only > 0 && &log != &logs()[only - 1]) continue;
        std::mt19937 random(1);
        std::FILE* file = std::fopen(path.c_str(), "wb");
        if (!file) {
            std::perror(path.c_str());
            return 1;
        }
        std::size_t written = 0;
        for (std::int64_t line = 0; written < megabytes * 1000000; ++line) {
            const std::string text = log.line(random, line);
            written += std::fwrite(text.data(), 1, text.size(), file);
        }
        std::fclose(file);
        double ours = 1e9;
        double greps = 1e9;
        std::size_t points = 0;
        for (int round = 0; round < rounds; ++round) {
            double before = cpu_s(RUSAGE_SELF);
            points = read_losses(path);
            ours = std::min(ours, cpu_s(RUSAGE_SELF) - before);
            before = cpu_s(RUSAGE_CHILDREN);
            if (!grep(path)) {
                std::fprintf(stderr, "loss_reader_bench: grep failed\n");
                return 1;
            }
            greps = std::min(greps, cpu_s(RUSAGE_CHILDREN) - before);
        }
        const double size = static_cast<double>(written) / 1e6;
        std::printf("%-32s %10.0f %10.0f %8.2f %10zu\n", log.name, size / ours, size / greps,
                    greps / ours, points);
        std::fflush(stdout);
        if (&log == logs().data() && size / ours < least) fast = false;
    }
    unlink(path.c_str());
    unlink((path + ".grep").c_str());
    rmdir(folder.c_str());
    if (!fast) std::fprintf(stderr, "loss_reader_bench: less than %.0f MB/s\n", least);
    return fast ? 0 : 1;
}

int main(int count, char** words) {
    std::size_t megabytes = 256;
    int rounds = 5;
    std::size_t only = 0;
    double least = 0;
    for (int i = 1; i < count; i += 2) {
        const std::string_view name = words[i];
        const auto value =
            i + 1 < count ? parse_integer(words[i + 1]) : std::optional<std::int64_t>();
        if (value && *value > 0 && *value <= 100000 && name == "--megabytes") {
            megabytes = static_cast<std::size_t>(*value);
        } else if (value && *value > 0 && *value <= 1000 && name == "--rounds") {
            rounds = static_cast<int>(*value);
        } else if (value && *value > 0 && *value <= 5 && name == "--log") {
            only = static_cast<std::size_t>(*value);
        } else if (value && *value > 0 && name == "--least") {
            least = static_cast<double>(*value);
        } else {
            std::fprintf(stderr,
                         "usage: loss_reader_bench [--megabytes N] [--rounds N] [--log 1-5] "
                         "[--least MEGABYTES_A_SECOND]\n");
            return 2;
        }
    }
    return run(megabytes, rounds, only, least);
}

}  // namespace
}  // namespace sluice

int main(int count, char** words) {
    return sluice::main(count, words);
}
