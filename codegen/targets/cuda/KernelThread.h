// The thread that a kernel's code is emitted for, and what it shares with its block.
//
// It knows the launch and the schedule: the thread's place in its block, its task and the grid, the barrier
// and the memory of its block. It does not know slabs, rows or sums. All policies of the lowering are built
// on it.
#pragma once

#include "codegen/lower/SlabLowering.h"
#include "codegen/targets/cuda/Launch.h"
#include "codegen/targets/cuda/Schedule.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace normc::codegen::cuda {

/// Address spaces of NVPTX.
inline constexpr unsigned kGlobalSpace = 1, kSharedSpace = 3;

using Replica = SlabLowering::Replica;
using Replicas = SlabLowering::Replicas;

/// Returns the index of the block in the phase's grid, counted from the end if the phase walks backwards
/// (readsAgain).
mlir::Value blockIn(Loops&, PhaseOp, mlir::gpu::Dimension);

/// The place of a thread among those that walk over the units of a slab.
struct Place {
  int64_t team = 1;            ///< threads of a run, in all blocks of the task
  int64_t span = 1;            ///< threads of a unit in this block: the teams of all its groups
  int64_t units = 1;           ///< spans in a block; of columns, in all blocks of the task
  mlir::Value unit;            ///< of this thread
  mlir::Value spanLane, lane;  ///< of the thread in the span, in the team over all blocks
};

class KernelThread {
 public:
  KernelThread(Loops&, AccessLowering&, const Schedule&, const Launch&, mlir::gpu::GPUFuncOp);

  int64_t threads() const { return launch.threads; }  ///< of the block
  int64_t taskBlocks() const { return launch.cluster * launch.grid; }
  bool clustered() const { return launch.cluster > 1; }
  bool gridded() const { return launch.grid > 1; }
  int64_t tileCount() const { return std::max<int64_t>(s.tile, 1); }
  int64_t lanes() const { return s.vector > 1 ? s.vector : 0; }  ///< of an access; 0: a scalar
  mlir::Value indexInTask();  ///< of the thread among those of all blocks of the task
  Place placeOf(int64_t team, int64_t groups = 1);

  mlir::Type vectorType() const;  ///< of an access, in the statistics type
  mlir::Type storedType(TensorOp, int64_t lanes) const;
  /// Returns the vector of an access, made lane by lane.
  mlir::Value lanesOf(llvm::function_ref<mlir::Value(int64_t)> lane);
  mlir::Value laneOf(mlir::Value vector, int64_t lane);
  mlir::Value isZero(mlir::Value index);
  void storeWhere(mlir::Value condition, llvm::function_ref<void()> store);
  /// Returns what `load` does where the condition holds, else zeros of these types. No condition is true.
  Values loadWhere(mlir::Value condition, llvm::ArrayRef<mlir::Type>, llvm::function_ref<Values()> load);
  /// Returns the identities of the combiners in this type.
  Values identities(Combiners, mlir::Type);
  mlir::Value toI32(mlir::Value index);
  mlir::Value toI64(mlir::Value index);

  /// Returns the address of an element of the statistics type, or of another, behind a pointer.
  mlir::Value elementOf(mlir::Value pointer, mlir::Value index, mlir::Type = {});
  /// Returns shared memory of the block, elements of the statistics type or of another.
  mlir::Value shared(int64_t elements, mlir::Type = {});
  /// Returns the address of a variable in shared memory, which is made when its name is first asked for.
  /// `others`: other blocks write it. LLVM would see no writer of an internal variable, because `mapa` is
  /// declared to let no address escape.
  mlir::Value sharedVariable(const llvm::Twine& name, int64_t elements, mlir::Type, int64_t alignment,
                             bool others = false);
  /// Waits for all threads of the block.
  void barrier();
  int64_t barriers() const { return barriers_; }  ///< that have been emitted
  /// Leaves out of `barriers` those that `code` emits, because not every run passes them.
  void uncounted(llvm::function_ref<void()> code);

  Loops& l;
  AccessLowering& f;
  const Schedule& s;
  const Launch launch;
  mlir::gpu::GPUFuncOp function;
  const mlir::Value thread;       ///< index in the block
  const mlir::Value columnBlock;  ///< which tile of columns the block has
  const mlir::Value rank;         ///< of the block in its task

 private:
  int64_t barriers_ = 0;
};

}  // namespace normc::codegen::cuda
