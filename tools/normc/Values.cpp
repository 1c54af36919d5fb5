#include "tools/normc/Values.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "dsl/Library.h"
#include "dsl/Nearest.h"
#include "dsl/Norms.h"
#include "tools/normc/Failure.h"
#include "tools/normc/Files.h"

namespace normc::cli {
namespace {

template <typename Enum>
Enum enumOf(const std::string& flag, const std::string& value, std::initializer_list<Enum> legal) {
  std::vector<std::string> names;
  for (const Enum each : legal) names.emplace_back(name(each));
  const std::string word = wordOf(flag, value, names);
  return legal.begin()[std::find(names.begin(), names.end(), word) - names.begin()];
}

template <typename T>
bool reads(const std::string& text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

std::string wordOf(const std::string& flag, const std::string& value, const std::vector<std::string>& legal) {
  if (std::find(legal.begin(), legal.end(), value) != legal.end()) return value;
  throw usage(flag + " is " + inQuotes(value) + "; it must be " + oneOf(legal), didYouMean(value, legal, ""));
}

int64_t wholeOf(const std::string& flag, const std::string& value, int64_t least) {
  int64_t number = 0;
  if (reads(value, number) && number >= least) return number;
  throw usage(flag + " is " + inQuotes(value) + "; it must be a whole number, " + std::to_string(least) +
              " or more");
}

double numberOf(const std::string& flag, const std::string& value) {
  double number = 0;
  if (reads(value, number) && std::isfinite(number)) return number;
  throw usage(flag + " is " + inQuotes(value) + "; it must be a number");
}

std::pair<std::string, std::string> pairOf(const std::string& flag, const std::string& value,
                                           const std::string& form) {
  const size_t at = value.find('=');
  if (at == std::string::npos || at == 0 || at + 1 == value.size())
    throw usage(flag + " is " + inQuotes(value) + "; it must have the form " + form);
  return {value.substr(0, at), value.substr(at + 1)};
}

std::vector<std::string> listOf(const std::string& flag, const std::string& text) {
  std::vector<std::string> words;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find_first_of(",\n", begin), text.size());
    if (end == begin)
      throw usage(flag + " is " + inQuotes(text) + "; it must be a list with commas",
                  "a word is missing before, after or between them");
    words.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

Entry entryOf(const std::string& flag, const std::string& value) { return enumOf(flag, value, kEntries); }
DType dtypeOf(const std::string& flag, const std::string& value) { return enumOf(flag, value, kFloatTypes); }
Layout layoutOf(const std::string& flag, const std::string& value) { return enumOf(flag, value, kLayouts); }

bool namesFile(const std::string& norm) {
  return norm.ends_with(".norm") || norm.find('/') != std::string::npos;
}

std::vector<Norm> normsIn(const std::string& text, const std::string& file) {
  return valueOf(readNorms(text, file), ExitCode::Refused);
}

std::vector<Norm> normsOf(const std::string& norm) {
  if (!namesFile(norm)) return {valueOf(findNorm(norm), ExitCode::Usage)};
  return normsIn(readFile(norm, kLargestNormText + 1), norm);
}

}  // namespace normc::cli
