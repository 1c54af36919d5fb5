// Accesses of threads in the dynamic shared memory of their block, in pieces of up to 16 bytes.
//
// Layout: [slot][piece of an access][thread]. Neighbouring threads access neighbouring words, so there are no
// bank conflicts.
//
// It knows this layout. It does not know what the values are, nor when they are written.
#pragma once

#include "codegen/targets/cuda/KernelThread.h"
#include "codegen/targets/cuda/Launch.h"

namespace normc::codegen::cuda {

/// Returns the dynamic shared memory of the block. All slabs use it, one after another.
mlir::Value dynamicMemory(KernelThread&);

/// Returns the bytes of a scalar or of a vector.
int64_t bytesOf(mlir::Type);

class SharedPieces {
 public:
  /// Places of `threads` threads.
  SharedPieces(KernelThread& thread, int64_t threads) : k_(thread), l_(thread.l), threads_(threads) {}

  /// Returns the bytes of an access that are contiguous.
  static int64_t pieceOf(int64_t bytes) { return std::min(bytes, kCopiedBytes); }

  /// Returns the address of the first piece of the index-th thread, `offset` bytes from the beginning of the
  /// memory, of accesses of `bytes`.
  mlir::Value begin(mlir::Value offset, mlir::Value index, int64_t bytes);
  /// Returns the address of a piece, `offset` bytes of each thread from the beginning of a slot that has
  /// `slotBytes` of each.
  mlir::Value at(mlir::Value begin, mlir::Value slot, int64_t slotBytes, int64_t offset);
  /// Loads or stores an access, whose pieces begin at `offset` of the slot.
  mlir::Value load(mlir::Value begin, mlir::Value slot, int64_t slotBytes, int64_t offset, mlir::Type);
  void store(mlir::Value begin, mlir::Value slot, int64_t slotBytes, int64_t offset, mlir::Value);

 private:
  KernelThread& k_;
  Loops& l_;
  int64_t threads_;
};

}  // namespace normc::codegen::cuda
