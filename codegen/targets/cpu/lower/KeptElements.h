// Memory for values that the first sweep of a run computes for the last one, an element for each of the run.
//
// A backward behind a gate or an activation needs an exponential of each element twice: for the sums of a
// row, and for its outputs when the sums are known. The first sweep stores what the last one would compute
// again, and a load from the cache takes a tenth of the time of an exponential.
#pragma once

#include "codegen/dialect/Norm.h"
#include "codegen/targets/cpu/lower/StackMemory.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"
#include "mlir/IR/IRMapping.h"

namespace normc::codegen {

class KeptElements {
 public:
  /// Chooses results of exponentials, logarithms and divisions in the last sweep of the slab, or of
  /// operations behind these, that depend on nothing but elements that the first sweep reads and values from
  /// before it.
  explicit KeptElements(SlabOp);
  /// True if so many runs that are worked on together, of known length, have values that are worth keeping
  /// and that fit in the cache.
  bool serve(int64_t runs, std::optional<int64_t> width) const;
  /// Emits the allocation of memory for so many runs, which are read and written in vectors of `lanes`.
  void allocate(Loops&, mlir::Type statistics, int64_t runs, int64_t width, int64_t lanes);

  bool isOf(SlabOp slab) const { return slab == slab_; }
  bool isFirst(SweepOp sweep) const { return sweep == first_; }
  bool isLast(SweepOp sweep) const { return sweep == last_; }
  /// True if the last sweep still executes the operation, or uses its argument i.
  bool executes(mlir::Operation& op) const { return executed_.contains(&op); }
  bool reads(size_t i) const { return read_.contains(unsigned(i)); }

  /// Emits what the first sweep does behind its own operations, whose results `values` maps: it computes the
  /// values of `lanes` elements of a run, where `clone` emits an operation, and stores them.
  void store(Loops&, int64_t run, mlir::Value offset, int64_t lanes, mlir::IRMapping& values,
             llvm::function_ref<void(mlir::Operation&)> clone) const;
  /// Emits what the last sweep does before its own operations: it loads the values.
  void load(Loops&, int64_t run, mlir::Value offset, int64_t lanes, mlir::IRMapping& values) const;

 private:
  void choose();
  void move(mlir::Value);
  void leave();
  mlir::Value place(Loops&, int64_t run, size_t k, mlir::Value offset) const;

  SlabOp slab_;
  SweepOp first_, last_;
  llvm::SetVector<mlir::Value> values_;
  llvm::SetVector<mlir::Operation*> moved_;  ///< of the last sweep, executed by the first
  /// Values of the last sweep, and the same values of the first one.
  llvm::MapVector<mlir::Value, mlir::Value> same_;
  llvm::DenseSet<mlir::Operation*> executed_;
  llvm::DenseSet<unsigned> read_;
  StackMemory memory_;
  int64_t pitch_ = 0;  ///< elements from a run of one value to the next
};

}  // namespace normc::codegen
