#include "codegen/targets/cpu/DefaultRule.h"

#include <algorithm>

namespace normc::codegen::cpu {

/// Wider statistics hide the latency of their root and division in the work of the row itself.
static constexpr int64_t kShortWidth = 128;
/// Up to this width several rows share the wait.
static constexpr int64_t kNarrowWidth = 384;
/// Rows of wider statistics are worked on one at a time.
static constexpr int64_t kLongWidth = 16384;
/// The bytes of x in the smallest task that is worth a thread if tasks leave sums per feature. Kernels that
/// read x once may have half of that in a task of at least kTaskRows rows, without such sums a quarter.
static constexpr int64_t kTaskBytes = 256 << 10, kTaskRows = 16;
/// The same if the rows of a feature are contiguous: a task begins again in each channel, so its pieces are
/// long.
static constexpr int64_t kRunsTaskBytes = 1 << 20, kRunsTaskRows = 1024;
/// The bytes of x of a task that has a piece of every row. A backward does four times as much work with them.
static constexpr int64_t kSplitBytes = 64 << 10, kSplitBytesBackward = 32 << 10;

/// Returns the grain: a task is worth waking a thread for, and the partial sums that it leaves are little
/// work compared with it.
static int64_t grainOf(const Problem& problem, Strategy strategy) {
  const bool perRow = problem.spec->perRow(), backward = isBackward(problem.entry);
  if (strategy == Strategy::Split)
    return (backward ? kSplitBytesBackward : kSplitBytes) / bytes(problem.data);
  if (problem.layout == Layout::ChannelsFirst) {
    const int64_t rows = rowsOf(kRunsTaskBytes, problem, 4096);
    if (strategy == Strategy::Streamed) return std::max(rows, kRunsTaskRows);
    return perRow ? rows : Schedule().grain;
  }
  if (problem.spec->perFeature()) return rowsOf(kTaskBytes, problem, 512);
  if (!perRow) return Schedule().grain;
  if (!backward) return rowsOf(kTaskBytes / 4, problem, 512);
  return std::min(rowsOf(kTaskBytes, problem, 512),
                  std::max(rowsOf(kTaskBytes / 2, problem, 512), kTaskRows));
}

/// Returns the number of lanes for a statistic of that width: a narrow one fills half a register instead of
/// one and a half.
static int64_t lanesForWidth(int64_t width, int64_t lanes) {
  while (lanes > 2 &&
         (width < lanes || (width < 4 * lanes && width % lanes != 0 && width % (lanes / 2) == 0)))
    lanes /= 2;
  return lanes;
}

/// True if the rest of a row, which does not fill a vector, is processed in halves and quarters of a vector
/// instead of under a mask: if one or two of them are enough, and without AVX-512, where a masked store takes
/// as long as a dozen others.
static bool endsInHalves(const Problem& problem, const Isa& isa, const Schedule& s) {
  if (problem.data != DType::F32 || problem.params != DType::F32 || !problem.features ||
      problem.layout != Layout::FeaturesLast)
    return false;
  if (usesColumnTiles(problem, s.strategy) || s.strategy == Strategy::Split || problem.spec->pre)
    return false;
  const int64_t run = problem.spec->perFeature() ? *problem.features : statisticWidth(problem),
                rest = run % s.vector;
  return rest && run > s.vector && (isa.registers < 32 || rest <= 2);
}

Schedule ruleSchedule(const Problem& problem, const Isa& isa, Strategy strategy) {
  Schedule s;
  s.strategy = strategy;
  s.grain = grainOf(problem, strategy);
  s.vector = isa.vectorBytes / bytes(problem.statistics());
  const int64_t width = statisticWidth(problem);
  const bool channels = problem.layout == Layout::ChannelsFirst;
  // bf16 is rounded in lanes of 16 bits, a full register of them at a time; f16 has an instruction.
  const bool fills = isa.masks16 || (problem.features && *problem.features % (2 * s.vector) == 0);
  const bool pairs = problem.data == DType::BF16 && !channels && fills;
  if (pairs) s.vector *= 2;
  if (width) s.vector = lanesForWidth(width, s.vector);
  s.scalarTail = (hasNarrowElements(problem) && !isa.masks16) || endsInHalves(problem, isa, s);

  // Two rows share the loads of parameters, a quarter of the registers holds a sum: enough to hide the
  // latency of an addition. A map has nothing to share. With AVX-512 a vector of bf16 is two registers.
  const bool across = isAcrossChannels(problem), split = strategy == Strategy::Split;
  const bool narrow = width > 0 && width <= kNarrowWidth && !split;
  const int64_t halves = pairs && isa.masks16 ? 2 : 1, quarter = isa.registers / 4 / halves;
  s.ahead = problem.features && narrow && width <= kShortWidth;
  s.rows = narrow || channels ? 4 : split || width > kLongWidth || (isMap(problem) && !width) ? 1 : 2;
  s.unroll = narrow || channels ? 1 : quarter / s.rows;
  // A strip of a backward has more sums.
  s.tile = split ? quarter : (isBackward(problem.entry) ? 4 : 8) / halves;
  s.stream = split ? 0 : 4;
  s.fetch = !split && (across || (!channels && problem.spec->reduce != Reduce::Segment));
  if (usesColumnTiles(problem, strategy)) {
    s.rows = s.unroll = 1;
    s.stream = 0;
    s.fetch = false;
  }
  return s;
}

}  // namespace normc::codegen::cpu
