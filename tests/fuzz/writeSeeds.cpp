// Writes the seeds of all targets for libFuzzer: FOLDER/TARGET/0, 1, ..., and FOLDER/TARGET.dict with their
// words. Prints the names of the targets.
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>

#include "tests/fuzz/Target.h"

namespace {

/// Returns the words of a text, of letters, digits and underscores.
std::set<std::string> wordsOf(const std::string& text) {
  std::set<std::string> words;
  std::string word;
  for (const char c : text + " ") {
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '_') {
      word += c;
      continue;
    }
    if (word.size() > 1 && word.size() < 32) words.insert(word);
    word.clear();
  }
  return words;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fputs("usage: normc_fuzz_seeds FOLDER\n", stderr), 2;
  for (const normc::fuzz::Target& target : normc::fuzz::targets()) {
    const std::string folder = std::string(argv[1]) + "/" + std::string(target.name);
    std::filesystem::create_directories(folder);
    std::set<std::string> words;
    size_t count = 0;
    for (const std::string& seed : target.seeds()) {
      std::ofstream(folder + "/" + std::to_string(count++), std::ios::binary) << seed;
      words.merge(wordsOf(seed));
    }
    std::ofstream dictionary(folder + ".dict");
    for (const std::string& word : words) dictionary << '"' << word << "\"\n";
    std::printf("%s\n", std::string(target.name).c_str());
  }
  return 0;
}
