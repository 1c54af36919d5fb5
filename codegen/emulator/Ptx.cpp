#include "codegen/emulator/Ptx.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Regex.h"

namespace normc::emulator {

using llvm::StringRef;

bool PtxStatement::is(std::initializer_list<StringRef> first) const {
  return words.size() >= first.size() && std::equal(first.begin(), first.end(), words.begin());
}

bool PtxStatement::has(StringRef word) const { return llvm::is_contained(words, word); }

/// Splits at commas outside of brackets.
static llvm::SmallVector<StringRef> splitOperands(StringRef text) {
  llvm::SmallVector<StringRef> parts;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '{' || text[i] == '[') ++depth;
    if (text[i] == '}' || text[i] == ']') --depth;
    if (text[i] != ',' || depth) continue;
    parts.push_back(text.slice(begin, i).trim());
    begin = i + 1;
  }
  parts.push_back(text.drop_front(begin).trim());
  return parts;
}

static std::optional<PtxOperand> parseOperand(StringRef text) {
  PtxOperand operand;
  text = text.trim();
  if (text == "_") return operand;
  if (text.consume_front("$")) {
    operand.kind = PtxOperand::Register;
    if (text.getAsInteger(10, operand.index)) return std::nullopt;
    return operand;
  }
  if (text.consume_front("[")) {
    if (!text.consume_back("]")) return std::nullopt;
    auto [base, offset] = text.split('+');
    auto address = parseOperand(base);
    if (!address || address->kind != PtxOperand::Register) return std::nullopt;
    if (!offset.trim().empty() && offset.trim().getAsInteger(0, address->number)) return std::nullopt;
    address->kind = PtxOperand::Address;
    return address;
  }
  if (text.consume_front("{")) {
    if (!text.consume_back("}")) return std::nullopt;
    operand.kind = PtxOperand::List;
    for (StringRef part : splitOperands(text)) {
      auto element = parseOperand(part);
      if (!element || element->kind != PtxOperand::Register) return std::nullopt;
      operand.elements.push_back(*element);
    }
    return operand;
  }
  operand.kind = PtxOperand::Number;
  if (text.getAsInteger(0, operand.number)) return std::nullopt;
  return operand;
}

static std::optional<PtxStatement> parseStatement(StringRef text) {
  PtxStatement statement;
  statement.text = text.str();
  if (text.consume_front("@")) {
    statement.negated = text.consume_front("!");
    unsigned index;
    if (!text.consume_front("$") || text.consumeInteger(10, index)) return std::nullopt;
    statement.predicate = index;
    text = text.trim();
  }
  auto [mnemonic, rest] = text.split(' ');
  llvm::SmallVector<StringRef> words;
  mnemonic.split(words, '.');
  for (StringRef word : words) {
    if (word.empty() || !llvm::all_of(word, [](char c) { return llvm::isAlnum(c) || c == '_' || c == ':'; }))
      return std::nullopt;
    statement.words.push_back(word.str());
  }
  if (rest.trim().empty()) return statement;
  for (StringRef part : splitOperands(rest.trim())) {
    auto operand = parseOperand(part);
    if (!operand) return std::nullopt;
    statement.operands.push_back(*operand);
  }
  return statement;
}

/// Returns the text with each run of blanks and line ends as one blank.
static std::string normalized(StringRef text) {
  std::string result;
  for (char c : text) {
    if (c == '\n' || c == '\t' || c == '\r') c = ' ';
    if (c == ' ' && (result.empty() || result.back() == ' ')) continue;
    result += c;
  }
  return StringRef(result).rtrim().str();
}

std::optional<std::vector<PtxStatement>> parsePtx(StringRef text) {
  std::string clean = normalized(text);
  llvm::SmallVector<StringRef> parts;
  StringRef(clean).split(parts, ';', -1, false);
  std::vector<PtxStatement> statements;
  for (StringRef part : parts) {
    if (part.trim().empty()) continue;
    auto statement = parseStatement(part.trim());
    if (!statement) return std::nullopt;
    statements.push_back(std::move(*statement));
  }
  return statements;
}

bool isWaitLoop(StringRef text) {
  static const char* const shape =
      "^\\{ ?\\.reg \\.pred ([A-Za-z0-9_]+); ?([A-Za-z0-9_]+): "
      "mbarrier\\.try_wait\\.parity(\\.shared(::cta)?)?\\.b64 \\1, ?"
      "\\[\\$0\\], ?\\$1(, ?\\$2)?; ?@\\1 bra(\\.uni)? ([A-Za-z0-9_]+); ?bra(\\.uni)? \\2; ?\\7: ?\\}$";
  return llvm::Regex(shape).match(normalized(text));
}

}  // namespace normc::emulator
