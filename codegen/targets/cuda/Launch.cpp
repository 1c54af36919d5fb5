#include "codegen/targets/cuda/Launch.h"

#include "codegen/Manifest.h"
#include "codegen/targets/cuda/Legality.h"
#include "codegen/targets/cuda/Variants.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Transforms/RegionUtils.h"

namespace normc::codegen::cuda {

/// Threads of a phase that has no sweeps: few, so that features spread over the device.
static constexpr int64_t kVectorThreads = 64;
/// The most threads that divide the folds of a feature, the features of their block, and the chunks that a
/// thread should have at least.
static constexpr int64_t kMostSlices = 16, kFoldedFeatures = 32, kChunksOfSlice = 8;
/// Threads that fold plain sums on a multiprocessor: two full blocks, so that 8192 features are one wave. The
/// folds of moments have no registers for that.
static constexpr int64_t kFoldingThreads = 1024;

llvm::SmallVector<TensorOp> readAlways(SlabOp slab) {
  llvm::SmallVector<TensorOp> tensors;
  auto kernel = slab->getParentOfType<KernelOp>();
  for (auto sweep : slab.sweeps()) {
    if (sweep.getCondition()) continue;
    for (TensorOp t : kernel.tensors(sweep.getReads()))
      if (t.isXSized() && !llvm::is_contained(tensors, t)) tensors.push_back(t);
  }
  return tensors;
}

llvm::SmallVector<TensorOp> vectorsOfAllRows(SlabOp slab) {
  llvm::SmallVector<TensorOp> tensors;
  auto kernel = slab->getParentOfType<KernelOp>();
  if (slab.getKind() != SlabKind::Run || !kernel.featuresLast() || slab.groups() > 1) return tensors;
  bool columns = false;  // which have another use for `hold`
  kernel.walk([&](SlabOp other) { columns |= other.hasSweeps() && other.getKind() == SlabKind::Column; });
  if (columns) return tensors;
  for (auto sweep : slab.sweeps())
    for (TensorOp t : kernel.tensors(sweep.getReads())) {
      const bool ofFeatures = t.getAxes().size() == 1 && t.hasAxis(Axis::Feature);
      if (ofFeatures && t.getRole() == package::Role::Tensor && !llvm::is_contained(tensors, t))
        tensors.push_back(t);
    }
  return tensors;
}

int64_t copiedBytes(const Schedule& s, int64_t reads) {
  return s.prefetch.copiesAhead()
             ? (s.prefetch.copiesAhead() + 1) * s.rows * s.tile * reads * s.threads * kCopiedBytes
             : 0;
}

int64_t sharedRunBytes(const Schedule& s, int64_t reads, int64_t dataBytes) {
  return (s.prefetch.copiesAhead() + 1) * s.shared * reads * s.vector * dataBytes * s.threads;
}

int64_t sharedSumBytes(const Schedule& s, int64_t partials) {
  return s.shared * partials * s.vector * 4 * s.threads;
}

bool warpsProbe(const KernelTraits& traits, const Schedule& s) {
  return !s.prefetch && s.tile > 0 && traits.width >= 4 * kWarp;
}

/// Returns the bytes of static shared memory of an entry with accesses of whole vectors, without buffers in
/// which sums per feature are exchanged.
static int64_t bytesOfSums(const KernelTraits& traits, const Schedule& s) {
  constexpr int64_t kWord = 4, kTurns = 2;
  const auto rounded = [](int64_t words) { return int64_t(llvm::alignTo(words * kWord, kCopiedBytes)); };
  const int64_t warps = s.threads / kWarp, clustered = s.cluster > 1 ? kTurns * kMbarrierBytes : 0;
  int64_t bytes = clustered + traits.counts * rounded(2 * warps);
  if (traits.lines && s.cluster > 1) {
    const int64_t values = traits.runSums + (warpsProbe(traits, s) ? 0 : traits.runProbes);
    bytes += rounded(kTurns * values * s.rows * s.cluster * warps);
  } else if (traits.blocks || s.team > kWarp) {
    bytes += (traits.runSums + traits.runProbes) * rounded(kTurns * s.rows * warps);
  }
  if (traits.columns && s.cluster > 1)
    bytes += rounded(kTurns * traits.columnSums * s.cluster * columnsOf(s));
  if (s.prefetch.inBulk())
    bytes += traits.lineSlabs * (s.prefetch.depth + 1) * (s.threads / s.team) * kMbarrierBytes;
  return bytes;
}

int64_t staticBytes(const KernelTraits& traits, const Schedule& s) {
  constexpr int64_t kBuffers = 2, kWord = 4;
  const bool perFeature = traits.partials || traits.streams || traits.columns,
             alone = s.threads == s.team * (traits.lines ? traits.groups : 1);
  const int64_t whole =
      bytesOfSums(traits, s) + (perFeature && !alone ? kBuffers * kWord * s.threads * s.vector : 0);
  if (!traits.congruent || whyNotCongruent(traits, s)) return whole;
  // The entry for any alignment transposes sums, and copies nothing ahead.
  Schedule any = spread(traits, s);
  any.prefetch = {};
  return std::max(whole, bytesOfSums(traits, any) + transposeBuffers(any) * transposedBytes(any));
}

/// Returns how many partials the runs of a line sum per feature.
static int64_t partialsOf(SlabOp slab) {
  auto kernel = slab->getParentOfType<KernelOp>();
  int64_t count = 0;
  for (auto sweep : slab.sweeps())
    for (TensorOp t : kernel.tensors(sweep.getPartials())) count += t.hasAxis(kernel.contiguousAxis());
  return count;
}

int64_t sharedVectorBytes(const Schedule& s, int64_t featureBytes) {
  return s.hold ? (s.tile + s.shared) * s.team * s.vector * featureBytes : 0;
}

int64_t runBytes(SlabOp slab, const Schedule& s) {
  auto tensors = readAlways(slab);
  if (tensors.empty()) return 0;
  const int64_t reads = int64_t(tensors.size()), dataBytes = elementBytes(tensors[0].getType());
  return copiedBytes(s, reads) + sharedRunBytes(s, reads, dataBytes) + sharedSumBytes(s, partialsOf(slab));
}

int64_t heldBytes(SlabOp slab) {
  int64_t bytes = 0;
  for (TensorOp t : vectorsOfAllRows(slab)) bytes += elementBytes(t.getType());
  return bytes;
}

static int64_t dynamicBytes(SlabOp slab, const Schedule& s) {
  return runBytes(slab, s) + (slab.getKind() == SlabKind::Run ? sharedVectorBytes(s, heldBytes(slab)) : 0);
}

llvm::SmallVector<FoldOp> foldsToDivide(SlabOp slab) {
  llvm::SmallVector<FoldOp> folds;
  if (slab.hasSweeps() || !slab->getParentOfType<PhaseOp>().isOverFeatures() || slab.isPer(Axis::Segment))
    return folds;
  for (auto fold : slab.getOps<FoldOp>()) {
    if (fold.getAxis() != Axis::Chunk) continue;
    llvm::SetVector<mlir::Value> needed;
    mlir::getUsedValuesDefinedAbove(fold.getBody(), needed);
    needed.insert(fold.getInit().begin(), fold.getInit().end());
    const bool alone = llvm::all_of(needed, [&](mlir::Value v) {
      return !slab->isAncestor(v.getParentBlock()->getParentOp()) ||
             v.getDefiningOp<mlir::arith::ConstantOp>();
    });
    if (!fold.getMerges() || !alone || (!folds.empty() && folds[0].getChunkOf() != fold.getChunkOf()))
      return {};
    folds.push_back(fold);
  }
  return folds;
}

Launch launchOf(PhaseOp phase, const Schedule& s) {
  Launch launch{.threads = kVectorThreads, .blocks = 1};
  int64_t folds = 0, values = 0;
  for (auto slab : phase.getOps<SlabOp>())
    for (FoldOp fold : foldsToDivide(slab)) {
      ++folds;
      values += int64_t(fold.getReads().size());
    }
  if (folds > 0) {
    launch.slices = std::clamp<int64_t>(llvm::PowerOf2Ceil(s.chunks / kChunksOfSlice), 1, kMostSlices);
    launch.threads = std::max(kVectorThreads, launch.slices * kFoldedFeatures);
    if (values == folds) launch.blocks = kFoldingThreads / launch.threads;
  }
  if (!hasSweeps(phase) && phase.hasUnits(Axis::Segment)) launch.columns = kVectorThreads;
  for (auto slab : phase.getOps<SlabOp>()) {
    if (!slab.hasSweeps()) continue;
    launch.threads = s.threads;
    launch.blocks = s.blocks;
    const bool ahead = slab.getKind() == SlabKind::Stream && s.prefetch && !slab.getHead();
    if (keeps(slab, s) || ahead) launch.shared = std::max(launch.shared, dynamicBytes(slab, s));
    const bool column = slab.getKind() == SlabKind::Column;
    if (slab.getKind() == SlabKind::Stream || (column && !phase.isOverFeatures()))
      launch.columns = columnsOf(s);
    if (slab.isPer(Axis::Row) || column) {
      launch.cluster = s.cluster;
      launch.grid = s.grid;
    }
  }
  return launch;
}

int64_t blocksTogether(const Schedule& s, const Arch& arch) {
  return arch.multiprocessors * std::max<int64_t>(s.blocks, 1);
}

int64_t tasksTogether(const Schedule& s, const Arch& arch) {
  return std::clamp<int64_t>(blocksTogether(s, arch) / s.grid, 1, s.chunks);
}

int64_t unitsPerStep(PhaseOp phase, const Schedule& s) {
  auto kernel = phase->getParentOfType<KernelOp>();
  int64_t groups = 1;
  for (auto slab : phase.getOps<SlabOp>())
    if (slab.hasSweeps() && slab.isPer(Axis::Row)) groups = slab.groups();
  int64_t span = kernel.featuresLast() && s.threads % (s.team * groups) == 0 ? s.team * groups : s.team;
  return s.threads / span * s.rows;
}

}  // namespace normc::codegen::cuda
