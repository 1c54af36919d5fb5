// A value, or the errors that explain why there is none.
//
// `dsl` does not use LLVM, so it has its own small result type. A Diagnostic says what is wrong, where, which
// rule it breaks and what would be legal. A failed Result has one or more of them, so that a user sees every
// error of a file in one run.
#pragma once

#include <cassert>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace normc {

/// A place in a source text. Lines and columns count from 1; 0 means "no place".
struct Location {
  std::string file;
  int line = 0;
  int column = 0;
  int length = 1;  ///< the number of columns that the caret underlines
};

/// One error, complete enough to correct without reading the manual.
struct Diagnostic {
  std::string message;     ///< what is wrong, and with which value
  std::string rule;        ///< "C7", a rule number of dsl/SPEC.md; empty for lexical errors
  std::string hint;        ///< what would be legal; may be empty
  Location where;          ///< may be empty (line 0)
  std::string sourceLine;  ///< the text of that line, for the caret display

  /// Returns `file:line:column: error: message [C7]`, the source line, a caret, the hint.
  std::string text() const;
};

/// Returns the texts of all diagnostics, one after another.
std::string text(const std::vector<Diagnostic>& diagnostics);

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(Diagnostic error) : errors_{std::move(error)} {}
  Result(std::vector<Diagnostic> errors) : errors_(std::move(errors)) { assert(!errors_.empty()); }

  explicit operator bool() const { return value_.has_value(); }
  const T& operator*() const& {
    assert(value_);
    return *value_;
  }
  T&& operator*() && {
    assert(value_);
    return std::move(*value_);
  }
  const T* operator->() const {
    assert(value_);
    return &*value_;
  }
  const std::vector<Diagnostic>& errors() const { return errors_; }

 private:
  std::optional<T> value_;
  std::vector<Diagnostic> errors_;
};

}  // namespace normc
