#include "tests/structure/Sources.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

namespace normc {

namespace fs = std::filesystem;

std::string readSource(const std::string& path) {
  std::ifstream in(fs::path(NORMC_SOURCE_DIR) / path);
  if (!in) ADD_FAILURE() << "cannot read " << path;
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<Source> sourcesUnder(const std::string& folder) {
  std::vector<Source> sources;
  const fs::path root = NORMC_SOURCE_DIR;
  for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
    static const std::vector<std::string> kinds{".h", ".hpp", ".c", ".cpp", ".td"};
    if (!entry.is_regular_file() || std::ranges::count(kinds, entry.path().extension().string()) == 0)
      continue;
    std::string path = fs::relative(entry.path(), root).generic_string();
    sources.push_back({path, readSource(path)});
  }
  std::ranges::sort(sources, {}, &Source::path);
  return sources;
}

std::vector<Include> includesOf(const std::string& text) {
  static const std::regex line("^[ \t]*#?[ \t]*include[ \t]+([\"<])([^\">]+)[\">]", std::regex::multiline);
  std::vector<Include> includes;
  for (std::sregex_iterator match(text.begin(), text.end(), line), end; match != end; ++match)
    includes.push_back({(*match)[2], (*match)[1] == "<"});
  return includes;
}

std::string withoutComments(const std::string& text) {
  std::string out = text;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"' || text[i] == '\'') {
      char quote = text[i];
      // A digit separator is no quote.
      if (quote == '\'' && i > 0 && isalnum(static_cast<unsigned char>(text[i - 1]))) continue;
      for (++i; i < text.size() && text[i] != quote && text[i] != '\n'; ++i)
        if (text[i] == '\\') ++i;
      continue;
    }
    bool line = text.compare(i, 2, "//") == 0, block = text.compare(i, 2, "/*") == 0;
    if (!line && !block) continue;
    size_t end = line ? text.find('\n', i) : text.find("*/", i + 2);
    end = end == std::string::npos ? text.size() : line ? end : end + 2;
    for (; i < end; ++i)
      if (out[i] != '\n') out[i] = ' ';
    --i;
  }
  return out;
}

std::vector<std::string> linesWith(const std::string& text, const std::string& word) {
  const std::regex pattern("\\b" + word + "\\b");
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)  // to search by the pattern takes a hundred times as long
    if (line.find(word) != line.npos && std::regex_search(line, pattern)) lines.push_back(line);
  return lines;
}

}  // namespace normc
