#include "dsl/Lexer.h"

#include <algorithm>
#include <charconv>

#include "dsl/Errors.h"
#include "dsl/ForeignSyntaxHints.h"
#include "dsl/Nearest.h"
#include "runtime/abi/Letters.h"

namespace normc {
namespace {

bool isBlank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }
bool isSymbol(char c) { return c == '{' || c == '}' || c == '(' || c == ')' || c == ',' || c == '='; }
bool isSign(char c) { return c == '+' || c == '-'; }

class Lexer {
 public:
  Lexer(const SourceText& source, Errors& errors) : source_(source), text_(source.text()), errors_(errors) {}

  std::vector<Token> run() {
    while (skipBlanks(), at_ < text_.size()) {
      const char c = text_[at_];
      if (isLetter(c)) {
        push(Token::Word, wordLength());
      } else if (startsNumber()) {
        number();
      } else if (isSymbol(c)) {
        push(Token::Symbol, 1);
      } else {
        strange();
      }
    }
    push(Token::End, 0);
    return std::move(tokens_);
  }

 private:
  char peek(size_t ahead) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\n'; }

  // True at a digit, with or without a sign and a point before it.
  bool startsNumber() const {
    const size_t point = isSign(text_[at_]) ? 1 : 0;
    return isDigit(peek(point)) || (peek(point) == '.' && isDigit(peek(point + 1)));
  }

  void skipBlanks() {
    while (at_ < text_.size()) {
      if (text_[at_] == '/' && peek(1) == '/') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (isBlank(text_[at_])) {
        startsLine_ |= text_[at_] == '\n';
        ++at_;
      } else {
        return;
      }
    }
  }

  size_t wordLength() const {
    size_t length = 0;
    while (isLetter(peek(length)) || isDigit(peek(length))) ++length;
    return length;
  }

  // Takes all characters that could belong to one number.
  void number() {
    size_t length = 1;
    for (char c = peek(length);
         isLetter(c) || isDigit(c) || c == '.' || (isSign(c) && (text_[at_ + length - 1] | 0x20) == 'e');
         c = peek(++length)) {
    }
    const std::string_view whole = text_.substr(at_, length);
    const std::string_view digits = whole.substr(whole[0] == '+' ? 1 : 0);
    double value = 0;
    const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (end != digits.data() + digits.size() && isName()) {
      reject(length, inQuotes(whole) + " is no name", "a name begins with a letter or _");
    } else if (end != digits.data() + digits.size()) {
      reject(length, inQuotes(whole) + " is not a number", "write it like 16, 0.9 or 1e-5");
    } else if (status == std::errc::result_out_of_range) {
      reject(length, "the number " + inQuotes(whole) + " is out of the range of double precision",
             kDoubleRangeHint);
    } else {
      push(Token::Number, length);
      tokens_.back().number = value;
    }
  }

  // True behind a word that a name follows.
  bool isName() const {
    return !tokens_.empty() && (tokens_.back().isWord("norm") || tokens_.back().isWord("from"));
  }

  void strange() {
    const auto isKnown = [](char c) {
      return isBlank(c) || isLetter(c) || isDigit(c) || isSymbol(c) || c == '/';
    };
    size_t length = 1;
    while (!isKnown(peek(length))) ++length;
    reject(length, "unexpected " + inQuotes(text_.substr(at_, length)),
           formHint(text_.substr(0, at_), text_.substr(at_, length), text_.substr(at_ + length)));
    if (tokens_.back().text.starts_with("/*")) skipComment();
  }

  // Passes over the rest of a comment as in C, which is reported already.
  void skipComment() {
    const size_t end = endsComments_ ? text_.find("*/", at_) : text_.npos;
    endsComments_ = end != text_.npos;
    if (endsComments_) at_ = end + 2;
  }

  void reject(size_t length, std::string_view message, std::string_view hint) {
    errors_.add(source_.locate(at_, length), "", message, hint);
    push(Token::Broken, length);
  }

  void push(Token::Kind kind, size_t length) {
    tokens_.push_back({kind, text_.substr(at_, length), 0, startsLine_, source_.locate(at_, length)});
    startsLine_ = false;
    at_ += length;
  }

  const SourceText& source_;
  std::string_view text_;
  Errors& errors_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
  bool startsLine_ = true;
  bool endsComments_ = true;  // false: no "*/" follows
};

}  // namespace

SourceText::SourceText(std::string_view text, std::string file)
    : text_(text), file_(std::move(file)), lineStarts_{0} {
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n') lineStarts_.push_back(i + 1);
  }
}

std::string SourceText::line(int number) const {
  if (number < 1 || number > static_cast<int>(lineStarts_.size())) return "";
  const size_t start = lineStarts_[number - 1];
  std::string_view line = text_.substr(start, text_.find('\n', start) - start);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return std::string(line);
}

Location SourceText::locate(size_t offset, size_t length) const {
  const auto next = std::upper_bound(lineStarts_.begin(), lineStarts_.end(), offset);
  const int line = static_cast<int>(next - lineStarts_.begin());
  return {file_, line, static_cast<int>(offset - lineStarts_[line - 1]) + 1, static_cast<int>(length)};
}

Diagnostic SourceText::error(const Location& where, std::string rule, std::string message,
                             std::string hint) const {
  return {std::move(message), std::move(rule), std::move(hint), where, line(where.line)};
}

std::vector<Token> lex(const SourceText& source, Errors& errors) { return Lexer(source, errors).run(); }

}  // namespace normc
