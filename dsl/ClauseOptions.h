// The options of one clause, e.g. `decay = 0.9, init = 1, unbiased`, and the functions that read them into
// the fields of a Spec.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dsl/Check.h"
#include "dsl/EnumWords.h"
#include "dsl/Errors.h"
#include "dsl/Syntax.h"

namespace normc {

/// The context of the readers of one norm: they report errors and record places.
struct BuildContext {
  const SourceText& source;
  Places& places;
  Errors& errors;

  void fail(const Token& at, std::string_view rule, std::string_view message, std::string_view hint) const {
    errors.add(at.where, rule, message, hint);
  }
  void note(std::string key, const Token& at) const {
    places[std::move(key)] = {at.where, source.line(at.where.line)};
  }

  // Readers: on an error they report it, leave `out` unchanged and return false. `rule`: the rule that lists
  // the words; empty if none does.
  bool number(const Token&, double& out) const;
  bool whole(const Token&, int64_t& out) const;
  bool groups(const Token&, Groups& out) const;
  template <typename Enum, size_t N>
  bool word(const Token& token, const Word<Enum> (&words)[N], Enum& out, std::string_view rule = "") const {
    const std::optional<Enum> value = token.kind == Token::Word ? valueOf(words, token.text) : std::nullopt;
    if (value) {
      out = *value;
    } else {
      unknownWord(token, allOf(words), rule);
    }
    return value.has_value();
  }
  void unknownWord(const Token&, const std::vector<std::string>& known, std::string_view rule) const;
};

/// True if the item is a number without a name.
inline bool isNumber(const Item& item) { return !item.key && item.value.kind == Token::Number; }
/// True if two items are one number that was written with a comma: 4,000.
bool isDivided(const Item& before, const Item& after);

/// The named options of a clause. Reports unknown ones, those of other values of the clause (C5) and those
/// given twice (C2).
class Options {
 public:
  /// `owner`: the text in messages, e.g. "'renorm std'". `clause`: the first part of the places' keys.
  /// `flags`: options that are one word without a value. `ofClause`: the options of all values of the clause.
  Options(const BuildContext&, const std::vector<Item>&, const std::string& owner, const std::string& clause,
          const std::vector<std::string>& names, const std::vector<std::string>& flags = {},
          std::span<const std::string_view> ofClause = {});

  struct Given {
    Token name, value;
  };
  const Given* given(std::string_view name) const;
  const Token* find(std::string_view name) const {
    const Given* const found = given(name);
    return found ? &found->value : nullptr;
  }

  void number(std::string_view name, double& out) const;
  void groups(std::string_view name, Groups& out) const;
  bool flag(std::string_view name) const { return find(name) != nullptr; }
  template <typename Enum, size_t N>
  void word(std::string_view name, const Word<Enum> (&words)[N], Enum& out,
            std::string_view rule = "") const {
    if (const Token* token = find(name)) context_.word(*token, words, out, rule);
  }

 private:
  const BuildContext& context_;
  std::vector<Given> given_;
};

}  // namespace normc
