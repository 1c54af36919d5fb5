// Cuts the units of a CPU's phases into tasks, and writes the entry of a kernel in a package.
#include "codegen/Manifest.h"
#include "codegen/plan/Planner.h"
#include "codegen/targets/cpu/Compile.h"
#include "codegen/targets/cpu/lower/PhaseLowering.h"

using namespace mlir;

namespace normc::codegen::cpu {

/// The most tasks of a phase over rows: enough for many threads, and so few that folding their partials costs
/// little compared with the sweep.
static constexpr int64_t kMaxChunks = 256;
/// The fewest channels of a task, and the most tasks of a phase, if tasks have whole channels. The start of a
/// channel costs as much as hundreds of elements.
static constexpr int64_t kChannels = 4, kMaxChannelChunks = 64;
/// The elements of a task of a phase over vectors. If the phase folds the partials of tasks, the elements are
/// the partials: half of them are in another core's caches, from which two cores read faster than one.
static constexpr int64_t kVectorGrain = 4096;
/// The rows of a task that leaves partials. Partials are as long as a row, and are written and read once for
/// each task.
static constexpr int64_t kRowsOfPartials = 64;
/// The fewest features of a task that has a piece of every row: shorter pieces cost too much to begin and
/// end.
static constexpr int64_t kPieceOfRow = 1024;

/// Writes into `result` how the units of the phase are cut into tasks.
static void cut(PhaseOp phase, KernelOp kernel, const Schedule& s, package::Phase& result) {
  result.maxChunks = kMaxChunks;
  if (phase.hasUnits(Axis::Row)) {
    result.minUnits = s.grain;
    result.multiple = kernel.featuresLast() ? s.rows : kCacheLine;  // whole cache lines of any type
    if (kernel.featuresLast() && s.stream > s.rows) result.group = s.stream;
    if (kernel.featuresLast() && s.grain < kRowsOfPartials && leavesPartials(phase, kernel))
      result.enoughUnits = kRowsOfPartials;
    // A task has as many partials as features, so longer rows do not mean fewer rows for a task.
    if (!kernel.getFeatures() && !leavesPartials(phase, kernel))
      result.minUnits *= kUnknownFeatures, result.weight = {package::kFeatures};
  } else if (phase.isOverFeatures() && !hasSweeps(phase)) {
    result.minUnits = kVectorGrain;
    result.weight = partialsOf(phase);
    result.multiple = s.vector;
  } else if (phase.isOverFeatures() && kernel.featuresLast()) {
    result.minUnits = result.multiple = s.vector * s.tile;
    if (s.strategy == Strategy::Split) {
      result.multiple = llvm::alignTo(std::min(s.grain, kPieceOfRow), result.multiple);
      result.minUnits = s.grain, result.weight = {package::kSegments, package::kRows};
    }
  } else if (phase.hasUnits(Axis::Feature) && !kernel.featuresLast()) {
    result.multiple = std::max(s.rows, s.stream);
    result.minUnits = std::max(result.multiple, kChannels);
    result.maxChunks = kMaxChannelChunks;
  }
}

/// Returns the transfers of the plan: a CPU keeps a resident slab in caches, and reads it once from memory.
static package::Traffic trafficOnCpu(KernelOp kernel, bool warmup) {
  const Traffic t = trafficOf(kernel, warmup);
  return {t.reads, t.writes};
}

package::Kernel kernelManifest(const Problem& problem, const Schedule& schedule, const Isa& isa,
                               KernelOp kernel) {
  package::Kernel m =
      manifestOf(problem, schedule.text(), kernel,
                 {.cut = [&](PhaseOp phase, package::Phase& result) { cut(phase, kernel, schedule, result); },
                  .traffic = [&](bool warmup) { return trafficOnCpu(kernel, warmup); }});
  if (schedule.stream) {
    for (const std::string_view number : kThresholds)
      m.scalars.push_back({std::string(number),
                           number == kLargeNumber ? kLargeBytes : kStreamBytes,
                           {.least = 0, .below = 0x1p63}});  // kernels compare whole numbers of 64 bits
  }
  m.isa = isa.name;
  return m;
}

}  // namespace normc::codegen::cpu
