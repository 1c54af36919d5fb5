#include "codegen/targets/cuda/Variants.h"

#include "codegen/targets/cuda/Legality.h"
#include "codegen/targets/cuda/Traits.h"
#include "llvm/Support/MathExtras.h"

namespace normc::codegen::cuda {

Schedule ofElements(const Schedule& s) {
  Schedule single = s;
  single.rows = 1;
  if (s.grid == 1) single.blocks = 1;  // else as many have to be there at once
  single.prefetch = {};
  single.hold = 0;
  return single;
}

Schedule unaligned(const Schedule& s) {
  if (s.vector == 1) return s;
  Schedule single = ofElements(s);
  single.tile = s.tile * s.vector;
  single.shared = s.shared * s.vector;
  single.vector = 1;
  return single;
}

/// The most bytes of shared memory in which sums are transposed. Two buffers share it if both fit.
static constexpr int64_t kTransposedBytes = 40 << 10;

int64_t transposedBytes(const Schedule& s) { return s.vector * (s.threads + transposePitch(s.vector)) * 4; }
int64_t transposeBuffers(const Schedule& s) { return 2 * transposedBytes(s) <= kTransposedBytes ? 2 : 1; }

/// Returns the registers of a thread that takes congruent rows; an estimate. Vectors of features, ends and
/// addresses take some, too. No spill was seen with this many.
static int64_t registersOfCongruent(const KernelTraits& traits, const Schedule& s) {
  return registersOf(traits, s) + s.tile * s.vector + 7 * s.tile + 32;
}

Schedule spread(const KernelTraits& traits, const Schedule& s) {
  Schedule spread = s;
  while (traits.lines && registersOfCongruent(traits, spread) > registersFor(s) && spread.tile % 2 == 0 &&
         s.threads % (2 * spread.team * traits.groups) == 0) {
    spread.tile /= 2;
    spread.team *= 2;
  }
  return spread;
}

/// Returns why a kernel whose phases could take congruent rows does not.
std::optional<std::string> whyNotCongruent(const KernelTraits& traits, const Schedule& s) {
  const int64_t length = traits.lines ? traits.width : traits.features;
  if (s.vector == 1 || s.tile == 0) return "no run stays in registers";
  if (s.shared || (traits.lines && s.grid > 1))
    return "runs do not stay in registers of a block or a cluster";
  if (length && length < leastPeeled(s.vector))
    return "only runs of " + std::to_string(leastPeeled(s.vector)) + " and more are peeled";
  if (transposedBytes(s) > kTransposedBytes)
    return std::to_string(s.threads) + " threads would turn round sums of " +
           std::to_string(transposedBytes(s)) + " bytes in shared memory; a block has " +
           std::to_string(kTransposedBytes) + " for that";
  const int64_t registers = registersOfCongruent(traits, spread(traits, s));
  if (traits.lines && registers > registersFor(s))
    return "rows that begin alike take about " + std::to_string(registers) + " registers a thread; " +
           std::to_string(s.threads) + " threads leave " + std::to_string(registersFor(s));
  return std::nullopt;
}

bool takesCongruentRows(PhaseOp phase, const Schedule& s) {
  return isCongruent(phase) && !whyNotCongruent(traitsOf(phase->getParentOfType<KernelOp>()), s);
}

Schedule congruent(const Schedule& s, int64_t partials) {
  Schedule congruent = s;
  congruent.hold = 0;                 // vectors are in registers
  constexpr int64_t kRoomAhead = 16;  // elements of a thread that leave registers for the next row
  if (s.prefetch.copiesAhead() || s.tile * s.vector > kRoomAhead) congruent.prefetch = {};
  // The ends take registers, and so do the eight pilot rows of a task, which are read by elements.
  if (partials > 2 && s.vector >= 8) {
    congruent.blocks = std::min<int64_t>(s.blocks, 1);
  } else {
    congruent.rows = std::min<int64_t>(s.rows, partials == 2 && s.vector >= 8 ? 2 : 3);
    if (s.blocks > 2) congruent.blocks = s.blocks * 3 / 4;
  }
  return congruent;
}

bool peels(PhaseOp phase, const Schedule& s) {
  if (s.vector == 1 || !isPeelable(phase)) return false;
  int64_t width = traitsOf(phase->getParentOfType<KernelOp>()).width;
  return s.tile == 0 || width >= leastPeeled(s.vector);
}

bool alwaysPeels(const KernelTraits& traits, const Schedule& s) {
  if (traits.congruent && !whyNotCongruent(traits, s))
    return (traits.lines ? traits.width : traits.features) % s.vector != 0;
  return traits.peelable && s.vector > 1 &&
         (traits.width % s.vector != 0 || (traits.grouped && !traits.width));
}

/// Returns the registers of a thread if a multiprocessor shall hold so many blocks. Each scheduler has its
/// own registers, so the one with the most warps decides.
static int64_t registersOfWarp(int64_t threads, int64_t blocks) {
  const int64_t warps = llvm::divideCeil(blocks * threads / kWarp, kSchedulers);
  return std::min<int64_t>(kMaxRegisters, kRegisters / kSchedulers / warps / kWarp / 8 * 8);
}

Schedule peeled(const Schedule& s) {
  Schedule peeled = s;
  peeled.prefetch = {};
  peeled.hold = 0;  // a thread has other features in each row
  if (s.tile == 0) peeled.rows = 1;
  if (!s.blocks || s.grid > 1) return peeled;
  // Shifting takes registers. Long runs were seen not to spill with this many.
  const int64_t registers = s.rows == 1 ? 5 * s.tile * s.vector + 24 : 0;
  peeled.blocks = std::max<int64_t>(1, s.blocks * 3 / 4);
  while (peeled.blocks > 1 && registersOfWarp(s.threads, peeled.blocks) < registers) --peeled.blocks;
  return peeled;
}

}  // namespace normc::codegen::cuda
