#include "dsl/Build.h"

#include <algorithm>
#include <array>

#include "dsl/ClauseOptions.h"
#include "dsl/ForeignSyntaxHints.h"
#include "dsl/Nearest.h"

namespace normc {
namespace {

class Builder {
 public:
  Builder(const SourceText& source, Spec& spec, Places& places, Errors& errors)
      : context_{source, places, errors}, spec_(spec) {}

  void apply(const NormSyntax& norm) {
    context_.places[""] = {norm.name.where, context_.source.line(norm.name.where.line)};
    std::vector<std::string_view> seen;
    for (const Clause& clause : norm.clauses) {
      const std::string_view keyword = clause.keyword.text;
      const Handler* const handler = find(keyword);
      if (!handler) {
        unknownClause(clause.keyword);
      } else if (std::find(seen.begin(), seen.end(), keyword) != seen.end()) {
        // C2
        context_.fail(clause.keyword, "C2", "the clause " + inQuotes(keyword) + " appears twice in this norm",
                      "leave one of them out");
        (this->*handler->apply)(clause);  // for the errors inside it
      } else {
        seen.push_back(keyword);
        context_.note(std::string(keyword), clause.keyword);
        (this->*handler->apply)(clause);
      }
    }
  }

  static bool knows(std::string_view keyword) { return find(keyword) != nullptr; }

 private:
  struct Handler {
    std::string_view keyword;
    void (Builder::*apply)(const Clause&);
    std::array<std::string_view, 5> options = {};  // that only some of its values have
  };
  static const Handler kHandlers[18];

  static const Handler* find(std::string_view keyword) {
    const auto found = std::find_if(std::begin(kHandlers), std::end(kHandlers),
                                    [&](const Handler& each) { return each.keyword == keyword; });
    return found == std::end(kHandlers) ? nullptr : found;
  }

  void reduce(const Clause& clause) {
    spec_.reduce = Reduce::Features;
    spec_.groups = {};
    const Item* value = only(clause, allOf(kReduceWords), kOneReduction);
    if (!value || !head(clause, *value, kReduceWords, spec_.reduce)) return;
    if (!spec_.perGroup()) return noOptions(clause, *value);
    options(clause, *value).groups("groups", spec_.groups);
  }

  void center(const Clause& clause) {
    spec_.center = Center::None;
    plain(clause, kCenterWords, spec_.center);
  }

  void moment(const Clause& clause) {
    spec_.moment = Moment::Raw;
    plain(clause, kMomentWords, spec_.moment);
  }

  void divideBy(const Clause& clause) {
    spec_.divideBy = DivideBy::Current;
    spec_.window = {};
    const Item* value = only(clause, allOf(kDivideByWords));
    if (!value || !head(clause, *value, kDivideByWords, spec_.divideBy)) return;
    if (spec_.divideBy != DivideBy::Window) return noOptions(clause, *value);
    // window(16, arithmetic): the only values without a name. Each is optional; the order is fixed.
    size_t next = 0;
    const std::vector<Item>& arguments = value->arguments;
    if (next < arguments.size() && !arguments[next].key && arguments[next].value.kind == Token::Number) {
      context_.note("divide_by.size", arguments[next].value);
      context_.whole(arguments[next++].value, spec_.window.size);
    }
    if (next < arguments.size() && !arguments[next].key && arguments[next].value.kind == Token::Word) {
      context_.word(arguments[next++].value, kWindowMeanWords, spec_.window.mean);
    }
    if (next < arguments.size()) {
      const Token& extra = arguments[next].front();
      context_.fail(extra, "", "unexpected " + inQuotes(extra.text) + " in 'window'",
                    "write 'window(16, arithmetic)' or 'window(16, geometric)'");
    }
  }

  void running(const Clause& clause) {
    spec_.running.reset();
    if (isNone(clause)) return;
    spec_.running.emplace();
    const Options given(context_, clause.items, "'running'", "running", {"decay", "init"}, {"unbiased"});
    given.number("decay", spec_.running->decay);
    given.number("init", spec_.running->init);
    spec_.running->unbiased = given.flag("unbiased");
  }

  void backward(const Clause& clause) {
    spec_.backward = Backward::Exact;
    spec_.approximate = {};
    const Item* value = only(clause, allOf(kBackwardWords));
    if (!value || !head(clause, *value, kBackwardWords, spec_.backward)) return;
    if (spec_.backward != Backward::Approximate) return noOptions(clause, *value);
    Spec::Approximate& nu = spec_.approximate;
    const Options given = options(clause, *value);
    given.word("nu", kNuWords, nu.nu);
    given.word("scale", kBackwardScaleWords, nu.scale);
    // C5: options that this nu does not have.
    if (const Options::Given* decay = given.given("decay"); decay && nu.nu == Nu::Window) {
      context_.fail(decay->name, "C5", "a decay means nothing for 'nu = window'",
                    "leave it out, or use 'nu = average'");
    } else {
      given.number("decay", nu.decay);
    }
    const Options::Given* clamp = given.given("clamp_gamma");
    if (!clamp || clamp->value.isWord("none")) return;
    if (nu.nu != Nu::Feedback) {
      context_.fail(clamp->name, "C5", "'clamp_gamma' means nothing without 'nu = feedback'",
                    "leave it out, or use 'nu = feedback'");
    } else if (double limit = 0; context_.number(clamp->value, limit)) {
      nu.clampGamma = limit;
    }
  }

  void renorm(const Clause& clause) {
    spec_.renorm = {};
    Spec::Renormalize& renorm = spec_.renorm;
    const Item* value = only(clause, allOf(kRenormWords));
    if (!value || !head(clause, *value, kRenormWords, renorm.kind)) return;
    if (renorm.kind == Renorm::Std) {
      renorm.rmax = 3;
      renorm.dmax = 5;
      const Options given = options(clause, *value, {"rmax", "dmax", "start"});
      given.number("rmax", renorm.rmax);
      given.number("dmax", renorm.dmax);
      given.number("start", renorm.start);
    } else if (renorm.kind == Renorm::Moment) {
      renorm.start = 1000;
      const Options given = options(clause, *value, {"limit", "start", "forward"});
      given.number("limit", renorm.rmax);
      given.number("start", renorm.start);
      given.word("forward", kYesNoWords, renorm.forward);
    } else {
      noOptions(clause, *value);
    }
  }

  void affine(const Clause& clause) {
    spec_.scale = spec_.bias = false;
    spec_.scaleOffset.reset();
    if (isNone(clause)) return;
    if (const Token* option = optionOf("bias", clause.items)) {
      context_.fail(*option, "C28", "'bias' has no option " + inQuotes(option->text),
                    "the offset is of the scale: 'affine scale(offset = 1)'");
      return;
    }
    std::vector<Item> items = clause.items;
    double offset = 0;
    takeOffset(clause, items, offset);
    if (offset != 0) spec_.scaleOffset = offset;
    const Options given(context_, items, "'affine'", "affine", {}, {"scale", "bias"});
    spec_.scale = given.flag("scale");
    spec_.bias = given.flag("bias");
    if (clause.items.empty()) expected(clause.keyword, {"scale", "bias", "none"});
  }

  void residual(const Clause& clause) {
    spec_.residual.reset();
    std::optional<Side> side;
    const Item* value = unlessNone(clause, kResidualWords, side);
    if (!value) return;
    spec_.residual.emplace().side = *side;
    const Options given = options(clause, *value);
    if (const Options::Given* stream = given.given("stream"); stream && *side == Side::After) {
      // C29
      context_.fail(stream->name, "C29", "'stream' means nothing for 'residual after'",
                    "what is added behind the norm is part of y: leave it out, or use 'residual before'");
    } else {
      given.word("stream", kYesNoWords, spec_.residual->stream);
    }
  }

  void gate(const Clause& clause) {
    spec_.gate.reset();
    std::optional<Activation> function;
    const Item* value = unlessNone(clause, kGateWords, function, "C31");
    if (!value) return;
    spec_.gate.emplace().function = *function;
    const Options given = options(clause, *value);
    given.word("at", kAtWords, spec_.gate->side);
    given.word("per", kPerWords, spec_.gate->per);
  }

  void modulate(const Clause& clause) {
    spec_.modulate.reset();
    if (isNone(clause)) return;
    if (clause.items.empty()) return expected(clause.keyword, {"scale", "shift", "none"});
    Spec::Modulate& modulate = spec_.modulate.emplace();
    std::vector<Item> items = clause.items;
    takeOffset(clause, items, modulate.offset);
    if (const Token* option = optionOf("shift", items)) {
      context_.fail(*option, "C30", "'shift' of 'modulate' has no options",
                    "an offset belongs to 'scale': write 'modulate scale(offset = 0)'");
      return;
    }
    const Options given(context_, items, "'modulate'", "modulate", {"per"}, {"scale", "shift"});
    modulate.scale = given.flag("scale");
    modulate.shift = given.flag("shift");
    given.word("per", kModulatePerWords, modulate.per, "C30");
  }

  // Reads the option of `scale`, the only word of a list that has one, and takes it out of the items.
  void takeOffset(const Clause& clause, std::vector<Item>& items, double& offset) {
    for (Item& item : items) {
      if (item.key || !item.value.isWord("scale")) continue;
      options(clause, item).number("offset", offset);
      item.arguments.clear();
      return;
    }
  }

  // Returns the first option of a word of a list that has none; null if it stands without.
  static const Token* optionOf(std::string_view word, const std::vector<Item>& items) {
    for (const Item& item : items)
      if (!item.key && item.value.isWord(word) && !item.arguments.empty()) return &item.arguments[0].front();
    return nullptr;
  }

  void rope(const Clause& clause) {
    spec_.rope.reset();
    std::optional<Pairs> pairs;
    const Item* value = unlessNone(clause, kRopeWords, pairs);
    if (!value) return;
    Spec::Rope& rope = spec_.rope.emplace();
    rope.pairs = *pairs;
    const Options given = options(clause, *value);
    given.groups("groups", rope.groups);
    const Token* features = given.find("features");
    if (!features || features->isWord("all")) return;
    if (features->kind == Token::Word) {
      context_.fail(*features, "", "expected all or a number, found " + inQuotes(features->text),
                    "write 'features = 64' for the first 64 of each group, or leave it out for all");
    } else if (int64_t count = 0; context_.whole(*features, count)) {
      rope.features = count;
    }
  }

  void activation(const Clause& clause) {
    spec_.activation = Activation::None;
    plain(clause, kActivationWords, spec_.activation);
  }

  void quantize(const Clause& clause) {
    spec_.quantize.reset();
    std::optional<Codes> codes;
    const Item* value = unlessNone(clause, kQuantizeWords, codes);
    if (!value) return;
    Spec::Quantize& quantize = spec_.quantize.emplace();
    quantize.codes = *codes;
    const Options given = options(clause, *value);
    // Without a legal `per` one cannot say which options mean something.
    if (const Token* per = given.find("per"); per && !context_.word(*per, kQuantizePerWords, quantize.per))
      return;
    // C33: options that this `per` does not have, their defaults included.
    if (const Options::Given* size = given.given("size"); size && quantize.per != QuantizePer::Block) {
      context_.fail(size->name, "C33",
                    "'size' means nothing for 'per = " + wordOf(kQuantizePerWords, quantize.per) + "'",
                    "leave it out, or write 'per = block'");
    } else if (size) {
      context_.whole(size->value, quantize.size);
    }
    const bool isGiven = quantize.per == QuantizePer::Tensor;
    if (const Options::Given* scale = given.given("scale"); scale && isGiven) {
      context_.fail(scale->name, "C33", "'scale' means nothing for 'per = tensor'", kGivenScaleHint);
    } else {
      given.word("scale", kQuantizeScaleWords, quantize.powerOfTwo);
    }
    if (const Options::Given* floor = given.given("floor"); floor && isGiven) {
      context_.fail(floor->name, "C33", "'floor' means nothing for 'per = tensor'", kGivenScaleHint);
    } else {
      given.number("floor", quantize.floor);
    }
  }

  void epsilon(const Clause& clause) {
    spec_.epsilonMode = EpsilonMode::Add;
    const Item* value = only(clause, {"a number"});
    if (!value) return;
    context_.note("epsilon", value->value);
    if (value->key) {
      unnamed(*value);
    } else if (context_.number(value->value, spec_.epsilon)) {
      Options(context_, value->arguments, "'epsilon'", "epsilon", {"mode"})
          .word("mode", kEpsilonModeWords, spec_.epsilonMode);
    }
  }

  void pre(const Clause& clause) {
    static constexpr Word<bool> kPreWords[] = {{"none", false}, {"group_scaling", true}};
    spec_.pre.reset();
    bool present = false;
    const Item* value = unlessNone(clause, kPreWords, present);
    if (!value) return;
    spec_.pre.emplace();
    const Options given = options(clause, *value);
    given.groups("groups", spec_.pre->groups);
    given.number("epsilon", spec_.pre->epsilon);
  }

  void warmup(const Clause& clause) {
    spec_.warmup.reset();
    if (isNone(clause)) return;
    spec_.warmup.emplace();
    const Options given(context_, clause.items, "'warmup'", "warmup", {"steps", "accumulate"});
    given.number("steps", spec_.warmup->steps);
    given.word("accumulate", kAccumulateWords, spec_.warmup->accumulate);
  }

  void padding(const Clause& clause) {
    spec_.padding = Padding::Exclude;
    plain(clause, kPaddingWords, spec_.padding);
  }

  // Reads a clause that is one word of `words`.
  template <typename Enum, size_t N>
  void plain(const Clause& clause, const Word<Enum> (&words)[N], Enum& out) {
    const Item* value = only(clause, allOf(words));
    if (value && head(clause, *value, words, out)) noOptions(clause, *value);
  }

  // Reads the word of a clause that is one value of `words`. Returns the item; null if the word stands for an
  // absent flag, which has no options, or after an error.
  template <typename Enum, size_t N>
  const Item* unlessNone(const Clause& clause, const Word<Enum> (&words)[N], Enum& out,
                         std::string_view rule = "") {
    const Item* value = only(clause, allOf(words));
    if (!value || !head(clause, *value, words, out, rule)) return nullptr;
    if (out) return value;
    noOptions(clause, *value);
    return nullptr;
  }

  static constexpr const char* kOneValue = "write one of them; what is left out is a kernel of its own";
  static constexpr const char* kOneReduction =
      "write one of them; one statistic over rows and features is 'segment_features'";

  // Returns the only item of a clause; else reports an error that lists the legal values. `hint` is that for
  // a second one of these.
  const Item* only(const Clause& clause, const std::vector<std::string>& legal,
                   const char* hint = kOneValue) {
    if (clause.items.empty()) {
      expected(clause.keyword, legal);
      return nullptr;
    }
    if (clause.items.size() > 1) {
      const Item& second = clause.items[1];
      const bool isValue = !second.key && std::ranges::count(legal, second.value.text) > 0;
      context_.fail(second.front(), "",
                    inQuotes(clause.keyword.text) + " takes one value, but a second one follows",
                    isDivided(clause.items[0], second)        ? kNoCommas
                    : isValue                                 ? hint
                    : !second.key && knows(second.value.text) ? kOneLineEach
                                                              : "options go into parentheses");
      return nullptr;
    }
    return &clause.items[0];
  }

  // Reads the word of the item, whose place is recorded for the clause. `rule`: the rule that lists the
  // words.
  template <typename Enum, size_t N>
  bool head(const Clause& clause, const Item& item, const Word<Enum> (&words)[N], Enum& out,
            std::string_view rule = "") {
    context_.note(std::string(clause.keyword.text), item.value);
    if (item.key) {
      unnamed(item);
      return false;
    }
    return context_.word(item.value, words, out, rule);
  }

  // Reads the options of an item: those of the clause, or the `names` among them.
  Options options(const Clause& clause, const Item& item) {
    std::vector<std::string> names;
    for (const std::string_view option : find(clause.keyword.text)->options)
      if (!option.empty()) names.emplace_back(option);
    return options(clause, item, names);
  }
  Options options(const Clause& clause, const Item& item, const std::vector<std::string>& names) {
    const std::string owner =
        "'" + std::string(clause.keyword.text) + " " + std::string(item.value.text) + "'";
    return Options(context_, item.arguments, owner, std::string(clause.keyword.text), names, /*flags=*/{},
                   find(clause.keyword.text)->options);
  }
  void noOptions(const Clause& clause, const Item& item) { options(clause, item, {}); }

  static bool isNone(const Clause& clause) {
    return clause.items.size() == 1 && !clause.items[0].key && clause.items[0].value.isWord("none") &&
           clause.items[0].arguments.empty();
  }

  void expected(const Token& keyword, const std::vector<std::string>& legal) {
    context_.fail(keyword, "", inQuotes(keyword.text) + " needs a value",
                  "write one behind it: " + oneOf(legal));
  }

  void unnamed(const Item& item) {
    context_.fail(*item.key, "", "unexpected " + inQuotes(std::string(item.key->text) + " ="),
                  "write the value without a name");
  }

  void unknownClause(const Token& keyword) {
    std::vector<std::string> known;
    known.reserve(std::size(kHandlers));
    for (const Handler& handler : kHandlers) known.emplace_back(handler.keyword);
    context_.fail(keyword, "", "unknown clause " + inQuotes(keyword.text),
                  hintFor(keyword.text, known,
                          "the clauses are " + oneOf(known) +
                              "; docs/language.md says what has none, and what to do instead"));
  }

  BuildContext context_;
  Spec& spec_;
};

const Builder::Handler Builder::kHandlers[18] = {
    {"reduce", &Builder::reduce, {"groups"}},
    {"center", &Builder::center},
    {"moment", &Builder::moment},
    {"divide_by", &Builder::divideBy},
    {"running", &Builder::running},
    {"backward", &Builder::backward, {"decay", "nu", "scale", "clamp_gamma"}},
    {"renorm", &Builder::renorm, {"rmax", "dmax", "start", "limit", "forward"}},
    {"residual", &Builder::residual, {"stream"}},
    {"gate", &Builder::gate, {"at", "per"}},
    {"affine", &Builder::affine, {"offset"}},
    {"modulate", &Builder::modulate, {"offset"}},
    {"rope", &Builder::rope, {"features", "groups"}},
    {"activation", &Builder::activation},
    {"quantize", &Builder::quantize, {"per", "size", "scale", "floor"}},
    {"epsilon", &Builder::epsilon},
    {"pre", &Builder::pre, {"groups", "epsilon"}},
    {"warmup", &Builder::warmup},
    {"padding", &Builder::padding},
};

}  // namespace

void applyClauses(const NormSyntax& norm, const SourceText& source, Spec& spec, Places& places,
                  Errors& errors) {
  Builder(source, spec, places, errors).apply(norm);
}

bool isClause(std::string_view keyword) { return Builder::knows(keyword); }

}  // namespace normc
