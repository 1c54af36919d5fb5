// Files that the tests of reports read.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace normc::bench {

/// Returns what a file holds; nothing if there is none.
inline std::string textOf(const std::filesystem::path& file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

}  // namespace normc::bench
