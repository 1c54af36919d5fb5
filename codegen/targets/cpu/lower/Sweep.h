// A sweep on its way through the loops: what the files of sweeps share.
//
// Sums have levels (Loops::inLevels), so that the error of a long one grows with the logarithm of its length
// rather than the length.
#pragma once

#include "codegen/targets/cpu/lower/PhaseLowering.h"
#include "runtime/abi/Sums.h"

namespace normc::codegen {

/// Features of a stream, or of runs in the order of memory, whose sums are collected at a time: they stay in L1.
constexpr int64_t kStreamTile = 1024;
/// Vectors of a step that writes one line of several.
constexpr int64_t kTurnUnroll = 4;

struct PhaseLowering::Sweep : SweepParts {
  explicit Sweep(SweepParts parts) : SweepParts(std::move(parts)) {}
  bool buffered = false;         ///< partials go to the stream's buffer first
  bool stores = true;            ///< what is written, is in this pass
  bool collects = true;          ///< and what is added to partials
  bool writesNow() const { return stores && !writes.empty(); }
  /// Stores wait until everything of a step has been loaded, since an output may be the input's own memory.
  struct Pending {
    TensorOp tensor;
    mlir::Value address, value, mask;
    size_t replica = 0, order = 0;
  };
  llvm::SmallVector<Pending> pending;
  /// What one line stores follows each other, so that it leaves the core line by line.
  void sort();
  void flush(AccessLowering&, bool nonTemporal = false);
  /// Around the caches where the call says so.
  void flushNonTemporal(AccessLowering&, Loops&, mlir::Value nonTemporal);
};

}  // namespace normc::codegen
