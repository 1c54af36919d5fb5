// The reasons against schedules of the CUDA target.
#include "codegen/targets/cuda/Legality.h"

#include "codegen/targets/cuda/Launch.h"
#include "codegen/targets/cuda/Traits.h"
#include "codegen/targets/cuda/Variants.h"
#include "llvm/Support/MathExtras.h"

namespace normc::codegen::cuda {

/// Most elements of a column slab that a thread of 256 keeps in a kernel with a grid barrier before sm_90,
/// where ptxas has fewer registers to spare.
static constexpr int64_t kHeldOverGrid = 80;
/// Bytes of shared memory that an entry may declare for a block.
static constexpr int64_t kDeclaredBytes = 48 << 10;
/// Most rows of a column that a thread keeps in registers.
static constexpr int64_t kMostHeldRows = 128;

/// True if accesses may be wider than a divisor of the run's length.
static bool beginsAnywhere(const KernelTraits& traits, const Schedule& s) {
  return traits.peelable || (traits.congruent && s.tile > 0);
}

/// Returns an estimate of the registers of a thread, from the values that it holds and some for addresses.
int64_t registersOf(const KernelTraits& traits, const Schedule& s, bool packed) {
  int64_t held = s.tile * s.vector * s.rows;
  const int64_t inRegisters = packed && traits.dataBytes < 4 ? held / 2 : held;
  int64_t values = traits.lines ? inRegisters * traits.reads : std::max<int64_t>(held, s.vector * s.rows);
  int64_t sums = (traits.lines || traits.blocks ? traits.partials : 2) * s.tile * s.vector;
  if (s.prefetch.kind == Prefetch::Registers)
    values += held * (traits.streams ? traits.mostReads : traits.reads) * traits.dataBytes / 4;
  if (traits.columns) values += s.hold * s.rows * s.vector * traits.columnReads;
  if (s.shared) values += s.vector * traits.reads;  // an access that was in shared memory
  return values + sums + (traits.partials ? s.tile * s.vector : 0) + 32;
}

/// Returns what is left of a block's share of the shared memory of a multiprocessor beside what its entries
/// declare and what the system takes.
static int64_t roomOf(const KernelTraits& traits, const Schedule& s, const Arch& arch) {
  return arch.sharedBytes / std::max<int64_t>(s.blocks, 1) - staticBytes(traits, s) - limits::kSystemShared;
}

/// Returns why threads cannot tell each other so much.
static std::optional<std::string> whyNotTold(const KernelTraits& traits, const Schedule& s) {
  const int64_t bytes = staticBytes(traits, s);
  if (bytes <= kDeclaredBytes) return std::nullopt;
  return "threads = " + std::to_string(s.threads) + ", vector = " + std::to_string(s.vector) +
         ", rows = " + std::to_string(s.rows) + ", cluster = " + std::to_string(s.cluster) +
         ": what threads tell each other takes " + std::to_string(bytes) +
         " bytes of shared memory; an entry declares at most " + std::to_string(kDeclaredBytes);
}

/// Returns why the rest of a run cannot stay in shared memory.
static std::optional<std::string> whyNotShared(const KernelTraits& traits, const Schedule& s,
                                               const Arch& arch) {
  const std::string shared = "shared = " + std::to_string(s.shared);
  if (s.shared == 0) return std::nullopt;
  if (!traits.lines || traits.blocks || traits.columns || traits.streams || s.tile == 0)
    return shared +
           " holds what registers do not of a run, and this kernel keeps none in registers; legal: 0";
  if (traits.conditional)
    return shared + ", but whether rows of this kernel are read is known when it runs; legal: 0";
  if (traits.mixed)
    return shared + " holds elements of one width, and tensors of this kernel have several; legal: 0";
  if (s.rows != 1)
    return shared + " holds one row of a team, not rows = " + std::to_string(s.rows) +
           "; legal: rows = 1, or shared = 0";
  if (traits.partials ? s.threads != s.team * traits.groups : s.threads % (s.team * traits.groups) != 0)
    return shared + " holds all groups of a row" +
           (traits.partials ? ", and sums per feature of one row in a block" : "") +
           "; team = " + std::to_string(s.team) + " for each of " + std::to_string(traits.groups) +
           " groups in " + std::to_string(s.threads) +
           " threads; legal: threads = " + (traits.partials ? "" : "a multiple of ") +
           std::to_string(s.team * traits.groups);
  const int64_t copied = copiedBytes(s, traits.reads), room = roomOf(traits, s, arch) - copied;
  const int64_t bytes =
      sharedRunBytes(s, traits.reads, traits.dataBytes) + sharedSumBytes(s, traits.partials);
  if (bytes <= room) return std::nullopt;
  return shared + " accesses of " + std::to_string(s.threads) + " threads, " +
         std::to_string(bytes / (s.shared * s.threads)) + " bytes each for " + std::to_string(traits.reads) +
         " tensors of " + std::to_string(s.prefetch.copiesAhead() + 1) + " rows and " +
         std::to_string(traits.partials) + " sums, take " + std::to_string(bytes) + " bytes of a block; " +
         arch.name + " with blocks = " + std::to_string(std::max<int64_t>(s.blocks, 1)) + " has " +
         std::to_string(std::max<int64_t>(room, 0)) + " for each" +
         (copied ? " beside what is copied ahead" : "");
}

/// Returns why a block cannot keep so many rows of its columns, or the vectors of its lines.
static std::optional<std::string> whyNotHeld(const KernelTraits& traits, const Schedule& s,
                                             const Arch& arch) {
  const std::string hold = "hold = " + std::to_string(s.hold);
  if (s.hold == 0) return std::nullopt;
  if (traits.columns) return std::nullopt;
  if (!traits.lines)
    return hold + ", but no column of this kernel is complete in a block, and no row; legal: 0";
  if (s.hold != 1)
    return hold + "; legal for rows: 1, scale and bias stay in shared memory for the rows of a task, or 0";
  if (!traits.heldBytes || s.tile == 0 || traits.width % s.vector)
    return hold + " keeps scale and bias of rows in shared memory, and " +
           (!traits.heldBytes ? "this kernel reads none that all rows share"
            : s.tile == 0     ? "no run of this kernel stays in registers"
                              : "rows of " + std::to_string(traits.width) + " features begin anywhere") +
           "; legal: 0";
  if (traits.heldMixed && s.team == 1)
    return hold +
           " keeps vectors of several types, which team = 1 would not align; legal: 0, or a larger team";
  const int64_t bytes = sharedVectorBytes(s, traits.heldBytes), others = dynamicBytes(traits, s) - bytes,
                room = roomOf(traits, s, arch) - others;
  if (bytes <= room) return std::nullopt;
  return hold + ": " + std::to_string(traits.heldBytes) +
         " bytes of scale and bias for each feature that a block has take " + std::to_string(bytes) + "; " +
         arch.name + " with blocks = " + std::to_string(std::max<int64_t>(s.blocks, 1)) + " has " +
         std::to_string(std::max<int64_t>(room, 0)) + " for each";
}

/// Returns why runs cannot be copied ahead to shared memory.
static std::optional<std::string> whyNotCopied(const KernelTraits& traits, const Schedule& s,
                                               const Arch& arch) {
  if (!s.prefetch.copiesAhead()) return std::nullopt;
  const std::string prefetch = "prefetch = " + std::to_string(s.prefetch.knob()) + " copies to shared memory";
  if (s.prefetch.inBulk() && !arch.clusters())
    return prefetch + " in bulk, and " + arch.name + " has no bulk copies, sm_90 is the first; legal: 0 to " +
           std::to_string(kMostAhead + 1);
  if (s.prefetch.inBulk() && traits.streams)
    return prefetch + " in bulk, and a team reads a part of each row only; legal: 0 to " +
           std::to_string(kMostAhead + 1);
  if (s.prefetch.inBulk() && s.shared)
    return prefetch + " in bulk, and shared = " + std::to_string(s.shared) +
           " waits for copies of its own; legal: 0 to " + std::to_string(kMostAhead + 1);
  if (s.prefetch.inBulk() && (s.team < kWarp || traits.groups > 1))
    return prefetch + " in bulk, a piece for a team of at least a warp, which has a row alone; here team = " +
           std::to_string(s.team) + " has one of " + std::to_string(traits.groups) +
           " groups of it; legal: 0 to " + std::to_string(kMostAhead + 1);
  if (traits.mixed)
    return prefetch + " elements of one width, and tensors of this kernel have several; legal: 0 or 1";
  if (s.vector * traits.dataBytes != kCopiedBytes)
    return prefetch + " 16 bytes at a time, and vector = " + std::to_string(s.vector) +
           " makes accesses of " + std::to_string(s.vector * traits.dataBytes) +
           "; legal: vector = " + std::to_string(kCopiedBytes / traits.dataBytes) + ", or prefetch = 0 or 1";
  if (traits.width % s.vector)
    return prefetch + " from multiples of 16 bytes, and runs of " + std::to_string(traits.width) +
           " elements begin elsewhere; legal: 0 or 1";
  if (traits.streams && traits.features % s.vector)
    return prefetch + " from multiples of 16 bytes, and rows of " + std::to_string(traits.features) +
           " features begin elsewhere; legal: 0 or 1";
  if (!traits.streams && s.threads % (s.team * traits.groups))
    return prefetch + " all groups of a row, and team = " + std::to_string(s.team) + " for each of " +
           std::to_string(traits.groups) + " does not divide the " + std::to_string(s.threads) +
           " threads; legal: 0 or 1";
  const int64_t reads = traits.streams ? traits.mostReads : traits.reads;
  const int64_t bytes = copiedBytes(s, reads), blocks = std::max<int64_t>(s.blocks, 1),
                room = roomOf(traits, s, arch);
  if (bytes <= room) return std::nullopt;
  std::string product;
  for (int64_t factor : {s.prefetch.copiesAhead() + 1, s.rows, s.tile, reads, s.threads, kCopiedBytes})
    product += (product.empty() ? "" : " * ") + std::to_string(factor);
  return prefetch + ": steps * rows * tile * tensors * threads * bytes = " + product + " = " +
         std::to_string(bytes) + " of a block; " + arch.name + " with blocks = " + std::to_string(blocks) +
         " has " + std::to_string(std::max<int64_t>(room, 0)) + " for each";
}

/// Returns why a cluster of so many blocks cannot share a run or columns.
static std::optional<std::string> whyNoCluster(const KernelTraits& traits, const Schedule& s,
                                               const Arch& arch) {
  const std::string cluster = "cluster = " + std::to_string(s.cluster);
  if (s.cluster < 1 || s.cluster > limits::kCluster || !llvm::isPowerOf2_64(s.cluster))
    return cluster + "; legal: a power of two up to " + std::to_string(limits::kCluster);
  if (s.cluster == 1) return std::nullopt;
  if (!arch.clusters())
    return cluster + ", but " + arch.name + " has no clusters of blocks, sm_90 is the first; legal: 1";
  if (traits.lines == traits.columns || traits.blocks || traits.streams)
    return cluster +
           ", but only rows with statistics of their own, or columns that are complete in a block, lie over "
           "blocks; legal: 1";
  if (traits.columns) return std::nullopt;
  if (s.tile == 0) return cluster + ", but no run of this kernel stays in registers; legal: 1";
  if (s.team % kWarp)
    return "team = " + std::to_string(s.team) + " in a cluster of " + std::to_string(s.cluster) +
           " blocks; legal: whole warps of 32";
  if (s.threads % (s.team * traits.groups))
    return "team = " + std::to_string(s.team) + " for each of " + std::to_string(traits.groups) +
           " groups in a cluster of " + std::to_string(s.cluster) + " blocks does not divide the " +
           std::to_string(s.threads) + " threads of one";
  return std::nullopt;
}

/// Returns why so many blocks of a grid cannot share columns or rows.
static std::optional<std::string> whyNoGrid(const KernelTraits& traits, const Schedule& s, const Arch& arch) {
  const std::string grid = "grid = " + std::to_string(s.grid);
  if (s.grid < 1) return grid + "; legal: at least 1";
  if (s.grid == 1) return std::nullopt;
  if (traits.bySegment)
    return grid +
           " blocks that wait for each other, but a device does not hold those of all segments at once, and "
           "sums over the rows of a segment need tasks of each; legal: 1";
  const bool rows = traits.lines && !traits.columns && !traits.conditional,
             columns = traits.columns && !traits.lines && !traits.segmentColumns && traits.sweepsColumnsTwice;
  if (traits.blocks || traits.streams || !(rows || columns))
    return grid +
           ", but only rows with statistics of their own, or columns of all rows, which are read for their "
           "statistic and then again, lie over a grid; legal: 1";
  if (s.cluster > 1)
    return grid + " blocks in clusters of " + std::to_string(s.cluster) + "; legal: one of the two";
  if (rows && s.tile == 0) return grid + ", but no run of this kernel stays in registers; legal: 1";
  if (rows && (s.team % kWarp || s.threads % (s.team * traits.groups)))
    return grid + " blocks that share rows, with team = " + std::to_string(s.team) + " for each of " +
           std::to_string(traits.groups) + " groups in " + std::to_string(s.threads) +
           " threads; legal: whole warps of 32 that divide them";
  const int64_t held = s.hold * s.rows * s.vector * traits.columnReads;
  if (columns && held > kHeldOverGrid && !arch.clusters())
    return "hold = " + std::to_string(s.hold) + " keeps " + std::to_string(held) +
           " elements of a thread; beside what blocks of a grid tell each other " + arch.name +
           " has registers for " + std::to_string(kHeldOverGrid);
  if (const int64_t most = blocksTogether(s, arch); s.grid > most)
    return grid + " blocks that wait for each other; " + arch.name + " holds " + std::to_string(most) +
           " at once, " + std::to_string(std::max<int64_t>(s.blocks, 1)) + " on each of " +
           std::to_string(arch.multiprocessors) + " multiprocessors";
  return std::nullopt;
}

/// Returns why no kernel has such knobs, whatever its runs are.
static std::optional<std::string> whyOutOfRange(const KernelTraits& traits, const Schedule& s,
                                                const Arch& arch) {
  if (s.threads < kWarp || s.threads > limits::kBlockThreads || s.threads % kWarp)
    return "threads = " + std::to_string(s.threads) + "; legal: a multiple of 32 up to " +
           std::to_string(limits::kBlockThreads);
  const bool warps = s.team > kWarp ? s.team % kWarp == 0 : s.team >= 1 && llvm::isPowerOf2_64(s.team);
  if (!warps || s.threads % s.team)
    return "team = " + std::to_string(s.team) +
           "; legal: a power of two up to 32, or whole warps, that divides the " + std::to_string(s.threads) +
           " threads";
  const int64_t lanes = arch.accessBytes / traits.dataBytes;
  if (s.vector < 1 || s.vector > lanes || !llvm::isPowerOf2_64(s.vector))
    return "vector = " + std::to_string(s.vector) + "; legal: a power of two up to " + std::to_string(lanes) +
           ", the " + std::to_string(arch.accessBytes) + " bytes of one access on " + arch.name;
  if (traits.block % s.vector)
    return "vector = " + std::to_string(s.vector) + " does not divide a block of " +
           std::to_string(traits.block) + " codes, which have one scale";
  if (s.rows < 1 || s.rows > 8) return "rows = " + std::to_string(s.rows) + "; legal: 1 to 8";
  if (s.tile < 0 || s.tile > 64) return "tile = " + std::to_string(s.tile) + "; legal: 0 to 64";
  if (s.hints < 0 || s.hints > 2)
    return "hints = " + std::to_string(s.hints) + "; legal: 0, 1, or 2 for reads alone";
  if (const int64_t most = limits::kChunks / std::max<int64_t>(s.cluster, 1); s.chunks < 1 || s.chunks > most)
    return "chunks = " + std::to_string(s.chunks) + "; legal: 1 to " + std::to_string(most);
  if (s.vector == 1 && (s.rows > 1 || s.hold || s.prefetch))
    return "vector = 1 with rows = " + std::to_string(s.rows) + ", hold = " + std::to_string(s.hold) +
           " and prefetch = " + std::to_string(s.prefetch.knob()) +
           "; legal: 1, 0 and 0, since addresses of many single elements take the registers";
  // The knobs are any numbers, so these are compared without a product that may overflow.
  if (s.hold < 0 || s.hold > kMostHeldRows / s.rows)
    return "hold = " + std::to_string(s.hold) + " steps of " + std::to_string(s.rows) +
           " rows; legal: 0 to " + std::to_string(kMostHeldRows) + " rows";
  if (s.shared < 0 || s.shared > arch.sharedBytes)
    return "shared = " + std::to_string(s.shared) + "; legal: 0 to " + std::to_string(arch.sharedBytes) +
           ", the bytes of a multiprocessor of " + arch.name;
  if (s.prefetch.depth < 0 || s.prefetch.depth > kMostAhead)
    return "prefetch = " + std::to_string(s.prefetch.knob()) + "; legal: 0, 1 (to registers), 2 to " +
           std::to_string(kMostAhead + 1) + " (to shared memory, that many steps ahead and one), or " +
           std::to_string(kMostAhead + 2) + " to " + std::to_string(2 * kMostAhead + 1) +
           " (the same in bulk)";
  if (s.blocks < 0 || s.blocks > arch.blocksOf(s.threads))
    return "blocks = " + std::to_string(s.blocks) + " of " + std::to_string(s.threads) + " threads; " +
           arch.name + " holds " + std::to_string(arch.threads) + " threads and " +
           std::to_string(arch.blocks) + " blocks";
  return std::nullopt;
}

/// Returns why the tiles of a team, or of those of several blocks, are no run or column.
static std::optional<std::string> whyNoTile(const KernelTraits& traits, const Schedule& s) {
  const std::string tile = "tile = " + std::to_string(s.tile);
  if (traits.streams && s.tile < 1)
    return "tile = 0, but sums per feature stay in registers; legal: at least 1";
  if (traits.columns && s.tile != 1) return tile + ", but a thread holds one column; legal: 1";
  if (!(traits.lines || traits.blocks) || s.tile == 0) return std::nullopt;
  if (traits.width == 0) return tile + ", but the length of a run is not known; legal: 0";
  const int64_t over = s.cluster * (traits.lines ? s.grid : 1), access = s.team * over * s.vector,
                run = access * (s.tile + s.shared);
  const std::string blocks = s.cluster > 1 ? "cluster * " : over > 1 ? "grid * " : "";
  const std::string product =
      "team * " + blocks + "vector * " + (s.shared ? "(tile + shared) = " : "tile = ") + std::to_string(run);
  if (run < traits.width - (beginsAnywhere(traits, s) ? traits.width % s.vector : 0))
    return product + " elements do not hold a run of " + std::to_string(traits.width);
  if (run - access >= traits.width)
    return product + ": the last accesses would find nothing of a run of " + std::to_string(traits.width);
  if (access - s.team * s.vector >= traits.width)
    return product + ": the last of " + std::to_string(over) + " blocks would find nothing of a run of " +
           std::to_string(traits.width);
  return std::nullopt;
}

/// Returns why accesses of that many elements cannot be those of a run.
static std::optional<std::string> whyNoAccess(const KernelTraits& traits, const Schedule& s) {
  const std::string vector = "vector = " + std::to_string(s.vector);
  if (traits.grouped && !traits.width && s.vector > 1 && !traits.peelable)
    return vector + ", but groups of any number of features may begin anywhere; legal: 1";
  if (!traits.width || traits.width % s.vector == 0) return std::nullopt;
  const std::string divides = vector + " does not divide a run of " + std::to_string(traits.width);
  if (!beginsAnywhere(traits, s)) return divides;
  if (traits.width < leastPeeled(s.vector))
    return divides + ", and only runs of " + std::to_string(leastPeeled(s.vector)) + " and more are peeled";
  if (traits.lines && !traits.peelable)
    if (auto reason = whyNotCongruent(traits, s)) return divides + ", and " + *reason;
  return std::nullopt;
}

/// Returns why so large a team cannot have a run.
static std::optional<std::string> whyNoTeam(const KernelTraits& traits, const Schedule& s) {
  const std::string team = "team = " + std::to_string(s.team);
  if (traits.lines && s.tile == 0 && s.team <= kWarp)
    return team + " for runs that are walked in a loop; legal: more than a warp of 32";
  const bool alone =
      (traits.lines || traits.blocks) && (traits.runPartials || (traits.partials && s.tile == 0));
  if (alone && (s.team != s.threads || s.rows != 1))
    return team + ", rows = " + std::to_string(s.rows) +
           ": partials that go straight to memory need one run at a time; legal: team = threads, rows = 1";
  if (traits.lines && traits.groups > 1 && s.tile > 0 && traits.partials &&
      s.threads % (s.team * traits.groups))
    return team + " for each of " + std::to_string(traits.groups) + " groups does not divide the " +
           std::to_string(s.threads) + " threads";
  return std::nullopt;
}

/// Returns why reads cannot be ahead in that way.
static std::optional<std::string> whyNotAhead(const KernelTraits& traits, const Schedule& s) {
  const std::string prefetch = "prefetch = " + std::to_string(s.prefetch.knob());
  if (s.prefetch && ((!traits.lines && !traits.streams) || s.tile == 0))
    return prefetch + ", but no run of this kernel stays in registers; legal: 0";
  if (s.prefetch && traits.streams && !traits.features)
    return prefetch + " of rows of any number of features; legal: 0";
  return std::nullopt;
}

int64_t registersFor(const Schedule& s) {
  return std::min<int64_t>(kMaxRegisters, kRegisters / (s.threads * std::max<int64_t>(s.blocks, 1)));
}

/// Returns why a thread has no registers for it.
static std::optional<std::string> whyNoRegisters(const KernelTraits& traits, const Schedule& s,
                                                 const Arch& arch) {
  const int64_t registers = registersOf(traits, s, arch.clusters()), limit = registersFor(s);
  if (registers <= limit) return std::nullopt;
  return "about " + std::to_string(registers) + " registers a thread; " + std::to_string(s.threads) +
         " threads leave " + std::to_string(limit);
}

std::optional<std::string> whyIllegal(const KernelTraits& traits, const Schedule& s, const Arch& arch) {
  if (traits.f64Statistics)
    return "statistics in f64; a CUDA kernel computes them in f32, so the data is f32, bf16 or f16";
  if (auto reason = whyOutOfRange(traits, s, arch)) return reason;
  if (auto reason = whyNoCluster(traits, s, arch)) return reason;
  if (auto reason = whyNotTold(traits, s)) return reason;
  if (auto reason = whyNoGrid(traits, s, arch)) return reason;
  if (auto reason = whyNotShared(traits, s, arch)) return reason;
  if (auto reason = whyNoTile(traits, s)) return reason;
  if (auto reason = whyNoAccess(traits, s)) return reason;
  if (auto reason = whyNoTeam(traits, s)) return reason;
  if (auto reason = whyNotAhead(traits, s)) return reason;
  if (auto reason = whyNotCopied(traits, s, arch)) return reason;
  if (auto reason = whyNotHeld(traits, s, arch)) return reason;
  return whyNoRegisters(traits, s, arch);
}

}  // namespace normc::codegen::cuda
