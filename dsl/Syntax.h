// The syntax tree of a .norm file: what was written, before its meaning is known.
#pragma once

#include <optional>
#include <vector>

#include "dsl/Lexer.h"

namespace normc {

/// `16`, `rows`, `decay = 0.9`, `approximate(decay = 0.9)`.
struct Item {
  std::optional<Token> key;  ///< the word before `=`
  Token value;               ///< a word or a number
  std::vector<Item> arguments;

  /// Returns the first token.
  const Token& front() const { return key ? *key : value; }
};

/// `affine scale, bias`
struct Clause {
  Token keyword;
  std::vector<Item> items;
};

/// `norm b from a { ... }`
struct NormSyntax {
  Token name;
  std::optional<Token> base;
  std::vector<Clause> clauses;
  bool complete = true;  ///< false: a clause is missing because of an error
};

}  // namespace normc
