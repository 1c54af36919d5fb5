// Reads of later steps into registers, and by cp.async into shared memory.
//
// A thread copies what it reads itself, 16 bytes for each of its accesses. So it waits for its own copies,
// and there is no barrier. The ring has a place for each step that is in flight and one more: the copy of a
// step goes where the step before the present one was read, whose values have been used.
//
// Groups of copies are counted by steps. A step without copies (behind the last row) has an empty group, so
// the wait is the same in every step, and nothing is in flight when a slab ends.
#include "codegen/targets/cuda/TeamAhead.h"

#include "codegen/targets/cuda/Ptx.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace normc::codegen::cuda {

//===-- Without a prefetch ------------------------------------------------------------===//

TeamLowering::ReadAhead::ReadAhead(TeamLowering& team, SlabOp slab, Steps steps)
    : t_(team), l_(team.l_), f_(team.f_), s_(team.s_), steps_(std::move(steps)), tensors_(readAlways(slab)) {}

std::unique_ptr<TeamLowering::ReadAhead> TeamLowering::ReadAhead::make(Prefetch prefetch, TeamLowering& team,
                                                                       SlabOp slab, Steps steps) {
  switch (prefetch.kind) {
    case Prefetch::None:
      return std::unique_ptr<ReadAhead>(new ReadAhead(team, slab, std::move(steps)));
    case Prefetch::Registers:
      return std::unique_ptr<ReadAhead>(new RegisterReads(team, slab, std::move(steps)));
    case Prefetch::Async:
      return std::unique_ptr<ReadAhead>(new AsyncCopies(team, slab, std::move(steps)));
    case Prefetch::Bulk:
      return std::unique_ptr<ReadAhead>(new BulkCopies(team, slab, std::move(steps)));
  }
  llvm_unreachable("a prefetch of no kind");
}

Value TeamLowering::ReadAhead::later(Value first, int64_t steps) {
  return l_.add(first, l_.index(steps * steps_.stride));
}

Value TeamLowering::ReadAhead::stepOf(Value first) {
  return l_.div(l_.sub(first, t_.begin_), l_.index(steps_.stride));
}

/// Only what registers do not hold of a run is copied: all of the run is in flight before any of it is waited
/// for.
void TeamLowering::ReadAhead::step(MutableArrayRef<Replica> rows, Value first) {
  if (t_.sharedTensors_.empty()) return;
  t_.sharedRun_ = t_.sharedRunOf(first, steps_.stride);
  t_.copyRun(rows[0], first, steps_.stride);
  endCopies(l_.b, l_.loc);
  t_.fetch(tensors_, rows);
  waitForCopies(l_.b, l_.loc, 0);
}

//===-- To registers ------------------------------------------------------------------===//

void TeamLowering::RegisterReads::begin() { carried_ = load(steps_.rows(t_.begin_)); }

void TeamLowering::RegisterReads::step(MutableArrayRef<Replica> rows, Value first) {
  auto next = carried_.begin();
  for (size_t r = 0; r < rows.size(); ++r)
    for (int64_t k = 0; k < s_.tile + t_.endPositions(); ++k)
      for (TensorOp t : tensors_) t_.held_[{t.getOperation(), heldKey(r, k)}] = f_.widened(t, *next++);
  carried_ = load(steps_.rows(later(first, 1)));
  ReadAhead::step(rows, first);
}

Values TeamLowering::RegisterReads::load(ArrayRef<Replica> rows) {
  const int64_t positions = s_.tile + t_.endPositions();
  SmallVector<Type> types;
  for (size_t r = 0; r < rows.size(); ++r)
    for (int64_t k = 0; k < positions; ++k)
      for (TensorOp t : tensors_) types.push_back(t_.k_.storedType(t, t_.lanesAt(t_.tilePosition(k))));
  return t_.readRuns(types, [&] {
    Values all;
    for (auto [r, row] : llvm::enumerate(rows))
      for (int64_t k = 0; k < positions; ++k) {
        const Position position = t_.tilePosition(k);
        const int64_t lanes = t_.lanesAt(position);
        Values zeros;
        for (TensorOp t : tensors_) zeros.push_back(l_.zero(t_.k_.storedType(t, lanes)));
        auto loads = [&, r = r] {
          Values loaded;
          for (TensorOp t : tensors_)
            loaded.push_back(t_.loadStored(t, t_.alongRun(row.at, position), lanes, int64_t(r)));
          return loaded;
        };
        Value condition = t_.k_.both(row.active, position.inside);
        all.append(condition ? l_.when(condition, zeros, loads) : loads());
      }
    return all;
  });
}

//===-- To shared memory --------------------------------------------------------------===//

void TeamLowering::AsyncCopies::issue(Value first) {
  t_.copyRun(steps_.rows(first)[0], first, steps_.stride);
  copy(steps_.rows(first), first);
}

void TeamLowering::AsyncCopies::begin() {
  for (int64_t step = 0; step < s_.prefetch.depth; ++step) issue(later(t_.begin_, step));
}

/// Makes what the copies of this step brought known; what was not copied is zero.
void TeamLowering::AsyncCopies::step(MutableArrayRef<Replica> rows, Value first) {
  if (!t_.sharedTensors_.empty()) t_.sharedRun_ = t_.sharedRunOf(first, steps_.stride);
  issue(later(first, s_.prefetch.depth));
  wait(first);
  Value memory = place(first);
  int64_t slot = 0;
  for (auto [r, row] : llvm::enumerate(rows))
    for (int64_t k = 0; k < s_.tile; ++k) {
      Values zeros;
      for (TensorOp t : tensors_) zeros.push_back(l_.zero(t_.k_.storedType(t, s_.vector)));
      auto loads = [&] {
        Values loaded;
        for (auto [i, t] : llvm::enumerate(tensors_))
          loaded.push_back(LLVM::LoadOp::create(l_.b, l_.loc, t_.k_.storedType(t, s_.vector),
                                                slotOf(memory, slot + int64_t(i)), unsigned(kCopiedBytes)));
        return loaded;
      };
      Value condition = t_.k_.both(row.active, t_.tilePosition(k).inside);
      Values stored = condition ? l_.when(condition, zeros, loads) : loads();
      for (auto [t, v] : llvm::zip(SmallVector<TensorOp>(tensors_), stored))
        t_.held_[{t.getOperation(), heldKey(int64_t(r), k)}] = f_.widened(t, v);
      slot += int64_t(tensors_.size());
    }
}

/// Begins the copies of a step, as one group.
void TeamLowering::AsyncCopies::copy(ArrayRef<Replica> rows, Value first) {
  Value memory = place(first);
  int64_t slot = 0;
  for (const Replica& row : rows)
    for (int64_t k = 0; k < s_.tile; ++k) {
      const Position position = t_.tilePosition(k);
      t_.k_.storeWhere(t_.k_.both(row.active, position.inside), [&] {
        for (auto [i, t] : llvm::enumerate(tensors_))
          copyToShared(l_.b, l_.loc, slotOf(memory, slot + int64_t(i)),
                       t_.globalAddress(t, f_.address(t, t_.alongRun(row.at, position))));
      });
      slot += int64_t(tensors_.size());
    }
  endCopies(l_.b, l_.loc);
}

void TeamLowering::AsyncCopies::wait(Value) { waitForCopies(l_.b, l_.loc, s_.prefetch.depth); }

/// Returns the address of this thread's copies of the step that begins at `first`.
Value TeamLowering::AsyncCopies::place(Value first) {
  Value step = l_.rem(stepOf(first), l_.index(s_.prefetch.depth + 1));
  Value place = l_.add(l_.mul(step, l_.index(slots() * t_.k_.threads())), t_.k_.thread);
  Value bytes =
      arith::IndexCastOp::create(l_.b, l_.loc, l_.b.getI64Type(), l_.mul(place, l_.index(kCopiedBytes)));
  Value memory = t_.dynamicMemory();
  return LLVM::GEPOp::create(l_.b, l_.loc, memory.getType(), l_.b.getI8Type(), memory, ValueRange{bytes});
}

Value TeamLowering::AsyncCopies::slotOf(Value place, int64_t slot) {
  const auto offset = int32_t(slot * t_.k_.threads() * kCopiedBytes);
  return LLVM::GEPOp::create(l_.b, l_.loc, place.getType(), l_.b.getI8Type(), place,
                             ArrayRef<LLVM::GEPArg>{offset});
}

}  // namespace normc::codegen::cuda
