// Fuzz targets without a fuzzer: seeds, mutations of them that are the same on each machine, and every input
// that once broke a promise. NORMC_FUZZ_INPUTS may name a folder with inputs for each target, TARGET/FILE,
// e.g. those that libFuzzer found.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/dsl/Mutated.h"
#include "tests/fuzz/Target.h"

namespace normc::fuzz {
namespace {

namespace fs = std::filesystem;

std::string shown(const std::string& input) {
  return testing::PrintToString(input.substr(0, 2000)) + ", " + std::to_string(input.size()) + " bytes";
}

void replay(const Target& target, const std::string& input) {
  try {
    run(target, input);
  } catch (const std::exception& fault) {
    ADD_FAILURE() << fault.what() << "\nwith " << shown(input);
  }
}

/// Runs the target on each file of a folder, if it is there. Returns their number.
size_t replayFolder(const Target& target, const fs::path& folder) {
  std::vector<fs::path> files;
  if (fs::is_directory(folder))
    for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const fs::path& path : files) {
    SCOPED_TRACE(path);
    std::ifstream file(path, std::ios::binary);
    replay(target, {std::istreambuf_iterator<char>(file), {}});
  }
  return files.size();
}

class Replay : public testing::TestWithParam<Target> {};

TEST_P(Replay, OfSeeds) {
  for (const std::string& seed : GetParam().seeds()) replay(GetParam(), seed);
}

TEST_P(Replay, OfRegressions) {
  replayFolder(GetParam(), fs::path(NORMC_REGRESSIONS) / GetParam().name);
  if (const char* const more = std::getenv("NORMC_FUZZ_INPUTS")) {
    const size_t count = replayFolder(GetParam(), fs::path(more) / GetParam().name);
    EXPECT_GT(count, 0u) << more << " has no inputs for " << GetParam().name;
  }
}

TEST_P(Replay, OfMutations) {
  // As many as fit a second.
  std::mt19937_64 random(7);
  const std::vector<std::string> seeds = GetParam().seeds();
  for (int i = 0; i < (GetParam().slow ? 150 : 2000) && !HasFailure(); ++i)
    replay(GetParam(), mutated(seeds[i % seeds.size()], seeds[random() % seeds.size()], random));
}

TEST(Regressions, AreOfTargetsAndNotEmpty) {
  int folders = 0;
  for (const auto& entry : fs::directory_iterator(NORMC_REGRESSIONS)) {
    const std::string name = entry.path().filename().string();
    const auto hasName = [&](const Target& target) { return target.name == name; };
    EXPECT_TRUE(std::any_of(targets().begin(), targets().end(), hasName)) << name << " is no target";
    EXPECT_TRUE(fs::is_directory(entry) && !fs::is_empty(entry)) << name;
    ++folders;
  }
  EXPECT_GT(folders, 0);
}

INSTANTIATE_TEST_SUITE_P(Fuzz, Replay, testing::ValuesIn(targets().begin(), targets().end()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace normc::fuzz
