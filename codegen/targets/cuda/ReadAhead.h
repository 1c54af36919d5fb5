// How the rows of later steps reach the chip while a team computes those of the present one (`Prefetch`,
// Schedule.h).
//
//   none        the loads of a row are issued when its step begins
//   registers   they are issued a step earlier, and the loop over steps carries the loaded values
//   async       cp.async brings them to a ring in shared memory, `depth` steps ahead (ReadAhead.cpp)
//   bulk        cp.async.bulk does, issued by one thread for its team (BulkCopies.cpp)
//
// The walk over lines knows this interface only. A ReadAhead knows where rows are in memory and which place
// of the tile a value belongs to. It does not know what is computed from the values.
#pragma once

#include <memory>

#include "codegen/targets/cuda/HeldValues.h"
#include "codegen/targets/cuda/SharedRuns.h"

namespace normc::codegen::cuda {

class ReadAhead : protected SlabPolicy {
 public:
  /// The steps of a walk over lines.
  struct Steps {
    mlir::Value begin;                                ///< the first unit
    int64_t stride = 1;                               ///< units from one step to the next
    std::function<Replicas(mlir::Value first)> rows;  ///< those of the step that begins at unit `first`
  };
  /// Holds the accesses of the walk over lines, and where their values stay.
  struct Policies {
    KernelThread& thread;
    RunAccess& access;
    HeldValues& held;
    SharedRuns& shared;
  };
  static std::unique_ptr<ReadAhead> make(Prefetch, Policies, SlabOp, Steps);
  virtual ~ReadAhead() = default;

  /// Issues the reads of the first steps, before the loop over steps.
  virtual void begin() {}
  /// Issues the reads of a later step, and makes the values of this one, which begins at `first`, held.
  virtual void step(mlir::MutableArrayRef<Replica> rows, mlir::Value first);
  /// Values that the loop over steps carries.
  Values& carried() { return carried_; }

 protected:
  ReadAhead(Policies, SlabOp, Steps);
  mlir::Value later(mlir::Value first, int64_t steps);
  /// Returns the number of the step that begins at `first`.
  mlir::Value stepOf(mlir::Value first);

  HeldValues& held_;
  SharedRuns& shared_;
  const SlabOp slab_;
  const Steps steps_;
  const llvm::SmallVector<TensorOp> tensors_;  ///< X-sized tensors that every step reads
  Values carried_;
};

/// Loads one step ahead; their values wait in registers, as they are in memory.
class RegisterReads : public ReadAhead {
 public:
  using ReadAhead::ReadAhead;
  void begin() override;
  void step(mlir::MutableArrayRef<Replica> rows, mlir::Value first) override;

 private:
  Values load(llvm::ArrayRef<Replica> rows);
};

/// A ring in shared memory: [step][row][access][tensor][thread], 16 bytes each.
class AsyncCopies : public ReadAhead {
 public:
  using ReadAhead::ReadAhead;
  void begin() override;
  void step(mlir::MutableArrayRef<Replica> rows, mlir::Value first) override;

 protected:
  virtual void copy(llvm::ArrayRef<Replica> rows, mlir::Value first);  ///< begins the copies of a step
  virtual void wait(mlir::Value first);  ///< until those of the step have arrived
  int64_t slots() const { return k_.s.rows * k_.s.tile * int64_t(tensors_.size()); }
  mlir::Value place(mlir::Value first);
  mlir::Value slotOf(mlir::Value place, int64_t slot);

 private:
  void issue(mlir::Value first);
};

/// The same ring, which one thread fills for its team; an mbarrier for each team and step says when it is
/// full.
class BulkCopies : public AsyncCopies {
 public:
  using AsyncCopies::AsyncCopies;
  void begin() override;
  void step(mlir::MutableArrayRef<Replica> rows, mlir::Value first) override;

 private:
  void copy(llvm::ArrayRef<Replica> rows, mlir::Value first) override;
  void wait(mlir::Value first) override;
  void teamBarrier();
  mlir::Value mbarrierOf(mlir::Value place);
};

}  // namespace normc::codegen::cuda
