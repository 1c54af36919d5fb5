#include "codegen/plan/Around.h"

namespace normc::codegen {

bool hasSegmentSums(const Problem& problem) {
  const Has has = hasOf(problem);
  return llvm::any_of(kTensorTable, [&](const TensorInfo& info) {
    return isBackward(problem.entry) && info.written(problem.entry) && isTaken(info, problem.entry, has) &&
           shapeOf(info.tensor, has) == TensorShape::PerSegment;
  });
}

llvm::SmallVector<Around::Gradient, 4> Around::gradients(By by) const {
  static constexpr Gradient all[] = {{kDresidual, &Element::dresidual},
                                     {kDgate, &Element::dgate},
                                     {kDmodScale, &Element::dmodScale},
                                     {kDmodShift, &Element::dmodShift}};
  llvm::SmallVector<Gradient, 4> taken;
  for (const Gradient& each : all) {
    const TensorInfo& info = infoOf(each.tensor);
    if (isTaken(info, k_.problem().entry, has_) &&
        (by == By::All || (info.takenBy == TakenBy::Sums) == (by == By::Sums)))
      taken.push_back(each);
  }
  return taken;
}

void Around::addOutputs(By by, KernelBuilder::Sweep& sweep) const {
  for (const Gradient& each : gradients(by))
    if (isXSized(each.tensor, has_)) sweep.writes.push_back(normc::name(each.tensor));
}

void Around::appendOutputs(By by, Element& e, Nums& values) const {
  for (const Gradient& each : gradients(by))
    if (isXSized(each.tensor, has_)) values.push_back((e.*each.value)());
}

llvm::SmallVector<RowSum, 3> Around::sums(By by) const {
  llvm::SmallVector<RowSum, 3> sums;
  for (const Gradient& each : gradients(by)) {
    const TensorShape shape = shapeOf(each.tensor, has_);
    if (shape != TensorShape::Elements)
      sums.push_back({each.tensor, each.value, shape == TensorShape::PerSegment});
  }
  return sums;
}

void Around::store(const RowSum& sum, Num value) const { k_.store(value, k_.argument(sum.name())); }

void Around::storeFeatures(llvm::ArrayRef<Parted> all) const {
  for (const Parted& each : all)
    if (!each.sum.ofSegment) store(each.sum, k_.total(each.phase, {each.partial})[0]);
}

void Around::foldSegments(llvm::ArrayRef<Parted> all) const {
  if (llvm::none_of(all, [](const Parted& each) { return each.sum.ofSegment; })) return;
  k_.phase("segments", PhaseRole::Finish, {Axis::Segment}, [&] {
    k_.slab({Axis::Segment, Axis::Feature}, {}, [&] {
      for (const Parted& each : all)
        if (each.sum.ofSegment) store(each.sum, k_.totalOfSegment(each.phase, each.partial));
    });
  });
}

}  // namespace normc::codegen
