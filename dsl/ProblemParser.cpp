#include <algorithm>
#include <tuple>

#include "dsl/ForeignSyntaxHints.h"
#include "dsl/Nearest.h"
#include "dsl/Problem.h"
#include "dsl/ProblemCheck.h"
#include "dsl/ProblemOptions.h"
#include "runtime/abi/ProblemReader.h"

namespace normc {
namespace {

constexpr const char* kForm =
    "a problem reads NORM:ENTRY@DTYPE[SHAPE]{OPTIONS}, e.g. layer_norm:forward@f32[*x1024]";

// Binds what the text says to a norm, and makes a diagnostic of each fault.
class ProblemParser {
 public:
  ProblemParser(std::string_view text, const SpecLookup& lookup, bool takesSizes)
      : text_(text), lookup_(lookup), takesSizes_(takesSizes), read_(readProblem(text)) {}

  Result<Problem> run() {
    const bool grammatical = read_.faults.empty() || read_.faults[0].kind != ProblemFault::Grammar;
    if (grammatical) findSpec();
    if (grammatical) findPlaces();
    for (const ProblemFault& each : read_.faults)
      if (each.option.empty() || known(each.option) || each.kind == ProblemFault::Twice) diagnose(each);
    if (spec_ && errors_.empty()) {
      const ProblemText& t = read_.problem;
      Problem problem{spec_,    t.entry,     t.data,     t.params, t.output,           t.stream,
                      t.layout, t.segmented, t.features, t.mask,   t.roundsNormalized, t.bindings};
      errors_ = problemErrors(problem, [this](const std::string& part, Diagnostic& error) {
        const auto place = places_.find(part);
        point(error, place == places_.end() ? read_.norm : place->second);
      });
      if (errors_.empty()) return problem;
    }
    std::sort(errors_.begin(), errors_.end(), [](const Diagnostic& a, const Diagnostic& b) {
      return std::tie(a.where.column, a.message) < std::tie(b.where.column, b.message);
    });
    return std::move(errors_);
  }

 private:
  void findSpec() {
    Result<std::shared_ptr<const Spec>> found = lookup_(read_.norm.text);
    if (found) {
      spec_ = *found;
      return;
    }
    for (Diagnostic error : found.errors()) {
      if (error.where.line == 0) point(error, read_.norm);
      errors_.push_back(std::move(error));
    }
  }

  // Notes where options and extents stand; an unknown option, and a size that is to stay open, is an error.
  void findPlaces() {
    std::vector<std::string> given;
    for (const TextPart& option : read_.options)
      given.emplace_back(option.text.substr(0, option.text.find('=')));
    for (const TextPart& option : read_.options) {
      const size_t equals = option.text.find('=');
      const TextPart key{option.offset, option.text.substr(0, equals)};
      const std::string name(key.text);
      if (!places_.emplace(name, equals == option.text.npos ? key : option.after(equals + 1)).second)
        continue;
      if (known(name)) continue;
      errors_.push_back(unknownOption(*spec_, option.text, given));
      point(errors_.back(), key);
    }
    const std::vector<TextPart>& shape = read_.shape;
    places_["[entry]"] = read_.entry;
    places_["[shape]"] = wholeShape();
    const bool channelsFirst = read_.problem.channelsFirst();
    if (shape.size() != (read_.problem.segmented || channelsFirst ? 3 : 2)) return;
    const size_t featureAxis = channelsFirst ? 1 : shape.size() - 1;
    places_["[features]"] = shape[featureAxis];
    for (size_t axis = 0; axis < shape.size() && !takesSizes_; ++axis) {
      if (axis == featureAxis || shape[axis].text == "*") continue;
      const std::string what = axis == 0 && shape.size() == 3 ? "segments" : "rows";
      fail(shape[axis], "P1", "the number of " + what + " stays open, not " + inQuotes(shape[axis].text),
           openHint(axis));
    }
  }

  // Returns the hint for a number in place of the '*' of segments or rows.
  std::string openHint(size_t axis) const {
    const std::vector<TextPart>& shape = read_.shape;
    const bool channelsFirst = read_.problem.channelsFirst();
    if (channelsFirst && axis == 2 && shape[1].text == "*")
      return "with channels_first the features stand in the middle: [*x" + std::string(shape[2].text) + "x*]";
    if (!channelsFirst && axis == 1 && shape.size() == 3)
      return "write '*'; the features stand in the middle only with {layout=channels_first}";
    return "write '*'";
  }

  // Whether the norm has that option. Where there is no norm, every option may be one of it.
  bool known(std::string_view name) const {
    if (isProblemOption(name) || !spec_) return true;
    const std::vector<std::string> bindings = bindingNames(*spec_);
    return std::find(bindings.begin(), bindings.end(), name) != bindings.end();
  }

  void diagnose(const ProblemFault& fault) {
    const TextPart& part = fault.part;
    const std::string option(fault.option), dimensions = std::to_string(read_.shape.size());
    switch (fault.kind) {
      case ProblemFault::Grammar:
        return fail({part.offset, part.text.substr(0, 1)}, "",
                    "expected " + std::string(fault.expected) + ", found " +
                        (part.text.empty() ? "the end" : inQuotes(part.text.substr(0, 1))),
                    kForm);
      case ProblemFault::Word:
        if (option == "layout") return failWord(fault, namesOf(kLayouts));
        if (option == "round") return failWord(fault, {"normalized"});
        return failWord(fault, part.offset == read_.entry.offset ? namesOf(kEntries) : namesOf(kFloatTypes));
      case ProblemFault::Twice:  // P7
        return fail(part, "P7", "the option " + inQuotes(option) + " stands twice", "leave one of them out");
      case ProblemFault::MaskValue:
        return fail(part, "", "'mask' takes no value", "write 'mask' alone, or leave it out for no mask");
      case ProblemFault::NoValue:
        return fail(part, "", inQuotes(option) + " needs a value", "write '" + option + "=...'");
      case ProblemFault::NoNumber:
      case ProblemFault::TooLarge: {
        const bool isSize = option.empty() && part.offset != places_["[features]"].offset;
        if (isSize && !takesSizes_) return;  // that it is a size at all is an error already
        const bool isLarge = fault.kind == ProblemFault::TooLarge;
        return fail(part, option.empty() ? "P1" : "P4",
                    inQuotes(part.text) + (isLarge ? " is too large" : " is no number"),
                    !isLarge ? "use a whole number of 1 or more"
                    : isSize ? "use at most 2^63 - 1"
                             : "use at most 2^40");
      }
      case ProblemFault::Dimensions:  // P1
        return fail(part, "P1", "a shape has two or three dimensions, not " + dimensions,
                    "write rows x features, e.g. [*x1024], or segments x rows x features, e.g. [*x*x64]");
      case ProblemFault::ChannelsFirstDimensions:  // P3
        return fail(part, "P3", "layout=channels_first needs three dimensions, not " + dimensions,
                    "write segments x features x rows, e.g. [*x64x*]");
    }
  }

  template <typename Enum>
  static std::vector<std::string> namesOf(std::initializer_list<Enum> all) {
    std::vector<std::string> names;
    for (const Enum each : all) names.emplace_back(name(each));
    return names;
  }
  void failWord(const ProblemFault& fault, const std::vector<std::string>& names) {
    fail(fault.part, "", inQuotes(fault.part.text) + " is no " + std::string(fault.expected),
         hintFor(fault.part.text, names, "use " + oneOf(names)));
  }
  TextPart wholeShape() const {
    const TextPart &first = read_.shape.front(), &last = read_.shape.back();
    return {first.offset, text_.substr(first.offset, last.offset + last.text.size() - first.offset)};
  }
  void fail(const TextPart& part, std::string rule, std::string message, std::string hint) {
    errors_.push_back({std::move(message), std::move(rule), std::move(hint), {}, ""});
    point(errors_.back(), part);
  }
  void point(Diagnostic& error, const TextPart& part) const {
    error.where = {"", 1, static_cast<int>(part.offset) + 1, std::max(1, static_cast<int>(part.text.size()))};
    error.sourceLine = std::string(text_);
    std::replace_if(
        error.sourceLine.begin(), error.sourceLine.end(), [](char c) { return c >= 0 && c < ' '; }, ' ');
  }

  std::string_view text_;
  const SpecLookup& lookup_;
  const bool takesSizes_;  // numbers of segments and rows
  ProblemReading read_;
  std::shared_ptr<const Spec> spec_;
  std::map<std::string, TextPart> places_;  // by option, and "[entry]", "[shape]", "[features]"
  std::vector<Diagnostic> errors_;
};

}  // namespace

Result<Problem> parseProblem(std::string_view text, const SpecLookup& lookup) {
  return ProblemParser(text, lookup, false).run();
}

Result<Problem> parseRequest(std::string_view text, const SpecLookup& lookup) {
  return ProblemParser(text, lookup, true).run();
}

}  // namespace normc
