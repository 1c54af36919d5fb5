#include "codegen/targets/cuda/GridBarrier.h"

using namespace mlir;

namespace normc::codegen::cuda {

StringRef barrierCountsName() { return "arrivals"; }
StringRef partsName() { return "parts"; }

bool belongsToGridBarrier(TensorOp t) { return t.getSymName() == barrierCountsName() || t.getSymName() == partsName(); }

void addGridBarrier(KernelOp kernel, const Schedule& s) {
  int64_t values = 0, probes = 0;
  bool lines = false;
  PhaseOp meeting;
  for (auto phase : kernel.getOps<PhaseOp>())
    if (launchOf(phase, s).grid > 1) {
      meeting = phase;
      phase.walk([&](SweepOp sweep) { values += int64_t(sweep.getSums().size()); });
      phase.walk([&](ProbeOp) { ++probes; });
      phase.walk([&](SlabOp slab) { lines |= slab.hasSweeps() && slab.isPer("row"); });
    }
  if (!meeting) return;
  OpBuilder b(kernel.getContext());
  Operation* last = nullptr;
  for (auto t : kernel.getOps<TensorOp>()) last = t;
  b.setInsertionPointAfter(last);
  auto add = [&](StringRef name, Type type, ArrayRef<StringRef> axes, StringRef access, int64_t window) {
    TensorOp::create(b, kernel.getLoc(), name, type, b.getStrArrayAttr(axes), "workspace", access, window);
  };
  const std::string chunk = "chunk." + std::to_string(meeting.number());
  add(barrierCountsName(), b.getI64Type(), {chunk, "window"}, "zeroed", s.grid);
  if (lines) add(partsName(), kernel.getStatistics(), {chunk, "window"}, "both", 2 * (values + probes) * s.rows * (s.threads / s.team) * s.grid);
  else add(partsName(), kernel.getStatistics(), {"window", "feature"}, "both", std::max<int64_t>(values, 1) * s.grid);
}

}  // namespace normc::codegen::cuda
