// SPDX-License-Identifier: GPL-2.0-or-later
//
// Stands in for libFuzzer: gives every file of the folders named (or of CORPUS) to the target, in
// the order of their names. A target fails by dying.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "tests/fuzz/fuzz.hpp"

int main(int count, char** words) {
    std::vector<std::filesystem::path> folders(words + 1, words + std::max(count, 1));
    if (folders.empty()) folders.emplace_back(CORPUS);
    std::vector<std::filesystem::path> files;
    for (const auto& folder : folders) {
        for (const auto& entry : std::filesystem::directory_iterator(folder))
            files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    for (const auto& path : files) {
        std::printf("%s\n", path.c_str());
        std::fflush(stdout);  // the last line names the file that killed the target
        std::ifstream file(path, std::ios::binary);
        const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
        LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
    }
    std::printf("%zu inputs\n", files.size());
    return files.empty() ? 1 : 0;
}
