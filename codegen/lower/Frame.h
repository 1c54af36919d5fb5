// The operands of a phase function and where their elements lie.
//
// Every phase of a kernel is lowered to a function with the same parameters: one
// rank-0 memref per tensor (so that `noalias` survives to LLVM), the strides of
// the X-sized ones, the extents, the scalars, the cuts, the task. `abi/kernel.h`
// is turned into these by the entry wrapper (targets/cpu/Entry.h).
#pragma once

#include "codegen/dialect/Norm.h"
#include "codegen/lower/Loops.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace normc::codegen {

/// Indices of one element along the axes; what a tensor does not have is ignored.
struct Coordinates {
  mlir::Value segment, row, feature, group, window, chunk;
};

/// The parameters of a phase function, in order.
struct Parameters {
  explicit Parameters(KernelOp);
  llvm::SmallVector<TensorOp> tensors;  ///< one memref each
  llvm::SmallVector<TensorOp> strided;  ///< segment, row and task stride each
  /// then: segments, rows, features, scalars, cuts, task
  llvm::SmallVector<mlir::Type> types;
  unsigned stridesBegin, extentsBegin, scalars, cuts, task;
  static bool isStrided(TensorOp t) { return t.isXSized() || t.getSymName() == "mask"; }
};

class Frame {
 public:
  Frame(Loops& loops, KernelOp kernel, PhaseOp phase, mlir::func::FuncOp function);

  KernelOp kernel() const { return kernel_; }
  PhaseOp phase() const { return phase_; }
  bool featuresLast() const { return featuresLast_; }
  mlir::Type statistics() const { return statistics_; }

  mlir::Value segments() const { return segments_; }
  mlir::Value rows() const { return rows_; }
  mlir::Value features() const { return features_; }
  mlir::Value groupWidth(llvm::StringRef axis);  ///< features of a `group` or `pre_group`
  int64_t groups(llvm::StringRef axis);
  mlir::Value task() const { return task_; }
  mlir::Value scalar(llvm::StringRef number);
  mlir::Value chunks(int64_t phase);
  std::pair<mlir::Value, mlir::Value> range();  ///< units of this task
  /// The first `count` lanes. LLVM must not see through it: of a constant mask of one
  /// 16-bit lane it makes a store of 32 bits (22.1, AVX-512).
  mlir::Value laneMask(mlir::Value count, int64_t lanes);

  TensorOp tensor(llvm::StringRef name);
  /// Position of an element in its buffer.
  mlir::Value address(TensorOp, const Coordinates&);
  /// In the statistics type; a mask as i1, an i64 as it is. `lanes` 0: a scalar.
  /// With `mask` (i1 lanes), others read as 0.
  mlir::Value load(TensorOp, mlir::Value address, int64_t lanes, mlir::Value mask);
  void store(TensorOp, mlir::Value address, mlir::Value value, mlir::Value mask);

 private:
  mlir::Value buffer(TensorOp);

  Loops& l_;
  KernelOp kernel_;
  PhaseOp phase_;
  mlir::func::FuncOp function_;
  Parameters parameters_;
  bool featuresLast_;
  mlir::Type statistics_;
  mlir::Value segments_, rows_, features_, task_, scalars_, cuts_;
  llvm::StringMap<mlir::Value> buffers_;
};

}  // namespace normc::codegen
