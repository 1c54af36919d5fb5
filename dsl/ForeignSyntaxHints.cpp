#include "dsl/ForeignSyntaxHints.h"

#include <algorithm>
#include <iterator>

#include "dsl/ForeignWords.h"
#include "dsl/Nearest.h"
#include "runtime/abi/Letters.h"

namespace normc {
namespace {

// The options that a number without a name is most likely meant for, in this order.
constexpr std::string_view kNumberOptions[] = {"decay", "groups", "steps", "rmax", "limit", "offset"};

constexpr const char* kCompute = "write the number itself; a problem can bind a name: 'groups = heads'";

bool isOfWord(char c) { return isLetter(c) || isDigit(c); }

// Takes the blanks and the word, maybe an empty one, that the text begins with; returns the word.
std::string_view takeWord(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  const auto end = std::find_if_not(text.begin(), text.end(), isOfWord);
  const std::string_view word = text.substr(0, end - text.begin());
  text.remove_prefix(word.size());
  return word;
}

// True if the text ends in a word, not in a number or a blank.
bool endsInWord(std::string_view text) {
  const auto start = std::find_if_not(text.rbegin(), text.rend(), isOfWord);
  return start != text.rbegin() && isLetter(*start.base());
}

// Returns the hint for a ':' behind `line`, the part of its line that is one norm's or one clause's.
std::string colonHint(std::string_view line, std::string_view after) {
  const std::string_view first = takeWord(line), second = takeWord(line), base = takeWord(after);
  if (first == "norm" && !second.empty())
    return "write 'norm " + std::string(second) + " from " + std::string(base.empty() ? "BASE" : base) +
           " { ... }'";
  const bool isAlone = !first.empty() && second.empty() && line.find_first_not_of('\r') == line.npos;
  return isAlone ? "leave the ':' out" : "write '=' for an option: 'decay = 0.9'";
}

}  // namespace

std::string hintFor(std::string_view word, const std::vector<std::string>& known,
                    const std::string& otherwise) {
  // 'features' is an option of `rope`, beside which it has many words, and a value of `reduce`.
  std::vector<std::string> places = known;
  if (std::ranges::count(known, "rows") > 0) std::erase(places, "features");
  const std::string_view hint = foreignHint(foreignWords(), word, places);
  return hint.empty() ? didYouMean(word, known, otherwise) : std::string(hint);
}

std::string nameHint(const Token& value, const std::vector<std::string>& options) {
  const bool takesNumber = !options.empty() && std::find(std::begin(kNumberOptions), std::end(kNumberOptions),
                                                         options[0]) != std::end(kNumberOptions);
  if (!takesNumber || (value.kind != Token::Number && options[0] != "groups")) return "";
  return "write '" + options[0] + " = " + std::string(value.text) + "'";
}

std::string optionHint(std::string_view value, std::string_view option, std::string_view setting) {
  // What has something for each token has it for each row.
  const std::string_view own = option == "per" && setting == "token" ? "row" : setting;
  return "write '" + std::string(value) + "(" + std::string(option) + " = " + std::string(own) + ")'";
}

std::string formHint(std::string_view before, std::string_view strange, std::string_view after) {
  const size_t next = after.find_first_not_of(" \t");
  switch (strange[0]) {
    case '#':
      return "a comment starts with //";
    case '/':
      return strange.size() == 1 && next != after.npos && isDigit(after[next]) ? kCompute
                                                                               : "a comment starts with //";
    case '-':
      if (!endsInWord(before) || after.empty() || !isLetter(after[0])) return kCompute;
      return "a name has letters, digits and _: write my_norm for my-norm";
    case '*':
      return after.starts_with('/') ? "a comment starts with //" : kCompute;
    case '+': {
      const std::string_view line = before.substr(before.rfind('\n') + 1);
      if (line.find("modulate") != line.npos) return std::string(kModulationHint);
      return line.find("affine") != line.npos ? std::string(kOffsetHint) : kCompute;
    }
    case ';':
      return "a clause ends with its line: leave the ';' out";
    case ':':
      return colonHint(before.substr(before.find_last_of("{\n") + 1), after);
    case '^':
      return "write a power of ten like 1e-5";
    case '%':
      return "write a percentage as a fraction: 0.01 for 1%";
    case '"':
    case '\'':
    case '`':
      return "names and words stand without quotes";
    default:
      break;
  }
  return static_cast<unsigned char>(strange[0]) < 0x80
             ? ""
             : "words have letters from a to z, digits and _; comments may have any";
}

}  // namespace normc
