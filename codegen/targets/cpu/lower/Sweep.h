// The state of a sweep while its loops are emitted. Shared by the sources that lower sweeps.
//
// Sums have levels (Loops::inLevels), so that the error of a long sum grows with the logarithm of its length.
#pragma once

#include "codegen/targets/cpu/lower/PhaseLowering.h"
#include "runtime/abi/Sums.h"

namespace normc::codegen {

/// The vectors of a step that stores one run of several.
constexpr int64_t kTurnUnroll = 4;

struct PhaseLowering::Piece {
  Coordinates at;    ///< its first row, and the first feature of its group
  mlir::Value rows;  ///< how many
  /// the first row of the piece that follows, and the distance of its features
  mlir::Value nextRow, nextFeature;
};

/// What is done with the elements that do not fill a vector.
enum class Tail {
  Masked,  ///< they are a vector under a mask, if there are any
  Joined,  ///< the same, in one step with the vectors before it, so that stores of a run follow each other
  Halves,  ///< their number is known: a half of a vector, a quarter, ...
  Scalar,  ///< one at a time
};

struct PhaseLowering::Run {
  llvm::MutableArrayRef<Replica> replicas;  ///< one for each of the runs
  mlir::Value width;                        ///< elements of a run
  mlir::Value lead;                         ///< the elements in front of the first step; null: none
  mlir::Value first, main, whole;           ///< where steps begin and end, and where whole vectors end
  int64_t rest = 0;                         ///< whole vectors behind the steps, if they are known; else 0
  Tail tail = Tail::Masked;
};

struct PhaseLowering::Sweep : SweepParts {
  explicit Sweep(SweepParts parts) : SweepParts(std::move(parts)), sums(op.getSums().size()) {}
  size_t sums;  ///< of slots: results, of which a replica has running values

  //===-- Across channels: memory with an element for each row of a piece --------===//
  llvm::SmallVector<std::pair<mlir::Value, StackMemory>> ofRow;  ///< values that the region uses, and theirs
  llvm::SmallVector<Combiner> rowCombiners;                      ///< of the results
  PieceMemory::Places sumsAt;                                    ///< that their terms are added to
  StagedStores* stage = nullptr;                                 ///< that outputs go to first
  /// Makes the results sums in memory.
  void keepSumsInPlaces() {
    rowCombiners.assign(combiners.begin(), combiners.begin() + long(sums));
    combiners.erase(combiners.begin(), combiners.begin() + long(sums));
    slots -= std::exchange(sums, 0);
  }

  bool buffered = false;  ///< sums per feature go to the buffer of the stream first
  bool stores = true;     ///< this pass stores the outputs
  bool collects = true;   ///< this pass adds to the partials
  bool hasLead = false;   ///< steps begin at cache lines
  bool writesNow() const { return stores && !writes.empty(); }
  /// Stores are emitted after all loads of a step, because an output may share the input's memory.
  struct Pending {
    TensorOp tensor;
    mlir::Value address, value, mask;
    size_t replica = 0, order = 0;
  };
  llvm::SmallVector<Pending> pending;
  /// Orders the stores of one run together, so that cache lines are filled completely.
  void sort();
  void flush(AccessLowering&, bool nonTemporal = false);
  /// Emits both forms of the stores, non-temporal if the condition holds at run time.
  void flushNonTemporal(AccessLowering&, Loops&, mlir::Value nonTemporal);
};

}  // namespace normc::codegen
