// Lowers one phase of a kernel to loops over vectors.
//
// A slab is lowered by where the contiguous axis lies relative to its statistic:
//
//   line     the statistic is over one run of contiguous elements: R slabs are
//            worked on together, sweeps run along the axis, sums end horizontally
//   block    over several runs: sweeps run over R runs at a time, of one block or,
//            where a block goes through all segments, of R of them
//   column   the contiguous axis indexes statistics: each vector holds as many
//            slabs as it has lanes, sweeps run over rows, sums never leave lanes
//   stream   no statistic is complete: R rows at a time, or the runs of R features
//            side by side; per-feature sums go to the task's partials
//
// In all four the code between sweeps is cloned once per replica: a replica is a
// row (line, block, stream) or a vector of features (column).
#pragma once

#include "codegen/lower/Walk.h"
#include "runtime/abi/Numbers.h"

namespace normc::codegen {

/// Bytes that leave a core together.
constexpr int64_t kLine = 64;
/// The least vectors of a step where outputs go past the caches a row at a time.
constexpr int64_t kStreamUnroll = 4;

class PhaseLowering : Walk {
 public:
  PhaseLowering(Loops& loops, Frame& frame);
  void run();

 private:
  /// A sweep, its buffer and the stores that wait.
  struct Sweep;
  //===-- Slabs (Slabs.cpp) ---------------------------------------------------===//
  bool streamsRuns();
  void takeWholeSegments();
  void zeroPartials();
  void slab(SlabOp);
  void shareUniform(SlabOp);
  void lower(SlabOp, mlir::Value begin, mlir::Value end);
  void planStreaming();
  int64_t linesUnroll();
  int64_t largeUnroll();
  void orderStores();
  void lines(SlabOp, mlir::Value begin, mlir::Value end);
  void markNext(mlir::Value unit, int64_t count);
  void linesOfUnits(SlabOp, llvm::ArrayRef<Coordinates> units);
  llvm::SmallVector<Coordinates> unitsFrom(mlir::Value first, int64_t count);
  Replicas lineReplicas(SlabOp, llvm::ArrayRef<Coordinates> units, mlir::Value group);
  int64_t groupsOf(SlabOp);
  void blocks(SlabOp, mlir::Value begin, mlir::Value end);
  void columns(SlabOp, mlir::Value begin, mlir::Value end);
  void columnTiles(SlabOp, mlir::Value begin, mlir::Value end, Coordinates);
  /// `rest`: features that the last vector has, where they do not fill it.
  void columnTile(SlabOp, Coordinates, mlir::Value feature, int64_t vectors, mlir::Value rest = {});
  struct LastTile {
    int64_t begin, vectors, rest;  ///< its first feature, and those of its last vector; 0: all
  };
  std::optional<LastTile> lastTile(SlabOp);
  /// From here on lanes are those of this one, of a tile's vectors.
  void maskOf(const Replica& r, const Replicas& all) { laneMask_ = &r == &all.back() ? lastMask_ : mlir::Value(); }
  void stream(SlabOp, mlir::Value begin, mlir::Value end);
  void body(SlabOp, Replicas&);
  int64_t rowsTogether() const { return rows_; }
  bool isAhead() const { return schedule_.getAhead() && rows_ > 1; }

  //===-- Sweeps (Sweeps.cpp, Streams.cpp, Channels.cpp) -------------------------===//
  /// `all`: where the sums of all replicas go, side by side; null: each has its own.
  void lineSweep(SweepOp, Replicas&, Replica* all = nullptr);
  void writeInTurn(Sweep&, Replicas&, mlir::Value width);
  void blockSweep(SweepOp, Replicas&);
  void channelSweep(SweepOp, Replicas&, Replica* all = nullptr);
  void writeChannelsInTurn(SweepOp, Replicas&);
  void columnSweep(SweepOp, Replicas&);
  void streamSweep(SweepOp, mlir::Value begin, mlir::Value end);
  /// The same with layout channels_first: in the order of memory, R features together.
  void runsSweep(SweepOp, mlir::Value begin, mlir::Value end);
  /// Runs along the contiguous axis for all replicas; `sums` are vectors, replica-major. Not `flushes`: the run is short.
  Values along(Sweep&, llvm::MutableArrayRef<Replica>, mlir::Value width, Values sums, bool flushes = true);
  void element(Sweep&, llvm::MutableArrayRef<Replica>, mlir::Value offset, int64_t lanes, mlir::Value mask,
               llvm::MutableArrayRef<mlir::Value> sums, unsigned stride, llvm::MutableArrayRef<mlir::Value> common = {});
  void fetchNext(size_t rows, mlir::Value offset, int64_t elements);
  void addRowPartials(Sweep&, llvm::MutableArrayRef<Replica>, llvm::ArrayRef<mlir::Value> sums);
  mlir::Value inFirstLanes(mlir::Value term);
  /// `lanes` of 0: scalars.
  Values zeroSums(size_t count, int64_t lanes);
  void allocateBuffer();
  mlir::Value inBuffer(size_t partial, mlir::Value feature);
  mlir::Value loadBuffer(mlir::Value at, int64_t lanes);
  void storeBuffer(mlir::Value at, mlir::Value);
  void clearBuffer(Sweep&, mlir::Value width);
  void flushBuffer(Sweep&, mlir::Value width);

  //===-- Side by side (SideBySide.cpp) -----------------------------------------===//
  /// Lowers the scalar code of lines once for all of them: where they differ, a value is a vector with one lane for
  /// each. Roots, divisions and the adding up of lanes cost as much for eight lines as for one.
  void sideBySide(mlir::Operation&, Replica& all, Replicas&);
  /// Statistics of the next lines are under way while outputs of these are written: at(i) for i = begin, begin + step,
  /// ... < end, whose last step is whole.
  void linesAhead(SlabOp, mlir::Value begin, mlir::Value end, int64_t step, llvm::function_ref<Replicas(mlir::Value)> at);
  /// A slab up to its last sweep, and from there on.
  Values front(SlabOp, Replicas);
  void back(SlabOp, Replicas, mlir::ValueRange);
  void spread(mlir::Operation&, Replica& all, Replicas&);
  mlir::Value packed(llvm::ArrayRef<mlir::Value>);
  mlir::Value probeAll(ProbeOp, Replicas&);
  /// One vector with the sum of each, added in the order of `horizontal`. A power of two of them.
  mlir::Value horizontals(llvm::ArrayRef<mlir::Value>);

  ScheduleAttr schedule_;
  int64_t rows_, unroll_;    ///< of the schedule, or those of a call that does not fit in caches
  mlir::Value large_;        ///< whether this call is one; null: all are alike
  mlir::Value past_;         ///< whether its outputs may go past the caches
  bool inLarge_ = false;
  mlir::Value next_;         ///< the first unit of the next step, where its inputs are asked for ahead; or null
  mlir::Value lastMask_;     ///< of the last vector of a tile of columns
  mlir::IRMapping shared_;  ///< values of the phase, outside all slabs
  mlir::Value buffer_;       ///< of a stream's sums
  mlir::Value bufferBegin_;  ///< where they begin in it
};

/// Replaces every norm.kernel of the module by one function per phase, named
/// `<kernel>.<phase>`.
void lowerToLoops(mlir::ModuleOp, const Access& = {});

}  // namespace normc::codegen
