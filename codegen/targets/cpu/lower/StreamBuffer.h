// The sums per feature of a stream: they are collected here before they are added to the partials of the
// task.
#pragma once

#include "codegen/lower/AccessLowering.h"
#include "codegen/targets/cpu/lower/StackMemory.h"

namespace normc::codegen {

/// The features of a stream whose sums are collected at a time: they stay in the first-level cache.
constexpr int64_t kStreamTile = 1024;

class StreamBuffer {
 public:
  /// Emits the allocation for so many partials, in vectors of `lanes`. Within a page the sums lie apart from
  /// the elements of `x`, the tensor that the stream reads.
  StreamBuffer(Loops&, AccessLowering&, size_t partials, TensorOp x, int64_t lanes);

  /// Adds the term of a feature of the tile, or of the lanes of a vector of features, of those in `mask` if
  /// there is one. A lane has the same bits with a mask and without: term and sum are one operation in both.
  void add(size_t partial, mlir::Value feature, mlir::Value term, mlir::Value mask = {});
  /// Clears the sums of `width` features. Tails need no mask, since the buffer is a vector longer than a
  /// tile.
  void clear(size_t partials, mlir::Value width);
  /// Adds the sums of `width` features to the partials, from feature `begin` on.
  void flush(llvm::ArrayRef<TensorOp> partials, mlir::Value begin, mlir::Value width);

 private:
  mlir::Value at(size_t partial, mlir::Value feature);

  Loops& l_;
  AccessLowering& f_;
  int64_t lanes_;
  StackMemory memory_;
  mlir::Value begin_;  ///< index of the first sum
};

}  // namespace normc::codegen
