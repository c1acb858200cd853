// SPDX-License-Identifier: GPL-2.0-or-later
//
// The form is described in doc/formats/topology-v1.txt.
#include <algorithm>
#include <array>
#include <set>
#include <span>

#include "common/base/text.hpp"
#include "common/topology/gpu_graph.hpp"
#include "common/topology/words.hpp"

namespace sluice {
namespace {

constexpr std::size_t most_value_bytes = 256;
constexpr std::size_t most_cpus_bytes = std::size_t{1} << 19;  // every second one of 65,536
constexpr int most_nics = 1024;
constexpr int most_numa_nodes = 65536;
constexpr int most_minors = 65536;
constexpr int most_links_of_a_pair = 5000;
constexpr double most_gbps = 100'000;  // as in hwloc_xml.cpp

// --- writing

/// In quotes where it could be taken for several words; '"' and '\' are escaped there.
std::string quoted(const std::string& text) {
    if (text.find_first_of(" \"\\#") == std::string::npos) return text;
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') out += '\\';
        out += c;
    }
    return out + '"';
}

void put(std::string& line, const char* key, const std::string& value) {
    if (!value.empty()) line.append(line.empty() ? "" : " ").append(key).append("=").append(value);
}

void put(std::string& line, const char* key, int value) {
    if (value >= 0) put(line, key, std::to_string(value));
}

std::string gpu_line(const Gpu& gpu, int index) {
    std::string line;
    put(line, "Gpu", index);
    put(line, "Minor", gpu.minor);
    put(line, "Bus", gpu.pci_bus_id);
    put(line, "Numa", gpu.numa);
    put(line, "Cpus", gpu.cpus);
    put(line, "Model", quoted(gpu.model));
    return line;
}

std::string link_line(const GpuLink& link, int a, int b) {
    std::string line;
    put(line, "Pair", std::to_string(a) + "-" + std::to_string(b));
    if (link.links > 0) {
        put(line, "Links", link.links);
        put(line, "Gbps", format_number(link.link_gbps));
    }
    if (link.path != PciPath::unknown) put(line, "Path", path_name(link.path));
    return line;
}

std::string nic_line(const Nic& nic) {
    std::string line;
    put(line, "Nic", quoted(nic.name));
    put(line, "Bus", nic.pci_bus_id);
    put(line, "Numa", nic.numa);
    std::string paths;
    for (const PciPath path : nic.paths)
        paths.append(paths.empty() ? "" : ",").append(path_name(path));
    put(line, "Paths", paths);
    return line;
}

// --- reading

struct Word {
    std::string_view key;
    std::string value;
};

bool is_text(std::string_view value, std::size_t most_bytes) {
    return !value.empty() && value.size() <= most_bytes &&
           std::all_of(value.begin(), value.end(), [](char c) { return c >= 0x20 && c <= 0x7e; });
}

// Lives for one reading.
class TextReader {
  public:
    explicit TextReader(std::string_view name) : name_(name) {}

    Result<GpuGraph> read(std::string_view text) {
        for (const std::string_view line : split(text, '\n')) {
            ++line_;
            if (Status status = read_line(line); !status) return status.error();
        }
        if (!text.ends_with('\n')) return error("the last line has no end: the text was cut");
        if (lines_of_gpus_ < 0)
            return Error{ErrorCode::bad_input, name_ + ": has no line SluiceTopology=1 Gpus=N"};
        if (lines_of_gpus_ < graph_.size()) {
            return Error{ErrorCode::bad_input,
                         name_ + ": the line Gpu=" + std::to_string(lines_of_gpus_) +
                             " is missing: Gpus=" + std::to_string(graph_.size()) + " are told"};
        }
        if (Status status = check_count("Pair", pairs_.size(), told_pairs_); !status)
            return status.error();
        if (Status status = check_count("Nic", nics_.size(), told_nics_); !status)
            return status.error();
        complete_graph(graph_);
        return std::move(graph_);
    }

  private:
    Error error(const std::string& what) const {
        return {ErrorCode::bad_input, name_ + ":" + std::to_string(line_) + ": " + what};
    }
    Error wrong(const Word& word, const std::string& right) const {
        return error(std::string(word.key) + "=" + printable(word.value) + ": write " + right);
    }

    /// Takes the words of a line apart; no blanks around '='.
    Status take_words(std::string_view line) {
        words_.clear();
        for (;;) {
            const std::size_t start = line.find_first_not_of(" \t\r");
            if (start == std::string_view::npos || line[start] == '#') return {};
            line.remove_prefix(start);
            const std::size_t equals = line.find('=');
            const std::size_t blank = line.find_first_of(" \t\r");
            if (equals == std::string_view::npos || blank < equals)
                return error("\"" + printable(line.substr(0, blank)) + "\" is no Key=Value");
            Word word{line.substr(0, equals), {}};
            line.remove_prefix(equals + 1);
            if (line.starts_with('"')) {
                if (!take_quoted(line, word.value))
                    return error(printable(word.key) + ": a quote is never closed");
            } else {
                word.value = line.substr(0, line.find_first_of(" \t\r"));
                line.remove_prefix(word.value.size());
            }
            words_.push_back(std::move(word));
        }
    }

    static bool take_quoted(std::string_view& line, std::string& value) {
        for (std::size_t i = 1; i < line.size(); ++i) {
            if (line[i] == '"') {
                line.remove_prefix(i + 1);
                return line.empty() || line.find_first_of(" \t\r") == 0;
            }
            if (line[i] == '\\' && ++i == line.size()) break;
            value += line[i];
        }
        return false;
    }

    /// The first word says what the line is about, the others stand in any order, each once.
    Status check_keys(std::span<const char* const> known) const {
        for (std::size_t i = 0; i < words_.size(); ++i) {
            const auto is = [&](std::string_view key) {
                return equal_ignoring_case(key, words_[i].key);
            };
            if (std::none_of(known.begin(), known.end(), is)) {
                std::string legal;
                for (const char* key : known) legal.append(legal.empty() ? "" : ", ").append(key);
                return error(printable(words_[i].key) + ": no such key here: write one of " +
                             legal);
            }
            for (std::size_t j = 0; j < i; ++j) {
                if (is(words_[j].key)) return error(printable(words_[i].key) + ": stands twice");
            }
        }
        return {};
    }

    const Word* find(std::string_view key) const {
        const auto word = std::find_if(words_.begin(), words_.end(), [key](const Word& each) {
            return equal_ignoring_case(each.key, key);
        });
        return word == words_.end() ? nullptr : &*word;
    }

    /// Leaves `out` where the key does not stand.
    Status read_number(const char* key, int low, int high, int& out) const {
        const Word* const word = find(key);
        if (word == nullptr) return {};
        const auto value = parse_integer(word->value);
        if (!value || *value < low || *value > high) {
            return wrong(*word,
                         "a number from " + std::to_string(low) + " to " + std::to_string(high));
        }
        out = static_cast<int>(*value);
        return {};
    }

    Status read_bus(std::string& out) const {
        const Word* const word = find("Bus");
        if (word == nullptr) return {};
        if (!is_pci_bus_id(word->value)) return wrong(*word, "a PCI bus id like 0000:06:00.0");
        out = word->value;
        return {};
    }

    Status read_line(std::string_view line) {
        if (Status status = take_words(line); !status || words_.empty()) return status;
        const std::string_view subject = words_.front().key;
        if (equal_ignoring_case(subject, "SluiceTopology")) return read_head();
        if (lines_of_gpus_ < 0) return error("write SluiceTopology=1 Gpus=N before everything");
        if (equal_ignoring_case(subject, "Gpu")) return read_gpu();
        if (equal_ignoring_case(subject, "Pair")) return read_pair();
        if (equal_ignoring_case(subject, "Nic")) return read_nic();
        return error(printable(subject) + ": a line begins with Gpu=, Pair= or Nic=");
    }

    Status check_count(const std::string& key, std::size_t lines, int told) const {
        if (told < 0 || lines == static_cast<std::size_t>(told)) return {};
        return {ErrorCode::bad_input, name_ + ": " + std::to_string(lines) + " lines " + key +
                                          "=, where " + key + "s=" + std::to_string(told) +
                                          " are told"};
    }

    Status read_head() {
        static constexpr std::array keys{"SluiceTopology", "Gpus", "Pairs", "Nics", "Switch"};
        if (lines_of_gpus_ >= 0) return error("SluiceTopology: stands in a line before");
        if (Status status = check_keys(keys); !status) return status;
        if (words_.front().value != "1") return wrong(words_.front(), "1, the version");
        int count = 0;
        if (Status status = read_number("Gpus", 1, GpuSet::max_gpus, count); !status) return status;
        if (count == 0) return error("no Gpus: write how many there are");
        graph_ = GpuGraph(count);
        const int most_pairs = count * (count - 1) / 2;
        if (Status status = read_number("Pairs", 0, most_pairs, told_pairs_); !status)
            return status;
        if (Status status = read_number("Nics", 0, most_nics, told_nics_); !status) return status;
        if (const Word* const word = find("Switch")) {
            if (word->value != "yes" && word->value != "no") return wrong(*word, "yes or no");
            graph_.set_switched(word->value == "yes");
        }
        lines_of_gpus_ = 0;
        return {};
    }

    Status read_gpu() {
        static constexpr std::array keys{"Gpu", "Minor", "Bus", "Numa", "Cpus", "Model"};
        if (Status status = check_keys(keys); !status) return status;
        if (words_.front().value != std::to_string(lines_of_gpus_) ||
            lines_of_gpus_ == graph_.size()) {
            return wrong(words_.front(),
                         lines_of_gpus_ == graph_.size()
                             ? "no more GPUs than Gpus= has"
                             : std::to_string(lines_of_gpus_) + ", GPUs stand in their order");
        }
        Gpu& gpu = graph_.gpu(lines_of_gpus_);
        if (Status status = read_number("Minor", 0, most_minors - 1, gpu.minor); !status)
            return status;
        if (gpu.minor >= 0 && !minors_.insert(gpu.minor).second)
            return wrong(*find("Minor"), "each device number once");
        if (Status status = read_bus(gpu.pci_bus_id); !status) return status;
        if (!gpu.pci_bus_id.empty() && !bus_ids_.insert(gpu.pci_bus_id).second)
            return wrong(*find("Bus"), "each PCI bus id once");
        if (Status status = read_number("Numa", 0, most_numa_nodes - 1, gpu.numa); !status)
            return status;
        if (const Word* const word = find("Cpus")) {
            if (word->value.size() > most_cpus_bytes || !is_cpu_list(word->value))
                return wrong(*word, "processors in rising order like 0-19,40-59");
            gpu.cpus = word->value;
        }
        if (const Word* const word = find("Model")) {
            if (!is_text(word->value, most_value_bytes))
                return wrong(*word, "1 to 256 printable characters");
            gpu.model = word->value;
        }
        ++lines_of_gpus_;
        return {};
    }

    Status read_pair() {
        static constexpr std::array keys{"Pair", "Links", "Gbps", "Path"};
        if (Status status = check_keys(keys); !status) return status;
        const Word& pair = words_.front();
        const auto ends = split(pair.value, '-');
        const auto a = parse_integer(ends.front());
        const auto b = parse_integer(ends.back());
        if (ends.size() != 2 || !a || !b || *a < 0 || *b <= *a || *b >= graph_.size()) {
            return wrong(pair, "two GPUs of 0 to " + std::to_string(graph_.size() - 1) +
                                   ", the lower first, like 0-1");
        }
        if (!pairs_.insert({*a, *b}).second) return wrong(pair, "each pair once");
        GpuLink link;
        if (Status status = read_number("Links", 1, most_links_of_a_pair, link.links); !status)
            return status;
        const Word* const gbps = find("Gbps");
        if ((gbps != nullptr) != (link.links > 0))
            return error("Links and Gbps (GB/s of all links together) stand together");
        if (gbps != nullptr) {
            const auto value = parse_number(gbps->value);
            if (!value || !(*value > 0 && *value <= most_gbps))
                return wrong(*gbps, "GB/s in one direction of all links together, at most 100000");
            link.link_gbps = *value;
        }
        if (const Word* const word = find("Path")) {
            const auto path = path_of_name(word->value);
            if (!path) return wrong(*word, "SYS, NODE, PHB, PXB or PIX");
            link.path = *path;
        }
        graph_.set_link(static_cast<int>(*a), static_cast<int>(*b), link);
        return {};
    }

    Status read_nic() {
        static constexpr std::array keys{"Nic", "Bus", "Numa", "Paths"};
        if (Status status = check_keys(keys); !status) return status;
        if (static_cast<int>(graph_.nics().size()) == most_nics)
            return error("more than " + std::to_string(most_nics) + " NICs");
        Nic nic;
        nic.name = words_.front().value;
        if (!is_text(nic.name, most_value_bytes))
            return wrong(words_.front(), "a name of 1 to 256 printable characters");
        if (!nics_.insert(nic.name).second) return wrong(words_.front(), "each name once");
        if (Status status = read_bus(nic.pci_bus_id); !status) return status;
        if (Status status = read_number("Numa", 0, most_numa_nodes - 1, nic.numa); !status)
            return status;
        const Word* const paths = find("Paths");
        if (paths == nullptr) return error("no Paths: write the path to each GPU, like PIX,SYS");
        for (const std::string_view word : split(paths->value, ',')) {
            const auto path = path_of_name(word);
            if (!path) return wrong(*paths, "SYS, NODE, PHB, PXB, PIX or ? for each GPU");
            nic.paths.push_back(*path);
        }
        if (static_cast<int>(nic.paths.size()) != graph_.size()) {
            return error("Paths has " + std::to_string(nic.paths.size()) +
                         " paths: write one for each of the " + std::to_string(graph_.size()) +
                         " GPUs");
        }
        graph_.add_nic(std::move(nic));
        return {};
    }

    std::string name_;
    int line_ = 0;
    std::vector<Word> words_;  // of the line
    GpuGraph graph_;
    int lines_of_gpus_ = -1;  // -1: before the head
    int told_pairs_ = -1;     // -1: not told
    int told_nics_ = -1;
    std::set<int> minors_;
    std::set<std::string> bus_ids_;
    std::set<std::pair<std::int64_t, std::int64_t>> pairs_;
    std::set<std::string> nics_;
};

}  // namespace

std::string to_text(const GpuGraph& graph) {
    std::string lines;
    for (int i = 0; i < graph.size(); ++i) lines += gpu_line(graph.gpu(i), i) + "\n";
    int pairs = 0;
    for (int a = 0; a < graph.size(); ++a) {
        for (int b = a + 1; b < graph.size(); ++b) {
            if (graph.link(a, b) == GpuLink()) continue;
            lines += link_line(graph.link(a, b), a, b) + "\n";
            ++pairs;
        }
    }
    for (const Nic& nic : graph.nics()) lines += nic_line(nic) + "\n";
    std::string head;
    put(head, "SluiceTopology", 1);
    put(head, "Gpus", graph.size());
    put(head, "Pairs", pairs);
    put(head, "Nics", static_cast<int>(graph.nics().size()));
    put(head, "Switch", graph.switched() ? "yes" : "no");
    return head + "\n" + lines;
}

Result<GpuGraph> read_topology_text(std::string_view text, std::string_view name) {
    return TextReader(name).read(text);
}

}  // namespace sluice
