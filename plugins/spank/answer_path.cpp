// SPDX-License-Identifier: GPL-2.0-or-later
#include "plugins/spank/answer_path.hpp"

#include <sys/stat.h>

#include <cstdlib>

namespace sluice {
namespace {

bool is_own_folder(const std::string& path, uid_t user) {
    struct stat status {};
    return lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == user &&
           (status.st_mode & 0077) == 0;
}

}  // namespace

std::string answer_path(uid_t user, const std::string& job, const std::string& restarts) {
    std::string folder = "/tmp/sluice-" + std::to_string(user);
    mkdir(folder.c_str(), 0700);
    if (!is_own_folder(folder, user)) {
        folder += ".XXXXXX";
        if (!mkdtemp(folder.data())) return {};
    }
    return folder + "/checkpoint-done." + job + "." + restarts;
}

}  // namespace sluice
