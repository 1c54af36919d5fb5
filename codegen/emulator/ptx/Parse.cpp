#include "codegen/emulator/ptx/Parse.h"

#include "codegen/emulator/Site.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/MathExtras.h"

namespace normc::emulator::ptx {

using llvm::ArrayRef;
using llvm::SmallVector;
using llvm::StringRef;
using llvm::Twine;

bool Statement::is(std::initializer_list<StringRef> first) const {
  return words.size() >= first.size() && std::equal(first.begin(), first.end(), words.begin());
}

bool Statement::has(StringRef word) const { return llvm::is_contained(words, word); }

std::optional<Type> typeOf(StringRef word) {
  if (word == "pred") return Type{Type::Predicate, 1};
  Type type;
  if (word.consume_front("bf"))
    type.kind = Type::Brain;
  else if (word.consume_front("b"))
    type.kind = Type::Bits;
  else if (word.consume_front("u"))
    type.kind = Type::Unsigned;
  else if (word.consume_front("s"))
    type.kind = Type::Signed;
  else if (word.consume_front("f"))
    type.kind = Type::Float;
  else
    return std::nullopt;
  if (word.consume_back("x2")) type.lanes = 2;
  const bool known =
      !word.getAsInteger(10, type.bits) && llvm::is_contained({8u, 16u, 32u, 64u, 128u}, type.bits);
  return known ? std::optional(type) : std::nullopt;
}

namespace {

/// More than a kernel has: bytes of a variable, of a local one, names of registers.
constexpr uint64_t kMostBytes = 1 << 30, kMostLocal = 512 << 10;
constexpr unsigned kMostRegisters = 1 << 20;

bool inName(char c) { return llvm::isAlnum(c) || c == '_' || c == '$' || c == '%'; }

/// Splits at commas outside of brackets.
SmallVector<StringRef> splitOperands(StringRef text) {
  SmallVector<StringRef> parts;
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

std::string oneLine(StringRef text) {
  SmallVector<StringRef> words;
  llvm::SplitString(text, words);
  return llvm::join(words, " ");
}

/// The names that two braces enclose.
struct Scope {
  llvm::StringMap<uint32_t> registers, labels;
};

class Parser {
 public:
  explicit Parser(StringRef text) : whole_(text), rest_(text) {}
  llvm::Expected<Module> module();

 private:
  // The text.
  void skipBlanks();
  StringRef upTo(char end);  ///< and behind it
  StringRef name();
  unsigned line() const { return unsigned(whole_.take_front(whole_.size() - rest_.size()).count('\n')) + 1; }
  bool fail(const Twine& why);

  // Its declarations and instructions.
  bool variable(StringRef declaration, std::vector<Variable>&);
  bool entry();
  bool parameters(StringRef list);
  bool directives(StringRef head);
  bool body();
  bool registers(StringRef declaration);
  bool statement(StringRef text);
  bool mnemonic(StringRef word, Statement&);
  std::optional<Operand> operand(StringRef text);
  std::optional<Operand> number(StringRef text);
  std::optional<uint32_t> find(llvm::StringMap<uint32_t> Scope::* names, StringRef name) const;
  uint32_t labelOf(StringRef name);

  StringRef whole_, rest_;
  std::string problem_;
  Module module_;
  Function* function_ = nullptr;
  std::vector<Scope> scopes_;
};

bool Parser::fail(const Twine& why) {
  if (problem_.empty()) problem_ = ("line " + Twine(line()) + " of the PTX: " + why).str();
  return false;
}

//===-- The text ----------------------------------------------------------------------------------===//

void Parser::skipBlanks() {
  while (true) {
    rest_ = rest_.ltrim();
    if (!rest_.starts_with("//")) return;
    auto [comment, behind] = rest_.split('\n');
    // A register that NVPTX leaves as it is, since no value of it is used.
    if (StringRef kept = comment.drop_front(2).trim(); function_ && kept.consume_front("implicit-def:"))
      statement(("implicit-def " + kept.trim()).str());
    rest_ = behind;
  }
}

StringRef Parser::upTo(char end) {
  const size_t at = std::min(rest_.find(end), rest_.size());
  StringRef text = rest_.take_front(at);
  rest_ = rest_.drop_front(std::min(at + 1, rest_.size()));
  return text.trim();
}

StringRef Parser::name() {
  rest_ = rest_.ltrim();
  StringRef found = rest_.take_while(inName);
  rest_ = rest_.drop_front(found.size());
  return found;
}

//===-- Declarations ------------------------------------------------------------------------------===//

/// Returns a list of numbers as little-endian bytes.
std::optional<std::vector<uint8_t>> initialBytes(StringRef list, unsigned each) {
  list = list.trim();
  if (list.consume_front("{") && !list.consume_back("}")) return std::nullopt;
  std::vector<uint8_t> bytes;
  for (StringRef part : splitOperands(list)) {
    uint64_t value = 0;
    int64_t given = 0;
    if (part.consume_front("0f") || part.consume_front("0d")
            ? part.getAsInteger(16, value)
            : part.getAsInteger(0, given) && part.getAsInteger(0, value))
      return std::nullopt;
    value |= uint64_t(given);
    for (unsigned i = 0; i < each; ++i) bytes.push_back(uint8_t(value >> 8 * i));
  }
  return bytes;
}

/// `.extern .shared .align 16 .b8 name[64] = {1, 2}`
bool Parser::variable(StringRef text, std::vector<Variable>& variables) {
  Variable v;
  auto [declaration, initial] = text.split('=');
  unsigned each = 0;
  declaration = declaration.trim();
  while (declaration.consume_front(".")) {
    StringRef word = declaration.take_until(llvm::isSpace);
    declaration = declaration.drop_front(word.size()).ltrim();
    if (word == "align") {
      if (declaration.consumeInteger(10, v.align)) return fail("an alignment that is no number");
      declaration = declaration.ltrim();
    } else if (auto type = typeOf(word)) {
      each = type->width() / 8;
    } else if (word == "extern") {
      v.isExternal = true;
    } else if (word != "visible" && word != "weak") {
      const int space = llvm::StringSwitch<int>(word)
                            .Case("global", Space::Global)
                            .Case("shared", Space::Shared)
                            .Case("const", Space::Constant)
                            .Case("local", Space::Local)
                            .Default(-1);
      if (space < 0) return fail("a variable that is ." + word + " is not emulated");
      v.space = uint8_t(space);
    }
  }
  StringRef name = declaration.take_while(inName);
  uint64_t count = 1;
  declaration = declaration.drop_front(name.size()).trim();
  if (declaration.consume_front("[")) {
    declaration = declaration.ltrim();
    if (declaration.starts_with("]"))
      count = 0;
    else if (declaration.consumeInteger(10, count))
      return fail("a variable whose length is no number");
    if (declaration.trim() != "]") return fail("a variable with several dimensions is not emulated");
  }
  if (name.empty() || !each) return fail("'" + oneLine(text) + "' is not a declaration");
  if (!llvm::isPowerOf2_64(v.align)) return fail("the alignment of '" + name + "' is no power of two");
  const bool local = v.space == Space::Local,
             fits = function_ ? local || v.space == Space::Shared : v.space && !local;
  if (!fits) return fail("a variable of this space is not emulated here: '" + name + "'");
  if (count > (local ? kMostLocal : kMostBytes) / each) return fail("'" + name + "' is too long");
  v.name = name.str();
  v.bytes = count * each;
  v.align = std::max<uint64_t>(v.align, each);
  if (!initial.empty()) {
    auto bytes = initialBytes(initial, each);
    if (!bytes || bytes->size() > v.bytes)
      return fail("the initial values of '" + name + "' are not emulated");
    v.initial = std::move(*bytes);
  }
  variables.push_back(std::move(v));
  return true;
}

/// `.param .u64 .ptr .global .align 16 name`
bool Parser::parameters(StringRef list) {
  if (list.trim().empty()) return true;
  for (StringRef part : splitOperands(list)) {
    SmallVector<StringRef> words;
    llvm::SplitString(part, words);
    std::optional<Type> type = words.size() > 2 ? typeOf(words[1].drop_front()) : std::nullopt;
    if (!type || words[0] != ".param") return fail("'" + oneLine(part) + "' is not a parameter");
    if (type->width() != 64 || words.back().ends_with("]"))
      return fail("the parameter '" + words.back() + "' of " + function_->name +
                  " is not a word of 8 bytes (.b64, .u64, .s64 or .f64)");
    function_->parameters.push_back(words.back().str());
  }
  return true;
}

/// `.maxntid 128, 1, 1 .minnctapersm 8`
bool Parser::directives(StringRef head) {
  while (!(head = head.ltrim()).empty()) {
    if (!head.consume_front(".")) return fail("'" + oneLine(head) + "' before the body of an entry");
    StringRef word = head.take_while(llvm::isAlnum);
    head = head.drop_front(word.size());
    std::array<uint32_t, 3> values{};
    for (uint32_t& value : values) {
      head = head.ltrim();
      if (head.consumeInteger(10, value)) break;
      head = head.ltrim();
      if (!head.consume_front(",")) break;
    }
    if (values[0])
      for (uint32_t& value : values) value = std::max(value, 1u);
    if (word == "maxntid") function_->maxThreads = values;
    if (word == "reqntid") function_->exactThreads = values;
    if (word == "reqnctapercluster") function_->cluster = values;
  }
  return true;
}

/// `.reg .b32 %r<404>` or `.reg .pred p, q`
bool Parser::registers(StringRef text) {
  const std::string clean = oneLine(text);
  auto [word, names] = StringRef(clean).split(' ');
  auto type = word.consume_front(".") ? typeOf(word) : std::nullopt;
  if (!type) return fail("registers of an unknown type: '." + word + "'");
  auto add = [&](const std::string& name) {
    scopes_.back().registers[name] = uint32_t(function_->registers.size());
    function_->registers.push_back({name, type->width()});
  };
  for (StringRef each : splitOperands(names)) {
    auto [name, count] = each.split('<');
    unsigned number = 0;
    if (count.empty()) {
      add(name.str());
    } else {
      if (count.consumeInteger(10, number) || count != ">")
        return fail("'" + each + "' declares no registers");
      if (number > kMostRegisters) return fail("'" + each + "' are too many registers");
      for (unsigned i = 0; i < number; ++i) add(name.str() + std::to_string(i));
    }
  }
  return true;
}

//===-- Instructions ------------------------------------------------------------------------------===//

std::optional<uint32_t> Parser::find(llvm::StringMap<uint32_t> Scope::* names, StringRef name) const {
  for (const Scope& scope : llvm::reverse(scopes_))
    if (auto at = (scope.*names).find(name); at != (scope.*names).end()) return at->second;
  return std::nullopt;
}

/// Returns the label of the innermost scope that has it. One that comes later is of the function, or of the
/// scope that it is then defined in.
uint32_t Parser::labelOf(StringRef name) {
  if (auto known = find(&Scope::labels, name)) return *known;
  const auto label = uint32_t(function_->labels.size());
  function_->labels.push_back(name.str());
  scopes_.back().labels[name] = label;
  return label;
}

std::optional<Operand> Parser::number(StringRef text) {
  Operand operand{.kind = Operand::Number};
  uint64_t bits = 0;
  const bool single = text.consume_front("0f");
  if (single || text.consume_front("0d")) {
    if (text.getAsInteger(16, bits)) return std::nullopt;
    operand.number = int64_t(bits);
    operand.floatBits = single ? 32 : 64;
    return operand;
  }
  text.consume_back("U");
  if (!text.getAsInteger(0, operand.number)) return operand;
  if (text.getAsInteger(0, bits)) return std::nullopt;
  operand.number = int64_t(bits);
  return operand;
}

std::optional<Operand> Parser::operand(StringRef text) {
  text = text.trim();
  Operand result;
  const auto elements = [&](ArrayRef<StringRef> parts) -> std::optional<Operand> {
    for (StringRef part : parts) {
      auto element = operand(part);
      if (!element) return std::nullopt;
      result.elements.push_back(std::move(*element));
    }
    return result;
  };
  if (text == "_") return result;
  if (text.consume_front("{")) {
    result.kind = Operand::List;
    return text.consume_back("}") ? elements(splitOperands(text)) : std::nullopt;
  }
  if (text.contains('|')) {
    result.kind = Operand::Pair;
    auto [first, second] = text.split('|');
    return elements({first, second});
  }
  if (text.consume_front("[")) {
    if (!text.consume_back("]")) return std::nullopt;
    StringRef base = text.take_while(inName), offset = text.drop_front(base.size()).trim();
    auto address = operand(base);
    if (!address) return std::nullopt;
    if (offset.consume_front("+") && offset.trim().getAsInteger(0, address->number)) return std::nullopt;
    const bool named = address->kind == Operand::Symbol;
    if (!named && address->kind != Operand::Register) return std::nullopt;
    address->kind = Operand::Address;
    return address;
  }
  result.negated = text.consume_front("!");
  if (text.empty()) return std::nullopt;
  if (llvm::isDigit(text[0]) || text[0] == '-') return number(text);
  StringRef name = text.take_while([](char c) { return inName(c) || c == '.'; });
  if (name.size() != text.size()) return std::nullopt;
  if (auto index = find(&Scope::registers, name)) {
    result.kind = Operand::Register;
    result.index = *index;
    return result;
  }
  result.kind = name.starts_with("%") || name == "WARP_SZ" ? Operand::Special : Operand::Symbol;
  result.name = name.str();
  return result;
}

bool Parser::mnemonic(StringRef text, Statement& s) {
  SmallVector<StringRef> words;
  text.split(words, '.');
  for (StringRef word : words) {
    if (word.empty() ||
        !llvm::all_of(word, [](char c) { return llvm::isAlnum(c) || c == '_' || c == ':' || c == '-'; }))
      return false;
    s.words.push_back(word.str());
    if (auto type = typeOf(word); type && s.words.size() > 1) s.types.push_back(*type);
  }
  return true;
}

bool Parser::statement(StringRef text) {
  Statement s;
  s.text = oneLine(text);
  s.line = line();
  text = s.text;
  if (text.consume_front("@")) {
    s.guardNegated = text.consume_front("!");
    StringRef name = text.take_while(inName);
    s.guard = find(&Scope::registers, name);
    if (!s.guard) return fail("the predicate '" + name + "' is not declared");
    text = text.drop_front(name.size()).ltrim();
  }
  auto [word, operands] = text.split(' ');
  if (!mnemonic(word, s)) return fail("'" + s.text + "' is not an instruction");
  if (s.words[0] == "bra") {
    s.target = labelOf(operands.trim());
  } else if (!operands.empty()) {
    for (StringRef part : splitOperands(operands)) {
      auto each = operand(part);
      if (!each) return fail("'" + part + "' is not an operand, in '" + s.text + "'");
      s.operands.push_back(std::move(*each));
    }
  }
  function_->statements.push_back(std::move(s));
  return true;
}

bool Parser::body() {
  scopes_.assign(1, {});
  while (true) {
    skipBlanks();
    if (rest_.empty()) return fail("the end of the text, in the body of an entry");
    if (rest_.consume_front("{")) {
      scopes_.emplace_back();
      continue;
    }
    if (rest_.consume_front("}")) {
      scopes_.pop_back();
      if (scopes_.empty()) return true;
      continue;
    }
    if (rest_.consume_front(".pragma")) {
      upTo(';');
      continue;
    }
    if (rest_.consume_front(".reg")) {
      if (!registers(upTo(';'))) return false;
      continue;
    }
    if (rest_.starts_with(".")) {
      if (!variable(upTo(';'), function_->variables)) return false;
      continue;
    }
    StringRef first = rest_.take_while(inName), behind = rest_.drop_front(first.size()).ltrim();
    if (!first.empty() && behind.starts_with(":") && !behind.starts_with("::")) {
      Statement label;
      label.line = line();
      label.label = labelOf(first);
      label.text = first.str();
      function_->statements.push_back(std::move(label));
      rest_ = behind.drop_front(1);
      continue;
    }
    StringRef text = rest_.take_until([](char c) { return c == ';'; });
    if (!statement(text)) return false;
    upTo(';');
  }
}

bool Parser::entry() {
  module_.entries.emplace_back();
  function_ = &module_.entries.back();
  function_->name = name().str();
  rest_ = rest_.ltrim();
  if (rest_.consume_front("(") && !parameters(upTo(')'))) return false;
  const bool made = directives(upTo('{')) && body();
  function_ = nullptr;
  return made;
}

llvm::Expected<Module> Parser::module() {
  bool good = true;
  for (skipBlanks(); good && !rest_.empty(); skipBlanks()) {
    if (rest_.consume_front(".version") || rest_.consume_front(".address_size")) {
      rest_ = rest_.ltrim(" \t");
      rest_ = rest_.drop_while([](char c) { return llvm::isDigit(c) || c == '.'; });
    } else if (rest_.consume_front(".target")) {
      rest_ = rest_.ltrim();
      StringRef target = rest_.take_until(llvm::isSpace);
      rest_ = rest_.drop_front(target.size());
      if (!target.consume_front("sm_") || target.consumeInteger(10, module_.architecture))
        good = fail("a target that is no sm_NN");
    } else if (StringRef word = rest_.take_until([](char c) { return c == ';' || c == '{' || c == '('; });
               word.contains(".entry")) {
      rest_ = rest_.drop_front(rest_.find(".entry") + 6);
      good = entry();
    } else if (word.contains(".func")) {
      good = fail("a function that is called is not emulated: '" + oneLine(word) + "'");
    } else if (word.starts_with(".")) {
      good = variable(upTo(';'), module_.variables);
    } else {
      good = fail("'" + oneLine(word.take_front(40)) + "' outside of an entry");
    }
  }
  if (good && !module_.architecture) good = fail("no .target");
  if (good && module_.entries.empty()) good = fail("no entry");
  if (!good) return llvm::createStringError(problem_);
  return std::move(module_);
}

}  // namespace

llvm::Expected<Module> parse(StringRef text) { return Parser(text.split('\0').first).module(); }

}  // namespace normc::emulator::ptx
