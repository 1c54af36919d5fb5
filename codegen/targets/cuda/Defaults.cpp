// Default schedules, chosen without a measurement: the most that registers were seen to hold without spills,
// and enough blocks to fill a device.
#include <cmath>

#include "codegen/targets/cuda/Schedule.h"
#include "llvm/Support/MathExtras.h"

namespace normc::codegen::cuda {

/// Bytes of a row that a team of columns reads together; memory is fetched in halves of that.
static constexpr int64_t kSegmentBytes = 128;
/// Bytes that one block moves in the time of the launches that it saves.
static constexpr int64_t kAloneBytes = 64 << 10;
/// Returns the elements of a column slab that a thread of 256 keeps. ptxas was seen not to spill with as
/// many; before sm_90 and with accesses of 32 bytes they are fewer. Narrow elements are widened, and take
/// registers in both forms.
static int64_t heldElements(const KernelTraits& traits, const Arch& arch) {
  if (traits.dataBytes < 4) return 64;
  return arch.clusters() && arch.accessBytes <= 16 ? 96 : 80;
}

/// Returns the elements that a thread holds where `elements` were seen to fit. That was with x, and with dy
/// in a backward; a residual or a gate takes its part of the registers.
static int64_t fitting(int64_t elements, const KernelTraits& traits) {
  if (traits.turns) elements /= 4;  // mates, angles and their addresses
  return traits.backward && traits.mostReads > 2 ? elements * 2 / traits.mostReads : elements;
}

/// Finds the team and tile that hold `count` accesses of a run with the fewest idle lanes, near `target`
/// accesses a thread, in a block of at most `threads`. False if there are none.
static bool holdRun(Schedule& s, int64_t count, int64_t target, int64_t most, int64_t groups,
                    int64_t threads) {
  int64_t best = -1;
  double bestScore = 0;
  for (int64_t team = s.cluster > 1 ? kWarp : 1; team * groups <= threads;
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
    if (best < 0 || score < bestScore) best = team, bestScore = score, s.tile = tile;
  }
  if (best < 0) return false;
  s.team = best;
  int64_t span = s.team * groups;
  s.threads = span;
  while (s.threads < 128 || s.threads % 32) s.threads += span;
  return true;
}

/// Holds a run in the registers of one block, or of the smallest cluster. With clusters threads hold less
/// than they could, which leaves room for the next run and for a second block on the multiprocessor, which
/// computes while the first waits for memory. Longer rows get larger blocks, then full registers.
static bool holdRun(Schedule& s, const KernelTraits& traits, const Arch& arch) {
  // Bytes in flight hide latency. Sums per feature cost two registers an element.
  const int64_t elements = fitting(traits.partials ? 16 : 32, traits),
                most = fitting(traits.partials ? 32 : 64, traits);
  // No spills were seen with these limits: of a block, of a cluster with its larger addresses, of blocks of
  // 512.
  const int64_t some = fitting(traits.partials ? 24 : traits.dataBytes == 4 ? 32 : 48, traits), ofMany = 40;
  const int64_t ofLarge = fitting(traits.partials || traits.dataBytes == 4 ? 16 : 24, traits);
  const int64_t count = traits.width / s.vector;
  struct Limit {
    int64_t threads, elements, clusters;
  };
  llvm::SmallVector<Limit> limits{{traits.partials ? 256 : 512, most, 1}};
  if (arch.clusters()) limits = {{256, some, kMaxCluster}, {512, ofLarge, kMaxCluster}};
  // Longer rows use shared memory (holdShared). If that is illegal, larger blocks, some of which spill.
  if (traits.conditional) limits.push_back({1024, most, arch.clusters() ? kMaxCluster : 1});
  for (const Limit& limit : limits)
    for (s.cluster = 1; s.cluster <= limit.clusters; s.cluster *= 2) {
      const int64_t held = s.cluster > 2 ? std::min(limit.elements, ofMany) : limit.elements;
      if (holdRun(s, llvm::divideCeil(count, s.cluster), std::max<int64_t>(1, elements / s.vector),
                  std::max<int64_t>(1, held / s.vector), traits.groups, limit.threads) &&
          !whyIllegal(traits, s, arch))
        return true;
    }
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
  for (s.cluster = 1; s.cluster <= (arch.clusters() ? kMaxCluster : 1); s.cluster *= 2)
    for (const Limit& limit : limits) {
      s.team = limit.threads / traits.groups / kWarp * kWarp;
      if (s.team == 0 || limit.elements < s.vector) continue;
      s.threads = s.team * traits.groups;
      s.tile = limit.elements / s.vector;
      s.shared = llvm::divideCeil(traits.width / s.vector, s.team * s.cluster) - s.tile;
      if (s.shared > 0 && !whyIllegal(traits, s, least)) return true;
    }
  s.shared = 0, s.cluster = s.grid = 1;
  return false;
}

Schedule defaultSchedule(const KernelTraits& traits, const Arch& arch, Strategy strategy) {
  Schedule s;
  s.strategy = strategy;
  s.hints = traits.rereads;
  s.vector = arch.accessBytes / traits.dataBytes;
  const int64_t whole = s.vector;
  while (traits.width % s.vector || traits.block % s.vector) s.vector /= 2;
  const bool anywhere = traits.peelable || (traits.congruent && traits.lines);
  if (anywhere && s.vector * traits.dataBytes < 8 && traits.width >= leastPeeled(whole)) s.vector = whole;
  if (traits.grouped && !traits.width && !traits.peelable) s.vector = 1;
  int64_t blocks = 2 * arch.multiprocessors;
  if (traits.lines) {
    if (!traits.width || traits.runPartials) {
      s.tile = 0, s.team = s.threads = traits.width && traits.width < 1024 ? 128 : 256;
    } else if (!holdRun(s, traits, arch)) {
      const int64_t wide = s.vector;
      while (!traits.peelable && traits.width % s.vector)
        s.vector /= 2;  // the accesses of longer rows with sums must be aligned
      const bool held = (s.vector < wide && holdRun(s, traits, arch)) || holdShared(s, traits, arch);
      if (!held) s.tile = 0, s.team = s.threads = 512, s.cluster = 1;  // too long: every sweep reads it
    }
    s.chunks = std::max<int64_t>(1, (s.shared ? arch.multiprocessors : blocks) / (s.cluster * s.grid));
    bool small = s.tile > 0 && s.tile * s.vector * traits.dataBytes < 64 && !traits.partials &&
                 !traits.runPartials && !traits.turns;
    if (small) s.rows = std::clamp<int64_t>(64 / (s.tile * s.vector * traits.dataBytes), 1, 4);
    while (s.rows > 1 && whyIllegal(traits, s, arch)) s.rows /= 2;
    // The next run takes registers, too. Larger blocks have none to spare, nor have long runs of narrow
    // elements, which are widened.
    const bool room =
        s.threads * kMaxRegisters <= arch.registers && (traits.dataBytes >= 4 || s.tile * s.vector <= 24);
    if (s.tile > 0 && s.shared == 0 && traits.partials > 0 && room) s.prefetch = {Prefetch::Registers, 1};
    if (whyIllegal(traits, s, arch)) s.prefetch = {};
    // The registers that such a kernel was seen to take. With more blocks some kernels spill.
    s.blocks = std::max<int64_t>(
        1, arch.registers /
               (s.threads * (s.tile == 0 || traits.backward || traits.streams ? kMaxRegisters : 128)));
    if (whyIllegal(traits, s, arch)) s.blocks = 1;
    return s;
  }
  int64_t features = traits.features ? traits.features : 1024;
  s.threads = 256;
  s.blocks = traits.columns || traits.blocks || s.vector > 8
                 ? 1
                 : 2;  // registers for loads in flight, without spills
  if (traits.columns || traits.backward)
    s.vector = std::min<int64_t>(s.vector, 8);  // sums of each feature fill registers
  s.rows = std::clamp<int64_t>(fitting(traits.backward || traits.columns ? 16 : 32, traits) / s.vector, 1,
                               4);  // loads in flight against registers
  s.tile = 1;
  if (traits.blocks) {
    s.chunks = 4096;
    if (!traits.width || traits.runPartials) {
      s.tile = 0;
      s.rows = 1;
      s.team = s.threads;
      return s;
    }
    int64_t count = traits.width / s.vector;
    s.team = std::min<int64_t>(32, llvm::PowerOf2Ceil(count));
    s.tile = llvm::divideCeil(count, s.team);
    s.blocks = 1;
    s.rows = std::clamp<int64_t>(16 / s.vector, 1, 4);
    if (s.tile * s.vector > 32 || whyIllegal(traits, s, arch)) s.tile = 0, s.team = s.threads, s.rows = 1;
    return s;
  }
  const bool divides = traits.features % s.vector == 0 || traits.features % (8 / traits.dataBytes) == 0;
  const bool congruent =
      traits.congruent && traits.streams && traits.features >= leastPeeled(s.vector) && !divides;
  while (traits.features % s.vector &&
         !congruent) {  // narrower accesses of as many columns, because none would be aligned
    s.vector /= 2;
    s.tile *= traits.columns ? 1 : 2;
  }
  int64_t count = llvm::divideCeil(features, s.vector * s.tile);
  s.team = std::min<int64_t>(32, llvm::PowerOf2Ceil(count));
  if (traits.columns) {  // 128 bytes of a row, so that there are many blocks of many rows
    s.team = std::min<int64_t>(s.team, std::max<int64_t>(1, kSegmentBytes / (s.vector * traits.dataBytes)));
    if (traits.sweepsColumnsTwice)
      s.hold = heldElements(traits, arch) / (s.rows * s.vector * traits.columnReads);
  }
  s.chunks = std::clamp<int64_t>(2 * blocks * columnsOf(s) / features, 1, 256);
  return s;
}

Schedule defaultSchedule(const Problem& problem, const Arch& arch, Strategy strategy) {
  return defaultSchedule(traitsOf(problem, strategy), arch, strategy);
}

int64_t rowsOfResident(const KernelTraits& traits, const Schedule& s) {
  const int64_t row = columnsOf(s) * traits.dataBytes * (traits.backward ? 3 : 2);
  return std::max<int64_t>(1, std::min(heldRows(s), kAloneBytes / row));
}

}  // namespace normc::codegen::cuda
