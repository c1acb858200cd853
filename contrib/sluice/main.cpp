// SPDX-License-Identifier: GPL-2.0-or-later
//
// sluice: finds the subcommand, answers --help and --version.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>
#include <span>

#include "contrib/sluice/command.hpp"

namespace sluice::cli {
namespace {

struct Subcommand {
    const char* name;
    int (*run)(const Arguments&);
    const char* summary;
    const char* help;
};

constexpr Subcommand subcommands[] = {
    {"topo", topo, "the GPUs of a node class, their links, the best set of each size",
     "usage: sluice topo FILE [--json]\n"
     "usage: sluice topo discover [--output FILE] [--root DIR] [--report]\n"
     "usage: sluice topo collect --directory DIR [--nodelist LIST] [--partition NAME]\n"
     "                           [--timeout SECONDS] [--dry-run] [-- SRUN_OPTION...]\n"
     "\n"
     "Shows the GPUs that FILE describes, how they are joined, and for each number of GPUs\n"
     "the set that Sluice gives on an empty node. FILE: hwloc XML (lstopo --of xml FILE), the\n"
     "output of nvidia-smi topo -m, a gres.conf, or what discover writes.\n"
     "\n"
     "  --json  one JSON object\n"
     "\n"
     "discover describes the node that it runs on.\n"
     "\n"
     "  --output FILE  write it there (default: standard output)\n"
     "  --root DIR     read /proc and /sys below DIR\n"
     "  --report       in the form that collect reads\n"
     "\n"
     "collect runs discover on all nodes with GPUs through srun, and writes a file for each\n"
     "class of nodes and classes.conf with the lines for sluice.conf.\n"
     "\n"
     "  --directory DIR       where to, the TopologyDir of sluice.conf\n"
     "  -w, --nodelist LIST   these nodes (default: those with GPUs that are idle or mixed)\n"
     "  -p, --partition NAME  nodes of this partition\n"
     "  --timeout SECONDS     for starting and answering together (default: 120)\n"
     "  --dry-run             say what would change and write nothing\n"},
    {"pick", pick, "the best GPUs of those that are free, why, and the runners-up",
     "usage: sluice pick --topology FILE --count K [--free LIST] [--must LIST] [--why] [--json]\n"
     "\n"
     "Names the K GPUs that Sluice gives. LIST: local indices like 0,2,4-6.\n"
     "\n"
     "  --topology FILE  what `sluice topo` reads\n"
     "  --count K        how many GPUs\n"
     "  --free LIST      those that are free (default: all)\n"
     "  --must LIST      those that have to be in the set\n"
     "  --why            the criteria in numbers, beside those of other sets\n"
     "  --json           one JSON object\n"},
    {"losses", losses, "the losses found in a log",
     "usage: sluice losses FILE [--key K] [--format F] [--json]\n"
     "\n"
     "Prints the points that Sluice reads from a training log, one a line. FILE: - for standard\n"
     "input, or what --train-loss takes: csv:PATH, jsonl:PATH, tfevents:PATH, state:PATH,\n"
     "mlflow:[RUN][@URI].\n"
     "\n"
     "  --key K     the name of the loss, or /PATTERN/ for it (default: recognised)\n"
     "  --format F  auto (the default), text, csv, jsonl, tfevents (TensorBoard's event files),\n"
     "              state (Hugging Face's trainer_state.json) or mlflow (FILE: [RUN][@URI])\n"
     "  --json      one JSON object a line, which is the default\n"},
    {"fit", fit, "the loss curve of a log, its uncertainty and forecast",
     "usage: sluice fit FILE [--key K] [--format F] [--at STEP] [--target LOSS] [--flat]\n"
     "                  [--json]\n"
     "\n"
     "Fits a curve to the losses of FILE (a log, or CSV with the columns step,loss; - for\n"
     "standard input).\n"
     "\n"
     "  --key K        the name of the loss, as in `sluice losses`\n"
     "  --format F     as in `sluice losses`\n"
     "  --at STEP      forecast the loss at this step\n"
     "  --target LOSS  forecast the step at which this loss is reached\n"
     "  --flat         forecast the step from which on the loss is flat\n"
     "  --json         one JSON object\n"},
    {"emit", emit, "tells Sluice a loss, from within a job",
     "usage: sluice emit loss=NUMBER [step=N] [--file FILE]\n"
     "\n"
     "Adds a line to the file named in SLUICE_EMIT, which the agent of the job reads.\n"
     "\n"
     "  --file FILE  to this file instead, made where it is missing\n"},
    {"status", status, "what Sluice knows of a job, or of all jobs",
     "usage: sluice status [JOBID] [--json]\n"
     "       sluice status --controller [--state-dir FOLDER] [--json]\n"
     "\n"
     "Shows the job's loss curve and forecast, the GPUs chosen and what stock Slurm would have\n"
     "given, and its resizes with their reasons. Without JOBID, a line for each job of Sluice.\n"
     "\n"
     "  --json              one JSON object a job, each on a line\n"
     "  --controller        how many jobs were placed by Sluice, how many left to stock Slurm, and "
     "why\n"
     "  --state-dir FOLDER  where the controller keeps its state (default: ask Slurm)\n"},
    {"report", report, "GPU-hours, waiting and placement from Slurm's accounting",
     "usage: sluice report [-S TIME] [-E TIME] [-u USER] [--from-file FILE] [--format F]\n"
     "\n"
     "Adds up all records of all jobs, requeues and resizes included.\n"
     "\n"
     "  -S, --starttime TIME  jobs that ran after TIME, as sacct reads it\n"
     "  -E, --endtime TIME    jobs that ran before TIME\n"
     "  -u, --user USER       jobs of USER (default: of all that sacct shows you)\n"
     "  --from-file FILE      read FILE, the output of sacct, and call nothing\n"
     "  --format F            table, json or csv (default: table)\n"},
    {"sim", sim, "a workload under several policies, in virtual time",
     "usage: sluice sim --workload CSV --profiles DIR[:DIR...] --cluster NODESxGPUS[:TYPE],...\n"
     "       sluice sim --from-sacct FILE [--scaling X] --cluster NODESxGPUS,...\n"
     "                  [--policy P[,P...]] [--round SECONDS] [--restart LIST] [--slower LIST]\n"
     "                  [--most-gpus LIST] [--most-local-batch LIST] [--size-error SIGMA]\n"
     "                  [--malleable SHARE] [--seed N] [--exact-steps] [--doubling]\n"
     "                  [--never-stop [--cooldown SECONDS]] [--bound]\n"
     "                  [--interference SHARE]\n"
     "                  [--mtbf SECONDS [--repair SECONDS] [--checkpoint-every SECONDS]]\n"
     "                  [--svg FILE] [--jobs] [--json]\n"
     "\n"
     "Replays jobs on a cluster that is not there. The formats are those of Pollux's public\n"
     "workloads and measurements. A LIST is VALUE for all, APPLICATION=VALUE,... for some.\n"
     "\n"
     "  --workload CSV           name,time,application,num_replicas,batch_size of each job\n"
     "  --from-sacct FILE        the jobs of a site instead, as sacct tells of them\n"
     "  --scaling X              these run at the speed k^X on k GPUs (default: as they ran)\n"
     "  --profiles DIR           a folder of measurements for each application\n"
     "  --cluster SPEC           16x4, or 6x4,2x8:dgx with types of nodes\n"
     "  --policy P               fifo, las, progress, goodput, sluice, srtf-oracle,\n"
     "                           optimus-oracle, sluice-oracle (default: fifo,sluice)\n"
     "  --round SECONDS          between two decisions (default: 60)\n"
     "  --restart LIST           without progress at a start and a change (default: 30)\n"
     "  --slower LIST            a factor on step times\n"
     "  --most-gpus LIST         GPUs of a job\n"
     "  --most-local-batch LIST  samples on a GPU, below what was measured\n"
     "  --size-error SIGMA       of what is known of a job's work (default: 0.6), or unknown\n"
     "  --malleable SHARE        of the jobs, that can be resized (default: 1)\n"
     "  --seed N                 for what is drawn by chance (default: 1)\n"
     "  --exact-steps            step times are known as measured\n"
     "  --doubling               no job gets more than twice what it has had\n"
     "  --never-stop             as in slurmctld: sizes alone, nobody stops for another\n"
     "  --cooldown SECONDS       of a job between resizes, with --never-stop (default: 600)\n"
     "  --interference SHARE     that jobs over several nodes lose where they share one\n"
     "  --mtbf SECONDS           of a node between failures (default: none fails)\n"
     "  --repair SECONDS         it is away then (default: 3600)\n"
     "  --checkpoint-every SECONDS  of a running job (default: the round)\n"
     "  --svg FILE               plots, in one file\n"
     "  --jobs                   a line for every job, too\n"
     "  --bound                  an average that no policy can beat, and how far each is from it\n"
     "  --json                   one JSON object, with every job\n"},
};

void print_usage(std::FILE* out) {
    std::fputs("usage: sluice SUBCOMMAND ...\n\n", out);
    for (const Subcommand& each : subcommands)
        std::fprintf(out, "  %-8s %s\n", each.name, each.summary);
    std::fputs(
        "\n`sluice SUBCOMMAND --help` lists its options.\n"
        "Exit codes: 0 done, 1 the thing asked for does not exist or cannot be, 2 wrong usage,\n"
        "3 bad input file, 4 Slurm not reachable or the output not written.\n",
        out);
}

bool asks_for_help(const Arguments& arguments) {
    const auto end = std::find(arguments.begin(), arguments.end(), "--");
    return std::find_if(arguments.begin(), end, [](const std::string& argument) {
               return argument == "--help" || argument == "-h";
           }) != end;
}

int run(std::span<char*> words) {
    if (words.empty()) {
        print_usage(stderr);
        return static_cast<int>(ErrorCode::usage);
    }
    const std::string name = words[0];
    const Arguments arguments(words.begin() + 1, words.end());
    if (name == "--help" || name == "-h") {
        print_usage(stdout);
        return 0;
    }
    if (name == "--version" || name == "-V") {
        std::puts(PACKAGE_NAME " " PACKAGE_VERSION);
        return 0;
    }
    for (const Subcommand& each : subcommands) {
        if (name != each.name) continue;
        if (!asks_for_help(arguments)) return each.run(arguments);
        std::fputs(each.help, stdout);
        return 0;
    }
    std::string known;
    for (const Subcommand& each : subcommands) known.append(" ").append(each.name);
    std::fprintf(stderr, "sluice: \"%s\" is no subcommand: write one of%s\n", name.c_str(),
                 known.c_str());
    return static_cast<int>(ErrorCode::usage);
}

/// Whoever keeps what is printed in a file has to hear that the disk is full.
int with_all_printed(int code) {
    errno = 0;
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
    std::fprintf(stderr, "sluice: the output could not be written%s%s\n", errno == 0 ? "" : ": ",
                 errno == 0 ? "" : std::strerror(errno));
    return code == 0 ? static_cast<int>(ErrorCode::unreachable) : code;
}

}  // namespace

Result<Options> Options::parse(const Arguments& arguments, const std::vector<Known>& known,
                               std::size_t max_operands) {
    Options options;
    bool only_operands = false;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const std::string& argument = arguments[i];
        if (only_operands || argument.size() < 2 || argument[0] != '-') {
            if (options.operands_.size() == max_operands)
                return {ErrorCode::usage, "one argument too many: \"" + argument + "\""};
            options.operands_.push_back(argument);
            continue;
        }
        if (argument == "--") {
            only_operands = true;
            continue;
        }
        const std::size_t equals =
            argument.starts_with("--") ? argument.find('=') : std::string::npos;
        const std::string name = argument.substr(0, equals);
        const auto option = std::find_if(known.begin(), known.end(), [&name](const Known& each) {
            return name == each.name || (each.also != nullptr && name == each.also);
        });
        if (option == known.end()) {
            std::string what = "unknown option " + name + ": known are";
            for (const Known& each : known) what.append(" ").append(each.name);
            return {ErrorCode::usage, what};
        }
        std::string value;
        if (option->has_value && equals != std::string::npos) {
            value = argument.substr(equals + 1);
        } else if (option->has_value) {
            if (i + 1 == arguments.size()) return {ErrorCode::usage, name + " needs a value"};
            value = arguments[++i];
        } else if (equals != std::string::npos) {
            return {ErrorCode::usage, name + " takes no value"};
        }
        options.values_.emplace_back(option->name, value);
    }
    return options;
}

bool Options::has(const std::string& name) const {
    return std::any_of(values_.begin(), values_.end(),
                       [&name](const auto& each) { return each.first == name; });
}

std::string Options::value(const std::string& name, const std::string& otherwise) const {
    const auto last = std::find_if(values_.rbegin(), values_.rend(),
                                   [&name](const auto& each) { return each.first == name; });
    return last == values_.rend() ? otherwise : last->second;
}

int fail(const char* name, const Error& error) {
    std::fprintf(stderr, "sluice %s: %s\n", name, error.message.c_str());
    return static_cast<int>(error.code);
}

}  // namespace sluice::cli

int main(int count, char** words) {
    try {
        return sluice::cli::with_all_printed(
            sluice::cli::run({words + 1, words + std::max(count, 1)}));
    } catch (const std::bad_alloc&) {
        std::fputs("sluice: there is not enough memory for this\n", stderr);
        return static_cast<int>(sluice::ErrorCode::not_found);
    }
}
