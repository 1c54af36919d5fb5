#include "tools/normc/Values.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "autotune/tune/FlagValues.h"
#include "dsl/ForeignSyntaxHints.h"
#include "dsl/Lexer.h"
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

enum class Reading { Number, OutOfRange, None };

template <typename T>
Reading read(const std::string& text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size() || error == std::errc::invalid_argument) return Reading::None;
  return error == std::errc() ? Reading::Number : Reading::OutOfRange;
}

}  // namespace

std::string wordOf(const std::string& flag, const std::string& value, const std::vector<std::string>& legal) {
  if (std::find(legal.begin(), legal.end(), value) != legal.end()) return value;
  throw usage(flag + " is " + inQuotes(value) + "; it must be " + oneOf(legal), hintFor(value, legal, ""));
}

int64_t wholeOf(const std::string& flag, const std::string& value, int64_t least) {
  int64_t number = 0;
  const Reading reading = read(value, number);
  if (reading == Reading::Number && number >= least) return number;
  if (reading == Reading::OutOfRange && !value.starts_with('-'))
    throw usage(flag + " is " + inQuotes(value) + "; it must be at most " + std::to_string(INT64_MAX));
  throw usage(flag + " is " + inQuotes(value) + "; it must be a whole number, " + std::to_string(least) +
              " or more");
}

double numberOf(const std::string& flag, const std::string& value) {
  double number = 0;
  const Reading reading = read(value, number);
  if (reading == Reading::Number && std::isfinite(number)) return number;
  if (reading == Reading::OutOfRange)
    throw usage(flag + " is " + inQuotes(value) + ", which is out of the range of double precision",
                kDoubleRangeHint);
  throw usage(flag + " is " + inQuotes(value) + "; it must be a number");
}

double secondsOf(const std::string& flag, const std::string& text) {
  if (const auto seconds = tune::secondsIn(text)) return *seconds;
  throw usage(flag + " is " + inQuotes(text) + "; " + tune::kTimes);
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
                  "a value is missing beside a comma");
    words.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

Entry entryOf(const std::string& flag, const std::string& value) { return enumOf(flag, value, kEntries); }
DType dtypeOf(const std::string& flag, const std::string& value) { return enumOf(flag, value, kFloatTypes); }
Layout layoutOf(const std::string& flag, const std::string& value) { return enumOf(flag, value, kLayouts); }

void requirePackage(const std::string& file) {
  if (file == "-") throw usage("a package cannot come from the standard input", "give a file");
  if (access(file.c_str(), F_OK) != 0 && findNorm(file))
    throw usage("there is no package " + inQuotes(file),
                "normc compile " + file + " -o " + file + ".npk makes one of this norm");
}

bool namesFile(const std::string& norm) {
  return norm == "-" || norm.ends_with(".norm") || norm.find('/') != std::string::npos;
}

std::vector<Norm> normsIn(const std::string& text, const std::string& file) {
  return valueOf(readNorms(text, file), ExitCode::Refused);
}

std::vector<Norm> normsOf(const std::string& norm) {
  if (norm.ends_with(".npk"))
    throw usage(inQuotes(norm) + " is a package, and here a norm is needed",
                "name a built-in norm or a .norm file; normc inspect shows what a package holds");
  if (!namesFile(norm)) {
    const Result<Norm> found = findNorm(norm);
    if (!found && access(norm.c_str(), F_OK) == 0)
      throw usage(found.errors()[0].message + "; a file has that name",
                  "write ./" + norm + ", or give the file the ending .norm");
    return {valueOf(found, ExitCode::Usage)};
  }
  return normsIn(readFile(norm, kLargestNormText + 1), norm == "-" ? "standard input" : norm);
}

}  // namespace normc::cli
