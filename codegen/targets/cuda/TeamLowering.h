// Lowers one phase of a kernel to the code of one GPU thread.
//
//   line     a team has one statistic: it walks the run, and shuffles complete the sums
//   block    all threads of a block have one: teams take rows, and shared memory completes
//            the sums
//   column   a lane has the statistics of its vector of features: teams take rows
//   stream   no statistic is complete: teams take rows, sums per feature stay in
//            registers and go to the task's partials
//   vectors  (slabs without sweeps) a thread has a feature, or several share the folds of one
//
// A task is one block, or as many as the phase has tiles of columns, or the blocks of a
// cluster or of the grid that share its lines or columns. Threads agree
// on every trip count around a barrier: a team without a row of its own walks the
// last one and stores nothing. The schedule fixes the order of every sum, and
// there are no atomics. Nothing here knows a norm.
//
// This class walks: over the slabs of a phase, the units of a slab and the sweeps of a unit. How that is done
// is decided by policies that are built once: how a run is accessed (RunAccess), what is read ahead
// (ReadAhead), what stays in registers and shared memory (HeldValues, SharedRuns, SharedVectors,
// PartialSums), how sums are folded (SumTree), and when state is stored (StateStores).
#pragma once

#include "codegen/targets/cuda/HeldValues.h"
#include "codegen/targets/cuda/Launch.h"
#include "codegen/targets/cuda/PartialSums.h"
#include "codegen/targets/cuda/SharedVectors.h"
#include "codegen/targets/cuda/StateStores.h"

namespace normc::codegen::cuda {

class TeamLowering : SlabLowering {
 public:
  TeamLowering(Loops& loops, AccessLowering& frame, const Schedule& schedule, const Launch& launch,
               mlir::gpu::GPUFuncOp function);
  void run();
  /// Lets the next phase begin when the task has read its last row (Dependence.h).
  void letNextBegin();

 private:
  struct Sweep : SweepParts {
    Sweep(SweepParts parts, size_t firstPartial) : SweepParts(std::move(parts)), firstPartial(firstPartial) {}
    llvm::SmallVector<TensorOp> xSizedReads() const {
      return llvm::filter_to_vector(llvm::ArrayRef(reads).take_front(firstMate),
                                    [](TensorOp t) { return t.isXSized(); });
    }
    size_t firstPartial = 0;  ///< of its partials among all of the slab
    struct Pending {
      TensorOp tensor;
      mlir::Value address, value, condition;
      mlir::Value congruent;  ///< if false, an access of several elements is made one by one; null: true
    };
    llvm::SmallVector<Pending> pending;  ///< stores wait for the loads: an output may be the input's memory
  };
  using PositionOf = llvm::function_ref<Position(int64_t replica)>;

  //===-- Slabs (TeamSlabs.cpp) -------------------------------------------------===//
  std::pair<mlir::Value, mlir::Value> columnRange();
  mlir::Value columnCount(mlir::Value begin, mlir::Value end);
  mlir::Value runWidth(SlabOp);
  void beginRun(mlir::Value begin);
  bool zeroPartials();
  void slab(SlabOp);
  void overClasses(SlabOp, llvm::function_ref<void(Units)> walk);
  void vectors(SlabOp);
  void stream(SlabOp);
  void streamRows(SlabOp, Units);
  void headRows(SweepOp, mlir::Value last, int64_t head);
  void placeUnit(Replica&, mlir::Value first, int64_t r, mlir::Value end,
                 llvm::function_ref<void(mlir::Value)> set);
  void body(SlabOp, Replicas&);
  void code(mlir::Operation&, Replicas&);
  bool isHoisted() const;
  void computeHoisted();
  bool kept(const Replica&, TensorOp, mlir::Value) override;
  mlir::Value hasTask(mlir::Value yes, mlir::Value no);
  void once(const Replica&, TensorOp, std::function<void()> store) override;
  bool readsAhead() const override { return bool(s_.prefetch); }
  mlir::Value unitAt(mlir::Value n) override { return access_->unitAt(n); }
  void beforeRead(TensorOp t) override { state_.beforeRead(t); }
  void beginFold() override { state_.publish(); }
  void endFoldStep() override { state_.publish(); }  // the next step may read it
  mlir::Value countValid(mlir::Value begin, mlir::Value end,
                         llvm::function_ref<Coordinates(mlir::Value)>) override;

  //===-- Folds (TeamFolds.cpp) ---------------------------------------------------===//
  void foldsInParts(SlabOp, llvm::ArrayRef<FoldOp>);
  Values foldedPart(llvm::ArrayRef<FoldOp>, Replica&, mlir::Value slice);
  Values mergedParts(llvm::ArrayRef<FoldOp>, Replica&, Values parts, mlir::Value slice);
  Values folded(FoldOp fold) override { return folded_.lookup(fold); }

  //===-- Lines and blocks (TeamLines.cpp) ----------------------------------------===//
  void lines(SlabOp);
  void linesFrom(SlabOp, Units, bool together, mlir::Value mine);
  void loadScalars(SlabOp, Replicas&);
  void blocks(SlabOp);
  void blocksOfRun(BlocksOp, Replicas&);

  //===-- Sweeps (TeamSweeps.cpp) -------------------------------------------------===//
  Sweep prepare(SweepOp);
  bool holds();
  bool alwaysUnder(mlir::Value condition);
  void lineSweep(SweepOp, Replicas&);
  void blockSweep(SweepOp, Replicas&);
  void streamStep(SweepOp, Replicas& rows);
  void where(SweepOp, const mlir::IRMapping&, Values& sums, llvm::function_ref<void()> sweep);
  /// Runs along the contiguous axis for all replicas; `sums` are replica-major.
  void along(Sweep&, llvm::MutableArrayRef<Replica>, Values& sums);
  void alongTile(Sweep&, llvm::MutableArrayRef<Replica>, Values& sums);
  void alongShared(Sweep&, llvm::MutableArrayRef<Replica>, Values& sums);
  void sumEnds(Sweep&, llvm::MutableArrayRef<Replica>, Values& sums);
  void element(Sweep&, llvm::MutableArrayRef<Replica>, PositionOf, llvm::MutableArrayRef<mlir::Value> sums);
  mlir::Value ofPair(const Sweep&, size_t read, const Coordinates&, int64_t lanes, mlir::Value condition);
  bool hasWholePairs(int64_t lanes);
  mlir::Value isTurned(mlir::Value feature, int64_t lanes);
  void storePending(Sweep&);
  void endSums(Sweep&, llvm::MutableArrayRef<Replica>, Values& sums);

  //===-- Shift estimates (TeamProbe.cpp) -----------------------------------------===//
  mlir::Value probe(ProbeOp, Replica&) override;
  mlir::Value probeRun(ProbeOp, Replica&);
  bool probesByWarp() const;
  mlir::Value probeOfWarp(ProbeOp, Replica&);
  mlir::Value probeHeld(ProbeOp, const Replica& column);
  Values searchValid(mlir::Value segment, mlir::Value count) override;

  //===-- Columns (TeamColumns.cpp) -------------------------------------------------===//
  void columns(SlabOp);
  void columnSweep(SweepOp, Replicas&);
  mlir::Value rowCount();
  Replicas rowsFrom(const Replica& column, mlir::Value first, mlir::Value end, bool kept);
  void holdRows(const Replica& column);

  KernelThread k_;
  const Schedule& s_;
  Run run_;  ///< of the slab that is lowered
  const std::unique_ptr<RunAccess> access_;
  HeldValues held_;
  SharedRuns sharedRuns_;
  SharedVectors sharedVectors_;
  SumTree tree_;
  PartialSums partials_;
  StateStores state_;
  mlir::IRMapping shared_;                  ///< values of the phase, outside all slabs
  llvm::StringMap<mlir::Value> isPresent_;  ///< true if an output that may be left out is there
  mlir::Value inside_;                      ///< true if the thread's column is one of the tensor
  /// The first rows that a column slab keeps, in the data type.
  struct {
    llvm::SmallVector<TensorOp> tensors;
    llvm::SmallVector<Values> rows;  ///< by step, row of the step, tensor
  } columnRows_;
  llvm::DenseMap<mlir::Operation*, Values> folded_;  ///< folds that were divided among threads
  llvm::SmallVector<SlabOp> hoisted_;  ///< slabs over features that the next slab computes for its columns
};

}  // namespace normc::codegen::cuda
