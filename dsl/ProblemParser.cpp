#include <algorithm>
#include <charconv>
#include <tuple>

#include "dsl/ForeignSyntaxHints.h"
#include "dsl/Nearest.h"
#include "dsl/Problem.h"
#include "dsl/ProblemCheck.h"

namespace normc {
namespace {

constexpr const char* kForm =
    "a problem reads NORM:ENTRY@DTYPE[SHAPE]{OPTIONS}, e.g. layer_norm:forward@f32[*x1024]";

// A piece of the text that remembers where it stands.
struct Part {
  size_t offset = 0;
  std::string_view text;
};

class ProblemParser {
 public:
  ProblemParser(std::string_view text, const SpecLookup& lookup, bool takesSizes)
      : text_(text), lookup_(lookup), takesSizes_(takesSizes) {}

  Result<Problem> run() {
    if (!structure()) return std::move(errors_);
    findSpec();
    named(entry_, "entry", kEntries, problem_.entry);
    named(data_, "dtype", kFloatTypes, problem_.data);
    problem_.params = problem_.statistics();
    for (const Part& option : options_) readOption(option);
    readShape();
    if (problem_.spec && errors_.empty()) {
      errors_ = problemErrors(problem_, [this](const std::string& part, Diagnostic& error) {
        const auto place = places_.find(part);
        point(error, place == places_.end() ? name_ : place->second);
      });
    }
    if (errors_.empty()) return std::move(problem_);
    std::sort(errors_.begin(), errors_.end(), [](const Diagnostic& a, const Diagnostic& b) {
      return std::tie(a.where.column, a.message) < std::tie(b.where.column, b.message);
    });
    return std::move(errors_);
  }

 private:
  // Cuts the text into its parts; one error, because what follows it has no meaning.
  bool structure() {
    name_ = word();
    if (name_.text.empty()) return misses("the name of a norm");
    if (!skip(':')) return misses("':'");
    entry_ = word();
    if (!skip('@')) return misses("'@'");
    data_ = word();
    if (!skip('[')) return misses("'['");
    do {
      shape_.push_back(skip('*') ? Part{at_ - 1, "*"} : digits());
      if (shape_.back().text.empty()) return misses("'*' or a number");
    } while (skip('x'));
    if (!skip(']')) return misses("'x' or ']'");
    if (skip('{')) {
      do {
        options_.push_back(option());
        if (options_.back().text.empty()) return misses("an option");
      } while (skip(','));
      if (!skip('}')) return misses("',' or '}'");
    }
    return at_ == text_.size() || misses("the end");
  }

  void findSpec() {
    Result<std::shared_ptr<const Spec>> found = lookup_(name_.text);
    if (found) {
      problem_.spec = *found;
      return;
    }
    for (Diagnostic error : found.errors()) {
      if (error.where.line == 0) point(error, name_);
      errors_.push_back(std::move(error));
    }
  }

  void readOption(const Part& option) {
    const size_t equals = option.text.find('=');
    const bool hasValue = equals != std::string_view::npos;
    const Part key{option.offset, option.text.substr(0, equals)};
    const Part value = hasValue ? Part{option.offset + equals + 1, option.text.substr(equals + 1)} : Part{};
    const std::string name(key.text);
    // P7
    if (!places_.emplace(name, hasValue ? value : key).second) {
      fail(key, "P7", "the option " + inQuotes(name) + " stands twice", "leave one of them out");
    } else if (name == "mask") {
      problem_.mask = true;
      if (hasValue)
        fail(option, "", "'mask' takes no value", "write 'mask' alone, or leave it out for no mask");
    } else if (!hasValue && known(name)) {
      fail(key, "", inQuotes(name) + " needs a value", "write '" + name + "=...'");
    } else if (name == "layout") {
      layoutKnown_ = named(value, "layout", kLayouts, problem_.layout);
    } else if (name == "params") {
      named(value, "dtype", kFloatTypes, problem_.params);
    } else if (!known(name)) {
      errors_.push_back(unknownOption(*problem_.spec, name));
      point(errors_.back(), key);
    } else {
      number(value, "P4", problem_.bindings[name]);
    }
  }

  // Whether the norm has that option. Where there is no norm, every option may be one of it.
  bool known(const std::string& name) const {
    if (name == "layout" || name == "mask" || name == "params" || !problem_.spec) return true;
    const std::vector<std::string> bindings = bindingNames(*problem_.spec);
    return std::find(bindings.begin(), bindings.end(), name) != bindings.end();
  }

  void readShape() {
    const bool channelsFirst = problem_.layout == Layout::ChannelsFirst;
    const Part whole{shape_.front().offset,
                     text_.substr(shape_.front().offset,
                                  shape_.back().offset + shape_.back().text.size() - shape_.front().offset)};
    places_["[shape]"] = whole;
    if (channelsFirst && shape_.size() != 3) {  // P3
      fail(whole, "P3", "layout=channels_first needs three dimensions, not " + std::to_string(shape_.size()),
           "write segments x features x rows, e.g. [*x64x*]");
      return;
    }
    if (!layoutKnown_ && shape_.size() == 3) return;  // which axis must stay open follows from it
    if (shape_.size() != 2 && shape_.size() != 3) {  // P1
      fail(whole, "P1", "a shape has two or three dimensions, not " + std::to_string(shape_.size()),
           "write rows x features, e.g. [*x1024], or segments x rows x features, e.g. [*x*x64]");
      return;
    }
    const size_t featureAxis = channelsFirst ? 1 : shape_.size() - 1;
    problem_.segmented = shape_.size() == 3;
    for (size_t axis = 0; axis < shape_.size(); ++axis) {
      const Part& extent = shape_[axis];
      if (axis == featureAxis) {
        places_["[features]"] = extent;
        if (int64_t count = 0; extent.text != "*" && number(extent, "P1", count)) problem_.features = count;
      } else if (takesSizes_ && extent.text != "*") {
        int64_t count = 0;
        number(extent, "P1", count);
      } else if (extent.text != "*") {  // P1
        const std::string what = axis == 0 && shape_.size() == 3 ? "segments" : "rows";
        const bool middle = axis == 1 && !channelsFirst && shape_.size() == 3;
        fail(extent, "P1", "the number of " + what + " stays open, not " + inQuotes(extent.text),
             middle ? "write '*'; the features stand in the middle only with {layout=channels_first}"
                    : "write '*'");
      }
    }
  }

  bool number(const Part& part, const char* rule, int64_t& out) {
    const char* end = part.text.data() + part.text.size();
    const auto [stop, status] = std::from_chars(part.text.data(), end, out);
    if (stop == end && status == std::errc()) return true;
    fail(part, rule,
         inQuotes(part.text) + (status == std::errc::result_out_of_range ? " is too large" : " is no number"),
         "use a whole number of 1 or more");
    return false;
  }

  template <typename Enum>
  bool named(const Part& part, const std::string& what, std::initializer_list<Enum> legal, Enum& out) {
    std::vector<std::string> names;
    for (const Enum each : legal) {
      if (name(each) == part.text) {
        out = each;
        return true;
      }
      names.emplace_back(name(each));
    }
    fail(part, "", inQuotes(part.text) + " is no " + what,
         hintFor(part.text, names, "use " + oneOf(names)));
    return false;
  }

  // Reading along the text.
  template <typename Predicate>
  Part takeWhile(Predicate belongs) {
    const size_t start = at_;
    while (at_ < text_.size() && belongs(text_[at_])) ++at_;
    return {start, text_.substr(start, at_ - start)};
  }
  static bool isDigit(char c) { return c >= '0' && c <= '9'; }
  static bool isWordCharacter(char c) {
    return isDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  }
  Part word() { return takeWhile(isWordCharacter); }
  Part digits() { return takeWhile(isDigit); }
  Part option() {
    return takeWhile([](char c) { return isWordCharacter(c) || c == '=' || c == '-'; });
  }
  bool skip(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  bool misses(const std::string& what) {
    const std::string found = at_ < text_.size() ? inQuotes(text_.substr(at_, 1)) : "the end";
    fail({at_, text_.substr(std::min(at_, text_.size()), 1)}, "", "expected " + what + ", found " + found,
         kForm);
    return false;
  }
  void fail(const Part& part, std::string rule, std::string message, std::string hint) {
    errors_.push_back({std::move(message), std::move(rule), std::move(hint), {}, ""});
    point(errors_.back(), part);
  }
  void point(Diagnostic& error, const Part& part) const {
    error.where = {"", 1, static_cast<int>(part.offset) + 1, std::max(1, static_cast<int>(part.text.size()))};
    error.sourceLine = std::string(text_);
    std::replace_if(
        error.sourceLine.begin(), error.sourceLine.end(), [](char c) { return c >= 0 && c < ' '; }, ' ');
  }

  std::string_view text_;
  const SpecLookup& lookup_;
  const bool takesSizes_;  // numbers of segments and rows
  size_t at_ = 0;
  Part name_, entry_, data_;
  std::vector<Part> shape_, options_;
  bool layoutKnown_ = true;
  std::map<std::string, Part> places_;  // by option, and "[shape]", "[features]"
  Problem problem_;
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
