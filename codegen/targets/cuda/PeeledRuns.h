// Accesses to runs that begin at any element: with ends of their own for each run, or in classes of rows that
// begin alike (RunAccess.h).
#pragma once

#include "codegen/targets/cuda/RunAccess.h"

namespace normc::codegen::cuda {

/// Each run has aligned accesses between two ends of single elements. Until its first step, a slab has none.
class PeeledRuns : public RunAccess {
 public:
  PeeledRuns(KernelThread& thread, const Run& run) : RunAccess(thread, run) {}

  void beginStep(SlabOp, llvm::ArrayRef<Coordinates>) override;
  bool anywhere() const override { return !peels_.empty(); }
  mlir::Value count(int64_t replica) override;
  mlir::Value leastCount() override;
  mlir::Value head(int64_t replica) override { return anywhere() ? peels_[replica].head : mlir::Value(); }
  int64_t ends() const override;
  Position end(int64_t i, int64_t replica) override;
  mlir::Value loadStored(TensorOp, const Coordinates&, int64_t lanes, int64_t replica, Whole) override;
  mlir::Value isWhole(TensorOp, int64_t replica) override;
  std::optional<int64_t> alignment(TensorOp) const override;

 protected:
  struct Peel {
    mlir::Value head, vectors;  ///< elements before the accesses; number of accesses
    /// of tensors other than x: true if it is aligned as x is
    llvm::DenseMap<mlir::Operation*, mlir::Value> congruent;
  };
  virtual mlir::Value loadVector(TensorOp, mlir::Value address, int64_t lanes);
  mlir::Value elementIndex(TensorOp, mlir::Value address);
  TensorOp leading();  ///< x or dy, whose accesses are aligned

  llvm::SmallVector<Peel> peels_;             ///< of each replica
  int64_t slackBefore_ = 0, slackAfter_ = 0;  ///< the least elements at the ends of a run

 private:
  mlir::Value loadShifted(TensorOp, mlir::Value address);
};

/// All rows of a class begin alike.
class CongruentRuns : public PeeledRuns {
 public:
  using PeeledRuns::PeeledRuns;

  void beginTask(Units) override;
  mlir::Value unitAt(mlir::Value n) override;
  bool byClasses() const override { return true; }
  void forEachClass(llvm::function_ref<void(Units)>) override;
  void beginClass(SlabOp, const Coordinates& first) override;
  void beginElements(SlabOp) override;
  void beginStep(SlabOp, llvm::ArrayRef<Coordinates>) override {}  // a class has begun for all of its steps
  Values readTogether(llvm::ArrayRef<mlir::Type>, llvm::function_ref<Values(Whole)> read) override;

 private:
  mlir::Value loadVector(TensorOp, mlir::Value address, int64_t lanes) override;
  mlir::Value rowsBefore(mlir::Value which);
  mlir::Value classAt(mlir::Value place);
  void peelAll(const Peel&);

  /// The rows of neighbouring tasks, ordered by class: `each_` of every class, and one more of the first
  /// `more_`.
  mlir::Value first_, each_, more_;
  mlir::Value begin_, end_;     ///< places of this task's rows in that order
  mlir::Value firstOfClass_;    ///< the task's first row of the class that is being walked; null: none is
  mlir::Value readsCongruent_;  ///< true if all tensors that are read are aligned as x is; null: they are
};

}  // namespace normc::codegen::cuda
