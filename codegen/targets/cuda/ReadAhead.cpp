// Reads of later steps into registers, and by cp.async into shared memory.
//
// A thread copies what it reads itself, 16 bytes for each of its accesses. So it waits for its own copies,
// and there is no barrier. The ring has a place for each step that is in flight and one more: the copy of a
// step goes where the step before the present one was read, whose values have been used.
//
// Groups of copies are counted by steps. A step without copies (behind the last row) has an empty group, so
// the wait is the same in every step, and nothing is in flight when a slab ends.
#include "codegen/targets/cuda/ReadAhead.h"

#include "codegen/targets/cuda/Launch.h"
#include "codegen/targets/cuda/Ptx.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace normc::codegen::cuda {

//===-- Without a prefetch ------------------------------------------------------------===//

ReadAhead::ReadAhead(Policies policies, SlabOp slab, Steps steps)
    : SlabPolicy(policies.thread, policies.access),
      held_(policies.held),
      shared_(policies.shared),
      slab_(slab),
      steps_(std::move(steps)),
      tensors_(readAlways(slab)) {}

std::unique_ptr<ReadAhead> ReadAhead::make(Prefetch prefetch, Policies policies, SlabOp slab, Steps steps) {
  switch (prefetch.kind) {
    case Prefetch::None:
      return std::unique_ptr<ReadAhead>(new ReadAhead(policies, slab, std::move(steps)));
    case Prefetch::Registers:
      return std::unique_ptr<ReadAhead>(new RegisterReads(policies, slab, std::move(steps)));
    case Prefetch::Async:
      return std::unique_ptr<ReadAhead>(new AsyncCopies(policies, slab, std::move(steps)));
    case Prefetch::Bulk:
      return std::unique_ptr<ReadAhead>(new BulkCopies(policies, slab, std::move(steps)));
  }
  llvm_unreachable("a prefetch of no kind");
}

Value ReadAhead::later(Value first, int64_t steps) { return l_.add(first, l_.index(steps * steps_.stride)); }

Value ReadAhead::stepOf(Value first) { return l_.div(l_.sub(first, steps_.begin), l_.index(steps_.stride)); }

/// Only what registers do not hold of a run is copied: all of the run is in flight before any of it is waited
/// for.
void ReadAhead::step(MutableArrayRef<Replica> rows, Value first) {
  if (!shared_.hasRuns()) return;
  shared_.beginStep(stepOf(first));
  shared_.copy(rows[0], stepOf(first));
  endCopies(l_.b, l_.loc);
  held_.fetch(tensors_, rows);
  waitForCopies(l_.b, l_.loc, 0);
}

//===-- To registers ------------------------------------------------------------------===//

void RegisterReads::begin() { carried_ = load(steps_.rows(steps_.begin)); }

void RegisterReads::step(MutableArrayRef<Replica> rows, Value first) {
  auto next = carried_.begin();
  for (size_t r = 0; r < rows.size(); ++r)
    for (int64_t k = 0; k < access_.positions(); ++k)
      for (TensorOp t : tensors_) held_.hold(t, r, k, *next++);
  carried_ = load(steps_.rows(later(first, 1)));
  ReadAhead::step(rows, first);
}

Values RegisterReads::load(ArrayRef<Replica> rows) {
  const int64_t positions = access_.positions();
  SmallVector<Type> types;
  for (size_t r = 0; r < rows.size(); ++r)
    for (int64_t k = 0; k < positions; ++k)
      for (TensorOp t : tensors_) types.push_back(k_.storedType(t, access_.lanes(access_.ofTile(k))));
  return access_.readTogether(types, [&](RunAccess::Whole whole) {
    Values all;
    for (auto [r, row] : llvm::enumerate(rows))
      for (int64_t k = 0; k < positions; ++k) {
        const Position position = access_.ofTile(k);
        const int64_t lanes = access_.lanes(position);
        SmallVector<Type> stored;
        for (TensorOp t : tensors_) stored.push_back(k_.storedType(t, lanes));
        auto loads = [&, r = r, &row = row] {
          Values loaded;
          for (TensorOp t : tensors_)
            loaded.push_back(
                access_.loadStored(t, access_.along(row.at, position), lanes, int64_t(r), whole));
          return loaded;
        };
        all.append(k_.loadWhere(l_.both(row.active, position.inside), stored, loads));
      }
    return all;
  });
}

//===-- To shared memory --------------------------------------------------------------===//

void AsyncCopies::issue(Value first) {
  const Replicas rows = steps_.rows(first);
  if (shared_.hasRuns()) shared_.copy(rows[0], stepOf(first));
  copy(rows, first);
}

void AsyncCopies::begin() {
  for (int64_t step = 0; step < k_.s.prefetch.depth; ++step) issue(later(steps_.begin, step));
}

/// Makes what the copies of this step brought known; what was not copied is zero.
void AsyncCopies::step(MutableArrayRef<Replica> rows, Value first) {
  if (shared_.hasRuns()) shared_.beginStep(stepOf(first));
  issue(later(first, k_.s.prefetch.depth));
  wait(first);
  Value memory = place(first);
  int64_t slot = 0;
  for (auto [r, row] : llvm::enumerate(rows))
    for (int64_t k = 0; k < k_.s.tile; ++k) {
      SmallVector<Type> types;
      for (TensorOp t : tensors_) types.push_back(k_.storedType(t, k_.s.vector));
      auto loads = [&] {
        Values loaded;
        for (auto [i, t] : llvm::enumerate(tensors_))
          loaded.push_back(LLVM::LoadOp::create(l_.b, l_.loc, k_.storedType(t, k_.s.vector),
                                                slotOf(memory, slot + int64_t(i)), unsigned(kCopiedBytes)));
        return loaded;
      };
      const Values stored = k_.loadWhere(l_.both(row.active, access_.ofTile(k).inside), types, loads);
      for (auto [t, v] : llvm::zip(SmallVector<TensorOp>(tensors_), stored)) held_.hold(t, int64_t(r), k, v);
      slot += int64_t(tensors_.size());
    }
}

/// Begins the copies of a step, as one group.
void AsyncCopies::copy(ArrayRef<Replica> rows, Value first) {
  Value memory = place(first);
  int64_t slot = 0;
  for (const Replica& row : rows)
    for (int64_t k = 0; k < k_.s.tile; ++k) {
      const Position position = access_.ofTile(k);
      k_.storeWhere(l_.both(row.active, position.inside), [&] {
        for (auto [i, t] : llvm::enumerate(tensors_))
          copyToShared(l_.b, l_.loc, slotOf(memory, slot + int64_t(i)),
                       globalAddress(k_, t, f_.address(t, access_.along(row.at, position))));
      });
      slot += int64_t(tensors_.size());
    }
  endCopies(l_.b, l_.loc);
}

void AsyncCopies::wait(Value) { waitForCopies(l_.b, l_.loc, k_.s.prefetch.depth); }

/// Returns the address of this thread's copies of the step that begins at `first`.
Value AsyncCopies::place(Value first) {
  Value step = l_.rem(stepOf(first), l_.index(k_.s.prefetch.depth + 1));
  Value place = l_.add(l_.mul(step, l_.index(slots() * k_.threads())), k_.thread);
  Value bytes = k_.toI64(l_.mul(place, l_.index(kCopiedBytes)));
  Value memory = dynamicMemory(k_);
  return LLVM::GEPOp::create(l_.b, l_.loc, memory.getType(), l_.b.getI8Type(), memory, ValueRange{bytes});
}

Value AsyncCopies::slotOf(Value place, int64_t slot) {
  const auto offset = int32_t(slot * k_.threads() * kCopiedBytes);
  return LLVM::GEPOp::create(l_.b, l_.loc, place.getType(), l_.b.getI8Type(), place,
                             ArrayRef<LLVM::GEPArg>{offset});
}

}  // namespace normc::codegen::cuda
