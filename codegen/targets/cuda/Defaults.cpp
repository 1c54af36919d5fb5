#include "codegen/targets/cuda/Defaults.h"

#include <cmath>

#include "codegen/targets/cuda/DefaultTable.h"
#include "codegen/targets/cuda/Launch.h"
#include "codegen/targets/cuda/Legality.h"
#include "codegen/targets/cuda/Variants.h"
#include "llvm/Support/MathExtras.h"

namespace normc::codegen::cuda {

/// Elements of an access at most where a thread has sums of each, which fill registers.
static constexpr int64_t kMostOfSums = 8;
/// Bytes that one block moves in the time of the launches that it saves.
static constexpr int64_t kAloneBytes = 64 << 10;
/// Returns the elements of a column slab that a thread of 256 keeps. ptxas was seen not to spill with as
/// many; on sm_90 they are the most, from sm_120 on the fewest. Narrow elements are widened, and take
/// registers in both forms.
static int64_t heldElements(const KernelTraits& traits, const Arch& arch) {
  if (traits.dataBytes < 4 || arch.number >= 120) return 64;
  return arch.number == 90 ? 96 : 80;
}

/// Returns the elements that a thread holds where `elements` were seen to fit. That was with x, and with dy
/// in a backward; a residual or a gate takes its part of the registers.
static int64_t fitting(int64_t elements, const KernelTraits& traits) {
  if (traits.turns) elements /= 4;  // mates, angles and their addresses
  return traits.backward && traits.mostReads > 2 ? elements * 2 / traits.mostReads : elements;
}

/// Finds the team and tile that hold `count` accesses of a run with the fewest idle lanes, near `target`
/// accesses a thread, in a block of at most `threads`, and in a cluster of at least `least`. False if there
/// are none.
static bool holdRun(Schedule& s, int64_t count, int64_t target, int64_t most, int64_t groups, int64_t threads,
                    int64_t least) {
  int64_t best = -1;
  double bestScore = 0;
  for (int64_t team = s.cluster > 1 ? least : 1; team * groups <= threads;
       team = team < kWarp ? team * 2 : team + kWarp) {
    int64_t tile = llvm::divideCeil(count, team);
    if (tile > most) continue;
    double waste = double(team * tile) / double(count),
           distance = std::abs(std::log2(double(tile) / double(target)));
    // Each of the four schedulers of a multiprocessor has a quarter of the registers. With unequal numbers of
    // warps the scheduler with the most of them limits the registers of all threads.
    const bool uneven = team > kSchedulers * kWarp && team % (kSchedulers * kWarp);
    double score =
        waste + 0.15 * distance + (uneven ? 0.16 : 0) + (team > 256 ? 0.1 * double(team) / 256 : 0);
    if (best < 0 || score < bestScore) {
      best = team;
      bestScore = score;
      s.tile = tile;
    }
  }
  if (best < 0) return false;
  s.team = best;
  int64_t span = s.team * groups;
  s.threads = span;
  while (s.threads < 128 || s.threads % 32) s.threads += span;
  return true;
}

/// How the threads of a block hold a run: the elements that one should have, the most in a block of 256
/// threads and in one of 512, and how the next run of a task is read.
struct RunRule {
  int64_t wanted, most, ofLarge;
  Prefetch ahead = {Prefetch::Registers, 1};
  bool blocksFirst = false;  ///< a larger block before a cluster
};

constexpr int64_t kKib = 1 << 10;
static int64_t runBytes(const KernelTraits& traits) { return traits.width * traits.dataBytes; }

/// True if a line reads scale and bias in f32 for narrow elements: they are most of what it reads, from the
/// first-level cache, and take registers.
static bool readsWideVectors(const KernelTraits& traits) {
  return traits.dataBytes < 4 && traits.vectorBytes > 4;
}

/// True if an H200 has measured such kernels (docs/cuda.md): plain rows that begin at whole accesses.
static bool isMeasured(const KernelTraits& traits, const Arch& arch) {
  constexpr int64_t kPlain =
      12;  // LayerNorm backward of a residual stream has so many operations on an element
  return arch.number == 90 && traits.lines && !traits.streams && !traits.grouped && !traits.turns &&
         !traits.block && !traits.conditional && !traits.mixed && !traits.runPartials &&
         traits.operations <= kPlain && runBytes(traits) % arch.accessBytes == 0;
}

/// True if an H200 has measured such streams: PN forward, whose one phase over rows reads x once and sums per
/// feature, of rows that begin at whole accesses.
static bool isPlainStream(const KernelTraits& traits, const Arch& arch) {
  return arch.number == 90 && traits.streamSums && !traits.backward && !traits.lines && !traits.rereads &&
         !traits.mixed && traits.features * traits.dataBytes % arch.accessBytes == 0;
}

/// Returns what was fastest. A warp or less has 32 elements a thread of a short row. Of longer ones each
/// thread has fewer, so that more rows are under way. Rows that are longer than a block have many again,
/// because the blocks of a cluster wait for each other.
static RunRule measuredRule(const KernelTraits& traits) {
  const bool narrow = traits.dataBytes < 4;
  const int64_t bytes = runBytes(traits);
  const Prefetch next = {Prefetch::Registers, 1}, copies = {Prefetch::Bulk, 2};
  if (!traits.backward) {
    if (readsWideVectors(traits)) return {32, 48, 48, {}, true};
    if (narrow) return {32, 64, 64, {}, true};
    if (bytes <= 4 * kKib || bytes > 32 * kKib) return {32, 32, 32, {}, true};
    return {16, 24, 16, {}, true};
  }
  if (!narrow) return {8, 16, 16, bytes <= 32 * kKib ? next : Prefetch(), true};
  if (bytes <= kKib) return {16, 16, 16, {Prefetch::Async, 2}, true};
  if (bytes <= 2 * kKib || bytes > 16 * kKib) return {32, 32, 16, copies, true};
  return {16, 16, 16, copies, true};
}

/// The rule of other kernels: the most that registers were seen to hold without spills. With clusters threads
/// hold less than they could, which leaves room for the next run and for a second block on the
/// multiprocessor.
static RunRule ruleOf(const KernelTraits& traits, const Arch& arch) {
  RunRule rule = measuredRule(traits);
  if (!isMeasured(traits, arch)) {
    const bool sums = traits.partials > 0, wide = traits.dataBytes == 4;
    rule = {sums ? 16 : 32, sums ? 32 : 64, 0};
    if (arch.clusters()) {
      rule.most = sums ? 24 : wide ? 32 : 48;
      rule.ofLarge = sums || wide ? 16 : 24;
    }
  }
  for (int64_t* elements : {&rule.wanted, &rule.most, &rule.ofLarge}) *elements = fitting(*elements, traits);
  return rule;
}

/// Returns the registers of a thread with which no default was seen to spill.
static int64_t registersOf(const KernelTraits& traits, const Schedule& s, const Arch& arch) {
  if (s.tile == 0) return kMaxRegisters;
  const int64_t held = s.tile * s.vector * s.rows;
  const bool few = s.team < kWarp / 2;
  if (!isMeasured(traits, arch))
    return traits.backward || traits.streams ? kMaxRegisters : traits.mostReads > 1 && few ? 160 : 128;
  // Modulation has two vectors of its own, which are widened with the elements.
  const bool modulated = !readsWideVectors(traits) && traits.operations > 4;
  // A stream of residuals is one narrow tensor more, which is widened.
  if (traits.backward) {
    if (held > 16) return kMaxRegisters;
    return traits.dataBytes < 4 && (traits.reads > 2 || (modulated && s.team < kWarp)) ? 168 : 128;
  }
  if (traits.reads > 1) return few ? 160 : 128;
  if (traits.dataBytes >= 4) {
    if (runBytes(traits) <= 4 * kKib || runBytes(traits) > 32 * kKib) return 128;
    return s.threads > 256 ? 64 : 80;
  }
  if (s.cluster > 1 && readsWideVectors(traits)) return 96;
  // Idle lanes, and several teams of warps in a block, take a few registers more.
  const bool simple = s.threads % (kSchedulers * kWarp) == 0 && (s.team == s.threads || s.team <= kWarp) &&
                      s.tile * s.team * s.vector * s.cluster == traits.width;
  if (modulated && held > 32) return 96;
  return held > 32 || (readsWideVectors(traits) && !simple) || modulated ? 80 : 64;
}

/// Makes a multiprocessor hold as many blocks as registers allow, and the next run be read ahead where a task
/// has many.
static void fillProcessor(Schedule& s, const KernelTraits& traits, const Arch& arch, const RunRule& rule) {
  const auto fits = [&] { return !whyIllegal(traits, s, arch); };
  s.blocks = std::max<int64_t>(1, kRegisters / (s.threads * registersOf(traits, s, arch)));
  while (s.blocks > 1 && !fits()) --s.blocks;
  if (s.tile == 0 || s.shared || traits.partials == 0) return;
  // Elsewhere the next run has room in registers of small blocks, and if it is no long one of narrow
  // elements.
  const bool room = isMeasured(traits, arch) || (s.threads * kMaxRegisters <= kRegisters &&
                                                 (traits.dataBytes >= 4 || s.tile * s.vector <= 24));
  for (const Prefetch ahead :
       {rule.ahead, rule.ahead.inBulk() ? Prefetch{Prefetch::Registers, 1} : Prefetch(), Prefetch()}) {
    s.prefetch = room ? ahead : Prefetch();
    if (fits()) return;
  }
}

/// Holds a run in the registers of one block, or of the smallest cluster.
static bool holdRun(Schedule& s, const KernelTraits& traits, const Arch& arch) {
  const RunRule rule = ruleOf(traits, arch);
  const int64_t ofMany = fitting(40, traits), count = traits.width / s.vector;
  struct Limit {
    int64_t threads, elements, clusters = limits::kCluster;
  };
  // With fewer registers more blocks of clusters are on a multiprocessor, while others wait for each other.
  const bool small = isMeasured(traits, arch) && !traits.backward && readsWideVectors(traits);
  // Threads with many registers fill a multiprocessor with one block, so it should not be a small one.
  const int64_t least = isMeasured(traits, arch) && traits.backward ? 256 : kWarp;
  const auto holds = [&](Limit limit) {
    if (small && s.cluster > 1) limit = {256, fitting(32, traits)};
    const int64_t most =
        s.cluster > 2 && !rule.blocksFirst ? std::min(limit.elements, ofMany) : limit.elements;
    return holdRun(s, llvm::divideCeil(count, s.cluster), std::max<int64_t>(1, rule.wanted / s.vector),
                   std::max<int64_t>(1, most / s.vector), traits.groups, limit.threads, least) &&
           !whyIllegal(traits, s, arch);
  };
  const int64_t clusters = arch.clusters() ? limits::kCluster : 1;
  llvm::SmallVector<Limit> limits{{256, rule.most, clusters}, {512, rule.ofLarge, clusters}};
  if (!arch.clusters()) limits = {{traits.partials ? 256 : 512, rule.most, 1}};
  // Longer rows use shared memory (holdShared). If that is illegal, larger blocks, some of which spill.
  if (traits.conditional) limits.push_back({1024, fitting(traits.partials ? 32 : 64, traits), clusters});
  for (s.cluster = 1; rule.blocksFirst && s.cluster <= clusters; s.cluster *= 2)
    if (llvm::any_of(limits, holds)) return true;
  for (const Limit& limit : limits)
    for (s.cluster = 1; limit.elements > 0 && s.cluster <= limit.clusters; s.cluster *= 2)
      if (holds(limit)) return true;
  return false;
}

/// Holds a run that is too long for registers partly in the shared memory of one large block, or of the
/// smallest cluster of such. A thread has as many elements in registers as were seen not to spill. Blocks of
/// a grid are not used, because a smaller device may not hold them at once: they are for records that were
/// measured on a device.
static bool holdShared(Schedule& s, const KernelTraits& traits, const Arch& arch) {
  Arch least = arch;
  if (!arch.clusters()) least.sharedBytes = std::min(arch.sharedBytes, kLeastShared);
  struct Limit {
    int64_t threads, elements;
  };
  llvm::SmallVector<Limit> limits{{512, 16}};
  if (!arch.clusters()) limits.push_back({512, traits.dataBytes == 4 ? 48 : 32});
  if (traits.partials) limits = {{512, traits.dataBytes == 4 ? 12 : 8}, {256, 24}};
  for (s.cluster = 1; s.cluster <= (arch.clusters() ? limits::kCluster : 1); s.cluster *= 2)
    for (const Limit& limit : limits) {
      s.team = limit.threads / traits.groups / kWarp * kWarp;
      if (s.team == 0 || limit.elements < s.vector) continue;
      s.threads = s.team * traits.groups;
      s.tile = limit.elements / s.vector;
      s.shared = llvm::divideCeil(traits.width / s.vector, s.team * s.cluster) - s.tile;
      if (s.shared > 0 && !whyIllegal(traits, s, least)) return true;
    }
  s.shared = 0;
  s.cluster = s.grid = 1;
  return false;
}

/// Returns the elements of an access: as many as an access of the device has and runs are aligned for.
static int64_t vectorOf(const KernelTraits& traits, const Arch& arch) {
  if (traits.grouped && !traits.width && !traits.peelable) return 1;
  const int64_t whole = arch.accessBytes / traits.dataBytes;
  int64_t vector = whole;
  while (traits.width % vector || traits.block % vector) vector /= 2;
  const bool anywhere = traits.peelable || (traits.congruent && traits.lines);
  if (anywhere && vector * traits.dataBytes < 8 && traits.width >= leastPeeled(whole)) return whole;
  return vector;
}

/// Completes the schedule of rows that have statistics of their own.
static Schedule linesSchedule(const KernelTraits& traits, const Arch& arch, Schedule s) {
  if (!traits.width || traits.runPartials) {
    s.tile = 0;
    s.team = s.threads = traits.width && traits.width < 1024 ? 128 : 256;
  } else if (!holdRun(s, traits, arch)) {
    const int64_t wide = s.vector;
    while (!traits.peelable && traits.width % s.vector)
      s.vector /= 2;  // the accesses of longer rows with sums must be aligned
    const bool held = (s.vector < wide && holdRun(s, traits, arch)) || holdShared(s, traits, arch);
    if (!held) {
      s.tile = 0;
      s.team = s.threads = 512;
      s.cluster = 1;
    }  // too long: every sweep reads it
  }
  const int64_t tasks = s.shared ? arch.multiprocessors : 2 * arch.multiprocessors;
  s.chunks = std::max<int64_t>(1, tasks / (s.cluster * s.grid));
  const int64_t bytes = s.tile * s.vector * traits.dataBytes;
  if (s.tile > 0 && bytes < 64 && !traits.partials && !traits.runPartials && !traits.turns)
    s.rows = std::clamp<int64_t>(64 / bytes, 1, 4);
  while (s.rows > 1 && whyIllegal(traits, s, arch)) s.rows /= 2;
  fillProcessor(s, traits, arch, ruleOf(traits, arch));
  // x and y are accessed once, and would take the place of scale and bias in the first-level cache.
  if (isMeasured(traits, arch) && traits.dataBytes < 4 && !traits.backward && s.tile > 0) s.hints = 1;
  // As many tasks as the device holds blocks: with more, the last wave is not full, and there are more sums.
  if (arch.clusters() && traits.partials && s.tile > 0)
    s.chunks = std::max<int64_t>(1, arch.multiprocessors * s.blocks / (s.cluster * s.grid));
  return s;
}

/// Completes the schedule of statistics over a segment: a team for each run of a row.
static Schedule blocksSchedule(const KernelTraits& traits, const Arch& arch, Schedule s) {
  s.threads = 256;
  s.blocks = 1;
  s.chunks = 4096;
  if (traits.backward) s.vector = std::min<int64_t>(s.vector, kMostOfSums);
  const auto walk = [&] {
    s.tile = 0;
    s.team = s.threads;
    s.rows = 1;
  };
  if (!traits.width || traits.runPartials) {
    walk();
    return s;
  }
  const int64_t count = traits.width / s.vector;
  s.team = std::min<int64_t>(kWarp, llvm::PowerOf2Ceil(count));
  s.tile = llvm::divideCeil(count, s.team);
  // As many elements of a tensor, and as many blocks, as registers were seen to hold without spills. Idle
  // lanes take some, and from sm_120 on fewer are left.
  const bool wide = traits.dataBytes >= 4, late = arch.number >= 120;
  const int64_t ofBackward = wide && (late || count % s.team) ? 8 : 16;
  const int64_t elements = s.tile * s.vector;
  s.rows = std::clamp<int64_t>((traits.backward ? ofBackward : 32) / elements, 1, 4);
  if (traits.backward)
    s.blocks = s.tile == 1 ? 2 : 1;
  else if (s.rows * elements <= 16)
    s.blocks = 4;
  else
    s.blocks = elements <= 8 && (wide || !late) ? 3 : 2;
  while (s.blocks > 1 && whyIllegal(traits, s, arch)) --s.blocks;
  if (elements > 32 || whyIllegal(traits, s, arch)) walk();
  return s;
}

/// Completes the schedule of columns: statistics of features, or sums of them alone (streams).
static Schedule columnsSchedule(const KernelTraits& traits, const Arch& arch, Schedule s) {
  const int64_t features = traits.features ? traits.features : 1024;
  s.threads = 256;
  s.blocks = traits.columns || s.vector > 8 ? 1 : 2;  // registers for loads in flight, without spills
  if (traits.columns || traits.backward) s.vector = std::min<int64_t>(s.vector, kMostOfSums);
  // Loads in flight against registers.
  s.rows = std::clamp<int64_t>(fitting(traits.backward || traits.columns ? 16 : 32, traits) / s.vector, 1, 4);
  s.tile = 1;
  const bool divides = traits.features % s.vector == 0 || traits.features % (8 / traits.dataBytes) == 0;
  const bool congruent =
      traits.congruent && traits.streams && traits.features >= leastPeeled(s.vector) && !divides;
  // Narrower accesses of as many columns, because none would be aligned.
  while (traits.features % s.vector && !congruent) {
    s.vector /= 2;
    s.tile *= traits.columns ? 1 : 2;
  }
  s.team = std::min<int64_t>(kWarp, llvm::PowerOf2Ceil(llvm::divideCeil(features, s.vector * s.tile)));
  if (traits.columns) {  // 128 bytes of a row, so that there are many blocks of many rows
    s.team = std::min<int64_t>(s.team, std::max<int64_t>(1, kLineBytes / (s.vector * traits.dataBytes)));
    if (traits.sweepsColumnsTwice)
      s.hold = heldElements(traits, arch) / (s.rows * s.vector * traits.columnReads);
  }
  s.chunks = std::clamp<int64_t>(4 * arch.multiprocessors * columnsOf(s) / features, 1, 256);
  if (!traits.streams || !arch.clusters()) return s;
  // One wave of large blocks, which read their next rows ahead: into shared memory if a later phase reads x
  // again.
  Schedule ahead = s;
  ahead.threads = 512, ahead.blocks = 1, ahead.prefetch = {Prefetch::Async, 1};
  ahead.chunks = std::clamp<int64_t>(arch.multiprocessors * columnsOf(s) / features, 1, 256);
  if (isPlainStream(traits, arch)) {
    Schedule once = ahead;
    once.prefetch = {Prefetch::Registers, 1}, once.hints = 1;
    if (!whyIllegal(traits, once, arch)) return once;
  }
  return whyIllegal(traits, ahead, arch) ? s : ahead;
}

Schedule defaultSchedule(const KernelTraits& traits, const Arch& arch, Strategy strategy) {
  if (isMeasured(traits, arch))
    if (const auto* line = measuredLine(traits, arch, /*forFewRows=*/false)) return line->schedule;
  Schedule s;
  s.strategy = strategy;
  s.hints = traits.rereads;
  s.vector = vectorOf(traits, arch);
  s = traits.lines    ? linesSchedule(traits, arch, s)
      : traits.blocks ? blocksSchedule(traits, arch, s)
                      : columnsSchedule(traits, arch, s);
  return s.vector == 1 ? ofElements(s) : s;
}

Schedule defaultSchedule(const Problem& problem, const Arch& arch, Strategy strategy) {
  return defaultSchedule(traitsOf(problem, strategy), arch, strategy);
}

std::optional<FewRows> scheduleForFewRows(const KernelTraits& traits, const Arch& arch) {
  const auto* line = isMeasured(traits, arch) ? measuredLine(traits, arch, /*forFewRows=*/true) : nullptr;
  if (!line) return std::nullopt;
  return FewRows{line->schedule, *line->rowsMax};
}

FewRows columnsOfFewRows(const KernelTraits& traits, Schedule s) {
  const int64_t row = columnsOf(s) * traits.dataBytes * (traits.backward ? 3 : 2);
  const int64_t few = kAloneBytes / row, held = s.hold ? heldRows(s) : few;
  const int64_t rows = std::max<int64_t>(1, std::min(held, few));
  s.hold = std::min<int64_t>(s.hold, llvm::divideCeil(rows, s.rows * (s.threads / s.team)));
  return {s, rows};
}

}  // namespace normc::codegen::cuda
