// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/jobspec/jobspec.hpp"

#include <jansson.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <csignal>
#include <limits>
#include <span>
#include <tuple>

#include "common/base/json.hpp"
#include "common/base/loss_key.hpp"
#include "common/base/text.hpp"

namespace sluice {
namespace {

constexpr std::string_view version = "v1";
constexpr std::size_t max_sizes = 256;
constexpr std::size_t max_model_bytes = 64;
constexpr std::size_t max_loss_bytes = 512;
constexpr std::size_t max_key_bytes = 64;
constexpr std::int64_t max_grace_s = 86400;
constexpr int max_signal = 31;
constexpr int max_pattern_width = 10;  // as in Slurm's own file names

struct SignalName {
    std::string_view name;
    int number;
};
constexpr std::array signal_names{
    SignalName{"HUP", SIGHUP},       SignalName{"INT", SIGINT},     SignalName{"QUIT", SIGQUIT},
    SignalName{"ABRT", SIGABRT},     SignalName{"KILL", SIGKILL},   SignalName{"USR1", SIGUSR1},
    SignalName{"USR2", SIGUSR2},     SignalName{"ALRM", SIGALRM},   SignalName{"TERM", SIGTERM},
    SignalName{"CHLD", SIGCHLD},     SignalName{"CONT", SIGCONT},   SignalName{"STOP", SIGSTOP},
    SignalName{"TSTP", SIGTSTP},     SignalName{"URG", SIGURG},     SignalName{"XCPU", SIGXCPU},
    SignalName{"VTALRM", SIGVTALRM}, SignalName{"WINCH", SIGWINCH}, SignalName{"IO", SIGIO},
    SignalName{"PWR", SIGPWR},
};

Error refuse(const OptionInfo& option, std::string_view value, const std::string& what) {
    return {ErrorCode::bad_input, std::string("--") + option.name + ": \"" + printable(value) +
                                      "\" " + what + ": write " + option.legal};
}

bool has_control_character(std::string_view text) {
    for (std::size_t i = 0; i < text.size(); ++i) {
        const auto byte = static_cast<unsigned char>(text[i]);
        if (byte < 0x20 || byte == 0x7f) return true;
        // U+0080..U+009F, which terminals obey as well, are C2 80..9F in UTF-8.
        if (byte == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0)
            return true;
    }
    return false;
}

bool is_utf8(std::string_view text) {
    return Json(json_stringn(text.data(), text.size())) != nullptr;
}

Status check_text(const OptionInfo& option, std::string_view value, std::size_t max_bytes) {
    if (value.empty()) return refuse(option, value, "is empty");
    if (value.size() > max_bytes)
        return refuse(option, value, "has " + std::to_string(value.size()) + " bytes");
    if (has_control_character(value)) return refuse(option, value, "has a control character");
    if (!is_utf8(value)) return refuse(option, value, "is not UTF-8");
    return {};
}

// --- one reader an option: value -> spec

Status read_model(const OptionInfo& option, std::string_view value, JobSpec& spec) {
    const auto legal = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               std::string_view("._+/-").find(c) != std::string_view::npos;
    };
    if (value.empty() || value.size() > max_model_bytes ||
        !std::all_of(value.begin(), value.end(), legal)) {
        return refuse(option, value, "is no model name");
    }
    spec.model = value;
    return {};
}

// "A", "A-B", "A-B:S" or "A-B:xF".
struct SizeRange {
    std::int64_t first = 0;
    std::int64_t last = 0;
    std::int64_t stride = 1;
    bool powers = false;  // the stride multiplies
};

std::optional<SizeRange> parse_size_range(std::string_view text) {
    const std::size_t colon = text.find(':');
    const std::string_view bounds = text.substr(0, colon);
    const std::size_t dash = bounds.find('-');
    const auto first = parse_integer(bounds.substr(0, dash));
    const auto last =
        dash == std::string_view::npos ? first : parse_integer(bounds.substr(dash + 1));
    if (!first || !last || *first < 1 || *last < *first || *last > JobSpec::max_gpus)
        return std::nullopt;
    SizeRange range{*first, *last};
    if (colon == std::string_view::npos) return range;
    if (dash == std::string_view::npos) return std::nullopt;
    std::string_view stride = text.substr(colon + 1);
    range.powers = !stride.empty() && stride.front() == 'x';
    if (range.powers) stride.remove_prefix(1);
    const auto number = parse_integer(stride);
    if (!number || *number < (range.powers ? 2 : 1) || *number > JobSpec::max_gpus)
        return std::nullopt;
    range.stride = *number;
    return range;
}

Status read_gpus(const OptionInfo& option, std::string_view value, JobSpec& spec) {
    std::vector<int> sizes;
    for (const std::string_view piece : split(value, ',')) {
        const auto range = parse_size_range(trim(piece));
        if (!range) {
            const bool alone = piece.size() == value.size();
            return refuse(option, value,
                          "is no list of GPU counts from 1 to " +
                              std::to_string(JobSpec::max_gpus) +
                              (alone ? "" : " at \"" + printable(piece) + "\""));
        }
        for (std::int64_t size = range->first; size <= range->last;
             size = range->powers ? size * range->stride : size + range->stride) {
            sizes.push_back(static_cast<int>(size));
            // Pieces may overlap, so the count is final only after they are merged; this bounds
            // the work on hostile lists.
            if (sizes.size() > 2 * max_sizes) break;
        }
        std::sort(sizes.begin(), sizes.end());
        sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
        if (sizes.size() > max_sizes) {
            return refuse(option, value,
                          "has more than " + std::to_string(max_sizes) + " GPU counts");
        }
    }
    spec.sizes = std::move(sizes);
    return {};
}

Status read_loss(const OptionInfo& option, std::string_view value, JobSpec& spec) {
    if (Status status = check_text(option, value, max_loss_bytes); !status) return status;
    for (const std::string_view prefix : {"csv:", "jsonl:", "tfevents:", "state:"}) {
        if (value == prefix) return refuse(option, value, "names no file");
    }
    // What patterns become is known on the node alone, but the server stands for itself.
    const std::size_t at = value.starts_with("mlflow:") ? value.find('@') : value.npos;
    if (at != value.npos) {
        const std::string_view server = value.substr(at + 1);
        if (!server.starts_with("http://") && !server.starts_with("https://"))
            return refuse(option, value, "names no server: its address begins with http(s)://");
        if (server.find_first_of("@?# \"\\") != server.npos)
            return refuse(option, value, "has more than an address: no user or password or query");
    }
    spec.loss = value;
    return {};
}

Status read_loss_key(const OptionInfo& option, std::string_view value, JobSpec& spec) {
    if (Status status = check_text(option, value, max_key_bytes); !status) return status;
    if (Status status = check_loss_key(value); !status)
        return refuse(option, value, status.error().message);
    spec.loss_key = value;
    return {};
}

Status read_target(const OptionInfo& option, std::string_view value, JobSpec& spec) {
    constexpr std::string_view steps = "steps:";
    if (equal_ignoring_case(value, "flat")) {
        spec.target = Target{};
    } else if (starts_with_ignoring_case(value, steps)) {
        const auto count = parse_integer(value.substr(steps.size()));
        if (!count || *count < 1) return refuse(option, value, "is no number of steps");
        spec.target = Target{Target::Kind::steps, 0, *count};
    } else {
        const auto loss = parse_number(value);
        if (!loss || !std::isfinite(*loss)) return refuse(option, value, "is no target");
        spec.target = Target{Target::Kind::loss, *loss, 0};
    }
    return {};
}

Status read_resize(const OptionInfo& option, std::string_view value, JobSpec& spec) {
    if (equal_ignoring_case(value, "off")) {
        spec.resize = ResizeMode::off;
    } else if (equal_ignoring_case(value, "start")) {
        spec.resize = ResizeMode::start;
    } else if (equal_ignoring_case(value, "restart")) {
        spec.resize = ResizeMode::restart;
    } else if (equal_ignoring_case(value, "live")) {
        return refuse(option, value,
                      "(growing without a restart) comes with a later release; restart, which "
                      "resizes by checkpoint and requeue, is there");
    } else {
        return refuse(option, value, "is no way to resize");
    }
    return {};
}

std::optional<int> signal_number(std::string_view text) {
    if (const auto number = parse_integer(text)) {
        if (*number < 1 || *number > max_signal) return std::nullopt;
        return static_cast<int>(*number);
    }
    if (starts_with_ignoring_case(text, "SIG")) text.remove_prefix(3);
    for (const SignalName& known : signal_names) {
        if (equal_ignoring_case(text, known.name)) return known.number;
    }
    return std::nullopt;
}

Status read_signal(const OptionInfo& option, std::string_view value, JobSpec& spec) {
    CheckpointSignal signal;
    std::string_view rest = value;
    if (starts_with_ignoring_case(rest, "B:")) {
        signal.batch_only = true;
        rest.remove_prefix(2);
    }
    const std::size_t at = rest.find('@');
    const auto number = signal_number(rest.substr(0, at));
    if (!number) return refuse(option, value, "names no signal");
    if (*number == SIGKILL || *number == SIGSTOP)
        return refuse(option, value, "names a signal that no job can catch");
    if (*number == SIGURG)
        return refuse(option, value, "names the signal by which Sluice calls its agent");
    signal.number = *number;
    if (at != std::string_view::npos) {
        const auto grace = parse_integer(rest.substr(at + 1));
        if (!grace || *grace < 0 || *grace > max_grace_s)
            return refuse(option, value, "has no number of seconds after @");
        signal.grace = std::chrono::seconds(*grace);
    }
    spec.signal = signal;
    return {};
}

Status read_batch(const OptionInfo& option, std::string_view value, JobSpec& spec) {
    const auto samples = parse_integer(value);
    if (!samples || *samples < 1 || *samples > JobSpec::max_batch)
        return refuse(option, value, "is no number of samples");
    spec.batch = *samples;
    return {};
}

Status read_advise(const OptionInfo& option, std::string_view value, JobSpec& spec) {
    const bool yes = equal_ignoring_case(value, "yes");
    if (!yes && !equal_ignoring_case(value, "no"))
        return refuse(option, value, "is neither yes nor no");
    spec.advise = yes;
    return {};
}

// --- one writer an option: spec -> value, "" for the default

std::string write_model(const JobSpec& spec) {
    return spec.model;
}

// How many sizes from `first` on form a run that a range can say: A-B, A-B:S or, with `powers`,
// A-B:xF.
std::size_t run_length(std::span<const int> sizes, bool powers) {
    if (sizes.size() < 2) return sizes.size();
    if (powers && sizes[1] % sizes[0] != 0) return 1;
    const int stride = powers ? sizes[1] / sizes[0] : sizes[1] - sizes[0];
    std::size_t length = 2;
    while (length < sizes.size()) {
        const int before = sizes[length - 1];
        // 64 bits: before * stride passes 2^31 for the largest sizes.
        const std::int64_t next =
            powers ? std::int64_t{before} * stride : std::int64_t{before} + stride;
        if (sizes[length] != next) break;
        ++length;
    }
    return length;
}

std::string write_gpus(const JobSpec& spec) {
    std::string out;
    for (std::span<const int> rest(spec.sizes); !rest.empty();) {
        const std::size_t arithmetic = run_length(rest, false);
        const std::size_t geometric = run_length(rest, true);
        const bool powers = geometric > arithmetic;
        std::size_t length = powers ? geometric : arithmetic;
        const int first = rest[0];
        const int stride = length < 2 ? 0 : powers ? rest[1] / first : rest[1] - first;
        // Two sizes are shorter as a list, unless they are neighbours.
        if (length == 2 && stride != 1) length = 1;
        if (!out.empty()) out += ',';
        out += std::to_string(first);
        if (length > 1) {
            out += '-' + std::to_string(rest[length - 1]);
            if (powers || stride != 1) out += (powers ? ":x" : ":") + std::to_string(stride);
        }
        rest = rest.subspan(length);
    }
    return out;
}

std::string write_loss(const JobSpec& spec) {
    return spec.loss;
}

std::string write_batch(const JobSpec& spec) {
    return spec.batch ? std::to_string(*spec.batch) : "";
}

std::string write_loss_key(const JobSpec& spec) {
    return spec.loss_key;
}

std::string write_target(const JobSpec& spec) {
    if (!spec.target) return {};
    switch (spec.target->kind) {
        case Target::Kind::loss:
            return format_number(spec.target->loss);
        case Target::Kind::steps:
            return "steps:" + std::to_string(spec.target->steps);
        case Target::Kind::flat:
            return "flat";
    }
    return {};
}

std::string write_resize(const JobSpec& spec) {
    if (spec.sizes.empty()) return {};
    switch (spec.resize) {
        case ResizeMode::off:
            return "off";
        case ResizeMode::start:
            return {};
        case ResizeMode::restart:
            return "restart";
        case ResizeMode::live:
            return "live";
    }
    return {};
}

std::string write_signal(const JobSpec& spec) {
    const CheckpointSignal& signal = spec.signal;
    const CheckpointSignal standard;
    if (std::tie(signal.batch_only, signal.number, signal.grace) ==
        std::tie(standard.batch_only, standard.number, standard.grace)) {
        return {};
    }
    std::string name = std::to_string(signal.number);
    for (const SignalName& known : signal_names) {
        if (known.number == signal.number) name = known.name;
    }
    return (signal.batch_only ? "B:" : "") + name + "@" + std::to_string(signal.grace.count());
}

std::string write_advise(const JobSpec& spec) {
    return spec.advise ? "yes" : "";
}

struct Codec {
    Status (*read)(const OptionInfo& option, std::string_view value, JobSpec& spec);
    std::string (*write)(const JobSpec& spec);
};
// In the order of `option_infos`.
constexpr std::array<Codec, option_infos.size()> codecs{{
    {read_model, write_model},
    {read_batch, write_batch},
    {read_gpus, write_gpus},
    {read_loss, write_loss},
    {read_loss_key, write_loss_key},
    {read_target, write_target},
    {read_resize, write_resize},
    {read_signal, write_signal},
    {read_advise, write_advise},
}};

constexpr std::string_view name_prefix = "train-";

std::string_view short_name(const OptionInfo& option) {
    return std::string_view(option.name).substr(name_prefix.size());
}

// Index of the option, with or without "train-", '_' read as '-'; option_infos.size() where there
// is none.
std::size_t find_option(std::string_view name) {
    std::string key(name.substr(0, 64));
    std::replace(key.begin(), key.end(), '_', '-');
    std::string_view wanted = key;
    if (wanted.substr(0, name_prefix.size()) == name_prefix)
        wanted.remove_prefix(name_prefix.size());
    const auto found =
        std::find_if(option_infos.begin(), option_infos.end(),
                     [&](const OptionInfo& option) { return wanted == short_name(option); });
    return static_cast<std::size_t>(found - option_infos.begin());
}

Error unknown_option(std::string_view name) {
    std::string known;
    for (const OptionInfo& option : option_infos)
        known += std::string(known.empty() ? "" : ", ") + "--" + option.name;
    return {ErrorCode::bad_input,
            "\"" + printable(name) + "\" is no option of Sluice: write one of " + known};
}

// What is legal only together.
Result<JobSpec> finished(JobSpec spec) {
    if (spec.sizes.empty()) spec.resize = ResizeMode::off;
    if (const std::size_t bytes = to_text(spec).size(); bytes > JobSpec::max_bytes) {
        return {ErrorCode::bad_input, "the --train-* options take " + std::to_string(bytes) +
                                          " bytes together, at most " +
                                          std::to_string(JobSpec::max_bytes) +
                                          " are kept: shorten --train-gpus or --train-loss"};
    }
    return spec;
}

// In the text form, ';' ends a value and '\' takes the next character as it is.
std::string escaped(std::string_view value) {
    std::string out;
    for (const char c : value) {
        if (c == ';' || c == '\\') out += '\\';
        out += c;
    }
    return out;
}

// The next value up to an unescaped ';' or the end, both taken off `rest`.
std::string take_value(std::string_view& rest) {
    std::string out;
    std::size_t i = 0;
    for (; i < rest.size() && rest[i] != ';'; ++i) {
        if (rest[i] == '\\' && i + 1 < rest.size()) ++i;
        out += rest[i];
    }
    rest.remove_prefix(std::min(rest.size(), i + 1));
    return out;
}

Error broken_text(const std::string& what) {
    return {ErrorCode::bad_input, "job specification: " + what + ": write v1;NAME=VALUE;..."};
}

std::string padded(std::uint32_t number, int width) {
    std::string digits = std::to_string(number);
    if (digits.size() < static_cast<std::size_t>(width))
        digits.insert(0, static_cast<std::size_t>(width) - digits.size(), '0');
    return digits;
}

}  // namespace

bool operator==(const JobSpec& a, const JobSpec& b) {
    const auto target = [](const JobSpec& spec) {
        const Target value = spec.target.value_or(Target{});
        return std::tuple(spec.target.has_value(), value.kind, value.loss, value.steps);
    };
    const auto rest = [](const JobSpec& spec) {
        return std::tie(spec.model, spec.sizes, spec.loss, spec.loss_key, spec.resize,
                        spec.signal.batch_only, spec.signal.number, spec.signal.grace, spec.advise,
                        spec.batch);
    };
    return rest(a) == rest(b) && target(a) == target(b);
}

Result<JobSpec> parse_options(const std::vector<std::pair<std::string, std::string>>& options) {
    JobSpec spec;
    for (const auto& [name, value] : options) {
        const std::size_t index = find_option(name);
        if (index == option_infos.size()) return unknown_option(name);
        if (value.size() > JobSpec::max_bytes)
            return refuse(option_infos[index], value,
                          "has " + std::to_string(value.size()) + " bytes");
        if (const Status status = codecs[index].read(option_infos[index], value, spec); !status)
            return status.error();
    }
    return finished(std::move(spec));
}

std::string to_text(const JobSpec& spec) {
    std::string out(version);
    for (std::size_t i = 0; i < option_infos.size(); ++i) {
        const std::string value = codecs[i].write(spec);
        if (value.empty()) continue;
        out += ';';
        out += short_name(option_infos[i]);
        out += '=' + escaped(value);
    }
    return out;
}

Result<JobSpec> parse_spec(std::string_view text) {
    if (text.size() > JobSpec::max_bytes) {
        return broken_text(std::to_string(text.size()) + " bytes, at most " +
                           std::to_string(JobSpec::max_bytes));
    }
    const std::string_view first = text.substr(0, text.find(';'));
    if (first != version) {
        return broken_text("\"" + printable(first) +
                           "\" is no version of it that this Sluice reads");
    }
    JobSpec spec;
    std::array<bool, option_infos.size()> seen{};
    std::string_view rest = text.substr(std::min(text.size(), version.size() + 1));
    while (!rest.empty()) {
        const std::size_t equals = rest.find('=');
        const std::string_view name = rest.substr(0, equals);
        const std::size_t index = find_option(name);
        if (equals == std::string_view::npos)
            return broken_text("\"" + printable(name) + "\" has no value");
        if (index == option_infos.size() || name != short_name(option_infos[index]))
            return unknown_option(name);
        if (seen[index]) return broken_text("\"" + printable(name) + "\" stands there twice");
        seen[index] = true;
        rest.remove_prefix(equals + 1);
        const std::string value = take_value(rest);
        if (const Status status = codecs[index].read(option_infos[index], value, spec); !status)
            return status.error();
    }
    return finished(std::move(spec));
}

std::string expand_pattern(std::string_view pattern, const PatternValues& values) {
    std::string out;
    // As Slurm does for its own file names: a backslash anywhere switches the patterns off, and
    // goes away itself.
    if (pattern.find('\\') != std::string_view::npos) {
        for (std::size_t i = 0; i < pattern.size(); ++i) {
            if (pattern[i] != '\\')
                out += pattern[i];
            else if (i + 1 < pattern.size() && pattern[i + 1] == '\\')
                out += pattern[++i];
        }
        return out;
    }
    // Slurm prints NO_VAL for the index of a job that is no member of an array.
    const std::uint32_t task =
        values.array_task_id.value_or(std::numeric_limits<std::uint32_t>::max() - 1);
    for (std::size_t i = 0; i < pattern.size(); ++i) {
        if (pattern[i] != '%') {
            out += pattern[i];
            continue;
        }
        std::size_t letter = i + 1;
        int width = 0;
        for (; letter < pattern.size() && pattern[letter] >= '0' && pattern[letter] <= '9';
             ++letter)
            width = std::min(max_pattern_width, width * 10 + (pattern[letter] - '0'));
        switch (letter < pattern.size() ? pattern[letter] : '\0') {
            case 'j':
                out += padded(values.job_id, width);
                break;
            case 'A':
                out += padded(values.array_job_id, width);
                break;
            case 'a':
                out += padded(task, width);
                break;
            case 'x':
                out += values.job_name;
                break;
            case 'u':
                out += values.user;
                break;
            case '%':
                out += '%';
                break;
            default:  // not ours: stays as it is written
                out += pattern.substr(i, letter - i + 1);
        }
        i = letter;
    }
    return out;
}

}  // namespace sluice
