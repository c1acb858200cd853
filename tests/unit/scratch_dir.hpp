// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace sluice {

/// A new folder; it and all in it go with the object.
class ScratchDir {
  public:
    ScratchDir() : path_((std::filesystem::temp_directory_path() / "sluice-unit-XXXXXX").string()) {
        if (::mkdtemp(path_.data()) == nullptr) throw std::runtime_error("no folder " + path_);
    }
    ~ScratchDir() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    ScratchDir(const ScratchDir&) = delete;
    ScratchDir& operator=(const ScratchDir&) = delete;

    const std::string& path() const { return path_; }
    /// A file in it, made or replaced; its path.
    std::string write(const std::string& name, std::string_view text) const {
        std::string path = path_ + "/" + name;
        std::ofstream(path, std::ios::binary) << text;
        return path;
    }

  private:
    std::string path_;
};

}  // namespace sluice
