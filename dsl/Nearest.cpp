#include "dsl/Nearest.h"

#include <algorithm>

namespace normc {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

constexpr size_t kLongestWord = 60;

}  // namespace

int editDistance(std::string_view a, std::string_view b, int most) {
  const size_t columns = b.size() + 1, apart = std::max(a.size(), b.size()) - std::min(a.size(), b.size());
  if (most < 0 || apart > static_cast<size_t>(most)) return most + 1;
  // Three rows of the usual table: a swap looks two rows back.
  std::vector<int> table(3 * columns);
  int *before = table.data(), *above = before + columns, *row = above + columns;
  for (size_t j = 0; j < columns; ++j) row[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    std::swap(before, above);
    std::swap(above, row);
    row[0] = static_cast<int>(i);
    int least = row[0];
    for (size_t j = 1; j < columns; ++j) {
      const bool same = lower(a[i - 1]) == lower(b[j - 1]);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (same ? 0 : 1)});
      const bool swapped =
          i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]);
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
      least = std::min(least, row[j]);
    }
    // A row is not below the least of the two before it, but for the 1 that a swap costs.
    if (least > most + 1) return most + 1;
  }
  return std::min(row[b.size()], most + 1);
}

std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& known) {
  if (word.size() > kLongestWord) return std::nullopt;
  const std::string* best = nullptr;
  int bestDistance = static_cast<int>(word.size() / 3) + 1;
  for (const std::string& each : known) {
    const int distance = editDistance(word, each, bestDistance - 1);
    if (distance < bestDistance) {
      best = &each;
      bestDistance = distance;
    }
  }
  if (!best) return std::nullopt;
  return *best;
}

std::string didYouMean(std::string_view word, const std::vector<std::string>& known,
                       const std::string& otherwise) {
  const std::optional<std::string> guess = nearest(word, known);
  return guess ? "did you mean '" + *guess + "'?" : otherwise;
}

std::string oneOf(const std::vector<std::string>& words) {
  std::string out;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i > 0) out += i + 1 == words.size() ? " or " : ", ";
    out += words[i];
  }
  return out;
}

std::string counted(int64_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

std::string inQuotes(std::string_view word) {
  const bool tooLong = word.size() > kLongestWord;
  std::string out = "'";
  for (const unsigned char c : word.substr(0, kLongestWord)) {
    if (c >= 0x20 && c < 0x7f) {
      out += static_cast<char>(c);
    } else {
      out += "\\x";
      out += "0123456789abcdef"[c >> 4];
      out += "0123456789abcdef"[c & 15];
    }
  }
  return out + (tooLong ? "...'" : "'");
}

}  // namespace normc
