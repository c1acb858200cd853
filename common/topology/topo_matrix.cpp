// SPDX-License-Identifier: GPL-2.0-or-later
//
// `nvidia-smi topo -m` as it is found in files, bug reports and manuals: the header may be
// underlined by escape codes, columns are joined by one or more tabs or by blanks, NIC columns may
// stand behind the GPUs (and be glued together where a terminal broke the line), and the columns at
// the end come and go with the driver.
#include <algorithm>
#include <optional>

#include "common/base/text.hpp"
#include "common/topology/gpu_graph.hpp"
#include "common/topology/words.hpp"

namespace sluice {
namespace {

constexpr int most_links_of_a_pair = 99;
constexpr std::size_t most_nics = 1024;

struct Cell {
    bool self = false;
    GpuLink link;

    /// False for N/A and the like.
    bool known() const { return self || link.links > 0 || link.path != PciPath::unknown; }
};

struct Header {
    std::vector<std::string_view> gpus;
    std::vector<std::string_view> others;  // NICs
    bool cpu_affinity = false;
    bool numa_affinity = false;
};

struct Row {
    int line = 0;  // 0: not seen yet
    std::vector<Cell> cells;
    std::vector<PciPath> nics;
};

bool is_digits(std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

bool is_gpu_name(std::string_view word) {
    constexpr std::size_t most_digits = 4;
    return word.starts_with("GPU") && word.size() <= 3 + most_digits && is_digits(word.substr(3));
}

// ESC [ ... letter. Copied from a screen, the escape character itself may be lost.
std::string without_escapes(std::string_view line) {
    std::string out;
    while (!line.empty()) {
        const std::size_t bracket = line.front() == '\x1b' ? 1 : 0;
        if (line.substr(bracket).starts_with('[')) {
            const std::size_t end = line.find_first_not_of("0123456789;", bracket + 1);
            if (end != std::string_view::npos && (line[end] == 'm' || line[end] == 'K')) {
                line.remove_prefix(end + 1);
                continue;
            }
        }
        out += line.front();
        line.remove_prefix(1);
    }
    return out;
}

std::vector<std::string_view> words_of(std::string_view line) {
    std::vector<std::string_view> words;
    for (;;) {
        const std::size_t start = line.find_first_not_of(" \t\r");
        if (start == std::string_view::npos) return words;
        const std::size_t end = line.find_first_of(" \t\r", start);
        words.push_back(line.substr(start, end - start));
        if (end == std::string_view::npos) return words;
        line.remove_prefix(end);
    }
}

// What the cell at the start of `word` says; takes it off.
std::optional<Cell> take_cell(std::string_view& word) {
    struct Name {
        const char* text;
        PciPath path;
    };
    static constexpr Name names[] = {
        {"SYS", PciPath::sys},     {"SOC", PciPath::sys},         {"NODE", PciPath::node},
        {"PHB", PciPath::phb},     {"PXB", PciPath::pxb},         {"PIX", PciPath::pix},
        {"N/A", PciPath::unknown}, {"Unknown", PciPath::unknown}, {"UNK", PciPath::unknown}};
    Cell cell;
    for (const Name& name : names) {
        if (!word.starts_with(name.text)) continue;
        word.remove_prefix(std::string_view(name.text).size());
        cell.link.path = name.path;
        return cell;
    }
    if (word.starts_with('X')) {
        word.remove_prefix(1);
        cell.self = true;
        return cell;
    }
    if (word == "0" || word == "-") {
        word = {};
        return cell;
    }
    if (!word.starts_with("NV")) return std::nullopt;
    const std::size_t end = std::min(word.find_first_not_of("0123456789", 2), word.size());
    const auto links = parse_integer(word.substr(2, end - 2));
    if (!links || *links < 1 || *links > most_links_of_a_pair) return std::nullopt;
    word.remove_prefix(end);
    cell.link.links = static_cast<int>(*links);
    cell.link.link_gbps = static_cast<double>(*links) * default_link_gbps;
    return cell;
}

std::optional<Cell> parse_cell(std::string_view word) {
    auto cell = take_cell(word);
    return word.empty() ? cell : std::nullopt;
}

// The header names the GPUs first and has no cell: GPU0 [GPU1 ...] [NIC ...] [CPU Affinity] [NUMA
// Affinity] [GPU NUMA ID].
std::optional<Header> parse_header(const std::vector<std::string_view>& words) {
    Header header;
    std::size_t i = 0;
    while (i < words.size() && is_gpu_name(words[i])) header.gpus.push_back(words[i++]);
    if (header.gpus.empty()) return std::nullopt;
    while (i < words.size() && words[i] != "CPU" && words[i] != "NUMA" && words[i] != "GPU") {
        if (parse_cell(words[i])) return std::nullopt;
        header.others.push_back(words[i++]);
    }
    for (; i < words.size(); ++i) {
        if (words[i] == "CPU") header.cpu_affinity = true;
        if (words[i] == "NUMA" && words[i - 1] != "GPU") header.numa_affinity = true;
    }
    return header;
}

// What stands behind the cells: CPU Affinity, NUMA Affinity, GPU NUMA ID, or fewer.
void read_affinity(const Header& header, const std::vector<std::string_view>& words,
                   std::size_t first, Gpu& gpu) {
    std::size_t next = first;
    if (words.size() - first < std::size_t{header.cpu_affinity} + header.numa_affinity) return;
    if (header.cpu_affinity) {
        const std::string_view cpus = words[next++];
        if (is_cpu_list(cpus)) gpu.cpus = cpus;
    }
    if (!header.numa_affinity) return;
    const auto numa = parse_integer(words[next]);
    if (numa && *numa >= 0 && *numa < 4096) gpu.numa = static_cast<int>(*numa);
}

class Reader {
  public:
    explicit Reader(std::string_view name) : name_(name) {}

    Result<GpuGraph> read(std::string_view text) {
        int number = 0;
        for (const std::string_view raw : split(text, '\n')) {
            ++number;
            const std::string line = without_escapes(raw);
            const auto words = words_of(line);
            if (words.empty()) continue;
            if (header_words_.empty()) {
                if (Status status = begin(words, number); !status) return status.error();
            } else if (missing_ == 0) {
                read_legend(words);
            } else if (Status status = read_row(words, number); !status) {
                return status.error();
            }
        }
        return finish();
    }

  private:
    Error error(int line, const std::string& what) const {
        return {ErrorCode::bad_input,
                name_ + (line > 0 ? ":" + std::to_string(line) : std::string()) + ": " + what};
    }

    Status begin(const std::vector<std::string_view>& words, int number) {
        auto header = parse_header(words);
        if (!header) return {};
        // The lines go away, the names stay.
        for (const std::string_view gpu : header->gpus) {
            if (std::find(header_words_.begin(), header_words_.end(), gpu) != header_words_.end())
                return error(number, std::string(gpu) + " has two columns");
            header_words_.emplace_back(gpu);
        }
        for (const std::string_view other : header->others) {
            if (std::find(others_.begin(), others_.end(), other) != others_.end())
                return error(number, printable(other, 40) + " has two columns");
            others_.emplace_back(other);
        }
        if (header_words_.size() > GpuSet::max_gpus) {
            return error(number, std::to_string(header_words_.size()) + " GPUs, at most " +
                                     std::to_string(GpuSet::max_gpus) + " are read");
        }
        if (others_.size() > most_nics)
            return error(number, "more than " + std::to_string(most_nics) + " NIC columns");
        header_.cpu_affinity = header->cpu_affinity;
        header_.numa_affinity = header->numa_affinity;
        rows_.resize(header_words_.size());
        missing_ = rows_.size();
        graph_ = GpuGraph(static_cast<int>(rows_.size()));
        return {};
    }

    Status read_row(const std::vector<std::string_view>& words, int number) {
        const std::string label = printable(words[0], 40);
        const auto gpu = std::find(header_words_.begin(), header_words_.end(), words[0]);
        if (gpu == header_words_.end()) {
            if (std::find(others_.begin(), others_.end(), words[0]) != others_.end()) return {};
            return error(number, "\"" + label + "\" begins no row: " + first_missing() +
                                     " is still missing");
        }
        const auto index = static_cast<std::size_t>(gpu - header_words_.begin());
        Row& row = rows_[index];
        if (row.line > 0) {
            return error(number, label + " has a row already, in line " + std::to_string(row.line));
        }
        std::size_t next = 1;
        for (std::size_t column = 0; column < rows_.size(); ++column, ++next) {
            const std::string where = label + ", column " + header_words_[column] + ": ";
            if (next == words.size()) return error(number, where + "the row ends before it");
            const auto cell = parse_cell(words[next]);
            if (!cell) {
                return error(number, where + "\"" + printable(words[next], 40) +
                                         "\" is no link: write X, NV#, PIX, PXB, PHB, NODE, SYS "
                                         "or N/A");
            }
            if (cell->known() && cell->self != (column == index)) {
                return error(number, where + "\"" + printable(words[next], 40) +
                                         "\" where the matrix has " +
                                         (cell->self ? "two different GPUs" : "X, the GPU itself"));
            }
            row.cells.push_back(*cell);
        }
        while (next < words.size() && row.nics.size() < others_.size()) {
            std::string_view rest = words[next];
            while (!rest.empty()) {
                const auto cell = take_cell(rest);
                if (!cell) break;
                row.nics.push_back(cell->link.path);
            }
            if (!rest.empty()) break;
            ++next;
        }
        if (row.nics.size() != others_.size()) {
            return error(number, label + ": " + std::to_string(row.nics.size()) +
                                     " cells for the " + std::to_string(others_.size()) +
                                     " columns behind the GPUs");
        }
        const auto extra = next < words.size() ? parse_cell(words[next]) : std::nullopt;
        if (extra && extra->known()) {
            return error(number, label + ": \"" + printable(words[next], 40) +
                                     "\" is one cell more than the header has columns");
        }
        read_affinity(header_, words, next, graph_.gpu(static_cast<int>(index)));
        const std::string_view last = words.back();
        if (header_.cpu_affinity && (last.ends_with(',') || last.ends_with('-')))
            return error(number, label + ": \"" + printable(last, 40) +
                                     "\" is cut off: the whole output of nvidia-smi topo -m is "
                                     "needed");
        row.line = number;
        --missing_;
        return {};
    }

    std::string first_missing() const {
        const auto row =
            std::find_if(rows_.begin(), rows_.end(), [](const Row& r) { return r.line == 0; });
        return "the row of " + header_words_[static_cast<std::size_t>(row - rows_.begin())];
    }

    /// Below the matrix, "NIC0: mlx5_0" says which is which. Whatever else stands there is skipped.
    void read_legend(const std::vector<std::string_view>& words) {
        if (words.size() != 2 || !words[0].ends_with(':')) return;
        const std::string name = printable(words[1], 40);
        const auto nic =
            std::find(others_.begin(), others_.end(), words[0].substr(0, words[0].size() - 1));
        if (nic != others_.end() &&
            std::find(others_.begin(), others_.end(), name) == others_.end())
            *nic = name;
    }

    void add_nics() {
        for (std::size_t i = 0; i < others_.size(); ++i) {
            Nic nic;
            nic.name = printable(others_[i], 40);
            for (const Row& row : rows_) nic.paths.push_back(row.nics[i]);
            graph_.add_nic(std::move(nic));
        }
    }

    Result<GpuGraph> finish() {
        if (header_words_.empty()) {
            return error(0,
                         "holds no topology: neither hwloc XML, nor the matrix of nvidia-smi "
                         "topo -m (\"GPU0 GPU1 ...\"), nor lines of gres.conf (Name=gpu ...), nor "
                         "SluiceTopology=1");
        }
        if (missing_ > 0) return error(0, first_missing() + " is missing");
        for (std::size_t a = 0; a < rows_.size(); ++a) {
            for (std::size_t b = a + 1; b < rows_.size(); ++b) {
                const GpuLink& one = rows_[a].cells[b].link;
                const GpuLink& other = rows_[b].cells[a].link;
                if (one.links != other.links || one.path != other.path) {
                    return error(rows_[b].line, header_words_[a] + " and " + header_words_[b] +
                                                    " are joined differently in line " +
                                                    std::to_string(rows_[a].line) +
                                                    ": both have to say the same");
                }
                graph_.set_link(static_cast<int>(a), static_cast<int>(b), one);
            }
        }
        add_nics();
        complete_graph(graph_);
        return std::move(graph_);
    }

    std::string name_;
    std::vector<std::string> header_words_;  // the GPUs, in the order of their columns
    std::vector<std::string> others_;
    Header header_;
    std::vector<Row> rows_;
    std::size_t missing_ = 0;
    GpuGraph graph_;
};

}  // namespace

Result<GpuGraph> read_topo_matrix(std::string_view text, std::string_view name) {
    return Reader(name).read(text);
}

}  // namespace sluice
