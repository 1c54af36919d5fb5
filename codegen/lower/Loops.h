// Helpers that emit loops: index arithmetic that folds constants, counted loops with running values,
// reductions, conversions between storage and statistics types.
#pragma once

#include "codegen/dialect/Norm.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Value.h"

namespace normc::codegen {

/// Returns a vector type with another element, or the element itself for a scalar.
mlir::Type withElement(mlir::Type like, mlir::Type element);

using Values = llvm::SmallVector<mlir::Value, 16>;
/// How running values are combined with their terms, one for each value; empty: all are added.
using Combiners = llvm::ArrayRef<Combiner>;

class Loops {
 public:
  Loops(mlir::OpBuilder& builder, mlir::Location loc) : b(builder), loc(loc) {}

  //===-- Index arithmetic, folded where operands are constants ---------------===//
  mlir::Value index(int64_t);
  mlir::Value add(mlir::Value, mlir::Value);
  mlir::Value sub(mlir::Value, mlir::Value);
  mlir::Value mul(mlir::Value, mlir::Value);
  mlir::Value div(mlir::Value, mlir::Value);  ///< of non-negative values
  mlir::Value rem(mlir::Value, mlir::Value);
  mlir::Value min(mlir::Value, mlir::Value);
  mlir::Value max(mlir::Value, mlir::Value);
  mlir::Value select(mlir::Value condition, mlir::Value yes, mlir::Value no);
  mlir::Value less(mlir::Value, mlir::Value);
  mlir::Value isFalse(mlir::Value condition);
  /// Returns the conjunction of two conditions, or masks; null is true.
  mlir::Value both(mlir::Value, mlir::Value);
  /// Returns n - n mod step.
  mlir::Value roundDown(mlir::Value n, int64_t step);
  /// Returns the stratified offset of sample i of `parts` among `count` elements (StratifiedOffsets.h).
  mlir::Value stratifiedOffset(mlir::Value count, mlir::Value i, int64_t parts);
  static std::optional<int64_t> constant(mlir::Value);

  //===-- Control flow ----------------------------------------------------------===//
  /// Emits `body(i, running)` for i = begin, begin + step, ... < end, and returns the last running values. A
  /// loop that is known to be empty is not emitted. `Invariants::Inside`: what the body computes in every
  /// turn stays in the loop, if registers for it outside would cost more.
  enum class Invariants { Before, Inside };
  Values forEach(mlir::Value begin, mlir::Value end, int64_t step, mlir::ValueRange init,
                 llvm::function_ref<Values(mlir::Value, mlir::ValueRange)> body,
                 Invariants = Invariants::Before);
  Values forEach(mlir::Value begin, mlir::Value end, mlir::Value step, mlir::ValueRange init,
                 llvm::function_ref<Values(mlir::Value, mlir::ValueRange)> body,
                 Invariants = Invariants::Before);
  void forEach(mlir::Value begin, mlir::Value end, int64_t step, llvm::function_ref<void(mlir::Value)> body);
  /// Emits a long sum in levels. `some(first, last, sums)` adds the terms of the steps from `first` to `last`
  /// to `sums`, which start at the identity; it is called for at most kLongestChain steps at a time. As many
  /// results are added before they go to the next level. There are enough levels to keep every chain that
  /// short for `end - begin`, or for at most `most` if only that is known. If neither is known there are
  /// three, and the last is as long as necessary. Returns `from` combined with all terms.
  Values inLevels(mlir::Value begin, mlir::Value end, int64_t step, mlir::ValueRange from,
                  llvm::function_ref<Values(mlir::Value first, mlir::Value last, mlir::ValueRange sums)> some,
                  std::optional<int64_t> most = {}, Combiners = {});
  /// Emits `body` under a condition; `otherwise` are the results without it. No branch is emitted for a known
  /// condition.
  Values when(mlir::Value condition, mlir::ValueRange otherwise, llvm::function_ref<Values()> body);

  //===-- Values ------------------------------------------------------------------===//
  /// Returns a constant of the type, whose element the attribute has: the same in all lanes.
  mlir::Value splat(mlir::Type, mlir::TypedAttr element);
  mlir::Value zero(mlir::Type floatOrVector);
  mlir::Value one(mlir::Type floatOrVector);
  mlir::Value addf(mlir::Value, mlir::Value);
  /// Returns what combined with any value is that value.
  mlir::Value identity(Combiner, mlir::Type floatOrVector);
  mlir::Value combine(Combiner, mlir::Value, mlir::Value);
  /// Combines the results of the level below with the running values of a level, one by one.
  Values combineEach(mlir::ValueRange running, Values below, Combiners = {});
  /// Combines pairwise.
  mlir::Value tree(llvm::ArrayRef<mlir::Value>, Combiner = Combiner::Add);
  mlir::Value scale(mlir::Value, double factor);
  /// Returns a robust centre of 4, 8 or 16 values: the mean of the two middle values of four, or of four
  /// means of the others, pairs of pairs. It is exact if all are equal, and one outlier does not move it far.
  mlir::Value middle(llvm::ArrayRef<mlir::Value>);
  mlir::Value broadcast(mlir::Value scalar, int64_t lanes);
  /// Converts between f16, f32 and f64, scalar or vector.
  mlir::Value convert(mlir::Value, mlir::Type element);
  /// Convert bf16 that is held as i16, by a bitcast and a conversion of floats (expandBF16, Expand.h).
  mlir::Value fromBF16(mlir::Value bits, mlir::Type element);
  mlir::Value toBF16(mlir::Value);
  /// Returns a mask of the first `count` of `lanes` lanes.
  mlir::Value laneMask(mlir::Value count, int64_t lanes);

  mlir::OpBuilder& b;
  mlir::Location loc;
};

}  // namespace normc::codegen
