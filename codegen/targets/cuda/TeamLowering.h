// Lowers one phase of a kernel to the code of one GPU thread.
//
//   line     a team has one statistic: it walks the run, and shuffles complete the sums
//   block    all threads of a block have one: teams take rows, and shared memory completes
//            the sums
//   column   a lane has the statistics of its vector of features: teams take rows
//   stream   no statistic is complete: teams take rows, sums per feature stay in
//            registers and go to the task's partials
//   vectors  (slabs without sweeps) a thread has a feature
//
// A task is one block, or as many as the phase has tiles of columns, or the blocks of a
// cluster or of the grid that share its lines or columns. Threads agree
// on every trip count around a barrier: a team without a row of its own walks the
// last one and stores nothing. The schedule fixes the order of every sum, and
// there are no atomics. Nothing here knows a norm.
#pragma once

#include "codegen/targets/cuda/SumTree.h"

namespace normc::codegen::cuda {

class TeamLowering : SlabLowering {
 public:
  TeamLowering(Loops& loops, AccessLowering& frame, const Schedule& schedule, const Launch& launch,
               mlir::gpu::GPUFuncOp function);
  void run();

 private:
  struct Sweep : SweepParts {
    Sweep(SweepParts parts, size_t firstPartial) : SweepParts(std::move(parts)), firstPartial(firstPartial) {}
    size_t firstPartial = 0;  ///< of its partials among all of the slab
    struct Pending {
      TensorOp tensor;
      mlir::Value address, value, condition;
      mlir::Value congruent;  ///< if false, an access of several elements is made one by one; null: true
    };
    llvm::SmallVector<Pending> pending;  ///< stores wait for the loads: an output may be the input's memory
  };
  /// An access along the run: its first element, and whether it is inside.
  struct Position {
    mlir::Value offset, inside;  ///< inside null: always. The offset is that of an access inside in any case
    int64_t index = -1;          ///< of the tile; -1: in a loop
    bool single = false;         ///< one element, at an end of a peeled run
    mlir::Value slot = {};       ///< of the thread's accesses in shared memory; null: it is not there
  };
  using PositionOf = llvm::function_ref<Position(int64_t replica)>;
  /// A run that begins anywhere: aligned accesses between two ends of single elements.
  struct Peel {
    mlir::Value head, vectors;  ///< elements before the accesses; number of accesses
    llvm::DenseMap<mlir::Operation*, mlir::Value>
        congruent;  ///< of tensors other than x: true if it is aligned as x is
  };

  //===-- Slabs (TeamSlabs.cpp) -------------------------------------------------===//
  std::pair<mlir::Value, mlir::Value> columnRange();
  mlir::Value columnCount(mlir::Value begin, mlir::Value end);
  mlir::Value runWidth(SlabOp);
  void zeroPartials();
  void slab(SlabOp);
  void lines(SlabOp);
  void linesFrom(SlabOp, bool together, mlir::Value mine);
  void blocks(SlabOp);
  void vectors(SlabOp);
  void stream(SlabOp);
  void streamRows(SlabOp);
  void headRows(SweepOp, mlir::Value last, int64_t head);
  void placeUnit(Replica&, mlir::Value first, int64_t r, mlir::Value end,
                 llvm::function_ref<void(mlir::Value)> set);
  void body(SlabOp, Replicas&);
  void computeHoisted();
  void loadVectors(SlabOp);
  bool kept(const Replica&, TensorOp, mlir::Value) override;
  mlir::Value hasTask(mlir::Value yes, mlir::Value no);
  void once(const Replica&, TensorOp, std::function<void()> store) override;
  void beforeRead(TensorOp) override;
  void beginFold() override;
  void endFoldStep() override;
  void storeDeferred();
  mlir::Value probe(ProbeOp, Replica&) override;
  mlir::Value countValid(mlir::Value begin, mlir::Value end,
                         llvm::function_ref<Coordinates(mlir::Value)>) override;

  //===-- Sweeps (TeamSweeps.cpp) -------------------------------------------------===//
  Sweep prepare(SweepOp);
  bool alwaysUnder(mlir::Value condition);
  void lineSweep(SweepOp, Replicas&);
  void blockSweep(SweepOp, Replicas&);
  void streamStep(SweepOp, Replicas& rows);
  void where(SweepOp, const mlir::IRMapping&, Values& sums, llvm::function_ref<void()> sweep);
  /// Runs along the contiguous axis for all replicas; `sums` are replica-major.
  void along(Sweep&, llvm::MutableArrayRef<Replica>, Values& sums);
  void element(Sweep&, llvm::MutableArrayRef<Replica>, PositionOf, llvm::MutableArrayRef<mlir::Value> sums);
  mlir::Value loadWhere(mlir::Value condition, TensorOp, const Coordinates&, int64_t lanes, int64_t replica);
  Coordinates alongRun(const Coordinates&, const Position&);
  void fetch(llvm::ArrayRef<TensorOp>, llvm::ArrayRef<Replica>);
  static int64_t heldKey(int64_t replica, int64_t position) { return replica * 256 + position; }
  void storePending(Sweep&);
  void endSums(Sweep&, llvm::MutableArrayRef<Replica>, Values& sums);
  mlir::Value vectorsOfRun();
  Position positionAt(mlir::Value index, bool inside, int64_t replica = 0);
  Position tilePosition(int64_t k, int64_t replica = 0);
  int64_t lanesAt(const Position& p) const { return p.single ? 0 : k_.lanes(); }

  //===-- Reads of later steps (TeamAhead.h) -------------------------------------------===//
  class ReadAhead;
  class RegisterReads;
  class AsyncCopies;
  class BulkCopies;

  //===-- What registers do not hold of a run (TeamShared.cpp) ------------------------===//
  mlir::Value dynamicMemory();
  mlir::Value globalAddress(TensorOp, mlir::Value element);
  void beginShared(SlabOp);
  mlir::Value sharedBytesFrom(int64_t offset, mlir::Value place, int64_t bytes);
  mlir::Value sharedRunOf(mlir::Value first, int64_t stride);
  mlir::Value sharedAt(mlir::Value place, mlir::Value slot, int64_t slotBytes, int64_t offset);
  mlir::Value loadPieces(mlir::Value place, mlir::Value slot, int64_t slotBytes, int64_t offset, mlir::Type);
  void storePieces(mlir::Value place, mlir::Value slot, int64_t slotBytes, int64_t offset, mlir::Value);
  Values overShared(int64_t together, Values running,
                    llvm::function_ref<void(llvm::ArrayRef<Position>, Values&)> step);
  void copyRun(const Replica&, mlir::Value first, int64_t stride);
  mlir::Value loadShared(TensorOp, const Position&, mlir::Value condition);
  void addShared(size_t partial, const Position&, mlir::Value);
  void flushShared();
  void alongShared(Sweep&, llvm::MutableArrayRef<Replica>, Values& sums);

  //===-- Runs that begin anywhere (TeamPeel.cpp) -------------------------------------===//
  void peelRuns(llvm::ArrayRef<Replica>);
  mlir::Value leastVectors();
  int64_t endPositions() const;
  Position endPosition(int64_t i, int64_t replica);
  void sumEnds(Sweep&, llvm::MutableArrayRef<Replica>, Values& sums);
  mlir::Value elementIndex(TensorOp, mlir::Value address);
  mlir::Value loadStored(TensorOp, const Coordinates&, int64_t lanes, int64_t replica);
  mlir::Value loadShifted(TensorOp, mlir::Value address);
  std::optional<int64_t> wholeAlignment(TensorOp);

  //===-- Congruent rows (TeamCongruent.cpp) ---------------------------------------===//
  void beginCongruent();
  mlir::Value rowsBefore(mlir::Value kind);
  mlir::Value classAt(mlir::Value place);
  mlir::Value unitAt(mlir::Value n) override;
  void forEachClass(SlabOp, llvm::function_ref<void()> walk);
  void peelClass(SlabOp);
  void peelByElements(SlabOp);
  Values readRuns(llvm::ArrayRef<mlir::Type>, llvm::function_ref<Values()> read);
  void flushCongruent();
  void knownInside(const Position&, llvm::ArrayRef<TensorOp>, llvm::function_ref<void()> compute);
  static constexpr size_t kHeadTogether = 8;  ///< rows of a task's head that are summed at once

  //===-- Columns (TeamColumns.cpp) -------------------------------------------------===//
  void columns(SlabOp);
  void columnSweep(SweepOp, Replicas&);
  mlir::Value rowCount();
  Replicas rowsFrom(const Replica& column, mlir::Value first, mlir::Value end, bool kept);
  void holdRows(const Replica& column);
  mlir::Value probeHeld(TensorOp, const Replica& column);

  //===-- Accumulators of partials (TeamPartials.cpp) ---------------------------------===//
  void beginPartials(SlabOp);
  void flushPartials();
  Values steps(mlir::Value begin, mlir::Value end, int64_t stride, Values zeros,
               llvm::function_ref<void(mlir::Value, Values& sums)> step, Values* carried = nullptr);

  //===-- Stores of state -------------------------------------------------------------===//
  bool otherBlocksRead() const;
  void arriveBefore(SweepOp);

  KernelThread k_;
  const Schedule& s_;
  SumTree tree_;
  mlir::IRMapping shared_;     ///< values of the phase, outside all slabs
  bool arrived_ = false;       ///< at the grid barrier that stores of state wait for
  llvm::StringMap<mlir::Value> isPresent_;  ///< true if an output that may be left out is there
  Place place_;                             ///< of the slab being lowered, and the width of its runs
  mlir::Value width_;
  mlir::Value inside_;             ///< true if the thread's column is one of the tensor
  llvm::SmallVector<Peel> peels_;  ///< of each replica; none: runs are aligned, or read one by one
  bool congruent_ = false;         ///< the phase's tasks take congruent rows
  /// The rows of neighbouring tasks, ordered by alignment class: `each` of every class, and one more of the
  /// first `more`.
  struct Classes {
    mlir::Value first;  ///< of the rows
    mlir::Value each, more;
    mlir::Value begin, end;  ///< places of this task's rows in that order
  };
  Classes classes_;
  mlir::Value readsCongruent_;  ///< true if all tensors that are read are aligned as x is; null: they are
  std::optional<bool> wholeAccesses_;  ///< set: all reads are whole accesses, or none are; else the alignment
                                       ///< of each tensor decides
  mlir::Value firstOfClass_;  ///< the task's first row of the class that is being walked; null: none is
  int64_t slackBefore_ = 0, slackAfter_ = 0;  ///< the least elements at the ends of a peeled run
  mlir::Value fetchCondition_;  ///< the condition under which fetched values are used; null: always
  bool holds_ = false;          ///< the slab's runs stay in registers: by tensor, replica and place
  llvm::DenseMap<std::pair<mlir::Operation*, int64_t>, mlir::Value> held_;
  llvm::SmallVector<TensorOp>
      sharedTensors_;  ///< whose runs shared memory holds besides the tile; addresses of this thread's parts:
  mlir::Value sharedRun_, sharedSums_;  ///< of the step; sums per feature of the same places
  llvm::SmallVector<TensorOp>
      heldTensors_;  ///< whose first rows a column slab keeps, and these rows in the data type:
  llvm::SmallVector<Values> heldRows_;  ///< by step, row of the step, tensor
  llvm::SmallVector<SlabOp>
      hoisted_;  ///< slabs over features that the next slab computes for its own columns
  bool inHoisted_ = false;
  llvm::DenseMap<std::pair<mlir::Operation*, int64_t>, mlir::Value>
      loadedVectors_;  ///< vectors of features in registers, by place of the tile
  llvm::SmallVector<TensorOp>
      partials_;  ///< summed per feature in registers: sums_[partial * positions + position]
  llvm::DenseMap<mlir::Operation*, size_t> partialsOf_;  ///< the first one of each sweep
  Values sums_;
  struct DeferredStore {
    TensorOp tensor;
    mlir::Value condition;
    std::function<void()> store;
  };
  llvm::SmallVector<DeferredStore> deferred_;  ///< stores that wait until other threads have read
};

}  // namespace normc::codegen::cuda
