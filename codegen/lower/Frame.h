// The operands of a phase function and where their elements lie.
//
// A Frame turns names and coordinates into addresses and loads. Where pointers,
// strides and numbers come from is the target's affair: it hands them over as
// Arguments. On a CPU they are the parameters of a function that an entry wrapper
// (targets/cpu/Entry.h) calls, on a GPU those of the kernel itself.
#pragma once

#include <functional>

#include "codegen/dialect/Norm.h"
#include "codegen/lower/Loops.h"
#include "llvm/Support/Alignment.h"
#include "mlir/IR/BuiltinTypes.h"

namespace normc::codegen {

/// Indices of one element along the axes; what a tensor does not have is ignored.
struct Coordinates {
  mlir::Value segment, row, feature, group, window, chunk;
};

/// X-sized operands and the mask: those whose strides the caller gives.
inline bool isStrided(TensorOp t) { return t.getRole() == "tensor" && t.hasAxis("row"); }

/// Whether no other operand of the phase shares the tensor's memory. Outputs may be the
/// memory of the input of the same kind, and state may be updated in place.
bool isUnshared(TensorOp);

/// What a phase works on, as values of the function that it is lowered to.
struct Arguments {
  struct Strides {
    mlir::Value segment, row, task;  ///< `task` may be null: none
  };
  llvm::SmallVector<mlir::Value> pointers;  ///< of each tensor: a memref of rank 0, so that `noalias` survives to LLVM
  llvm::SmallVector<Strides> strides;       ///< of each strided tensor
  mlir::Value segments, rows, features, task;
  std::function<mlir::Value(unsigned index)> scalar;                ///< f64
  enum CutField : unsigned { Units, ChunkUnits, Chunks };
  std::function<mlir::Value(unsigned phase, CutField)> cut;         ///< index
};

/// How numbers lie in memory and are accessed.
struct Access {
  bool nativeBF16 = false;  ///< the target has conversions; else bf16 travels as i16
  bool roundsBF16 = false;  ///< vectors of it are rounded by an instruction all the same
  int64_t wholeBF16 = 0;    ///< numbers of it in a register of AVX-512; 0: there is none
  int64_t alignment = 0;    ///< in bytes, the most that a vector access may rely on; 0: that of an element
  bool peeled = false;      ///< operands begin anywhere; who makes a vector access knows that its own address is aligned
  mlir::Type stored(TensorOp) const;
  llvm::MaybeAlign alignmentOf(mlir::VectorType) const;
  bool isWhole(mlir::Value bf16) const;
};

class Frame {
 public:
  Frame(Loops& loops, KernelOp kernel, PhaseOp phase, Arguments arguments, Access access = {});

  KernelOp kernel() const { return kernel_; }
  PhaseOp phase() const { return phase_; }
  bool featuresLast() const { return featuresLast_; }
  mlir::Type statistics() const { return statistics_; }

  mlir::Value segments() const { return segments_; }
  mlir::Value rows() const { return arguments_.rows; }
  mlir::Value features() const { return features_; }
  mlir::Value groupWidth(llvm::StringRef axis);  ///< features of a `group` or `pre_group`
  int64_t groups(llvm::StringRef axis);
  mlir::Value task() const { return arguments_.task; }
  mlir::Value scalar(llvm::StringRef number);
  mlir::Value chunks(int64_t phase);
  mlir::Value units();       ///< of the phase
  mlir::Value chunkUnits();  ///< of a task, but for the last
  std::pair<mlir::Value, mlir::Value> range();  ///< units of this task
  /// The first `count` lanes. LLVM must not see through it: of a constant mask of one
  /// 16-bit lane it makes a store of 32 bits (22.1, AVX-512).
  mlir::Value laneMask(mlir::Value count, int64_t lanes);

  TensorOp tensor(llvm::StringRef name);
  mlir::Type stored(TensorOp t) const { return access_.stored(t); }
  const Access& access() const { return access_; }
  mlir::Value pointer(TensorOp);  ///< a memref of rank 0
  mlir::Value bytesOf(TensorOp);  ///< of an X-sized tensor, as if it were compact
  /// Whether all rows of an X-sized tensor begin at a multiple of `alignment` bytes, each at its own.
  mlir::Value isAligned(TensorOp, int64_t alignment);
  /// From now on accesses of several elements say that nobody comes back to the tensor soon.
  void markStreamed(TensorOp t) { streamed_.insert(t); }
  /// Position of an element in its buffer.
  mlir::Value address(TensorOp, const Coordinates&);
  /// In the statistics type; a mask as i1, an i64 as it is. `lanes` 0: a scalar.
  /// With `mask` (i1 lanes), others read as 0.
  mlir::Value load(TensorOp, mlir::Value address, int64_t lanes, mlir::Value mask);
  /// The two halves of a load without a mask: as the element lies in memory, then in the statistics type.
  /// `alignment` in bytes where the caller knows better; 0: an element's.
  mlir::Value loadStored(TensorOp t, mlir::Value address, int64_t lanes, std::optional<int64_t> alignment = {});
  mlir::Value widened(TensorOp t, mlir::Value stored);
  mlir::Value narrowed(TensorOp t, mlir::Value);  ///< to what `t` holds
  /// `past`: around the caches; the address of a vector is a multiple of its size then.
  void store(TensorOp, mlir::Value address, mlir::Value value, mlir::Value mask, std::optional<int64_t> alignment = {},
             bool past = false);
  /// Asks for the line of an element, as far as the second-level cache; of an address that does not exist for nothing.
  void fetch(TensorOp, mlir::Value address);

 private:
  mlir::Value buffer(TensorOp);

  Loops& l_;
  KernelOp kernel_;
  PhaseOp phase_;
  Arguments arguments_;
  Access access_;
  llvm::SmallVector<TensorOp> tensors_, strided_;
  bool featuresLast_;
  mlir::Type statistics_;
  mlir::Value segments_, features_;
  llvm::StringMap<mlir::Value> buffers_;
  llvm::DenseSet<mlir::Operation*> streamed_;
};

}  // namespace normc::codegen
