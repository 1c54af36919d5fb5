// Comments describe code in plain technical terms. The product may not refer to code as to a person.
#include <gtest/gtest.h>

#include <regex>
#include <sstream>

#include "tests/structure/Sources.h"

namespace normc {
namespace {

using Names = std::vector<std::string>;

/// Returns "path:line: text" of each line of `source` with a // comment that refers to code as to a person.
/// withoutComments() blanks comments and keeps strings, so that a // within a string begins no comment.
Names personalComments(const Source& source) {
  static const std::regex person("\\b(who|whoever|nobody|somebody)\\b", std::regex::icase);
  std::istringstream lines(source.text), codeLines(withoutComments(source.text));
  Names found;
  int number = 0;
  for (std::string line, code; std::getline(lines, line) && std::getline(codeLines, code);) {
    ++number;
    size_t begin = 0;  // of the comment: the first // that is not code
    while ((begin = line.find("//", begin)) != line.npos && code.compare(begin, 2, "//") == 0) ++begin;
    if (begin != line.npos && std::regex_search(line.substr(begin), person))
      found.push_back(source.path + ":" + std::to_string(number) + ": " + line);
  }
  return found;
}

TEST(Comments, ReferToNoCodeAsToAPerson) {
  for (const char* folder : {"autotune", "bench", "codegen", "dsl", "examples", "runtime", "tools"})
    for (const Source& source : sourcesUnder(folder))
      for (const std::string& line : personalComments(source)) ADD_FAILURE() << line;
}

TEST(Comments, AreReadWordByWord) {
  const Source source{"a/B.h",
                      "int who = f(\"// nobody\");\n"
                      "int x;  ///< Nobody reads it\n"
                      "const char* wholly = \"http://who\";  // wholly\n"
                      "// for whoever\n"};
  EXPECT_EQ(personalComments(source),
            (Names{"a/B.h:2: int x;  ///< Nobody reads it", "a/B.h:4: // for whoever"}));
}

}  // namespace
}  // namespace normc
