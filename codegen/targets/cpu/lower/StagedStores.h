// Outputs past the caches whose runs begin inside cache lines, with layout channels_first.
//
// A non-temporal store of a part of a line costs more than an ordinary one. Where the runs of a piece follow
// each other in memory, a step writes them one after another into a stage in the first-level cache; what
// fills whole lines goes from there to memory, and the rest waits for the next step.
#pragma once

#include "codegen/lower/AccessLowering.h"
#include "codegen/targets/cpu/lower/StackMemory.h"

namespace normc::codegen {

class StagedStores {
 public:
  /// Emits the allocation of the stage, for elements of a type in memory.
  StagedStores(Loops&, AccessLowering&, mlir::Type stored);

  /// True at run time if the runs of a piece of `rows` rows follow each other and fit in a stage.
  mlir::Value serves(TensorOp, mlir::Value rows);
  /// Emits the loop over the features of a piece, which begins at `at`. `features` emits a step, whose stores
  /// are those of `store`.
  void write(TensorOp, const Coordinates& at, mlir::Value rows,
             llvm::function_ref<void(mlir::Value first, int64_t count)> features);
  /// Stores elements of the run of a feature of the step.
  void store(size_t feature, mlir::Value offset, mlir::Value stored, mlir::Value mask);

 private:
  Loops& l_;
  AccessLowering& f_;
  StackMemory memory_;
  mlir::Value begin_, pitch_;  ///< of the first run of the step, and from run to run
};

}  // namespace normc::codegen
