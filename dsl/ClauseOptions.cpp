#include "dsl/ClauseOptions.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "dsl/ForeignSyntaxHints.h"
#include "dsl/Nearest.h"
#include "runtime/abi/Letters.h"
#include "runtime/abi/Numbers.h"

namespace normc {
namespace {

bool contains(const std::vector<std::string>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// Rule C26: true if the double equals the whole number that its digits say.
bool isHeld(const Token& number) {
  const bool isSigned = number.text[0] == '+' || number.text[0] == '-';
  std::string_view digits = number.text.substr(isSigned ? 1 : 0);
  if (!std::all_of(digits.begin(), digits.end(), isDigit)) return true;
  digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size() - 1));
  char held[512];  // a double has at most 309 digits before the point
  const char* const end =
      std::to_chars(held, held + sizeof held, std::abs(number.number), std::chars_format::fixed, 0).ptr;
  return digits == std::string_view(held, static_cast<size_t>(end - held));
}

}  // namespace

bool BuildContext::number(const Token& token, double& out) const {
  if (token.kind == Token::Number && !isHeld(token)) {
    fail(token, "C26", inQuotes(token.text) + " is a whole number that double precision rounds to another",
         kWholeHint);
    return false;
  }
  if (token.kind == Token::Number) {
    out = token.number;
    return true;
  }
  fail(token, "", "expected a number, found " + inQuotes(token.text), "");
  return false;
}

bool BuildContext::whole(const Token& token, int64_t& out) const {
  double value = 0;
  if (!number(token, value)) return false;
  const bool isWhole = value == std::floor(value);
  if (!isWhole || std::abs(value) > kLargestWhole) {  // C26
    fail(token, "C26", inQuotes(token.text) + (isWhole ? " is too large" : " is no whole number"),
         kWholeHint);
    return false;
  }
  out = static_cast<int64_t>(value);
  return true;
}

bool BuildContext::groups(const Token& token, Groups& out) const {
  if (token.kind == Token::Word) {
    out = {1, std::string(token.text)};
    return true;
  }
  int64_t count = 1;
  if (!whole(token, count)) return false;
  out = {count, ""};
  return true;
}

void BuildContext::unknownWord(const Token& token, const std::vector<std::string>& known,
                               std::string_view rule) const {
  fail(token, rule, "expected " + oneOf(known) + ", found " + inQuotes(token.text),
       token.kind == Token::Word ? hintFor(token.text, known, "") : "");
}

bool isDivided(const Item& before, const Item& after) {
  const std::string_view first = before.value.text, second = after.value.text;
  return before.value.kind == Token::Number && isNumber(after) &&
         first.data() + first.size() + 1 == second.data();
}

Options::Options(const BuildContext& context, const std::vector<Item>& items, const std::string& owner,
                 const std::string& clause, const std::vector<std::string>& names,
                 const std::vector<std::string>& flags, std::span<const std::string_view> ofClause)
    : context_(context) {
  std::vector<std::string> known = names;
  known.insert(known.end(), flags.begin(), flags.end());
  bool isNamed = false;  // a hint has given a value the name of the first option
  for (const Item& item : items) {
    const Token& name = item.front();
    if (!contains(known, name.text)) {
      const size_t at = &item - items.data();
      const bool divided = isNumber(item) && ((at > 0 && isDivided(items[at - 1], item)) ||
                                              (at + 1 < items.size() && isDivided(item, items[at + 1])));
      const bool mayBeFirst = !item.key && !isNamed && !names.empty() && !find(names.front());
      const std::string named = mayBeFirst ? nameHint(name, names) : "";
      isNamed |= !named.empty();
      const std::string legal = divided          ? kNoCommas
                                : !named.empty() ? named
                                : known.empty()  ? "it has none"
                                                 : "its options are " + oneOf(known);
      const bool isOfOthers = std::ranges::count(ofClause, name.text) > 0;
      context.fail(name, isOfOthers ? "C5" : "", owner + " has no option " + inQuotes(name.text),
                   hintFor(name.text, known, legal));
    } else if (find(name.text)) {
      context.fail(name, "C2", "the option " + inQuotes(name.text) + " is given twice",
                   "leave one of them out");
    } else if (!item.key && contains(names, name.text)) {
      context.fail(name, "", "the option " + inQuotes(name.text) + " needs a value",
                   "write '" + std::string(name.text) + " = ...'");
    } else if (item.key && contains(flags, name.text)) {
      context.fail(name, "", "the option " + inQuotes(name.text) + " takes no value",
                   "write '" + std::string(name.text) + "' alone");
    } else if (!item.arguments.empty()) {
      context.fail(item.arguments[0].front(), "", "an option has no options of its own", "");
    } else {
      given_.push_back({name, item.value});
      context.note(clause + "." + std::string(name.text), item.value);
    }
  }
}

const Options::Given* Options::given(std::string_view name) const {
  for (const Given& each : given_) {
    if (each.name.text == name) return &each;
  }
  return nullptr;
}

void Options::number(std::string_view name, double& out) const {
  if (const Token* token = find(name)) context_.number(*token, out);
}

void Options::groups(std::string_view name, Groups& out) const {
  if (const Token* token = find(name)) context_.groups(*token, out);
}

}  // namespace normc
