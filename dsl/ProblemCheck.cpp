#include "dsl/ProblemCheck.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "dsl/EnumWords.h"
#include "dsl/Nearest.h"
#include "dsl/Numbers.h"
#include "dsl/Print.h"
#include "dsl/ProblemOptions.h"

namespace normc {
namespace {

constexpr const char* kFewerGroups = "use at most 2^40: there are no more groups than features";

// Returns the error P8 of a number if statistics are f32; nothing if the number is 0 or normal in f32.
std::optional<Diagnostic> notInF32(const std::string& name, const Number& number) {
  using F32 = std::numeric_limits<float>;
  const double value = number.value, size = std::abs(value);
  if (number.legal.least == kLeastOutside && value < kLeastOutside)
    return Diagnostic{
        name + " is " + numberText(value) +
            " in mode 'outside', beside roots of f32, whose squares are no normal numbers below "
            "1e-19",
        "P8",
        "data of f32, bf16 and f16 has statistics in f32: use 1e-11 or more, mode 'add', or data "
        "of f64",
        {},
        ""};
  if (size == 0 || (size >= F32::min() && size <= F32::max())) return std::nullopt;
  const bool small = size < F32::min();
  return Diagnostic{name + " is " + numberText(value) + ", and f32 holds no number so " +
                        (small ? "small in full precision" : "large"),
                    "P8",
                    std::string("data of f32, bf16 and f16 has statistics in f32: use ") +
                        (small ? "1.2e-38 or more" : "at most 3.4e38") + ", or data of f64",
                    {},
                    ""};
}

class ProblemChecker {
 public:
  using Locate = std::function<void(const std::string&, Diagnostic&)>;

  ProblemChecker(const Problem& problem, const Locate& locate)
      : problem_(problem), spec_(*problem.spec), locate_(locate) {}

  std::vector<Diagnostic> run() {
    shape();
    perSegment();
    bindings();
    groups("reduce", spec_.groups);
    if (spec_.pre) groups("pre", spec_.pre->groups);
    if (spec_.rope) groups("rope", spec_.rope->groups);
    params();
    turned();
    quantized();
    output();
    stream();
    rounding();
    numbersInF32();
    entry();
    overRanks();
    return std::move(errors_);
  }

 private:
  void shape() {
    const std::string reduce = "'reduce " + wordOf(kReduceWords, spec_.reduce) + "'";
    const bool bySegment = spec_.perSegment();
    const bool channelsFirst = problem_.layout == Layout::ChannelsFirst;
    // P1
    if (problem_.features && *problem_.features < 1) {
      fail("P1", "[features]", "the number of features is " + std::to_string(*problem_.features),
           "use 1 or more, or * for any");
    } else if (problem_.features && *problem_.features > kMostFeatures) {
      fail("P1", "[features]", "the number of features is " + std::to_string(*problem_.features),
           "use at most 2^40, or * for any");
    }
    // P2
    if (bySegment && !problem_.segmented && !channelsFirst) {
      fail("P2", "[shape]", inQuotes(spec_.name) + " has " + reduce + " and needs three dimensions",
           "write segments x rows x features, e.g. [*x*x64]");
    }
    // P3
    if (channelsFirst && spec_.pre) {
      fail("P3", "layout", "layout=channels_first does not go with the 'pre' of " + inQuotes(spec_.name),
           "the features that it scales by one number must lie together: leave the layout out");
    }
  }

  // P11
  void perSegment() {
    if (problem_.segmented || problem_.layout == Layout::ChannelsFirst) return;
    const auto refuse = [&](const char* clause) {
      fail("P11", "[shape]",
           inQuotes(spec_.name) + " has a '" + clause + "' for each segment and needs three dimensions",
           "write segments x rows x features, e.g. [*x*x64]");
    };
    if (spec_.gate && spec_.gate->per == Per::Segment) refuse("gate");
    if (spec_.modulate && spec_.modulate->per == Per::Segment) refuse("modulate");
  }

  // P4
  void bindings() {
    const std::vector<std::string> needed = bindingNames(spec_);
    for (const std::string& name : needed) {
      if (!problem_.bindings.contains(name)) {
        fail("P4", "[name]", inQuotes(spec_.name) + " needs the number of its groups " + inQuotes(name),
             "add it in braces, e.g. {" + name + "=8}");
      }
    }
    for (const auto& [name, value] : problem_.bindings) {
      if (std::find(needed.begin(), needed.end(), name) == needed.end()) {
        errors_.push_back(unknownOption(spec_, name + "=" + std::to_string(value), boundNames()));
        locate_(name, errors_.back());
      } else if (value < 1) {
        fail("P4", name, name + " is " + std::to_string(value), "use a whole number of 1 or more");
      } else if (value > kMostFeatures) {
        fail("P4", name, name + " is " + std::to_string(value), kFewerGroups);
      }
    }
  }

  std::vector<std::string> boundNames() const {
    std::vector<std::string> names;
    for (const auto& [name, value] : problem_.bindings) names.push_back(name);
    return names;
  }

  // P5
  void groups(const char* clause, const Groups& groups) {
    const auto bound = problem_.bindings.find(groups.binding);
    const bool literal = groups.binding.empty();
    if (!literal && bound == problem_.bindings.end()) return;
    const int64_t count = literal ? groups.count : bound->second;
    if (count > kMostFeatures) {
      if (literal)
        fail(
            "P5", "[name]",
            std::string(clause) + " of " + inQuotes(spec_.name) + " has " + std::to_string(count) + " groups",
            kFewerGroups);
      return;
    }
    if (!problem_.features || *problem_.features < 1 || count < 1 || *problem_.features % count == 0) return;
    if (!reported_.insert(groups.binding + "=" + std::to_string(count)).second) return;
    fail("P5", literal ? "[features]" : groups.binding,
         std::to_string(*problem_.features) + " features do not divide into " + std::to_string(count) +
             " groups (" + std::string(clause) + " of " + inQuotes(spec_.name) + ")",
         "the number of groups has to divide the number of features");
  }

  // P6
  void params() {
    if (problem_.params == problem_.statistics()) return;
    const std::string given = "params=" + std::string(name(problem_.params));
    if (!spec_.scale && !spec_.bias) {
      fail("P6", "params", given + ", but " + inQuotes(spec_.name) + " has no parameters", "leave it out");
    } else if (problem_.params != problem_.data && problem_.params != DType::F32) {
      fail("P6", "params", given + " does not go with data of " + std::string(name(problem_.data)),
           problem_.data == DType::F32 ? "with f32 data the parameters are f32: leave it out"
                                       : "use f32 or " + std::string(name(problem_.data)));
    }
  }

  // P14
  void turned() {
    if (!spec_.rope) return;
    const std::string norm = inQuotes(spec_.name), rope = "'rope' of " + norm;
    if (problem_.layout == Layout::ChannelsFirst) {
      fail("P14", "layout", "layout=channels_first does not go with the 'rope' of " + norm,
           "the features of a row must lie together: leave the layout out");
    }
    const std::optional<int64_t> turns = spec_.rope->features;
    if (turns && !problem_.features) {
      fail("P14", "[features]",
           rope + " turns " + std::to_string(*turns) +
               " features of each group, and the number of features is open",
           "write that number, e.g. [*x4096], or leave 'features' of 'rope' out: then all are turned");
    }
    const std::optional<int64_t> runs = countOf(spec_.rope->groups);
    if (!runs) return;
    const auto pairsShare = [&](const char* clause, const Groups& statistics) {
      const std::optional<int64_t> count = countOf(statistics);
      if (!count || *runs % *count == 0) return;
      fail("P14", placeOf(spec_.rope->groups, placeOf(statistics, "[name]")),
           "the number of groups of " + rope + " is " + std::to_string(*runs) + ", no multiple of the " +
               std::to_string(*count) + " of " + clause,
           "both features of a pair belong to one group of " + std::string(clause) + ": use a multiple of " +
               std::to_string(*count));
    };
    if (spec_.perGroup()) pairsShare("'reduce'", spec_.groups);
    if (spec_.pre) pairsShare("'pre'", spec_.pre->groups);
    if (!problem_.features || *problem_.features < 1 || *problem_.features % *runs != 0) return;
    const int64_t run = *problem_.features / *runs;
    const std::string has = "a group of " + rope + " has " + std::to_string(run) + " of " +
                            std::to_string(*problem_.features) + " features";
    if (run % 2 != 0) {
      fail("P14", "[features]", has + ", an odd number",
           "'rope' turns pairs: use a multiple of " + std::to_string(2 * *runs) + " features");
    } else if (turns && run < *turns) {
      fail("P14", "[features]", has + ", fewer than the " + std::to_string(*turns) + " that it turns",
           "use more features, or fewer groups, or 'features = " + std::to_string(run) + "' of 'rope'");
    }
  }

  // Returns the number of groups, if there is a legal one.
  std::optional<int64_t> countOf(const Groups& groups) const {
    const auto bound = problem_.bindings.find(groups.binding);
    if (!groups.binding.empty() && bound == problem_.bindings.end()) return std::nullopt;
    const int64_t count = groups.binding.empty() ? groups.count : bound->second;
    return count >= 1 && count <= kMostFeatures ? std::optional(count) : std::nullopt;
  }
  static std::string placeOf(const Groups& groups, const std::string& otherwise) {
    return groups.binding.empty() ? otherwise : groups.binding;
  }

  // P12, P13
  void quantized() {
    if (!spec_.quantize) return;
    const Spec::Quantize& quantize = *spec_.quantize;
    const bool blocks = quantize.per == QuantizePer::Block;
    if (blocks && quantize.size > kMostFeatures) {
      fail("P12", "[name]",
           "a block of 'quantize' of " + inQuotes(spec_.name) + " has " + std::to_string(quantize.size) +
               " features",
           "use a 'size' of at most 2^40: no row has more features");
      return;
    }
    if (blocks && problem_.features && *problem_.features >= 1 && *problem_.features % quantize.size != 0) {
      fail("P12", "[features]",
           std::to_string(*problem_.features) + " features do not divide into blocks of " +
               std::to_string(quantize.size) + " ('quantize' of " + inQuotes(spec_.name) + ")",
           "use a multiple of " + std::to_string(quantize.size) + ", or another 'size'");
    }
    if (problem_.layout == Layout::ChannelsFirst && quantize.per != QuantizePer::Tensor) {
      fail("P12", "layout",
           "layout=channels_first does not go with the 'quantize' per " +
               wordOf(kQuantizePerWords, quantize.per) + " of " + inQuotes(spec_.name),
           "the features of one scale must lie together: leave the layout out, or use 'per = tensor'");
    }
    if (problem_.output && *problem_.output != problem_.data) {
      fail("P13", "y",
           "y=" + std::string(name(*problem_.output)) + ", but " + inQuotes(spec_.name) +
               " has codes in place of y",
           "'quantize' says the type of the codes: leave it out");
    }
  }

  // P13
  void output() { notRoundedTwice("P13", "y", problem_.output); }

  // P15
  void stream() {
    if (!problem_.stream || *problem_.stream == problem_.data) return;
    if (!spec_.hasResidual(Side::Before)) {
      fail("P15", "stream",
           "stream=" + std::string(name(*problem_.stream)) + ", but " + inQuotes(spec_.name) +
               " has no residual in front of it",
           "it is the type of that residual and of what is passed on of it: "
           "add 'residual before' to the norm, or leave it out");
      return;
    }
    notRoundedTwice("P15", "stream", problem_.stream);
  }

  // P16
  void rounding() {
    if (!problem_.roundsNormalized) return;
    const auto refuse = [&](const std::string& why, const std::string& hint) {
      fail("P16", "round", "round=normalized " + why, hint);
    };
    if (bytes(problem_.data) != 2) {
      refuse("changes nothing with data of " + std::string(name(problem_.data)),
             "the type of the data is that of the statistics: leave it out, or use data of bf16 or f16");
    } else if (!spec_.scale && !spec_.bias) {
      refuse("needs an affine, and " + inQuotes(spec_.name) + " has none",
             "it rounds what the affine takes: leave it out");
    } else if (!spec_.perRow()) {
      refuse("needs 'reduce features', and " + inQuotes(spec_.name) + " has 'reduce " +
                 wordOf(kReduceWords, spec_.reduce) + "'",
             "it is for norms of rows: leave it out");
    }
  }

  void notRoundedTwice(const char* rule, const std::string& option, std::optional<DType> type) {
    if (!type || bytes(*type) != 2 || problem_.data != DType::F64) return;
    fail(rule, option, option + "=" + std::string(name(*type)) + " does not go with data of f64",
         "16-bit types would be rounded twice, by way of f32: use " + option + "=f32, or f32 data");
  }

  // P8
  void numbersInF32() {
    if (problem_.statistics() != DType::F32) return;
    std::vector<Number> all = numbers(spec_, DType::F32);
    if (spec_.running) all.push_back({"init", spec_.running->init, {}});
    for (const Number& number : all) {
      if (std::optional<Diagnostic> error = notInF32(number.name + " of " + inQuotes(spec_.name), number)) {
        locate_("[name]", *error);
        errors_.push_back(*std::move(error));
      }
    }
  }

  // P9
  void entry() {
    if (spec_.running || !infoOf(problem_.entry).needsState) return;
    fail("P9", "[entry]",
         inQuotes(spec_.name) + " has no state, and '" + std::string(name(problem_.entry)) +
             "' is the gradient of an infer that uses one",
         "infer of " + inQuotes(spec_.name) +
             " uses the statistics of its input, as forward does: its gradient is 'backward'");
  }

  // P10
  void overRanks() {
    const Entry entry = problem_.entry;
    if (!isOverRanks(entry)) return;
    const std::string norm = inQuotes(spec_.name), called = inQuotes(std::string(name(entry)));
    const auto refuse = [&](const std::string& why, const std::string& hint) {
      fail("P10", "[entry]", norm + " has no " + called + ": " + why, hint);
    };
    constexpr const char* kOnOne = "use 'forward' and 'backward', with the statistics of each rank";
    if (!spec_.perFeature())
      return refuse("each of its statistics is of rows that lie together, on one rank",
                    "use 'forward' and 'backward' on each rank");
    if (spec_.divideBy == DivideBy::Window)
      return refuse("it divides by a window, whose first steps wait for the batch", kOnOne);
    if (spec_.warmup)
      return refuse("during 'warmup' it divides by the batch, and after it by the state",
                    std::string("leave out 'warmup', or ") + kOnOne);
    if (spec_.hasBatchScale())
      return refuse("'scale = batch' needs the batch in a backward that waits for nothing else",
                    std::string("use 'scale = forward', or ") + kOnOne);
    const bool waits = spec_.needsBatchStatistics();
    if (waits != spec_.gradientNeedsBatch())
      return refuse(waits ? "y needs statistics of the batch, and dx does not"
                          : "dx needs sums over the batch, and y does not",
                    kOnOne);
    const bool applies = entry == Entry::ForwardApply || entry == Entry::BackwardApply;
    if (applies && !waits)
      return refuse("its y and dx need no statistic of the batch, and the reductions write them",
                    "use 'forward_reduce', 'backward_reduce', and 'commit' once a step");
    if (entry == Entry::Commit && waits)
      return refuse("its 'forward_apply' and 'backward_apply' write the state",
                    "use 'forward_reduce', 'forward_apply', 'backward_reduce' and 'backward_apply'");
  }

  void fail(const char* rule, const std::string& part, std::string message, std::string hint) {
    Diagnostic error{std::move(message), rule, std::move(hint), {}, ""};
    locate_(part, error);
    errors_.push_back(std::move(error));
  }

  const Problem& problem_;
  const Spec& spec_;
  const Locate& locate_;
  std::set<std::string> reported_;
  std::vector<Diagnostic> errors_;
};

}  // namespace

std::vector<Diagnostic> problemErrors(const Problem& problem,
                                      const std::function<void(const std::string&, Diagnostic&)>& locate) {
  return ProblemChecker(problem, locate).run();
}

Result<Problem> checkProblem(Problem problem) {
  std::vector<Diagnostic> errors = problemErrors(problem, [](const std::string&, Diagnostic&) {});
  if (!errors.empty()) return errors;
  if (problem.layout == Layout::ChannelsFirst) problem.segmented = true;
  return problem;
}

std::vector<std::string> bindingNames(const Spec& spec) {
  std::set<std::string> names;
  if (!spec.groups.binding.empty()) names.insert(spec.groups.binding);
  if (spec.pre && !spec.pre->groups.binding.empty()) names.insert(spec.pre->groups.binding);
  if (spec.rope && !spec.rope->groups.binding.empty()) names.insert(spec.rope->groups.binding);
  return {names.begin(), names.end()};
}

}  // namespace normc
