#include "runtime/abi/ProblemReader.h"

#include <algorithm>
#include <charconv>

#include "runtime/abi/Letters.h"

namespace normc {
namespace {

using Fault = ProblemFault;

bool isWordCharacter(char c) { return isDigit(c) || isLetter(c); }
// Those of values that no option has, too, so that a message can name the option: `decay=0.9`.
bool isOptionCharacter(char c) { return isWordCharacter(c) || c == '=' || c == '-' || c == '+' || c == '.'; }

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  ProblemReading run() && {
    if (!grammar()) return std::move(r_);
    ProblemText& problem = r_.problem;
    problem.norm = r_.norm.text;
    named(r_.entry, "entry", kEntries, problem.entry);
    named(r_.data, "dtype", kFloatTypes, problem.data);
    problem.params = statisticsOf(problem.data);
    for (const TextPart& option : r_.options) readOption(option);
    readShape();
    return std::move(r_);
  }

 private:
  /// Splits the text into its parts. Results after the first fault have no meaning.
  bool grammar() {
    r_.norm = takeWhile(isWordCharacter);
    if (r_.norm.text.empty()) return misses("the name of a norm");
    if (!skip(':')) return misses("':'");
    r_.entry = takeWhile(isWordCharacter);
    if (!skip('@')) return misses("'@'");
    r_.data = takeWhile(isWordCharacter);
    if (!skip('[')) return misses("'['");
    do {
      r_.shape.push_back(skip('*') ? TextPart{at_ - 1, "*"} : takeWhile(isDigit));
      if (r_.shape.back().text.empty()) return misses(kExpectedSize);
    } while (skip('x'));
    if (!skip(']')) return misses("'x' or ']'");
    if (skip('{')) {
      do {
        r_.options.push_back(takeWhile(isOptionCharacter));
        if (r_.options.back().text.empty()) return misses(kExpectedOption);
      } while (skip(','));
      if (!skip('}')) return misses("',' or '}'");
    }
    return at_ == text_.size() || misses("the end");
  }

  void readOption(const TextPart& option) {
    const size_t equals = option.text.find('=');
    const bool hasValue = equals != option.text.npos;
    const std::string_view name = option.text.substr(0, equals);
    const TextPart value = hasValue ? option.after(equals + 1) : TextPart{};
    const auto fault = [&](Fault::Kind kind, const TextPart& part) {
      r_.faults.push_back({kind, part, {}, name});
    };
    if (std::find(seen_.begin(), seen_.end(), name) != seen_.end())
      return fault(Fault::Twice, {option.offset, name});
    seen_.push_back(name);
    if (name == "mask") {
      r_.problem.mask = true;
      if (hasValue) fault(Fault::MaskValue, option);
    } else if (!hasValue) {
      fault(Fault::NoValue, option);
    } else if (name == "layout") {
      layoutKnown_ = named(value, "layout", kLayouts, r_.problem.layout, name);
    } else if (name == "params") {
      named(value, "dtype", kFloatTypes, r_.problem.params, name);
    } else if (name == "round") {
      r_.problem.roundsNormalized = value.text == "normalized";
      if (!r_.problem.roundsNormalized) r_.faults.push_back({Fault::Word, value, "rounding", name});
    } else if (name == "stream" || name == "y") {
      DType type = r_.problem.data;
      if (named(value, "dtype", kFloatTypes, type, name) && type != r_.problem.data)
        (name == "y" ? r_.problem.output : r_.problem.stream) = type;
    } else {
      number(value, name, r_.problem.bindings[std::string(name)]);
    }
  }

  void readShape() {
    ProblemText& problem = r_.problem;
    const std::vector<TextPart>& shape = r_.shape;
    const size_t begin = shape.front().offset, end = shape.back().offset + shape.back().text.size();
    const TextPart whole{begin, text_.substr(begin, end - begin)};
    const bool three = shape.size() == 3;
    if (problem.channelsFirst() && !three)
      return r_.faults.push_back({Fault::ChannelsFirstDimensions, whole});
    if (!layoutKnown_ && three) return;  // the position of the features depends on the layout
    if (!three && shape.size() != 2) return r_.faults.push_back({Fault::Dimensions, whole});
    problem.segmented = three;
    if (three) size(shape[0], problem.segments);
    size(shape[three], problem.channelsFirst() ? problem.features : problem.rows);
    size(shape[three + 1], problem.channelsFirst() ? problem.rows : problem.features);
  }

  void size(const TextPart& part, std::optional<int64_t>& out) {
    if (int64_t value = 0; part.text != "*" && number(part, "", value)) out = value;
  }

  bool number(const TextPart& part, std::string_view option, int64_t& out) {
    const char* end = part.text.data() + part.text.size();
    const auto [stop, status] = std::from_chars(part.text.data(), end, out);
    if (stop == end && status == std::errc()) return true;
    r_.faults.push_back(
        {status == std::errc::result_out_of_range ? Fault::TooLarge : Fault::NoNumber, part, {}, option});
    return false;
  }

  template <typename Enum>
  bool named(const TextPart& part, std::string_view what, std::initializer_list<Enum> legal, Enum& out,
             std::string_view option = {}) {
    const auto at =
        std::find_if(legal.begin(), legal.end(), [&](Enum each) { return name(each) == part.text; });
    if (at != legal.end()) {
      out = *at;
      return true;
    }
    r_.faults.push_back({Fault::Word, part, what, option});
    return false;
  }

  TextPart takeWhile(bool (*belongs)(char)) {
    const size_t start = at_;
    while (at_ < text_.size() && belongs(text_[at_])) ++at_;
    return {start, text_.substr(start, at_ - start)};
  }
  bool skip(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool misses(std::string_view expected) {
    r_.faults.push_back({Fault::Grammar, {at_, text_.substr(at_)}, expected});
    return false;
  }

  std::string_view text_;
  size_t at_ = 0;
  std::vector<std::string_view> seen_;  ///< names of options
  bool layoutKnown_ = true;
  ProblemReading r_;
};

}  // namespace

ProblemReading readProblem(std::string_view text) { return Reader(text).run(); }

}  // namespace normc
