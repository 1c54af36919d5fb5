// Positions along a run, and accesses to runs that begin where accesses may.
#include "codegen/targets/cuda/PeeledRuns.h"
#include "codegen/targets/cuda/Variants.h"

using namespace mlir;

namespace normc::codegen::cuda {

RunAccess::RunAccess(KernelThread& thread, const Run& run)
    : k_(thread), l_(thread.l), f_(thread.f), run_(run) {}

std::unique_ptr<RunAccess> RunAccess::make(KernelThread& thread, const Run& run) {
  if (!thread.f.access().peeled) return std::unique_ptr<RunAccess>(new RunAccess(thread, run));
  if (takesCongruentRows(thread.f.phase(), thread.s)) return std::make_unique<CongruentRuns>(thread, run);
  return std::make_unique<PeeledRuns>(thread, run);
}

Position RunAccess::at(Value index, bool inside, int64_t replica) {
  Position p;
  if (!inside) {
    Value accesses = count(replica);
    p.inside = l_.less(index, accesses);
    index = l_.min(index, l_.sub(accesses, l_.index(1)));
  }
  p.offset = l_.mul(index, l_.index(k_.s.vector));
  if (Value before = head(replica)) p.offset = l_.add(p.offset, before);
  return p;
}

Position RunAccess::ofTile(int64_t k, int64_t replica) {
  if (k >= k_.tileCount()) return end(k - k_.tileCount(), replica);
  const auto known = Loops::constant(leastCount());
  const bool inside = known && (k + 1) * run_.place.team <= *known;
  Position p = at(l_.add(run_.place.lane, l_.index(k * run_.place.team)), inside, replica);
  p.index = k;
  return p;
}

Coordinates RunAccess::along(const Coordinates& run, const Position& position) {
  Coordinates at = run;
  (f_.featuresLast() ? at.feature : at.row) = l_.add(run_.begin, position.offset);
  return at;
}

Value RunAccess::loadStored(TensorOp t, const Coordinates& at, int64_t lanes, int64_t, Whole) {
  return f_.loadStored(t, f_.address(t, at), lanes);
}

Value RunAccess::load(Value condition, TensorOp t, const Coordinates& at, int64_t lanes, int64_t replica) {
  auto load = [&] { return f_.widened(t, loadStored(t, at, lanes, replica)); };
  if (!condition) return load();
  Type type = lanes ? Type(VectorType::get({lanes}, f_.statistics())) : f_.statistics();
  return l_.when(condition, l_.zero(type), [&] { return Values{load()}; })[0];
}

}  // namespace normc::codegen::cuda
