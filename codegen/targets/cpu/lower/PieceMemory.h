// The values that a slab across channels computes for the rows of a piece: memory with an element for each
// row.
#pragma once

#include "codegen/lower/AccessLowering.h"
#include "codegen/targets/cpu/lower/StackMemory.h"
#include "llvm/ADT/DenseMap.h"

namespace normc::codegen {

class PieceMemory {
 public:
  using Places = llvm::ArrayRef<StackMemory>;

  PieceMemory(Loops& loops, AccessLowering& frame, int64_t lanes) : l_(loops), f_(frame), lanes_(lanes) {}

  /// The most rows of a piece.
  static int64_t mostRows(mlir::Type statistics);
  /// Emits the allocation of memory for a value.
  void allocate(mlir::Value v) { values_[v] = place(); }
  /// Emits the allocation of so many levels of the sums of a sweep, below the last one.
  void allocateLevels(size_t levels, size_t sums);

  /// Returns the memory of a value; null: it has none.
  StackMemory of(mlir::Value v) const { return values_.lookup(v); }
  Places level(size_t i) const { return levels_[i]; }

  /// Emits a loop over the rows of a piece that makes each place the identity of its combiner.
  void clear(Places, Combiners, mlir::Value rows);
  /// Emits a loop that combines the elements of `to` with those of `from`.
  void combine(Places from, Places to, Combiners, mlir::Value rows);

 private:
  StackMemory place();

  Loops& l_;
  AccessLowering& f_;
  int64_t lanes_;
  llvm::DenseMap<mlir::Value, StackMemory> values_;
  llvm::SmallVector<llvm::SmallVector<StackMemory>, 2> levels_;
};

}  // namespace normc::codegen
