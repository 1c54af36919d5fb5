// The lexer: from the text of a .norm file to its tokens.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "dsl/Result.h"

namespace normc {

class Errors;

/// A source text and the offsets of its lines. Tokens point into the text.
class SourceText {
 public:
  SourceText(std::string_view text, std::string file);

  std::string_view text() const { return text_; }
  const std::string& file() const { return file_; }
  /// Returns line `number` (from 1), without its end.
  std::string line(int number) const;
  /// Returns the place of `length` bytes at `offset`.
  Location locate(size_t offset, size_t length) const;
  /// Returns a diagnostic that shows `where`.
  Diagnostic error(const Location& where, std::string rule, std::string message, std::string hint) const;

 private:
  std::string_view text_;
  std::string file_;
  std::vector<size_t> lineStarts_;
};

struct Token {
  enum Kind { Word, Number, Symbol, Broken, End } kind = End;
  std::string_view text;
  double number = 0;        ///< Number only
  bool startsLine = false;  ///< only blanks before it on its line: clauses end here
  Location where;

  bool is(char symbol) const { return kind == Symbol && text[0] == symbol; }
  bool isWord(std::string_view word) const { return kind == Word && text == word; }
};

/// The range of a number in a text, as a hint.
inline constexpr const char* kDoubleRangeHint = "use a value from 1e-307 to 1e308";

/// Returns the tokens, the last of which is End. Text that is no token is reported and becomes a Broken
/// token, about which the parser reports nothing more.
std::vector<Token> lex(const SourceText&, Errors& errors);

}  // namespace normc
