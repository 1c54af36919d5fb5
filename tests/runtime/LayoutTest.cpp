// Public structs and enumerators are those of layout.txt. A host that was compiled against an older header
// relies on each line of it: lines are added, at the end of a struct; none changes.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>

#include "tests/runtime/Support.h"

namespace normc::test {
namespace {

std::string contentOf(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Returns the bodies of the header's structs or enums, by name.
std::vector<std::pair<std::string, std::string>> bodiesOf(const std::string& header,
                                                          const std::string& kind) {
  static const std::regex comment("/\\*[^*]*\\*+([^/*][^*]*\\*+)*/");
  const std::string code = std::regex_replace(header, comment, "");
  const std::regex body("typedef " + kind + " (\\w+) \\{([^}]*)\\}");
  std::vector<std::pair<std::string, std::string>> bodies;
  for (std::sregex_iterator at(code.begin(), code.end(), body), end; at != end; ++at)
    bodies.emplace_back((*at)[1], (*at)[2]);
  return bodies;
}

/// Returns what `pattern` captures in a text.
std::vector<std::string> namesIn(const std::string& text, const char* pattern) {
  const std::regex name(pattern);
  std::vector<std::string> names;
  for (std::sregex_iterator at(text.begin(), text.end(), name), end; at != end; ++at)
    names.push_back((*at)[1]);
  return names;
}

/// Returns a C program that prints the layout of the header.
std::string programOf(const std::string& header) {
  std::ostringstream c;
  c << "#include <stdio.h>\n#include \"runtime/normc.h\"\nint main(void) {\n";
  for (const auto& [type, body] : bodiesOf(header, "struct")) {
    c << "printf(\"" << type << ": %zu bytes\\n\", sizeof(" << type << "));\n";
    for (const std::string& field : namesIn(body, "(\\w+)(?:\\[\\w+\\])?\\s*[,;]"))
      c << "printf(\"" << type << "." << field << " at %zu, %zu bytes\\n\", offsetof(" << type << ", "
        << field << "), sizeof(((" << type << "*)0)->" << field << "));\n";
  }
  for (const auto& [type, body] : bodiesOf(header, "enum")) {
    c << "printf(\"" << type << ": %zu bytes\\n\", sizeof(" << type << "));\n";
    for (const std::string& value : namesIn(body, "(NORMC_\\w+) ="))
      c << "printf(\"" << value << " = %d\\n\", " << value << ");\n";
  }
  c << "return 0;\n}\n";
  return c.str();
}

TEST(Layout, OfPublicStructsAndEnumeratorsIsThatOfLayoutTxt) {
  const std::string base = testing::TempDir() + "normc-layout-" + std::to_string(getpid());
  std::ofstream(base + ".c") << programOf(contentOf(NORMC_SOURCE_DIR "/runtime/normc.h"));
  const std::string command = NORMC_C_COMPILER " -std=c99 -Werror -I " NORMC_SOURCE_DIR " -o " + base + " " +
                              base + ".c && " + base + " > " + base + ".txt";
  ASSERT_EQ(std::system(command.c_str()), 0) << programOf(contentOf(NORMC_SOURCE_DIR "/runtime/normc.h"));
  const std::string layout = contentOf(base + ".txt");
  for (const char* suffix : {"", ".c", ".txt"}) std::filesystem::remove(base + suffix);
  EXPECT_EQ(layout, contentOf(NORMC_SOURCE_DIR "/tests/runtime/layout.txt"));
}

TEST(Layout, KnowsEachWayToDeclareAField) {
  const auto structs = bodiesOf(
      "typedef struct normc_a {\n  char* x[4]; /* y; */\n  int32_t u, /**< v */\n      w;\n} normc_a;",
      "struct");
  ASSERT_EQ(structs.size(), 1u);
  EXPECT_EQ(structs[0].first, "normc_a");
  EXPECT_EQ(namesIn(structs[0].second, "(\\w+)(?:\\[\\w+\\])?\\s*[,;]"),
            (std::vector<std::string>{"x", "u", "w"}));
}

}  // namespace
}  // namespace normc::test
