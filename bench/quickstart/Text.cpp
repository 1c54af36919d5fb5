#include "bench/quickstart/Text.h"

#include <cctype>
#include <cmath>
#include <string_view>

namespace normc::quickstart {
namespace {

uint64_t hashOf(std::string_view bytes) {  // FNV-1a
  uint64_t hash = 0xcbf29ce484222325;
  for (unsigned char byte : bytes) hash = (hash ^ byte) * 0x100000001b3;
  return hash;
}

/// Adds the vector of one n-gram: in every column, plus or minus `weight`.
void addSigns(uint64_t state, float weight, float* row, int64_t features) {
  uint64_t bits = 0;
  for (int64_t column = 0; column < features; ++column) {
    if (column % 64 == 0) {
      state += 0x9e3779b97f4a7c15;
      bits = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9;
      bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
      bits ^= bits >> 31;
    }
    row[column] += (bits >> (column % 64)) & 1 ? weight : -weight;
  }
}

}  // namespace

std::vector<std::string> tokensOf(const std::string& text) {
  std::vector<std::string> tokens;
  bool inWord = false;
  for (unsigned char c : text) {
    const bool wordCharacter = std::isalnum(c);
    if (wordCharacter && inWord)
      tokens.back() += char(std::tolower(c));
    else if (!std::isspace(c))
      tokens.emplace_back(1, char(std::tolower(c)));
    inWord = wordCharacter;
  }
  return tokens;
}

std::vector<float> activationsOf(const std::vector<std::string>& tokens, int64_t features) {
  std::vector<float> rows(tokens.size() * features);
  for (size_t token = 0; token < tokens.size(); ++token) {
    float* const row = rows.data() + token * features;
    const std::string marked = "<" + tokens[token] + ">";
    std::vector<std::string_view> grams;
    for (size_t length = 3; length <= 5; ++length)
      for (size_t at = 0; at + length <= marked.size(); ++at)
        grams.push_back(std::string_view(marked).substr(at, length));
    for (std::string_view gram : grams)
      addSigns(hashOf(gram), 1 / std::sqrt(float(grams.size())), row, features);
  }
  for (size_t token = tokens.size(); token-- > 1;)  // from the end: the row before is still itself
    for (int64_t f = 0; f < features; ++f)
      rows[token * features + f] += 0.5f * rows[(token - 1) * features + f];
  return rows;
}

}  // namespace normc::quickstart
