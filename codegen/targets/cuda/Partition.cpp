// Cuts the units of a GPU's phases into blocks of threads, and writes the entry of a kernel in a package.
#include "codegen/Manifest.h"
#include "codegen/plan/Planner.h"
#include "codegen/targets/cuda/Compile.h"
#include "codegen/targets/cuda/Dependence.h"
#include "codegen/targets/cuda/FusePhases.h"
#include "codegen/targets/cuda/Launch.h"
#include "codegen/targets/cuda/LowerToGpu.h"
#include "codegen/targets/cuda/Traits.h"

using namespace mlir;

namespace normc::codegen::cuda {

/// Steps a block of a tile of columns does at least: they share what belongs to the columns.
static constexpr int64_t kStepsOfTile = 4;

/// How units become blocks of threads.
static void cut(PhaseOp phase, KernelOp kernel, const Schedule& s, const Arch& arch, package::Phase& result) {
  const Launch launch = launchOf(phase, s);
  result.launch = package::Launch{.threads = launch.threads,
                                  .columns = launch.columns,
                                  .cluster = launch.cluster,
                                  .cooperative = launch.grid};
  result.launch->dependent = isDependent(phase, arch);
  if (auto least = phase->getAttrOfType<IntegerAttr>(leastBlocksAttrName()))
    result.launch->least = least.getInt();
  result.launch->shared = launch.shared;
  EntryNames names = entryNames(kernel, phase, s);
  if (!names.unaligned.empty()) result.unaligned = names.unaligned;
  // Reading ahead wants tasks of many steps, and so do vectors that are read once a task.
  const bool many = hasSweeps(phase) && (s.prefetch || (s.hold && traitsOf(kernel).lines));
  const bool few = leavesPartials(phase, kernel) || readsAgain(phase) || many;
  result.maxChunks = few ? s.chunks : limits::kChunks / launch.cluster;
  if (launch.grid > 1) result.maxChunks = tasksTogether(s, arch);
  bool runs = phase.hasUnits(Axis::Row);
  if (!hasSweeps(phase)) {
    result.minUnits = result.multiple = phase.isOverFeatures() ? launch.threads / launch.slices : 1;
  } else if (runs || traitsOf(kernel).lines) {
    int64_t together = unitsPerStep(phase, s);
    result.minUnits = launch.columns ? kStepsOfTile * together : together;
    result.multiple = together;
  } else if (phase.isOverFeatures() && kernel.featuresLast()) {
    result.minUnits = result.multiple = columnsOf(s);
  }
}

static package::Traffic moved(KernelOp kernel, const Schedule& s, bool warmup) {
  const codegen::Traffic least = trafficOf(kernel, warmup);
  const codegen::Traffic t = trafficOf(kernel, warmup, [&](SlabOp slab) { return keeps(slab, s); });
  if (t.reads == least.reads) return {t.reads, t.writes};
  return {t.reads, t.writes, least.reads, heldRows(s)};
}

package::Kernel kernelManifest(const Problem& problem, const Schedule& schedule, const Arch& arch,
                               KernelOp kernel) {
  package::Kernel m = manifestOf(
      problem, schedule.text(), kernel,
      {.cut = [&](PhaseOp phase, package::Phase& result) { cut(phase, kernel, schedule, arch, result); },
       .traffic = [&](bool warmup) { return moved(kernel, schedule, warmup); }});
  m.device = "cuda";
  m.isa = arch.name;
  m.alignment = accessBytes(kernel, schedule);
  return m;
}

}  // namespace normc::codegen::cuda
