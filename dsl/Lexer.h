// From the text of a .norm file to its tokens.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "dsl/Result.h"

namespace normc {

/// A source text and where its lines are. Tokens point into it.
class SourceText {
 public:
  SourceText(std::string_view text, std::string file);

  std::string_view text() const { return text_; }
  const std::string& file() const { return file_; }
  /// Line `number` (from 1), without its end.
  std::string line(int number) const;
  /// The place of `length` bytes at `offset`.
  Location locate(size_t offset, size_t length) const;
  /// A diagnostic that shows `where`.
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
  bool startsLine = false;  ///< nothing but blanks before it on its line: clauses end here
  Location where;

  bool is(char symbol) const { return kind == Symbol && text[0] == symbol; }
  bool isWord(std::string_view word) const { return kind == Word && text == word; }
};

/// Always ends with an End token. What is no token is reported and becomes a Broken one,
/// about which the parser says nothing more.
std::vector<Token> lex(const SourceText&, std::vector<Diagnostic>& errors);

}  // namespace normc
