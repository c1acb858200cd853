// SPDX-License-Identifier: GPL-2.0-or-later
//
// sluice emit: tells the agent of the job a loss, from whatever language can start a program.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "common/base/descriptor.hpp"
#include "common/base/json.hpp"
#include "common/base/text.hpp"
#include "common/samples/loss_point.hpp"
#include "contrib/sluice/command.hpp"

namespace sluice::cli {
namespace {

struct Told {
    std::optional<double> loss;
    std::optional<std::int64_t> step;
};

Result<Told> told_of(const Arguments& words) {
    Told told;
    for (const std::string& word : words) {
        const std::string_view text = word;
        const auto bad = [&word](const char* what) {
            return Error{ErrorCode::usage, "\"" + printable(word) + "\" " + what +
                                               ": write loss=NUMBER and, if there is one, "
                                               "step=WHOLE_NUMBER"};
        };
        if ((text.starts_with("loss=") && told.loss) || (text.starts_with("step=") && told.step)) {
            return bad("is the second one");
        } else if (text.starts_with("loss=")) {
            told.loss = parse_number(text.substr(5));
            if (!told.loss) return bad("has no number");
        } else if (text.starts_with("step=")) {
            told.step = parse_integer(text.substr(5));
            if (!told.step || *told.step < 0 || *told.step > max_step)
                return bad("has no whole number from 0 to 2^53");
        } else {
            return bad("is not known");
        }
    }
    if (!told.loss) return {ErrorCode::usage, "names no loss: write loss=NUMBER"};
    return told;
}

/// One line at the end of the file, in one piece, whoever else writes there.
Status append(const std::string& path, bool make, const std::string& line) {
    const auto bad = [&path](const std::string& why) {
        return Error{ErrorCode::not_found, printable(path, 200) + ": " + why};
    };
    const Descriptor file(::open(
        path.c_str(),
        O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | (make ? O_CREAT : 0), 0644));
    if (!file.is_open()) {
        if (errno == ENOENT && !make)
            return bad("is not here: losses are told on the node where the batch script runs");
        return bad(std::strerror(errno));
    }
    struct stat status {};
    if (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode))
        return bad("is no regular file");
    if (::write(file.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size()))
        return bad(std::strerror(errno));
    return {};
}

}  // namespace

int emit(const Arguments& arguments) {
    const auto options = Options::parse(arguments, {{"--file", true}}, 2);
    if (!options.ok()) return fail("emit", options.error());
    const auto told = told_of(options->operands());
    if (!told.ok()) return fail("emit", told.error());
    const char* const variable = std::getenv("SLUICE_EMIT");
    const std::string path = options->value("--file", variable ? variable : "");
    if (path.empty()) {
        return fail("emit", {ErrorCode::not_found,
                             "SLUICE_EMIT is not set: this is no job with --train-* options, or "
                             "nobody watches it; --file FILE names another file"});
    }
    const Json object = json_object();
    if (told->step) json_put(object, "step", json_integer(*told->step));
    json_put(object, "loss", json_number(*told->loss));
    const Status status = append(path, options->has("--file"), json_line(object.get()) + "\n");
    return status.ok() ? 0 : fail("emit", status.error());
}

}  // namespace sluice::cli
