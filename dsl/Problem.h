// A Spec bound to everything else that a kernel is compiled for: the identity of a kernel.
//
// Its canonical text names a kernel on the command line, in logs, packages and repro lines. It contains only
// what differs from the default, and parses back:
//
//   layer_norm:forward@f32[*x1024]          any number of rows, 1024 features
//   power_norm:backward@bf16[*x*]           any number of features
//   instance_norm:forward@f32[*x*x64]       segments x rows x features
//   batch_norm:infer@f16[*x64x*]{layout=channels_first}   segments x features x rows
//   power_norm_released:forward@f32[*x1024]{heads=16,mask,params=bf16}
//   rms_norm:forward@f32[*x4096]{y=bf16}    x in f32, y in bf16
//   rms_norm_residual:forward@bf16[*x4096]{stream=f32}    a residual stream in f32
//   rms_norm:forward@bf16[*x4096]{round=normalized}      as the code of Llama rounds
//
// The order of options is: bindings by name, layout, mask, params, round, stream, y.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dsl/Result.h"
#include "dsl/Spec.h"
#include "runtime/abi/ProblemText.h"

namespace normc {

struct Problem {
  std::shared_ptr<const Spec> spec;
  Entry entry = Entry::Forward;
  DType data = DType::F32;  ///< floating
  /// The type of scale, bias, dscale, dbias. Default: f64 if data is f64, else f32.
  DType params = DType::F32;
  std::optional<DType> output;  ///< floating, of y and dy; absent: that of the data
  std::optional<DType> stream;  ///< floating, of a residual in front of the norm; absent: that of the data
  Layout layout = Layout::FeaturesLast;
  bool segmented = false;           ///< three dimensions are written; always true for channels-first
  std::optional<int64_t> features;  ///< absent: any
  bool mask = false;                ///< a row mask (segments x rows bytes, 1 = real) is an argument
  bool roundsNormalized =
      false;  ///< forward and infer round x0 to the type of the data, as some frameworks do
  std::map<std::string, int64_t> bindings;

  ProblemText parts() const;
  /// Returns the types of tensors.
  ElementTypes types() const;
  /// Returns the canonical text.
  std::string text() const { return parts().text(); }
  /// Returns the text with sizes that a host requests of a package, so that kernels limited to few rows are
  /// considered. `segments` is ignored if two dimensions are written.
  std::string text(int64_t segments, int64_t rows) const { return parts().withSizes(segments, rows).text(); }

  /// True if the gradient is that of an infer: its statistics are constants, from the state.
  bool hasConstantStatistics() const { return isBackward(entry) && !readsSaved(entry); }
  /// True if an output needs complete sums over the batch. Infer counts as forward.
  bool needsBatchStatistics() const { return !hasConstantStatistics() && spec->needsBatchStatistics(); }

  /// True if rows that the mask marks as padding are in the outputs, but not in the statistics.
  bool leavesRowsOut() const { return mask && spec->padding == Padding::LeaveOutOfStatistics; }

  /// True if what the affine takes is rounded to the type of the data. A backward takes it as it is.
  bool roundsBeforeAffine() const { return roundsNormalized && !isBackward(entry); }

  /// Returns the type of statistics and state.
  DType statistics() const { return statisticsOf(data); }
  /// Returns the number of groups, with bindings applied. Only for a checked Problem.
  int64_t groups(const Groups&) const;
  /// Returns the pairs of features that `rope` turns in each of its runs, of so many features in all; 0
  /// without `rope`. Only for a checked Problem.
  int64_t pairs(int64_t features) const;
  /// Returns the number that divides every legal number of features: groups, pairs and blocks have the same
  /// sizes then. 2^63 - 1 if none of 64 bits does. Only for a checked Problem.
  int64_t featuresMultiple() const;
};

/// Finds the spec of a name among built-in norms and files.
using SpecLookup = std::function<Result<std::shared_ptr<const Spec>>(std::string_view name)>;

/// Reads the canonical text, with options in any order. The Problem has passed checkProblem. Errors point at
/// the part that is wrong and say what would be legal.
Result<Problem> parseProblem(std::string_view text, const SpecLookup&);
/// As parseProblem, but the text may also give the numbers of segments and rows, which the Problem does not
/// hold.
Result<Problem> parseRequest(std::string_view text, const SpecLookup&);

/// Checks the rules that a Problem adds to those of its Spec (P1, P2, ... of dsl/SPEC.md): bindings are all
/// given and none is unknown, groups divide features, the layout is possible for the reduction, ...
Result<Problem> checkProblem(Problem);

/// Returns the names of the bindings that a problem of this spec has to give, sorted.
std::vector<std::string> bindingNames(const Spec&);

}  // namespace normc
