#include "runtime/abi/Partition.h"

#include <algorithm>

namespace normc::package {
namespace {

int64_t ceilDivide(int64_t a, int64_t b) { return a / b + (a % b != 0); }
int64_t nearestQuotient(int64_t a, int64_t b) { return a / b + (a % b > b / 2); }

/// Groups that suffice for many threads. Fewer groups may be split between chunks.
constexpr int64_t kManyGroups = 32;

/// Chunks that suffice for many threads. With fewer, using all threads matters more than the cost per chunk.
constexpr int64_t kManyChunks = 16;

/// Returns the parts of a phase that are cut alike and by themselves: segments, or the phase as a whole.
int64_t partsOf(const Phase& phase, const Sizes& sizes) {
  return phase.bySegment ? std::max<int64_t>(sizes.segments, 1) : 1;
}

/// Returns the least length of a chunk.
int64_t leastUnits(const Phase& phase, const Sizes& sizes, const normc_cut* cuts) {
  return ceilDivide(phase.minUnits, std::max<int64_t>(elements(phase.weight, sizes, cuts), 1));
}

}  // namespace

bool computeCuts(const Kernel& kernel, const Sizes& sizes, normc_cut* cuts) {
  for (size_t i = 0; i < kernel.phases.size(); ++i) {
    const Phase& phase = kernel.phases[i];
    normc_cut& cut = cuts[i];
    cut.units = elements(phase.units, sizes, cuts);
    if (cut.units == kHuge) return false;
    // Lengths are equal, because all threads wait for the longest chunk.
    const int64_t least = std::max({leastUnits(phase, sizes, cuts), ceilDivide(cut.units, phase.maxChunks),
                                    std::min(phase.unitsEnough(), ceilDivide(cut.units, kManyChunks))});
    const int64_t parts = partsOf(phase, sizes), units = cut.units / parts;
    const int64_t chunks = std::max<int64_t>(nearestQuotient(units, least), 1);
    const int64_t even = ceilDivide(std::max<int64_t>(units, 1), chunks);
    const int64_t group = phase.unitsOfGroup();
    const int64_t step = units < multiply(kManyGroups, group) ? phase.multiple : group;
    cut.chunk_units = multiply(ceilDivide(even, step), step);
    cut.chunks = multiply(parts, ceilDivide(units, cut.chunk_units));
  }
  return true;
}

bool boundCuts(const Kernel& kernel, const Sizes& sizes, normc_cut* cuts) {
  for (size_t i = 0; i < kernel.phases.size(); ++i) {
    const Phase& phase = kernel.phases[i];
    const int64_t all = elements(phase.units, sizes, cuts);
    if (all == kHuge) return false;
    const int64_t parts = partsOf(phase, sizes), units = all / parts;
    const int64_t least = leastUnits(phase, sizes, cuts);
    const int64_t many = std::max(nearestQuotient(units, std::max(least, phase.unitsEnough())), kManyChunks);
    const int64_t even = std::min({nearestQuotient(units, least), many, phase.maxChunks});
    cuts[i] = {.units = all, .chunk_units = 1, .chunks = multiply(parts, std::max<int64_t>(even, units > 0))};
  }
  return true;
}

}  // namespace normc::package
