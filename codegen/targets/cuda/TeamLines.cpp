// Lines, of which a team has a statistic each, and blocks, of which all threads of a block have one.
#include "codegen/targets/cuda/Arch.h"
#include "codegen/targets/cuda/Dependence.h"
#include "codegen/targets/cuda/ReadAhead.h"
#include "codegen/targets/cuda/TeamLowering.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;

namespace normc::codegen::cuda {

/// True if each step of the slab completes the sums of one sweep, once.
static bool sumsOnce(SlabOp slab) {
  int64_t sums = 0;
  bool once = slab.getOps<BlocksOp>().empty();
  for (SweepOp sweep : slab.sweeps()) {
    sums += !sweep.getSums().empty();
    once &= !sweep.getCondition();
  }
  return once && sums == 1;
}

void TeamLowering::lines(SlabOp s) {
  const Axis axis = s.groupAxis();
  int64_t groups = f_.featuresLast() ? f_.groups(axis) : 1;
  bool together = groups == 1 || s_.threads % (s_.team * groups) == 0;
  run_.place = k_.placeOf(s_.team, together ? groups : 1);
  run_.width = runWidth(s);
  auto runOf = [&](Value group) {
    beginRun(f_.featuresLast() ? l_.mul(group, f_.groupWidth(axis)) : l_.index(0));
  };
  Value mine = together && groups > 1 ? l_.div(run_.place.spanLane, l_.index(s_.team)) : l_.index(0);
  runOf(mine);
  overClasses(s, [&](Units units) { linesFrom(s, units, together, mine); });
}

/// Walks the lines of the task. `mine` is the thread's group if all groups of a row are walked `together`.
void TeamLowering::linesFrom(SlabOp s, Units task, bool together, Value mine) {
  const Axis axis = s.groupAxis();
  const int64_t groups = f_.featuresLast() ? f_.groups(axis) : 1;
  const Value end = s.getHead() ? headEnd(task.begin, task.end, *s.getHead()) : task.end;
  computeHoisted();
  if (together) held_.loadVectors(s);
  partials_.begin(s, task.begin);
  sharedRuns_.begin(s, holds(), partials_.count());
  auto unitsFrom = [&](Value first) {
    Replicas units(s_.rows);
    for (int64_t r = 0; r < s_.rows; ++r)
      placeUnit(units[r], first, r, end, [&](Value unit) { units[r].at = unitCoordinates(unit); });
    return units;
  };
  tree_.alternate(together && (partials_.inRegisters() || s_.prefetch) && sumsOnce(s));
  const int64_t stride = run_.place.units * s_.rows;
  const auto ahead = ReadAhead::make(holds() && together ? s_.prefetch : Prefetch(),
                                     {k_, *access_, held_, sharedRuns_}, s, {task.begin, stride, unitsFrom});
  ahead->begin();
  sharedVectors_.begin(s);
  partials_.forEachStep(
      {task.begin, end}, stride, {},
      [&](Value first, Values&) {
        Replicas units = unitsFrom(first);
        tree_.beginStep(k_.gridded()
                            ? l_.rem(l_.div(l_.sub(first, task.begin), l_.index(stride)), l_.index(2))
                            : Value());
        auto group = [&](Value g) {
          Replicas replicas = units;
          for (Replica& r : replicas) {
            r.at.group = g;
            r.values = shared_;
          }
          held_.clear();
          access_->beginStep(s, llvm::map_to_vector(replicas, [](const Replica& r) { return r.at; }));
          if (s_.prefetch && !access_->byClasses()) loadScalars(s, replicas);
          ahead->step(replicas, first);
          int64_t before = k_.barriers();
          body(s, replicas);
          if (k_.barriers() - before == 1 && !tree_.alternates())
            k_.barrier();  // the next step writes where slower threads may still read
        };
        if (together)
          group(mine);
        else
          l_.forEach(l_.index(0), l_.index(groups), 1, [&](Value g) {
            beginRun(f_.featuresLast() ? l_.mul(g, f_.groupWidth(axis)) : l_.index(0));
            group(g);
          });
      },
      {}, &ahead->carried());
  tree_.alternate(false);
}

/// Begins the loads of what a row has one of, before its elements are waited for.
void TeamLowering::loadScalars(SlabOp s, Replicas& replicas) {
  const auto written = writtenIn(f_.phase());
  for (LoadOp load : s.getOps<LoadOp>()) {
    TensorOp t = f_.tensor(load.getTensor());
    if (t.hasAxis(f_.kernel().contiguousAxis()) || load.getWindow() || written.contains(t.getSymName()))
      continue;
    for (Replica& r : replicas) scalarOp(*load, r);
  }
}

/// Walks the blocks of codes of a run. Each is of one warp of the team, or of all of a smaller team, which
/// reads its elements again: they need not be those that its threads have in registers.
void TeamLowering::blocksOfRun(BlocksOp op, Replicas& replicas) {
  const Run run = run_;
  const int64_t team = std::min<int64_t>(s_.team, kWarp);
  llvm::SaveAndRestore whole(run_);
  llvm::SaveAndRestore begins(runBegin_);
  llvm::SaveAndRestore narrow(blockWidth_, f_.blockWidth());
  run_.width = blockWidth_;
  run_.place.team = team;
  run_.place.lane = l_.rem(run.place.lane, l_.index(team));
  const Value first = l_.div(run.begin, run_.width), count = l_.div(run.width, run_.width);
  l_.forEach(l_.div(run.place.lane, l_.index(team)), count, run.place.team / team, [&](Value n) {
    const Value block = l_.add(first, n);
    beginRun(l_.mul(block, run_.width));
    for (Replica& r : replicas) r.at.block = block;
    for (Operation& inner : op.getBody().front()) code(inner, replicas);
  });
}

void TeamLowering::blocks(SlabOp s) {
  run_.place = k_.placeOf(s_.team);
  run_.width = runWidth(s);
  l_.forEach(begin_, end_, 1, [&](Value unit) {
    Replicas replicas(1);
    replicas[0].at = unitCoordinates(unit);
    replicas[0].values = shared_;
    bool grouped = s.isPer(Axis::Group) && f_.featuresLast();
    beginRun(grouped ? l_.mul(replicas[0].at.group, f_.groupWidth(Axis::Group)) : l_.index(0));
    partials_.begin(s);
    body(s, replicas);
    k_.barrier();
  });
}

}  // namespace normc::codegen::cuda
