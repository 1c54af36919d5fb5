// The operands of a phase function, and loads and stores of their elements.
//
// AccessLowering turns names and coordinates into addresses and accesses. The target supplies pointers,
// strides and scalars as Arguments. On a CPU these are the parameters of a function that an entry wrapper
// (targets/cpu/Entry.h) calls, on a GPU those of the kernel itself.
#pragma once

#include <functional>

#include "codegen/dialect/Norm.h"
#include "codegen/lower/Loops.h"
#include "llvm/Support/Alignment.h"
#include "mlir/IR/BuiltinTypes.h"

namespace normc::codegen {

/// Indices of one element along the axes. Axes that a tensor does not have are ignored.
struct Coordinates {
  mlir::Value segment, row, feature, group, window, chunk, partial, block, pair;
};

/// True for X-sized operands, the mask and partials: the caller gives their strides.
inline bool isStrided(TensorOp t) {
  const bool ofRows = t.getRole() == package::Role::Tensor && t.hasAxis(Axis::Row);
  return (ofRows && !t.hasAxis(Axis::Block)) || t.hasAxis(Axis::Partial);
}

/// True for a field of a partial, which begins at any multiple of its element.
inline bool isPacked(TensorOp t) {
  return t.getRole() == package::Role::Partial || t.getRole() == package::Role::Partials;
}

/// True if no other operand of the phase may share the tensor's memory. An output may share the memory of the
/// input of the same kind, and state may be updated in place.
bool isUnshared(TensorOp);

/// The arguments of a phase, as values of the function that it is lowered to.
struct Arguments {
  struct Strides {
    mlir::Value segment, row, task;  ///< `task` may be null: none
  };
  llvm::SmallVector<mlir::Value>
      pointers;  ///< of each tensor: a memref of rank 0, so that `noalias` survives to LLVM
  llvm::SmallVector<Strides> strides;  ///< of each strided tensor
  mlir::Value segments, rows, features, task;
  std::function<mlir::Value(unsigned index)> scalar;  ///< f64
  enum CutField : unsigned { Units, ChunkUnits, Chunks };
  std::function<mlir::Value(unsigned phase, CutField)> cut;  ///< index
};

/// How elements are stored in memory and accessed.
struct Access {
  /// The target has instructions that convert bf16 and round to integers; else bf16 is stored as i16.
  bool conversions = false;
  int64_t alignment = 0;  ///< in bytes, the largest that a vector access may assume; 0: that of an element
  /// operands begin at any element; the code that emits a vector access knows its alignment
  bool peeled = false;
  mlir::Type stored(TensorOp) const;
  llvm::MaybeAlign alignmentOf(TensorOp, mlir::VectorType) const;
};

class AccessLowering {
 public:
  AccessLowering(Loops& loops, KernelOp kernel, PhaseOp phase, Arguments arguments, Access access = {});

  KernelOp kernel() const { return kernel_; }
  PhaseOp phase() const { return phase_; }
  bool featuresLast() const { return featuresLast_; }
  mlir::Type statistics() const { return statistics_; }

  mlir::Value segments() const { return segments_; }
  mlir::Value rows() const { return arguments_.rows; }
  mlir::Value features() const { return features_; }
  mlir::Value groupWidth(Axis axis);  ///< features of a `group` or `pre_group`
  mlir::Value blockWidth();           ///< features that share the scale of their codes
  int64_t groups(Axis axis) { return kernel_.groupsAlong(axis); }
  mlir::Value task() const { return arguments_.task; }
  mlir::Value scalar(llvm::StringRef number);
  mlir::Value chunks(int64_t phase);
  mlir::Value partials(TensorOp);  ///< number of partials of the call, from a tensor with that axis
  /// Returns how many chunks of a phase that is cut by segment belong to each segment.
  mlir::Value chunksOfSegment(int64_t phase);
  mlir::Value units();                          ///< units of the phase
  mlir::Value chunkUnits();                     ///< units of each task but the last
  std::pair<mlir::Value, mlir::Value> range();  ///< first unit of this task, and one past its last
  /// Returns a mask of the first `count` lanes. LLVM must not fold it to a constant: for a constant mask of
  /// one 16-bit lane it emits a store of 32 bits (22.1, AVX-512).
  mlir::Value laneMask(mlir::Value count, int64_t lanes);

  TensorOp tensor(llvm::StringRef name) { return kernel_.tensor(name); }
  llvm::SmallVector<TensorOp, 4> tensors(mlir::ArrayAttr symbols) { return kernel_.tensors(symbols); }
  mlir::Type stored(TensorOp t) const { return access_.stored(t); }
  const Access& access() const { return access_; }
  mlir::Value pointer(TensorOp);  ///< a memref of rank 0
  mlir::Value bytesOf(TensorOp);  ///< bytes of an X-sized tensor without gaps between rows
  /// True at run time if the runs of an X-sized tensor follow each other without gaps.
  mlir::Value isDense(TensorOp);
  mlir::Value addressOf(TensorOp, mlir::Value element);  ///< in bytes
  /// True at run time if all rows of an X-sized tensor begin at a multiple of `alignment` bytes and the row
  /// stride is positive.
  mlir::Value isAligned(TensorOp, int64_t alignment);
  /// True at run time if the rows of two X-sized tensors of one type begin alike: at the same remainder of
  /// `alignment` bytes.
  mlir::Value beginAlike(TensorOp, TensorOp, int64_t alignment);
  /// Makes all later vector accesses of the tensor non-temporal.
  void markNonTemporal(TensorOp t) { nonTemporal_.insert(t); }
  /// Returns the index of an element in its buffer.
  mlir::Value address(TensorOp, const Coordinates&);
  /// Loads elements and converts them to the statistics type; a mask to i1, an i64 or a field of a partial
  /// not at all. `lanes` 0: a scalar. Lanes outside `mask` (i1 lanes) are 0.
  mlir::Value load(TensorOp, mlir::Value address, int64_t lanes, mlir::Value mask);
  /// Loads an element of each lane, at `address` + `offsets` (32-bit integers), as `load`.
  mlir::Value gather(TensorOp, mlir::Value address, mlir::Value offsets, mlir::Value mask);
  /// The two parts of a load without a mask: the stored element, and its conversion to the statistics type.
  /// `alignment` in bytes, if the caller knows a larger one than an element's.
  mlir::Value loadStored(TensorOp t, mlir::Value address, int64_t lanes,
                         std::optional<int64_t> alignment = {});
  mlir::Value widened(TensorOp t, mlir::Value stored);
  mlir::Value narrowed(TensorOp t, mlir::Value);  ///< converts to the type that `t` stores
  /// Converts and stores, or stores as it is. `nonTemporal`: the address of a vector has to be a multiple of
  /// its size.
  void store(TensorOp, mlir::Value address, mlir::Value value, mlir::Value mask,
             std::optional<int64_t> alignment = {}, bool nonTemporal = false);
  void storeStored(TensorOp, mlir::Value address, mlir::Value stored, std::optional<int64_t> alignment = {},
                   bool nonTemporal = false);
  /// Prefetches the cache line of an element: into the second-level cache or, for data that are used once,
  /// with the non-temporal hint. Any address is allowed.
  void prefetch(TensorOp, mlir::Value address, bool nonTemporal);

 private:
  mlir::Value buffer(TensorOp);
  const Arguments::Strides& stridesOf(TensorOp t) const {
    return arguments_.strides[llvm::find(strided_, t) - strided_.begin()];
  }

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
  llvm::DenseSet<mlir::Operation*> nonTemporal_;
};

}  // namespace normc::codegen
