// What lowering a phase needs whatever the target: which kind of slab this is,
// where a unit lies, how a scalar operation is copied.
#pragma once

#include "codegen/lower/Frame.h"
#include "mlir/IR/IRMapping.h"

namespace normc::codegen {

class Walk {
 protected:
  Walk(Loops& loops, Frame& frame) : l_(loops), f_(frame) {}

  /// Where the contiguous axis lies, seen from the statistic: docs/codegen.md.
  enum class Kind { Line, Block, Column, Stream };
  Kind kindOf(SlabOp);

  /// Indices of the n-th unit of the phase.
  Coordinates unitCoordinates(mlir::Value unit);
  /// One past the `head`-th valid row of [begin, end), or its end.
  mlir::Value headEnd(mlir::Value begin, mlir::Value end, int64_t head);

  static mlir::Value mapped(mlir::Value v, const mlir::IRMapping& values) { return values.lookup(v); }
  /// A copy of an elementwise operation on mapped values: on vectors as soon as one operand
  /// is a vector, else it stays a scalar that all lanes share.
  mlir::Operation* clone(mlir::Operation&, mlir::IRMapping&);
  static std::string countKey(CountOp);

  Loops& l_;
  Frame& f_;
};

}  // namespace normc::codegen
