// Loads of what stays in registers.
#include "codegen/targets/cuda/HeldValues.h"

using namespace mlir;

namespace normc::codegen::cuda {

void HeldValues::fetch(ArrayRef<TensorOp> tensors, ArrayRef<Replica> replicas, Value condition) {
  struct Missing {
    TensorOp tensor;
    int64_t replica, place;
  };
  const int64_t positions = access_.positions();
  SmallVector<Missing> missing;
  SmallVector<Type> types;
  for (size_t r = 0; r < replicas.size(); ++r)
    for (int64_t k = 0; k < positions; ++k)
      for (TensorOp t : tensors)
        if (!find(t, r, k)) {
          missing.push_back({t, int64_t(r), k});
          types.push_back(k_.storedType(t, access_.lanes(access_.ofTile(k, r))));
        }
  const Values loaded = access_.readTogether(types, [&](RunAccess::Whole whole) {
    Values all;
    for (auto [r, replica] : llvm::enumerate(replicas)) {
      for (int64_t first = 0, end; first < positions; first = end) {
        const Position position = access_.ofTile(first, r);
        const int64_t lanes = access_.lanes(position);
        end = first + 1;
        while (!position.inside && end < k_.s.tile && !access_.ofTile(end, r).inside) ++end;
        SmallVector<std::pair<TensorOp, int64_t>> wanted;
        SmallVector<Type> wantedTypes;
        for (int64_t k = first; k < end; ++k)
          for (TensorOp t : tensors)
            if (!find(t, r, k)) {
              wanted.emplace_back(t, k);
              wantedTypes.push_back(k_.storedType(t, lanes));
            }
        const Value some = l_.both(l_.both(replica.active, position.inside), condition);
        all.append(k_.loadWhere(some, wantedTypes, [&, r = r] {
          Values loaded;
          for (auto [t, k] : wanted)
            loaded.push_back(
                access_.loadStored(t, access_.along(replicas[r].at, access_.ofTile(k, r)), lanes, r, whole));
          return loaded;
        }));
      }
    }
    return all;
  });
  // After all loads have been issued: a conversion waits for its load.
  for (auto [m, v] : llvm::zip(missing, loaded)) hold(m.tensor, m.replica, m.place, v);
}

void HeldValues::whileHeld(bool stays, llvm::function_ref<void()> code) {
  Map before;
  if (!stays) before = elements_;
  code();
  if (!stays) elements_ = std::move(before);
}

/// Loads vectors that an earlier phase has stored: this thread's columns, once, into registers. The phase
/// before may still write them when this one begins, so LLVM assumes that any store may change them, and
/// would load them in each step. The columns of peeled runs differ from row to row. Congruent rows load all
/// vectors here, because their accesses to them are single elements.
void HeldValues::loadVectors(SlabOp slab) {
  const bool congruent = access_.byClasses();
  if (k_.s.tile == 0 || !f_.featuresLast() || (f_.access().peeled && !congruent)) return;
  for (auto sweep : slab.sweeps())
    for (TensorOp t : f_.tensors(sweep.getReads())) {
      if (!t.hasAxis(Axis::Feature) || t.isXSized()) continue;
      if (!congruent && (!t.isWorkspace() || t.getAxes().size() != 1)) continue;
      if (t.hasAxis(Axis::Segment)) continue;  // differs from row to row
      for (int64_t k = 0; k < access_.positions(); ++k) {
        if (vector(t, k)) continue;
        const Position position = access_.ofTile(k);
        const Coordinates at = access_.feature(position);
        holdInside(position, t,
                   [&] { holdVector(t, k, f_.load(t, f_.address(t, at), access_.lanes(position), {})); });
      }
    }
}

void HeldValues::holdInside(const Position& position, ArrayRef<TensorOp> vectors,
                            llvm::function_ref<void()> compute) {
  if (!position.inside || !access_.byClasses()) return compute();
  const Value zero = l_.zero(access_.lanes(position) ? k_.vectorType() : f_.statistics());
  const Values values = l_.when(position.inside, Values(vectors.size(), zero), [&] {
    compute();
    Values computed;
    for (TensorOp t : vectors) computed.push_back(vector(t, position.index));
    return computed;
  });
  for (auto [t, v] : llvm::zip(vectors, values)) holdVector(t, position.index, v);
}

}  // namespace normc::codegen::cuda
