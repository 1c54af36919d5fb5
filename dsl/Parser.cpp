#include "dsl/Parser.h"

#include "dsl/Build.h"
#include "dsl/ForeignSyntaxHints.h"
#include "dsl/Nearest.h"

namespace normc {
namespace {

std::string describe(const Token& token) {
  return token.kind == Token::End ? "the end of the file" : inQuotes(token.text);
}

class Parser {
 public:
  Parser(const SourceText& source, Errors& errors) : errors_(errors), tokens_(lex(source, errors)) {}

  // file = norm { norm }; parseNorms checks that there is at least one
  std::vector<NormSyntax> file() {
    std::vector<NormSyntax> norms;
    while (peek().kind != Token::End) {
      if (peek().isWord("norm")) {
        if (std::optional<NormSyntax> parsed = norm()) norms.push_back(std::move(*parsed));
      } else {
        fail(peek(), "expected 'norm', found " + describe(peek()), "a file is a list of 'norm NAME { ... }'");
        while (peek().kind != Token::End && !startsNorm()) take();
      }
    }
    return norms;
  }

 private:
  // norm = "norm" word [ "from" word ] "{" { clause } "}"
  std::optional<NormSyntax> norm() {
    take();
    NormSyntax norm;
    if (peek().kind != Token::Word) return skipNorm("expected the name of a norm");
    norm.name = take();
    if (peek().isWord("from")) {
      take();
      if (peek().kind != Token::Word) return skipNorm("expected the name of the base after 'from'");
      norm.base = take();
    }
    if (!peek().is('{')) return skipNorm("expected '{'");
    take();
    while (!peek().is('}')) {
      if (peek().kind == Token::End || startsNorm()) {
        fail(norm.name, "norm " + inQuotes(norm.name.text) + " is not closed", "end it with '}'");
        norm.complete = false;
        return norm;
      }
      if (std::optional<Clause> parsed = clause()) {
        norm.clauses.push_back(std::move(*parsed));
      } else {
        norm.complete = false;
      }
    }
    take();
    return norm;
  }

  // clause = keyword [ item { "," item } ], ends with its line, or before "}"
  std::optional<Clause> clause() {
    if (peek().kind != Token::Word) {
      const Token token = take();
      fail(token, "expected a clause or '}', found " + describe(token),
           "a clause starts with a word such as 'reduce'");
      return skipLine();
    }
    Clause clause{take(), {}};
    std::optional<Token> comma;  // the last one
    if (endsClause()) return clause;
    separator();
    if (endsClause()) return std::nullopt;  // reported: the keyword has no value
    while (true) {
      std::optional<Item> parsed = item(false);
      if (!parsed) return skipLine();
      clause.items.push_back(std::move(*parsed));
      if (!peek().is(',') || peek().startsLine) break;
      comma = take();
    }
    const Item& last = clause.items.back();
    const bool endsInClause = comma && !last.key && isClause(last.value.text);
    if (endsInClause && last.value.startsLine) {
      fail(*comma, "expected an item behind ',', found the clause " + inQuotes(last.value.text),
           "leave the ',' at the end of the line out");
      return skipLine();
    }
    if (endsClause()) return clause;
    const bool takesItems = isList(clause.keyword);
    const bool isWord = peek().kind == Token::Word && !isClause(peek().text);
    const bool isItem = takesItems && isWord;
    const bool isOption = !takesItems && (isWord || peek().kind == Token::Number);
    fail(peek(), "expected ',' or the end of the line, found " + describe(peek()),
         endsInClause ? kOneLineEach
         : isItem     ? "separate items by a comma"
         : isOption   ? misplacedOption(last)
                      : kOneLineEach);
    return skipLine();
  }

  // Returns the hint for options behind `value` without parentheses; takes none of them.
  std::string misplacedOption(const Item& value) const {
    const Token& option = tokens_[at_];
    size_t at = at_ + 1;
    if (tokens_[at].is('=')) ++at;
    const Token& setting = tokens_[at];
    const bool isOne = value.arguments.empty() && option.kind == Token::Word && isValue(setting) &&
                       !setting.startsLine && endsClause(tokens_[at + 1]);
    return isOne ? optionHint(value.value.text, option.text, setting.text) : "options go into parentheses";
  }

  // True for the word of a clause that may have several items.
  static bool isList(const Token& keyword) {
    return keyword.isWord("affine") || keyword.isWord("modulate") || keyword.isWord("running") ||
           keyword.isWord("warmup");
  }

  // `reduce = rows` and `reduce: rows` are reported and then parsed as if they were right, so that each has
  // one error only.
  void separator() {
    if (peek().is('=')) {
      fail(take(), "a clause has no '=' behind its word", "leave the '=' out");
    } else if (peek().kind == Token::Broken && peek().text == ":") {
      take();
    }
  }

  // item = [ word "=" ] value [ "(" argument { "," argument } ")" ]
  // An argument is an item without parentheses. Only inside parentheses may a line end.
  std::optional<Item> item(bool isArgument) {
    Item item;
    if (!isValue(peek())) return expectedValue();
    item.value = take();
    if (peek().is('=') && (isArgument || !peek().startsLine)) {
      if (item.value.kind != Token::Word) {
        fail(item.value, "a number cannot be set: " + inQuotes(item.value.text), "write 'option = value'");
        return std::nullopt;
      }
      const Token equals = take();
      item.key = item.value;
      if (!isArgument && peek().startsLine) return nothingBehind(equals);
      if (!isValue(peek())) return expectedValue();
      item.value = take();
    }
    if (isArgument || !peek().is('(') || peek().startsLine) return item;
    take();
    while (true) {
      std::optional<Item> argument = this->item(true);
      if (!argument) return std::nullopt;
      item.arguments.push_back(std::move(*argument));
      if (peek().is(')')) break;
      if (!peek().is(',')) {
        fail(peek(), "expected ',' or ')', found " + describe(peek()), "");
        return std::nullopt;
      }
      take();
    }
    take();
    return item;
  }

  static bool isValue(const Token& token) { return token.kind == Token::Word || token.kind == Token::Number; }
  std::nullopt_t expectedValue() {
    fail(peek(), "expected a word or a number, found " + describe(peek()),
         peek().is('(') ? "options stand behind a value: 'reduce features(groups = 4)'" : "");
    return std::nullopt;
  }
  // A value on the next line is passed over: it is part of the same error.
  std::nullopt_t nothingBehind(const Token& equals) {
    fail(equals, "nothing stands behind '='", "write the value on the same line");
    if (isValue(peek()) && !startsNorm() && !isClause(peek().text)) take();
    return std::nullopt;
  }

  const Token& peek() const { return tokens_[at_]; }
  Token take() {
    const Token token = tokens_[at_];
    if (token.kind != Token::End) ++at_;
    return token;
  }

  bool startsNorm() const { return peek().startsLine && peek().isWord("norm"); }
  bool endsClause() const { return endsClause(peek()); }
  static bool endsClause(const Token& next) {
    return next.startsLine || next.is('}') || next.kind == Token::End;
  }

  // Recovery: skips to the next line, where the next clause begins.
  std::nullopt_t skipLine() {
    while (!endsClause()) take();
    return std::nullopt;
  }

  std::nullopt_t skipNorm(const std::string& message) {
    fail(peek(), message + ", found " + describe(peek()),
         "write 'norm NAME { ... }' or 'norm NAME from BASE { ... }'");
    while (peek().kind != Token::End && !startsNorm()) take();
    return std::nullopt;
  }

  void fail(const Token& at, std::string_view message, std::string_view hint) {
    if (at.kind == Token::Broken) return;  // the lexer has reported it
    errors_.add(at.where, "", message, hint);
  }

  Errors& errors_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
};

}  // namespace

std::vector<NormSyntax> parseSyntax(const SourceText& source, Errors& errors) {
  return Parser(source, errors).file();
}

}  // namespace normc
