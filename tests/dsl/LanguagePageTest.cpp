// docs/language.md teaches by example: every example is legal.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "dsl/Problem.h"
#include "tests/dsl/SpecText.h"

namespace normc {
namespace {

// The contents of the fenced blocks.
std::vector<std::string> blocks() {
  std::ifstream page(NORMC_SOURCE_DIR "/docs/language.md");
  std::vector<std::string> out;
  bool inside = false;
  for (std::string line; std::getline(page, line);) {
    const size_t first = line.find_first_not_of(' ');
    if (first != std::string::npos && line.compare(first, 3, "```") == 0) {
      inside = !inside;
      if (inside) out.emplace_back();
    } else if (inside) {
      out.back() += line + "\n";
    }
  }
  return out;
}

TEST(LanguagePage, EveryNormIsLegal) {
  std::string norms;
  int count = 0;
  for (const std::string& block : blocks()) {
    std::istringstream lines(block);
    std::string line;
    while (std::getline(lines, line) && line.find("//") != std::string::npos) {
    }
    const size_t first = line.find_first_not_of(' ');
    if (first == std::string::npos || line.compare(first, 5, "norm ") != 0) continue;
    norms += block;
    ++count;
  }
  EXPECT_EQ(count, 15);
  EXPECT_EQ(errorsOf(norms), "");
}

TEST(LanguagePage, EveryProblemIsLegal) {
  int count = 0;
  for (const std::string& block : blocks()) {
    std::istringstream lines(block);
    for (std::string line; std::getline(lines, line);) {
      const std::string text = line.substr(0, line.find(' '));
      if (text.find('@') == std::string::npos) continue;
      const auto problem = parseProblem(text, findNorm);
      EXPECT_TRUE(problem) << (problem ? "" : normc::text(problem.errors()));
      ++count;
    }
  }
  EXPECT_EQ(count, 10);
}

TEST(LanguagePage, TheErrorItShowsIsTheErrorOneSees) {
  const std::string seen = errorsOf("norm n {\n  reduce    rows\n\n  divide_by running\n}\n");
  bool shown = false;
  for (const std::string& block : blocks()) {
    if (block.starts_with("my.norm:")) shown = block == "my" + seen.substr(1);
  }
  EXPECT_TRUE(shown) << seen;
}

}  // namespace
}  // namespace normc
