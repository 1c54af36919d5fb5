// Lowers one phase of a kernel to loops over vectors.
//
// How a slab is lowered depends on where the contiguous axis is, seen from the statistic:
//
//   run      the statistic is over one run of contiguous elements: R slabs are worked
//            on together, sweeps go along the axis, sums end in horizontal sums
//   block    it is over several runs: sweeps go over R runs at a time, of one block or,
//            if a block goes through all segments, of R blocks
//   column   the contiguous axis indexes statistics: each vector holds as many slabs as
//            it has lanes, sweeps go over rows, sums never leave their lanes; or its lanes
//            are rows and sweeps go over features, a piece of the rows at a time
//   stream   no statistic is complete: R rows at a time, or the runs of R features
//            side by side; sums per feature go to the partials of the task
//
// In all four the code between sweeps is cloned once for each replica. A replica is a row or channel (run,
// block, stream) or a vector of features (column).
#pragma once

#include "codegen/Pass.h"
#include "codegen/lower/SlabLowering.h"
#include "codegen/targets/cpu/lower/KeptElements.h"
#include "codegen/targets/cpu/lower/PieceMemory.h"
#include "codegen/targets/cpu/lower/StagedStores.h"
#include "codegen/targets/cpu/lower/StreamBuffer.h"
#include "runtime/abi/MemoryUnits.h"
#include "runtime/abi/Numbers.h"

namespace normc::codegen {

class PhaseLowering : SlabLowering {
 public:
  PhaseLowering(Loops& loops, AccessLowering& frame);
  void run();

 private:
  /// A sweep, its buffer and its pending stores.
  struct Sweep;
  /// Some rows of a segment whose statistics are worked on together, across channels.
  struct Piece;
  /// Runs of contiguous elements that a sweep goes along side by side, cut into parts.
  struct Run;
  /// The size of a step: runs side by side, and vectors of each.
  struct Steps {
    int64_t rows, unroll;
    bool large = false;  ///< these are the steps of large calls
  };
  /// Conditions about the call, i1; null: it never is.
  struct LargeCall {
    mlir::Value is;           ///< calls of this size have steps of their own
    mlir::Value pastCaches;   ///< its outputs should be stored with non-temporal stores
    mlir::Value nonTemporal;  ///< and may be
    /// Rows begin inside cache lines, so steps may follow a *lead*: the elements of a row in front of its
    /// first whole line.
    bool leads = false;
    mlir::Value alike;       ///< the rows of all outputs have equal leads; null: there is one output
    mlir::Value behindLead;  ///< non-temporal stores may follow a lead
  };
  //===-- Slabs (Slabs.cpp) ---------------------------------------------------===//
  bool takesChannels();
  void takeWholeSegments();
  void zeroPartials();
  void slab(SlabOp);
  void shareUniform(SlabOp);
  void lower(SlabOp, mlir::Value begin, mlir::Value end);
  void lowerUnits(SlabOp, mlir::Value begin, mlir::Value end);
  /// True if a shift estimate of the slab searches valid rows.
  bool searchesRows(SlabOp);
  void allocatePlaces();
  void allocateKept();
  /// Returns the elements that a step of so many runs keeps from the first sweep to the last; null: none.
  KeptElements* keptBy(SlabOp, int64_t runs);
  Values searchValid(mlir::Value segment, mlir::Value count) override;
  void runSlabs(SlabOp, mlir::Value begin, mlir::Value end);
  /// Returns the first unit of the step behind `count` units; null: its inputs are not prefetched.
  mlir::Value unitToPrefetch(mlir::Value unit, int64_t count);
  void runsOfUnits(SlabOp, llvm::ArrayRef<Coordinates> units);
  /// Emits the loop over the blocks of runs; `code` emits an operation of the body.
  void blocksOfRuns(BlocksOp, Replica& all, Replicas&, llvm::function_ref<void(mlir::Operation&)> code);
  llvm::SmallVector<Coordinates> unitsFrom(mlir::Value first, int64_t count);
  Replicas runReplicas(SlabOp, llvm::ArrayRef<Coordinates> units, mlir::Value group);
  int64_t groupsOf(SlabOp);
  void blocks(SlabOp, mlir::Value begin, mlir::Value end);
  void stream(SlabOp, mlir::Value begin, mlir::Value end);
  void body(SlabOp, Replicas&);
  //===-- Large calls (LargeCalls.cpp) --------------------------------------------===//
  LargeCall largeCall();
  bool mayHaveLead(llvm::ArrayRef<mlir::Operation*> read, llvm::ArrayRef<mlir::Operation*> written);
  /// Returns the rows of a step. Rows with a lead go alone.
  int64_t largeRows(SlabOp);
  /// Returns the elements of the lead; null: steps begin with the run. Beside sums per feature, which are
  /// then split too, and where no vector is a whole line a lead pays in large calls alone.
  mlir::Value leadOf(Sweep&, llvm::ArrayRef<Replica>, mlir::Value width);
  /// Emits code of large calls twice, with layout channels_first: `withLeads` for runs that begin inside
  /// cache lines and are stored one after the other, each with its lead, `code` for all others.
  Values cutRuns(llvm::function_ref<void()> code, llvm::function_ref<void()> withLeads);
  int64_t cacheLineUnroll();
  int64_t largeUnroll(int64_t rows);
  void flush(Sweep&, int64_t vectors);
  void orderStores();

  bool isAhead() const { return schedule_.getAhead() && steps_.rows > 1; }

  //===-- Sweeps (Sweeps.cpp, Streams.cpp, Channels.cpp) -------------------------===//
  /// `all`: receives the sums of all replicas as one vector; null: each replica has its own.
  void runSweep(SweepOp, Replicas&, Replica* all = nullptr);
  void writeInTurn(Sweep&, Replicas&, mlir::Value width);
  /// Returns the vectors of a step that writes one of so many runs.
  int64_t unrollInTurn(size_t runs) const;
  void blockSweep(SweepOp, Replicas&);
  void channelSweep(SweepOp, Replicas&, Replica* all = nullptr);
  void writeChannelsInTurn(SweepOp, Replicas&);
  void columnSweep(SweepOp, Replicas&);
  void streamSweep(SweepOp, mlir::Value begin, mlir::Value end);
  class ChannelStream;
  /// streamSweep for layout channels_first: in the order of memory, R features together.
  void channelStreamSweep(SweepOp, mlir::Value begin, mlir::Value end);
  /// Emits the loop along the contiguous axis for all replicas; `sums` are vectors, replica-major. `flushes`
  /// false: the run is short, so sums need no levels.
  Values along(Sweep&, llvm::MutableArrayRef<Replica>, mlir::Value width, Values sums, bool flushes = true);
  Run cut(llvm::MutableArrayRef<Replica>, mlir::Value width, mlir::Value lead);
  /// Emits the loop over steps of so many vectors.
  Values steps(Sweep&, const Run&, mlir::Value begin, mlir::Value end, int64_t vectors,
               mlir::ValueRange sums);
  Values joinedTail(Sweep&, const Run&, Values sums);
  Values maskedTail(Sweep&, const Run&, Values sums);
  Values tailInHalves(Sweep&, const Run&, Values sums);
  Values scalarTail(Sweep&, const Run&, Values sums);
  Values alongPairs(Sweep&, llvm::MutableArrayRef<Replica>, Values sums, bool flushes);
  /// Returns the most elements of a run, if they are known.
  std::optional<int64_t> mostOfRun();
  void element(Sweep&, llvm::MutableArrayRef<Replica>, mlir::Value offset, int64_t lanes, mlir::Value mask,
               llvm::MutableArrayRef<mlir::Value> sums, unsigned stride,
               llvm::MutableArrayRef<mlir::Value> common = {});
  /// Emits the region of a sweep for the elements of a replica from `offset` on. Returns what it yields.
  Values elementCode(SweepOp, Replica&, mlir::Value offset, int64_t lanes);
  void prefetchNext(llvm::ArrayRef<Replica>, mlir::Value offset, int64_t elements);
  void acrossLanes(Sweep&, Replicas&, llvm::ArrayRef<mlir::Value> sums, Replica* all);
  void addRowPartials(Sweep&, llvm::MutableArrayRef<Replica>, llvm::ArrayRef<mlir::Value> sums);
  mlir::Value inFirstLanes(mlir::Value term, Combiner);
  /// Returns the identities of the combiners; scalars if `lanes` is 0.
  Values identities(Combiners, int64_t lanes);
  void allocateBuffer();

  //===-- Columns (Columns.cpp) --------------------------------------------------===//
  void columns(SlabOp, mlir::Value begin, mlir::Value end);
  void columnTiles(SlabOp, mlir::Value begin, mlir::Value end, Coordinates);
  /// `rest`: the features in the last vector, if they do not fill it.
  void columnTile(SlabOp, Coordinates, mlir::Value feature, int64_t vectors, mlir::Value rest = {});
  /// Returns the vectors of a tile: no more than the features fill.
  int64_t tileOf(SlabOp);
  struct LastTile {
    /// its first feature, its vectors, and the features in the last of them; 0: all lanes
    int64_t begin, vectors, rest;
  };
  std::optional<LastTile> lastTile(SlabOp);
  bool fillsTiles(int64_t tile);
  /// Sets laneMask_ for one of a tile's vectors: only the last may have a mask.
  void maskOf(const Replica& r, const Replicas& all) {
    laneMask_ = &r == &all.back() ? lastMask_ : mlir::Value();
  }
  /// Allocates memory for the shifts of a tile, if the slab estimates them for several vectors.
  void allocateShifts(SlabOp);
  void probeTile(ProbeOp, Replicas&);

  //===-- Across channels (AcrossChannels.cpp) -----------------------------------===//
  void allocatePiece(SlabOp);
  void acrossChannels(SlabOp, mlir::Value begin, mlir::Value end);
  mlir::Value rowsOfPiece(mlir::Value rows);
  void piece(SlabOp);
  void scalarsOfPiece(llvm::ArrayRef<mlir::Operation*>);
  void sweepPiece(SweepOp);
  void sumFeatures(Sweep&, PieceMemory::Places sums);
  void features(Sweep&, mlir::Value first, int64_t count);
  /// Sweeps over steps of `count` features.
  void featuresBetween(Sweep&, mlir::Value first, mlir::Value last, int64_t count);

  //===-- Side by side (SideBySide.cpp) -----------------------------------------===//
  /// Lowers the scalar code of several runs once for all of them. A value that differs between them is a
  /// vector with one lane for each. Roots, divisions and horizontal sums cost as much for eight runs as for
  /// one.
  void sideBySide(mlir::Operation&, Replica& all, Replicas&);
  /// Software-pipelines a slab: the statistics of the next runs are computed before the outputs of these are
  /// written. at(i) gives the runs for i = begin, begin + step, ... < end; the last step is complete.
  void runsAhead(SlabOp, mlir::Value begin, mlir::Value end, int64_t step,
                 llvm::function_ref<Replicas(mlir::Value)> at);
  /// Emits a slab up to its last sweep, which returns the values that the rest uses, and from the last sweep
  /// on.
  Values front(SlabOp, Replicas);
  void back(SlabOp, Replicas, mlir::ValueRange);
  void spread(mlir::Operation&, Replica& all, Replicas&);
  mlir::Value packed(llvm::ArrayRef<mlir::Value>);
  mlir::Value probeAll(ProbeOp, Replicas&);
  /// Returns one vector with the lanes of each of a power of two of vectors combined in the order of
  /// `horizontal`.
  mlir::Value horizontals(llvm::ArrayRef<mlir::Value>, Combiner = Combiner::Add);

  ScheduleAttr schedule_;
  LargeCall large_;
  mlir::IRMapping shared_;              ///< values of the phase, outside all slabs
  StackMemory places_;                  ///< the valid rows that are sampled
  StackMemory shifts_;                  ///< those of a tile of columns; null: there is none, or one vector
  std::optional<StreamBuffer> buffer_;  ///< the sums of a stream
  std::optional<PieceMemory> pieces_;   ///< the values of a piece
  std::optional<KeptElements> kept_;    ///< the values of elements that a slab of runs keeps
  std::optional<StagedStores> stage_;   ///< outputs of a piece that do not fill cache lines yet

  //===-- State of the lowering, each part set for a scope --------------------------===//
  Steps steps_;
  Piece* piece_ = nullptr;
  bool runsHaveLeads_ = false;     ///< see cutRuns
  KeptElements* keeps_ = nullptr;  ///< elements that this step keeps
  mlir::Value next_;      ///< the first unit of the next step, if its inputs are prefetched; else null
  mlir::Value lastMask_;  ///< of the last vector of a tile of columns
};

/// norm-to-loops: replaces every norm.kernel of the module by one function for each phase, named
/// `<kernel>.<phase>`, with its parameters in the attribute `normc.strided` (add-entry-points, Entry.h). bf16
/// is i16 in memory.
PassPtr normToLoops();

}  // namespace normc::codegen
