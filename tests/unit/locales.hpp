// SPDX-License-Identifier: GPL-2.0-or-later
//
// Locales to test under. A machine seldom has de_DE and tr_TR, so they are made with localedef (on
// Debian: package locales) in a folder that goes away with the program.
#pragma once

#include <clocale>
#include <cstdlib>
#include <filesystem>
#include <locale>
#include <string>

#include "tests/unit/scratch_dir.hpp"

// The C library forgets a LOCPATH of before without freeing it.
// NOLINTNEXTLINE(bugprone-reserved-identifier): the name is AddressSanitizer's.
extern "C" [[gnu::used]] inline const char* __lsan_default_suppressions() {
    return "leak:argz_add_sep";
}

namespace sluice {

/// The C and C++ locale `name` while it lives, and the one before again afterwards.
class InLocale {
  public:
    explicit InLocale(const std::string& name) {
        if (std::setlocale(LC_ALL, name.c_str()) == nullptr && !make(name)) {
            problem_ = "no locale " + name + ", and localedef could not make it: install the " +
                       "sources of locales (Debian: apt-get install locales)";
            return;
        }
        std::locale::global(std::locale(name));
    }
    ~InLocale() { std::locale::global(std::locale::classic()); }
    InLocale(const InLocale&) = delete;
    InLocale& operator=(const InLocale&) = delete;

    /// Empty where the locale is in force.
    const std::string& problem() const { return problem_; }

  private:
    static bool make(const std::string& name) {
        static const ScratchDir folder;
        const std::string::size_type dot = name.find('.');
        if (dot == std::string::npos) return false;
        // A folder for each: the C library remembers what it did not find in one.
        const std::string where = folder.path() + "/for-" + name;
        std::filesystem::create_directory(where);
        // 1: made, with warnings
        const std::string command = "localedef --no-archive -i " + name.substr(0, dot) + " -f " +
                                    name.substr(dot + 1) + " " + where + "/" + name +
                                    " 2>/dev/null";
        if (const int status = std::system(command.c_str()); status != 0 && status != 256) {
            return false;
        }
        setenv("LOCPATH", where.c_str(), 1);
        return std::setlocale(LC_ALL, name.c_str()) != nullptr;
    }

    std::string problem_;
};

}  // namespace sluice
