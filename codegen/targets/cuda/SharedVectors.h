// SharedVectors keeps in shared memory of a slab the vectors of features that all rows share, scale and bias
// (`hold` of lines, Schedule.h). A task reads them once, not for each of its rows: in f32 they are several
// times as many bytes as a row of 16 bits, too many for the first-level cache if rows are long.
//
// The teams of a block share them. Layout: [access of a thread][vector][16 bytes of it][thread of the team]
// (SharedPieces.h), behind what SharedRuns and ReadAhead have there.
//
// It knows this layout and the positions of a run. It does not know sweeps.
#pragma once

#include "codegen/targets/cuda/RunAccess.h"
#include "codegen/targets/cuda/SharedPieces.h"

namespace normc::codegen::cuda {

class SharedVectors : SlabPolicy {
 public:
  SharedVectors(KernelThread& thread, RunAccess& access)
      : SlabPolicy(thread, access), pieces_(thread, thread.s.team) {}

  /// Begins a slab: brings its vectors there, none if the schedule does not hold them. The threads of the
  /// block wait for each other.
  void begin(SlabOp);
  /// True if the vector is there, and the access one of the thread's own: not of a block of codes.
  bool has(TensorOp t, const Position& p) const {
    return (p.index >= 0 || p.slot) && llvm::is_contained(tensors_, t);
  }
  /// Returns an access to a vector in the statistics type.
  mlir::Value load(TensorOp, const Position&);

 private:
  struct Place {
    mlir::Value begin;
    int64_t offset = 0;  ///< in a slot
  };
  Place placeOf(TensorOp);
  mlir::Value slotOf(const Position&);
  void copy(const Position&);

  SharedPieces pieces_;
  llvm::SmallVector<TensorOp> tensors_;
  int64_t begin_ = 0, slotBytes_ = 0;
};

}  // namespace normc::codegen::cuda
