// Vectors of features in dynamic shared memory.
#include "codegen/targets/cuda/SharedVectors.h"

#include "codegen/targets/cuda/Launch.h"

using namespace mlir;

namespace normc::codegen::cuda {

void SharedVectors::begin(SlabOp slab) {
  tensors_.clear();
  if (!k_.s.hold) return;
  tensors_ = vectorsOfAllRows(slab);
  begin_ = runBytes(slab, k_.s);
  slotBytes_ = 0;
  for (TensorOp t : tensors_) slotBytes_ += bytesOf(k_.storedType(t, k_.lanes()));
  const auto& place = access_.run().place;
  k_.storeWhere(place.units > 1 ? k_.isZero(place.unit) : Value(), [&] {
    for (int64_t k = 0; k < k_.s.tile; ++k) copy(access_.ofTile(k));
    l_.forEach(l_.index(0), l_.index(k_.s.shared), 1, [&](Value slot) {
      const Value access = l_.mul(l_.add(slot, l_.index(k_.s.tile)), l_.index(place.team));
      Position position = access_.at(l_.add(place.lane, access), false);
      position.slot = slot;
      copy(position);
    });
  });
  k_.barrier();
}

/// Copies an access of this thread, through registers. Behind the end of a run it is one inside, so that
/// nothing is read that was not written.
void SharedVectors::copy(const Position& position) {
  Values loaded;
  for (TensorOp t : tensors_)
    loaded.push_back(access_.loadStored(t, access_.feature(position), k_.lanes(), 0));
  for (auto [t, v] : llvm::zip(tensors_, loaded)) {
    const Place place = placeOf(t);
    pieces_.store(place.begin, slotOf(position), slotBytes_, place.offset, v);
  }
}

SharedVectors::Place SharedVectors::placeOf(TensorOp t) {
  Place place;
  for (TensorOp before : ArrayRef(tensors_).take_front(llvm::find(tensors_, t) - tensors_.begin()))
    place.offset += bytesOf(k_.storedType(before, k_.lanes()));
  place.begin =
      pieces_.begin(l_.index(begin_), access_.run().place.spanLane, bytesOf(k_.storedType(t, k_.lanes())));
  return place;
}

Value SharedVectors::slotOf(const Position& p) {
  return p.slot ? l_.add(p.slot, l_.index(k_.s.tile)) : l_.index(p.index);
}

Value SharedVectors::load(TensorOp t, const Position& position) {
  const Place place = placeOf(t);
  return f_.widened(
      t, pieces_.load(place.begin, slotOf(position), slotBytes_, place.offset, k_.storedType(t, k_.lanes())));
}

}  // namespace normc::codegen::cuda
