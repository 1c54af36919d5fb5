// Small helpers for writing loops: index arithmetic that folds constants, counted
// loops with running values, conversions between storage and statistics types.
#pragma once

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Value.h"

namespace normc::codegen {

using Values = llvm::SmallVector<mlir::Value, 16>;

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
  mlir::Value select(mlir::Value condition, mlir::Value yes, mlir::Value no);
  mlir::Value less(mlir::Value, mlir::Value);
  mlir::Value isFalse(mlir::Value condition);
  /// n - n mod step.
  mlir::Value roundDown(mlir::Value n, int64_t step);
  /// The one of `count` things that is asked for the i-th of equal shares (Shares.h).
  mlir::Value stratifiedOffset(mlir::Value count, mlir::Value i, int64_t parts);
  static std::optional<int64_t> constant(mlir::Value);

  //===-- Control flow ----------------------------------------------------------===//
  /// Runs `body(i, running)` for i = begin, begin + step, ... < end; returns the last running values.
  /// A loop that is known to be empty is not emitted. `Inside`: what it computes in every turn stays there, where registers
  /// for it before the loop would cost more.
  enum class Invariants { Before, Inside };
  Values forEach(mlir::Value begin, mlir::Value end, int64_t step, mlir::ValueRange init,
                 llvm::function_ref<Values(mlir::Value, mlir::ValueRange)> body, Invariants = Invariants::Before);
  Values forEach(mlir::Value begin, mlir::Value end, mlir::Value step, mlir::ValueRange init,
                 llvm::function_ref<Values(mlir::Value, mlir::ValueRange)> body, Invariants = Invariants::Before);
  void forEach(mlir::Value begin, mlir::Value end, int64_t step, llvm::function_ref<void(mlir::Value)> body);
  /// A long sum in levels: `some(first, last, sums)` adds the terms of the steps from `first` to `last` to
  /// `sums`, which start at zero, and is asked for at most kLongestChain steps at a time. So many of what
  /// that comes to are added up before they go to the next level. There are as many levels as keep every
  /// chain that short for `end - begin`, or for `most` where only that is known. Where neither is, there are
  /// three, the last as long as it has to be. Returns `from` plus all terms.
  Values inLevels(mlir::Value begin, mlir::Value end, int64_t step, mlir::ValueRange from,
                  llvm::function_ref<Values(mlir::Value first, mlir::Value last, mlir::ValueRange sums)> some,
                  std::optional<int64_t> most = {});
  /// Like forEach without a step: 0 or 1 times; not emitted where `condition` is known.
  Values when(mlir::Value condition, mlir::ValueRange otherwise, llvm::function_ref<Values()> body);

  //===-- Values ------------------------------------------------------------------===//
  mlir::Value zero(mlir::Type floatOrVector);
  mlir::Value addf(mlir::Value, mlir::Value);
  /// One by one: what a level of sums has so far, and what the level below has come to.
  Values addEach(mlir::ValueRange running, Values below);
  /// Pairwise sum.
  mlir::Value tree(llvm::ArrayRef<mlir::Value>);
  mlir::Value scale(mlir::Value, double factor);
  /// A robust centre of 4 or 8 values: the mean of the two middle ones of four, or of
  /// four means of two. Exact where all are equal; one outlier does not move it far.
  mlir::Value middle(llvm::ArrayRef<mlir::Value>);
  mlir::Value broadcast(mlir::Value scalar, int64_t lanes);
  /// Between f16, f32 and f64, scalar or vector.
  mlir::Value convert(mlir::Value, mlir::Type element);
  /// bf16 travels as i16: not every target has its instructions, and what LLVM does
  /// then is slow or a call. To nearest even, NaN kept. `instruction`: vectors by that of the target. `whole`: the vector
  /// fills a register of x86-64 with AVX-512 as bf16, so two as f32, and what puts both together or apart is one instruction.
  mlir::Value fromBF16(mlir::Value bits, mlir::Type element, bool whole = false);
  mlir::Value toBF16(mlir::Value, bool instruction = false, bool whole = false);
  /// The first `count` of `lanes` lanes.
  mlir::Value laneMask(mlir::Value count, int64_t lanes);

  mlir::OpBuilder& b;
  mlir::Location loc;
};

}  // namespace normc::codegen
