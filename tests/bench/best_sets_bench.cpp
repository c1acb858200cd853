// SPDX-License-Identifier: GPL-2.0-or-later
//
// best_sets_bench [FOLDER...]: on every topology of the folders, BestSets against all sets there
// are.
//
// The brute force shares nothing with what it checks: rings are permutations for up to 8 GPUs
// (by_definition.hpp) and found by backtracking above, what stays free is packed layer by layer.
#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "common/base/text.hpp"
#include "common/placement/best_sets.hpp"
#include "tests/unit/by_definition.hpp"

namespace {

using namespace sluice;
using Clock = std::chrono::steady_clock;

constexpr int most_by_permutation = 8;
constexpr int random_questions = 10'000;
constexpr unsigned seed = 20261130;

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Whether the GPUs have a ring all of whose edges carry `rate`.
class RingSearch {
  public:
    RingSearch(const GpuGraph& graph, GpuSet set, double rate)
        : graph_(graph), rate_(rate), gpus_(set.indices()), left_(set) {}

    bool found() {
        if (!connected()) return false;
        left_.erase(gpus_.front());
        return extend(gpus_.front());
    }

  private:
    bool joined(int a, int b) const { return graph_.link(a, b).gbps() >= rate_; }

    bool connected() const {
        GpuSet reached;
        std::vector<int> next{gpus_.front()};
        while (!next.empty()) {
            const int gpu = next.back();
            next.pop_back();
            if (reached.contains(gpu)) continue;
            reached.insert(gpu);
            for (const int other : gpus_) {
                if (other != gpu && joined(gpu, other)) next.push_back(other);
            }
        }
        return reached == left_;
    }

    bool extend(int last) {
        if (left_.empty()) return joined(last, gpus_.front());
        for (const int gpu : left_.indices()) {
            if (!joined(last, gpu)) continue;
            left_.erase(gpu);
            const bool closed = extend(gpu);
            left_.insert(gpu);
            if (closed) return true;
        }
        return false;
    }

    const GpuGraph& graph_;
    const double rate_;
    const std::vector<int> gpus_;
    GpuSet left_;
};

class BruteForce {
  public:
    /// `direct`: whether there are direct links that end in no switch.
    BruteForce(const GpuGraph& graph, const BestSets& table, bool direct)
        : graph_(graph), sets_(std::size_t{1} << graph.size()) {
        for (std::size_t bits = 0; bits < sets_; ++bits) {
            const GpuSet set(bits);
            // Where rings of links add up, a total over more than 8 GPUs is what the search finds.
            if (set.size() <= most_by_permutation)
                bandwidth_.push_back(by_definition(graph, set));
            else if (direct)
                bandwidth_.push_back(table.bandwidth(set));
            else
                bandwidth_.push_back({bottleneck(set), bottleneck(set)});
        }
        pack();
    }

    SetBandwidth bandwidth(GpuSet set) const { return bandwidth_[set.bits()]; }

    GpuSet best(GpuSet free, int count) const {
        std::optional<GpuSet> best;
        for (std::uint64_t bits = free.bits(); bits != 0; bits = (bits - 1) & free.bits()) {
            const GpuSet set(bits);
            if (set.size() == count && (!best || better(set, *best, free))) best = set;
        }
        return *best;
    }

  private:
    double bottleneck(GpuSet set) const {
        std::vector<double> rates;
        for (const int a : set.indices()) {
            for (const int b : set.indices()) {
                if (a < b) rates.push_back(graph_.link(a, b).gbps());
            }
        }
        std::sort(rates.begin(), rates.end(), std::greater<>());
        rates.erase(std::unique(rates.begin(), rates.end()), rates.end());
        for (const double rate : rates) {
            if (RingSearch(graph_, set, rate).found()) return rate;
        }
        return 0;
    }

    /// left_[R]: for each j, exactly[U] is the most that U gives when cut into sets of j without a
    /// rest; R gives what the best of its subsets does.
    void pack() {
        left_.assign(sets_, 0);
        for (std::size_t j = 2; j <= static_cast<std::size_t>(graph_.size()); ++j) {
            std::vector<double> exactly(sets_, -1);
            exactly[0] = 0;
            for (std::size_t all = 1; all < sets_; ++all) {
                if (static_cast<std::size_t>(std::popcount(all)) % j != 0) continue;
                const std::size_t lowest = all & (~all + 1);
                for (std::size_t set = all; set != 0; set = (set - 1) & all) {
                    if ((set & lowest) == 0 || static_cast<std::size_t>(std::popcount(set)) != j)
                        continue;
                    exactly[all] =
                        std::max(exactly[all], bandwidth_[set].total_gbps + exactly[all & ~set]);
                }
            }
            for (std::size_t gpu = 1; gpu < sets_; gpu <<= 1) {
                for (std::size_t all = 0; all < sets_; ++all) {
                    if ((all & gpu) != 0)
                        exactly[all] = std::max(exactly[all], exactly[all & ~gpu]);
                }
            }
            for (std::size_t all = 0; all < sets_; ++all)
                left_[all] += exactly[all] * (std::has_single_bit(j) ? 1 : 0.25);
        }
    }

    bool better(GpuSet a, GpuSet b, GpuSet free) const {
        if (graph_.mixed(a) != graph_.mixed(b)) return graph_.mixed(b);
        if (bandwidth(a) != bandwidth(b)) return bandwidth(a) > bandwidth(b);
        const double left_a = left_[(free - a).bits()];
        const double left_b = left_[(free - b).bits()];
        if (left_a != left_b) return left_a > left_b;
        return a.indices() < b.indices();
    }

    const GpuGraph& graph_;
    const std::size_t sets_;
    std::vector<SetBandwidth> bandwidth_;
    std::vector<double> left_;
};

bool has_direct_links(const GpuGraph& graph) {
    for (int a = 0; a < graph.size(); ++a) {
        for (int b = 0; b < a; ++b) {
            if (graph.link(a, b).links > 0 && !graph.switched()) return true;
        }
    }
    return false;
}

struct Question {
    GpuSet free;
    int count = 0;
};

std::vector<Question> questions(int gpus) {
    std::vector<Question> out;
    if (gpus <= most_by_permutation) {
        for (std::uint64_t bits = 1; bits < std::uint64_t{1} << gpus; ++bits) {
            for (int k = 1; k <= GpuSet(bits).size(); ++k) out.push_back({GpuSet(bits), k});
        }
        return out;
    }
    std::mt19937 random(seed);
    while (static_cast<int>(out.size()) < random_questions) {
        const GpuSet free = GpuSet(random()) & GpuSet::first(gpus);
        if (free.empty()) continue;
        out.push_back({free, 1 + static_cast<int>(random() % static_cast<unsigned>(free.size()))});
    }
    return out;
}

double lookup_ns(const BestSets& table, const std::vector<Question>& asked) {
    constexpr int rounds = 20;
    std::uint64_t sum = 0;
    const auto start = Clock::now();
    for (int round = 0; round < rounds; ++round) {
        for (const Question& each : asked) sum += table.best(each.free, each.count)->bits();
    }
    const double ns = seconds_since(start) * 1e9 / (rounds * static_cast<double>(asked.size()));
    return sum == 0 ? 0 : ns;  // read, so that the loop is not empty
}

/// Prints one line; the number of answers that are not the best, 1 for a file that is no topology.
int check(const std::filesystem::path& path) {
    const auto graph = read_topology_file(path.string());
    if (!graph || graph->size() > BestSets::max_table_gpus) {
        std::printf("%-32s not checked: %s\n", path.filename().c_str(),
                    graph ? "more than 16 GPUs" : graph.error().message.c_str());
        return graph ? 0 : 1;
    }
    const auto start = Clock::now();
    const auto compiled = BestSets::compile(*graph);
    const double compile_ms = seconds_since(start) * 1e3;
    const BestSets& table = **compiled;
    const bool direct = has_direct_links(*graph);
    const BruteForce brute(*graph, table, direct);
    int wrong = 0;
    for (std::uint64_t bits = 0; bits < std::uint64_t{1} << graph->size(); ++bits)
        wrong += table.bandwidth(GpuSet(bits)) == brute.bandwidth(GpuSet(bits)) ? 0 : 1;
    const std::vector<Question> asked = questions(graph->size());
    for (const Question& each : asked) {
        const GpuSet best = brute.best(each.free, each.count);
        if (*table.best(each.free, each.count) == best) continue;
        ++wrong;
        std::printf("%s: %d of %s: %s, by brute force %s\n", path.filename().c_str(), each.count,
                    to_string(each.free).c_str(),
                    to_string(*table.best(each.free, each.count)).c_str(), to_string(best).c_str());
    }
    std::printf("%-32s%5d%11zu%7d%12.1f%12.1f\n", path.filename().c_str(), graph->size(),
                asked.size(), wrong, compile_ms, lookup_ns(table, asked));
    return wrong;
}

}  // namespace

int main(int count, char** words) {
    std::vector<std::filesystem::path> folders(words + 1, words + std::max(count, 1));
    if (folders.empty()) {
        std::printf("no folder of public topologies named: tests/data/topology alone\n");
        folders.emplace_back(std::string(TEST_DATA) + "/topology");
    }
    std::vector<std::filesystem::path> files;
    for (const auto& folder : folders) {
        for (const auto& entry : std::filesystem::directory_iterator(folder)) {
            if (entry.path().filename() != "README") files.push_back(entry.path());
        }
    }
    std::sort(files.begin(), files.end());
    std::printf("%-32s%5s%11s%7s%12s%12s   (seed %u)\n", "topology", "GPUs", "questions", "wrong",
                "compile ms", "look-up ns", seed);
    int wrong = 0;
    for (const auto& file : files) wrong += check(file);
    std::printf("%s\n", wrong == 0 ? "every answer is the best" : "NOT every answer is the best");
    return wrong == 0 && !files.empty() ? 0 : 1;
}
