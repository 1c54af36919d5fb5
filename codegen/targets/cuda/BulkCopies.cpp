// Bulk copies of the rows of later steps, from sm_90 on: the first thread of a team has a whole piece of a
// run copied by one instruction.
//
// A piece is what the team's k-th accesses read, `team * 16` bytes or what is left of the run. It goes to the
// places of shared memory that AsyncCopies uses, so it is read in the same way and takes as much room.
//
// Each place of the ring has an mbarrier for each team. The first thread announces how many bytes will
// arrive, none if the team has no row, and all threads of the team wait for its phase: in the n-th round that
// of parity n mod 2. Each slab of a phase has mbarriers of its own, which begin with phase 0. A place is
// written again after a barrier of the team: that for the sums of the step that read it, or one of its own
// where a step has no sum.
#include "codegen/targets/cuda/Launch.h"
#include "codegen/targets/cuda/Ptx.h"
#include "codegen/targets/cuda/ReadAhead.h"

using namespace mlir;

namespace normc::codegen::cuda {

static int64_t slabsBefore(SlabOp slab) {
  int64_t count = 0;
  for (Operation* op = slab->getPrevNode(); op; op = op->getPrevNode()) count += isa<SlabOp>(op);
  return count;
}

/// Returns the mbarrier of this team for a place of the ring.
Value BulkCopies::mbarrierOf(Value place) {
  const int64_t count = (k_.s.prefetch.depth + 1) * access_.run().place.units;
  Value base =
      k_.sharedVariable("arrivals_" + Twine(slabsBefore(slab_)), count, l_.b.getI64Type(), kMbarrierBytes);
  Value at = l_.add(l_.mul(place, l_.index(access_.run().place.units)), access_.run().place.unit);
  return k_.elementOf(base, at, l_.b.getI64Type());
}

void BulkCopies::begin() {
  k_.storeWhere(k_.isZero(access_.run().place.spanLane), [&] {
    for (int64_t place = 0; place <= k_.s.prefetch.depth; ++place)
      initMbarrier(l_.b, l_.loc, mbarrierOf(l_.index(place)));
  });
  k_.barrier();
  AsyncCopies::begin();
}

/// True if each step of the slab ends with an exchange of its teams, after what it has copied was read.
static bool exchangesSums(SlabOp slab) {
  return llvm::any_of(slab.getOps<SweepOp>(), [](SweepOp sweep) { return !sweep.getSums().empty(); });
}

void BulkCopies::step(MutableArrayRef<Replica> rows, Value first) {
  if (!exchangesSums(slab_)) teamBarrier();
  AsyncCopies::step(rows, first);
}

void BulkCopies::teamBarrier() {
  if (k_.s.team <= kWarp) return syncWarp(l_.b, l_.loc);
  k_.barrier();
}

void BulkCopies::copy(ArrayRef<Replica> rows, Value first) {
  const Value zero = l_.index(0), places = l_.index(k_.s.prefetch.depth + 1),
              most = l_.index(k_.s.team * kCopiedBytes);
  k_.storeWhere(k_.isZero(access_.run().place.spanLane), [&] {
    Value mbarrier = mbarrierOf(l_.rem(stepOf(first), places));
    Value to = place(first);
    struct Piece {
      Value offset, bytes;
    };
    SmallVector<Piece> pieces;
    Value total = zero;
    for (const Replica& row : rows)
      for (int64_t k = 0; k < k_.s.tile; ++k) {
        Value access = l_.add(access_.run().place.lane, l_.index(k * access_.run().place.team));
        Value left = l_.mul(l_.sub(access_.count(), access), l_.index(kCopiedBytes));
        Value bytes = l_.select(l_.less(zero, left), l_.min(left, most), zero);
        if (row.active) bytes = l_.select(row.active, bytes, zero);
        pieces.push_back({l_.mul(access, l_.index(k_.s.vector)), bytes});
        total = l_.add(total, bytes);
      }
    expectBytes(l_.b, l_.loc, mbarrier, k_.toI32(l_.mul(total, l_.index(int64_t(tensors_.size())))));
    int64_t slot = 0;
    const Piece* piece = pieces.begin();
    for (const Replica& row : rows)
      for (int64_t k = 0; k < k_.s.tile; ++k, ++piece) {
        k_.storeWhere(l_.less(zero, piece->bytes), [&] {
          for (auto [i, t] : llvm::enumerate(tensors_))
            copyInBulk(l_.b, l_.loc, slotOf(to, slot + int64_t(i)),
                       globalAddress(k_, t, f_.address(t, access_.along(row.at, {.offset = piece->offset}))),
                       mbarrier, k_.toI32(piece->bytes));
        });
        slot += int64_t(tensors_.size());
      }
  });
}

void BulkCopies::wait(Value first) {
  const Value step = stepOf(first), places = l_.index(k_.s.prefetch.depth + 1);
  waitForMbarrier(l_.b, l_.loc, mbarrierOf(l_.rem(step, places)),
                  k_.toI32(l_.rem(l_.div(step, places), l_.index(2))));
}

}  // namespace normc::codegen::cuda
