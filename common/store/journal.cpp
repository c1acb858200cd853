// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/store/journal.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <optional>
#include <set>
#include <system_error>
#include <vector>

#include "common/base/descriptor.hpp"
#include "common/base/json.hpp"
#include "common/base/text.hpp"

namespace sluice {
namespace {

constexpr std::int64_t version = 1;
constexpr std::size_t max_key_bytes = 128;
constexpr std::size_t max_value_bytes = std::size_t{64} * 1024;
constexpr std::size_t max_line_bytes = max_key_bytes + max_value_bytes + 64;
constexpr std::size_t min_outdated_bytes = std::size_t{64} * 1024;
constexpr std::size_t checksum_digits = 16;

Error disk_error(const std::string& path, const char* doing, int error_number) {
    return {ErrorCode::unreachable,
            path + ": cannot " + doing + ": " + std::generic_category().message(error_number)};
}

// 64-bit FNV-1a: finds what a crash or a bad disk does to a line. It keeps nobody from writing one;
// the file's mode does.
std::uint64_t fnv1a(std::string_view text) {
    std::uint64_t hash = 0xcbf29ce484222325;
    for (const char c : text) {
        hash ^= static_cast<unsigned char>(c);
        hash *= 0x100000001b3;
    }
    return hash;
}

std::string hexadecimal(std::uint64_t number) {
    std::string out(checksum_digits, '0');
    for (std::size_t i = out.size(); i-- > 0; number >>= 4)
        out[i] = "0123456789abcdef"[number & 15];
    return out;
}

// "1 CHECKSUM BODY\n"; the checksum is over "1 BODY".
std::string line_of(const std::string& body) {
    const std::string head = std::to_string(version) + ' ';
    return head + hexadecimal(fnv1a(head + body)) + ' ' + body + '\n';
}

std::string put_line(const std::string& key, const std::string& value) {
    return line_of("+ " + key + ' ' + value);
}

std::string erase_line(const std::string& key) {
    return line_of("- " + key);
}

struct Line {
    std::int64_t version = 0;
    std::string_view body;
};

// Nothing where the line is torn or damaged.
std::optional<Line> read_line(std::string_view line) {
    const std::size_t blank = line.find(' ');
    const std::size_t body = blank + 1 + checksum_digits;
    if (blank == line.npos || line.size() <= body || line[body] != ' ') return std::nullopt;
    const auto number = parse_integer(line.substr(0, blank));
    if (!number || *number < 1) return std::nullopt;
    const Line out{*number, line.substr(body + 1)};
    std::string checked(line.substr(0, blank + 1));
    checked += out.body;
    if (line.substr(blank + 1, checksum_digits) != hexadecimal(fnv1a(checked))) return std::nullopt;
    return out;
}

bool is_key(std::string_view text) {
    if (text.empty() || text.size() > max_key_bytes) return false;
    for (const char c : text) {
        if (c <= ' ' || c > '~') return false;
    }
    return true;
}

// The whole text, or an errno.
int write_all(int fd, std::string_view text) {
    while (!text.empty()) {
        const ssize_t count = ::write(fd, text.data(), text.size());
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return errno;
        text.remove_prefix(static_cast<std::size_t>(count));
    }
    return 0;
}

}  // namespace

class Journal::Impl {
  public:
    Impl(std::string directory, const std::string& name)
        : directory_(std::move(directory)), path_(directory_ + "/" + name) {}

    Status open() {
        if (Status status = take_folder(); !status) return status;
        file_ = Descriptor(
            ::open(path_.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
        if (!file_.is_open()) return disk_error(path_, "be opened", errno);
        struct stat info {};
        if (::fstat(file_.get(), &info) != 0) return disk_error(path_, "be examined", errno);
        if (!S_ISREG(info.st_mode)) {
            return {ErrorCode::unreachable, path_ + ": not an ordinary file: remove it"};
        }
        return read();
    }
    Status put(const std::string& key, std::string_view json) {
        if (Status status = check(key); !status) return status;
        if (const auto value = parse_json(json, max_value_bytes); !value) {
            return {ErrorCode::bad_input,
                    "value of \"" + key + "\" in the journal: " + value.error().message};
        }
        if (json.find_first_of(std::string_view("\n\0", 2)) != json.npos) {
            return {ErrorCode::bad_input,
                    "value of \"" + key + "\" in the journal: it has a line end: write one line"};
        }
        const auto known = values_.find(key);
        if (known != values_.end() && known->second == json) return save({});
        store(key, std::string(json));
        return save(key);
    }

    Status erase(const std::string& key) {
        if (Status status = check(key); !status) return status;
        if (!values_.contains(key)) return save({});
        forget(key);
        return save(key);
    }

    std::map<std::string, std::string> values_;
    std::size_t damaged_ = 0;

  private:
    static Status check(const std::string& key) {
        if (is_key(key)) return {};
        return {ErrorCode::usage, "\"" + printable(key) +
                                      "\" is no key of the journal: write 1 to 128 printable "
                                      "characters without blanks"};
    }

    // The folder, and the right to be the only one who writes in it.
    Status take_folder() {
        if (::mkdir(directory_.c_str(), 0700) != 0 && errno != EEXIST)
            return disk_error(directory_, "be made", errno);
        // The lock has a file of its own: the journal's is replaced by rename.
        lock_ = Descriptor(
            ::open((path_ + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
        if (!lock_.is_open()) return disk_error(path_ + ".lock", "be opened", errno);
        if (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
            if (errno != EWOULDBLOCK) return disk_error(path_ + ".lock", "be locked", errno);
            return {ErrorCode::busy,
                    path_ +
                        ": another process has it open: give each slurmctld a StateDir of its "
                        "own or stop the other one"};
        }
        return {};
    }

    void store(const std::string& key, std::string value) {
        forget(key);
        live_bytes_ += put_line(key, value).size();
        values_.insert_or_assign(key, std::move(value));
    }

    void forget(const std::string& key) {
        const auto known = values_.find(key);
        if (known == values_.end()) return;
        live_bytes_ -= put_line(key, known->second).size();
        values_.erase(known);
    }

    Status read() {
        std::string rest;
        bool too_long = false;  // inside a line that is skipped
        std::array<char, 65536> buffer{};
        for (;;) {
            const ssize_t count = ::read(file_.get(), buffer.data(), buffer.size());
            if (count < 0 && errno == EINTR) continue;
            if (count < 0) return disk_error(path_, "be read", errno);
            if (count == 0) break;
            file_bytes_ += static_cast<std::size_t>(count);
            std::string_view piece(buffer.data(), static_cast<std::size_t>(count));
            for (std::size_t end; (end = piece.find('\n')) != piece.npos;
                 piece.remove_prefix(end + 1)) {
                rest += piece.substr(0, end);
                if (!too_long) take(rest);
                rest.clear();
                too_long = false;
            }
            if (too_long) continue;
            rest += piece;
            if (rest.size() > max_line_bytes) {
                ++damaged_;
                too_long = true;
                rest.clear();
            }
        }
        torn_ = too_long || !rest.empty();
        // Whole but for its end, it counts: the next line that is written would complete it.
        if (!rest.empty()) take(rest);
        return {};
    }

    void take(const std::string& text) {
        if (text.empty()) return;  // what separates a torn tail from the line after it
        const auto line = read_line(text);
        if (line && line->version > version) {
            newer_.push_back(text);
            live_bytes_ += text.size() + 1;
            return;
        }
        if (!line || line->body.size() < 3 || line->body[1] != ' ') {
            ++damaged_;
            return;
        }
        const std::string_view body = line->body.substr(2);
        const std::size_t blank = body.find(' ');
        const std::string key(body.substr(0, blank));
        if (is_key(key) && line->body[0] == '-' && blank == body.npos)
            forget(key);
        else if (is_key(key) && line->body[0] == '+' && blank != body.npos)
            store(key, std::string(body.substr(blank + 1)));
        else
            ++damaged_;
    }

    bool removed() const {
        struct stat info {};
        return ::fstat(file_.get(), &info) == 0 && info.st_nlink == 0;
    }

    // What was removed while we had it open is made again, as memory has it.
    Status restore() {
        if (Status status = take_folder(); !status) return status;
        if (!rewrite()) return disk_error(path_, "be made again after it was removed", errno);
        torn_ = false;
        unsaved_.clear();
        return {};
    }

    // Appends what the file lacks: the change of `key`, and those before it that the disk refused.
    Status save(const std::string& key) {
        if (!key.empty()) unsaved_.insert(key);
        if (removed()) return restore();
        if (unsaved_.empty()) return {};
        std::string text = torn_ ? "\n" : "";
        for (const std::string& each : unsaved_) {
            const auto known = values_.find(each);
            text += known == values_.end() ? erase_line(each) : put_line(each, known->second);
        }
        // One write of whole lines: kill -9 loses none, since the kernel has them. Only a machine
        // that goes down can lose the last seconds, and the jobs send their records again within
        // a minute; an fsync each time would hold up the caller for as long as the disk likes.
        if (const int error = write_all(file_.get(), text); error != 0) {
            torn_ = true;
            // What is left when outdated lines are gone may fit.
            if (file_bytes_ <= live_bytes_ || !rewrite())
                return disk_error(path_, "be written", error);
            torn_ = false;
            unsaved_.clear();
            return {};
        }
        torn_ = false;
        unsaved_.clear();
        file_bytes_ += text.size();
        const std::size_t outdated = file_bytes_ - live_bytes_;
        // A failed rewrite has lost nothing; it is tried again when it has more to gain.
        if (outdated > live_bytes_ && outdated > rewrite_from_ && !rewrite())
            rewrite_from_ = outdated + min_outdated_bytes;
        return {};
    }

    // The live lines in a new file, which then takes the name. False: all is as before.
    bool rewrite() {
        const std::string path = path_ + ".new";
        Descriptor file(::open(
            path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
        if (!file.is_open()) return false;
        std::string text;
        for (const std::string& line : newer_) text += line + '\n';
        for (const auto& [key, value] : values_) text += put_line(key, value);
        // Without fsync a machine that goes down could keep the rename and lose the content.
        if (write_all(file.get(), text) != 0 || ::fsync(file.get()) != 0 ||
            ::rename(path.c_str(), path_.c_str()) != 0) {
            ::unlink(path.c_str());
            return false;
        }
        const Descriptor folder(::open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        if (folder.is_open()) ::fsync(folder.get());
        file_ = std::move(file);
        file_bytes_ = text.size();
        rewrite_from_ = min_outdated_bytes;
        return true;
    }

    std::string directory_;
    std::string path_;
    Descriptor lock_;
    Descriptor file_;
    std::vector<std::string> newer_;  // lines of a newer version
    std::set<std::string> unsaved_;   // keys whose last change is not in the file
    std::size_t file_bytes_ = 0;
    std::size_t live_bytes_ = 0;  // of the lines that a rewritten file would have
    std::size_t rewrite_from_ = min_outdated_bytes;
    bool torn_ = false;  // the file ends within a line
};

Result<std::unique_ptr<Journal>> Journal::open(const std::string& directory,
                                               const std::string& name) {
    auto impl = std::make_unique<Impl>(directory, name);
    if (const Status status = impl->open(); !status) return status.error();
    return std::unique_ptr<Journal>(new Journal(std::move(impl)));
}

Journal::Journal(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Journal::~Journal() = default;

const std::map<std::string, std::string>& Journal::values() const {
    return impl_->values_;
}

std::size_t Journal::damaged_lines() const {
    return impl_->damaged_;
}

Status Journal::put(const std::string& key, std::string_view json) {
    return impl_->put(key, json);
}

Status Journal::erase(const std::string& key) {
    return impl_->erase(key);
}

}  // namespace sluice
