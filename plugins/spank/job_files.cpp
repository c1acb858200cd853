// SPDX-License-Identifier: GPL-2.0-or-later
#include "plugins/spank/job_files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <system_error>

#include "common/base/descriptor.hpp"

namespace sluice {
namespace {

constexpr const char* emit_prefix = "emit.";

bool is_own_folder(const std::string& path, uid_t user) {
    struct stat status {};
    return lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == user &&
           (status.st_mode & 0077) == 0;
}

void drop_old_emit_files(const std::string& folder, int days) {
    const time_t oldest = time(nullptr) - time_t{days} * 86400;
    std::error_code error;
    for (std::filesystem::directory_iterator each(folder, error), end; !error && each != end;
         each.increment(error)) {
        if (!each->path().filename().native().starts_with(emit_prefix)) continue;
        struct stat status {};
        if (lstat(each->path().c_str(), &status) == 0 && status.st_mtim.tv_sec < oldest)
            unlink(each->path().c_str());
    }
}

}  // namespace

std::string job_files_folder(uid_t user) {
    std::string folder = "/tmp/sluice-" + std::to_string(user);
    mkdir(folder.c_str(), 0700);
    if (!is_own_folder(folder, user)) {
        folder += ".XXXXXX";
        if (!mkdtemp(folder.data())) return {};
    }
    return folder;
}

std::string job_name_for_files(const std::string& job, const std::string& cluster,
                               const std::string& conf) {
    std::uint32_t hash = 0x811c9dc5;  // FNV-1a
    std::string named = cluster;
    named += '\n';
    named += conf;
    for (const char c : named) hash = (hash ^ static_cast<unsigned char>(c)) * 0x01000193;
    std::array<char, 8> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), hash, 16);
    return job + "-" + std::string(digits.data(), end.ptr);
}

std::string answer_path(const std::string& folder, const std::string& job,
                        const std::string& restarts) {
    return folder + "/checkpoint-done." + job + "." + restarts;
}

std::string make_emit_file(const std::string& folder, const std::string& job, bool anew,
                           int other_days) {
    drop_old_emit_files(folder, other_days);
    std::string path = folder + "/" + emit_prefix + job;
    if (anew) unlink(path.c_str());
    const Descriptor file(
        open(path.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
    struct stat status {};
    if (!file.is_open() || fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
    return path;
}

}  // namespace sluice
