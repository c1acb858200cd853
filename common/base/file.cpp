// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/base/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <system_error>

#include "common/base/descriptor.hpp"

namespace sluice {
namespace {

Error cannot_read(const std::string& path, const std::string& why) {
    return {ErrorCode::unreachable, path + ": " + why};
}

Error cannot_read(const std::string& path, int error_number) {
    const std::string why = std::generic_category().message(error_number);
    if (error_number == ENOENT) return {ErrorCode::not_found, path + ": " + why};
    return cannot_read(path, why);
}

bool write_all(int file, const std::string& text) {
    for (std::size_t done = 0; done < text.size();) {
        const ssize_t count = ::write(file, text.data() + done, text.size() - done);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return false;
        done += static_cast<std::size_t>(count);
    }
    // pipes and devices have nothing to keep
    return ::fsync(file) == 0 || errno == EINVAL || errno == EROFS;
}

}  // namespace

Result<std::string> read_file(const std::string& path, std::size_t max_bytes, FileKind kind) {
    // The opening alone of a FIFO may wait.
    const int no_waiting = kind == FileKind::ordinary ? O_NONBLOCK : 0;
    const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | no_waiting));
    if (!file.is_open()) return cannot_read(path, errno);
    struct stat info {};
    if (::fstat(file.get(), &info) != 0) return cannot_read(path, errno);
    if (S_ISDIR(info.st_mode)) return cannot_read(path, EISDIR);
    if (kind == FileKind::ordinary && !S_ISREG(info.st_mode))
        return cannot_read(path, "not an ordinary file");
    std::string text;
    std::array<char, 65536> buffer{};
    for (;;) {
        const ssize_t count = ::read(file.get(), buffer.data(), buffer.size());
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return cannot_read(path, errno);
        if (count == 0) return text;
        text.append(buffer.data(), static_cast<std::size_t>(count));
        if (text.size() > max_bytes)
            return cannot_read(path, "longer than " + std::to_string(max_bytes) + " bytes");
    }
}

Status write_file(const std::string& path, const std::string& text, FileReaders readers) {
    const std::string fresh = path + ".new-" + std::to_string(::getpid());
    const auto failed = [&] {
        Error error{ErrorCode::unreachable, path + ": " + std::generic_category().message(errno)};
        ::unlink(fresh.c_str());
        return error;
    };
    ::unlink(fresh.c_str());  // of a process of this number that was killed
    {
        const Descriptor file(::open(fresh.c_str(),
                                     O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                                     readers == FileReaders::all ? 0644 : 0600));
        if (!file.is_open() || !write_all(file.get(), text)) return failed();
    }
    if (::rename(fresh.c_str(), path.c_str()) != 0) return failed();
    const std::size_t slash = path.rfind('/');
    const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
    const Descriptor directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (directory.is_open()) ::fsync(directory.get());
    return {};
}

Status write_output(const std::string& path, const std::string& text) {
    struct stat info {};
    if (::lstat(path.c_str(), &info) != 0 || S_ISREG(info.st_mode)) return write_file(path, text);
    const Descriptor file(
        ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0644));
    if (file.is_open() && write_all(file.get(), text)) return {};
    return {ErrorCode::unreachable, path + ": " + std::generic_category().message(errno)};
}

Result<std::string> set_aside(const std::string& path) {
    std::string aside = path + ".unread";
    if (::rename(path.c_str(), aside.c_str()) != 0)
        return {ErrorCode::unreachable, path + ": " + std::generic_category().message(errno)};
    return aside;
}

}  // namespace sluice
