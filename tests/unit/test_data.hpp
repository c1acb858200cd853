// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <fstream>
#include <iterator>
#include <string>

/// The whole of tests/data/NAME; a test that reads a missing file gets "" and fails on its content.
inline std::string test_data(const std::string& name) {
    std::ifstream file(std::string(TEST_DATA) + "/" + name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}
