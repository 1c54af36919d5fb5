// Where a verb's words go: results to the standard output, as text or, with
// --json, as one JSON document; everything else (progress, notes) to the standard error.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "dsl/Nearest.h"

namespace normc::cli {

/// Keys in the order in which they are written.
using Json = nlohmann::ordered_json;

class Output {
 public:
  Output(std::ostream& results, std::ostream& talk) : results_(results), talk_(talk) {}

  bool json = false;  ///< --json

  std::ostream& results() { return results_; }
  std::ostream& talk() { return talk_; }
  void result(const Json&);
  /// True if a result was written: there is one document.
  bool answered() const { return answered_; }
  /// `normc: note: TEXT`
  void note(const std::string& text);

 private:
  std::ostream &results_, &talk_;
  bool answered_ = false;
};

/// Columns as wide as their widest cell, two blanks between them.
class Table {
 public:
  /// A heading that begins with '>' is of a column of numbers: right-aligned.
  explicit Table(std::vector<std::string> headings);
  /// Adds a row with as many cells as there are headings.
  void row(std::vector<std::string> cells);
  std::string text(int indent = 0) const;

 private:
  std::vector<bool> right_;
  std::vector<std::vector<std::string>> rows_;
};

/// `812 B`, `96.3 KiB`.
std::string bytesText(double bytes);
/// `4.2 ms`, `3.1 s`, `2 min 10 s`.
std::string secondsText(double seconds);
/// With `digits` significant digits, without an exponent where that is readable.
std::string digitsText(double value, int digits);
/// "a, b, c".
std::string joined(const std::vector<std::string>& words, const std::string& separator = ", ");

}  // namespace normc::cli
