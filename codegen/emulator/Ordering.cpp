// The order of accesses: races, uninitialised shared memory, and the clocks that barriers, fences and atomics
// pass on.
#include <algorithm>
#include <bit>

#include "codegen/emulator/Hooks.h"
#include "codegen/emulator/Scheduler.h"

namespace normc::emulator {

//===-- The clock of a thread -----------------------------------------------------------===//

/// True if the number is that of what an mbarrier counts: copies and asynchronous stores. Its count is a
/// phase, which barriers of the block do not raise.
static bool isOfMbarrier(const Thread& t, uint32_t number) {
  return (number - t.run->firstThread) % t.run->stride >= 2 * t.block->threads.size();
}

/// True if the clock, which may be null, has the access.
static bool has(const SharedClock& clock, const Thread& t, uint32_t number, uint32_t count) {
  if (!clock) return false;
  if (clock->ofThread(number) >= count) return true;
  return !isOfMbarrier(t, number) && clock->ofBlock(t.run->orderOf(number)) >= count;
}

/// Returns the count up to which reads of the block's threads are known.
static uint32_t readsOfBlock(const Thread& t, uint32_t order) {
  const uint32_t foreign = t.view.foreign ? t.view.foreign->ofBlock(order) : 0;
  return std::max(foreign, t.view.read ? t.view.read->ofBlock(order) : 0);
}

bool known(const Thread& t, uint32_t number, uint32_t count) {
  if (number == t.number) return true;
  const View& view = t.view;
  const uint32_t index = number - t.block->first;
  if (index < t.block->threads.size()) {
    if (count <= view.block) return true;
    if (index / 32 == t.index / 32 && (count <= view.warp || count <= view.lanes[index % 32])) return true;
  }
  return has(t.view.foreign, t, number, count);  // by fences and atomics, clusters or mbarriers
}

/// Flags of a cell that stands for reads of more than one thread.
static constexpr uint32_t kOthers = Cell::kSeveral | Cell::kCluster | Cell::kManyBlocks;

/// True if the last reader of the cell is a thread of t's warp.
static bool isOfWarp(const Thread& t, const Cell& cell) {
  return t.run->isOf(*t.block, cell.reader) && (cell.reader - t.block->first) / 32 == t.index / 32;
}

/// True if the reads that the cell stands for happened before the present operation of t.
static bool knowsReads(const Thread& t, const Zone& zone, uint64_t offset, const Cell& cell) {
  uint32_t count = cell.read & Cell::kCount;
  if (cell.read & Cell::kManyBlocks) {
    for (int by = 0; by <= zone.cells.refinements(); ++by) {
      auto readers = zone.readers.find(zone.cells.keyOf(offset, by));
      if (readers == zone.readers.end()) continue;
      for (auto [order, last] : readers->second.byBlock())
        if (last > std::max(order == t.block->order ? t.view.block : 0, readsOfBlock(t, order))) return false;
      return true;
    }
    return t.view.foreign && t.view.foreign->blocks() + 1 >= t.run->blockAt.size();
  }
  if (cell.read & Cell::kCluster) {
    const uint32_t size = uint32_t(t.block->cluster->blocks.size());
    const uint32_t first = t.run->orderOf(cell.reader) / size * size;
    for (uint32_t order = first; order < first + size; ++order) {
      if (order == t.block->order && count <= t.view.block) continue;
      if (readsOfBlock(t, order) < count) return false;
    }
    return true;
  }
  if (cell.read & Cell::kSeveral) {
    if (t.run->isOf(*t.block, cell.reader) && count <= t.view.block) return true;
    if ((cell.read & Cell::kOneWarp) && isOfWarp(t, cell) && count <= t.view.warp) return true;
    return readsOfBlock(t, t.run->orderOf(cell.reader)) >= count;
  }
  return known(t, cell.reader, count) || has(t.view.read, t, cell.reader, count);
}

void note(Clock& clock, const Thread& t, const View& view) {
  clock.raiseBlock(t.block->order, view.block);
  uint32_t firstLane = t.index & ~31u;
  for (uint32_t lane = 0; lane < 32 && firstLane + lane < t.block->threads.size(); ++lane)
    if (uint32_t count = std::max(view.warp, view.lanes[lane]); count > view.block)
      clock.raiseThread(t.block->threads[firstLane + lane].number, count);
  clock.raiseThread(t.number, view.now);
}

SharedClock knowledge(const Thread& t, const View& view) {
  auto clock = view.foreign ? std::make_shared<Clock>(*view.foreign) : std::make_shared<Clock>();
  note(*clock, t, view);
  return clock;
}

/// Records which blocks have read a cell that stands, or will stand, for reads of several clusters. The
/// readers of a cell that was part of a larger one are those of that one.
static void noteReaders(const Thread& t, Zone& zone, uint64_t offset, const Cell& cell, uint32_t now) {
  const bool first = !(cell.read & Cell::kManyBlocks);
  const auto [at, isNew] = zone.readers.try_emplace(zone.cells.keyOf(offset));
  Clock& readers = at->second;
  for (int by = 1; isNew && !first && by <= zone.cells.refinements(); ++by)
    if (const auto larger = zone.readers.find(zone.cells.keyOf(offset, by)); larger != zone.readers.end()) {
      readers = larger->second;
      break;
    }
  if (first) {
    readers = Clock();
    const uint32_t order = t.run->orderOf(cell.reader), size = uint32_t(t.block->cluster->blocks.size());
    const uint32_t begin = cell.read & Cell::kCluster ? order / size * size : order;
    for (uint32_t block = begin; block < (cell.read & Cell::kCluster ? begin + size : begin + 1); ++block)
      readers.raiseBlock(block, cell.read & Cell::kCount);
  }
  readers.raiseBlock(t.block->order, now);
}

/// Records unordered reads: from now on the cell stands for all of them.
static uint32_t ofSeveral(const Thread& t, Zone& zone, uint64_t offset, const Cell& cell, uint32_t now) {
  const auto cluster = [&](uint32_t order) { return order / uint32_t(t.block->cluster->blocks.size()); };
  const uint32_t several = t.run->isOf(*t.block, cell.reader) ? Cell::kSeveral
                           : cluster(t.run->orderOf(cell.reader)) == cluster(t.block->order)
                               ? Cell::kCluster
                               : Cell::kManyBlocks;
  if (((cell.read & Cell::kManyBlocks) || several == Cell::kManyBlocks) && !zone.readOnly)
    noteReaders(t, zone, offset, cell, now & Cell::kCount);
  const uint32_t both = now & cell.read & Cell::kAtomic;
  const bool wasOneWarp = !(cell.read & kOthers) || (cell.read & Cell::kOneWarp);
  const uint32_t oneWarp = wasOneWarp && isOfWarp(t, cell) ? Cell::kOneWarp : 0;
  return std::max(now & Cell::kCount, cell.read & Cell::kCount) | both | (cell.read & kOthers) | several |
         oneWarp;
}

//===-- Races -------------------------------------------------------------------------===//

namespace {
/// Checks one access against the earlier accesses that the cells record.
struct AccessCheck {
  Thread& t;
  Zone& zone;
  uint64_t offset, bytes;
  uint32_t site;
  uint8_t flags;

  [[noreturn]] void report(Fault fault, const std::string& rest, std::string earlier = {}) {
    std::string verb = flags & Site::Write ? "writes " : "reads ";
    t.run->scheduler->fail(
        t, fault, verb + std::to_string(bytes) + " bytes at " + describe(t, zone.base + offset) + rest, site,
        std::move(earlier));
  }
  [[noreturn]] void race(const char* didWhat, uint32_t number, uint32_t otherSite) {
    report(Fault::Race, std::string(", which another thread has ") + didWhat + "; nothing orders the two",
           nameOfThread(*t.run, number) + " at " + t.run->sites[otherSite].text);
  }
};
}  // namespace

/// Tests if an access happened before the last barrier of the block, which is true for nearly all accesses of
/// t's block. It is inline because every cell is tested.
struct Behind {
  explicit Behind(const Thread& t)
      : first(t.block->first), threads(uint32_t(t.block->threads.size())), count(t.view.block) {}
  bool operator()(uint32_t number, uint32_t at) const {
    return number - first < threads && (at & Cell::kCount) <= count;
  }
  uint32_t first, threads, count;
};

void order(Thread& t, Zone& zone, uint64_t offset, uint64_t bytes, uint32_t site, uint8_t flags,
           Writer writer) {
  AccessCheck check{t, zone, offset, bytes, site, flags};
  const Behind behind(t);
  // Older accesses are from earlier launches, or from a block that had the same memory before.
  const uint32_t first = zone.block ? t.run->firstResident : t.run->firstThread;
  const uint32_t me = t.number, strong = flags & Site::Strong ? Cell::kAtomic : 0;
  const uint32_t now = (t.view.now & Cell::kCount) | strong;
  const auto comesBefore = [&](const Cell& cell, uint64_t here) {  // for the reads that the cell stands for
    if (cell.reader == me && !(cell.read & kOthers)) return true;
    if (!(cell.read & (Cell::kCluster | Cell::kManyBlocks)) && behind(cell.reader, cell.read)) return true;
    return knowsReads(t, zone, here, cell);
  };
  Cell* cell = zone.cells.at(offset, bytes, zone.bytes);
  Cell* end = cell + std::max<uint64_t>(1, bytes >> zone.cells.shift());
  for (uint64_t here = offset; cell != end; ++cell, here += zone.cells.granule()) {
    const bool written = cell->writer >= first;
    if (written && cell->writer != me && !behind(cell->writer, cell->written) &&
        !(strong && (cell->written & Cell::kAtomic)) &&
        !known(t, cell->writer, cell->written & Cell::kCount) &&
        !(isOfMbarrier(t, cell->writer) && has(t.view.read, t, cell->writer, cell->written & Cell::kCount)))
      check.race("written", cell->writer, cell->writeSite);
    if (flags & Site::Read) {
      if (!written && zone.block)
        check.report(Fault::Uninitialised, ", which no thread of the block has written");
      if (written && (flags & Site::NonCoherent))
        check.report(Fault::Race, " through the non-coherent cache, but this launch has written them",
                     nameOfThread(*t.run, cell->writer) + " at " + t.run->sites[cell->writeSite].text);
    }
    if (flags & Site::Write) {
      if (cell->reader >= first) {
        if (t.run->sites[cell->readSite].flags & Site::NonCoherent)
          check.report(Fault::Race, ", which this launch reads through the non-coherent cache",
                       nameOfThread(*t.run, cell->reader) + " at " + t.run->sites[cell->readSite].text);
        if (!(strong && (cell->read & Cell::kAtomic)) && !comesBefore(*cell, here))
          check.race("read", cell->reader, cell->readSite);
      }
      *cell = {writer.number ? writer.number : me, writer.number ? writer.count : now, site, 0, 0, 0};
      continue;
    }
    cell->read =
        cell->reader < first || comesBefore(*cell, here) ? now : ofSeveral(t, zone, here, *cell, now);
    // A read through the non-coherent cache may be of no write of this launch, whatever reads later.
    const bool stays = cell->reader >= first && (t.run->sites[cell->readSite].flags & Site::NonCoherent);
    cell->reader = me;
    if (!stays) cell->readSite = site;
  }
}

void adopt(Thread& t, std::byte* p, uint64_t bytes, uint32_t from) {
  Zone* zone = nullptr;
  for (Zone& candidate : t.block->zones)
    if (candidate.holds(p, bytes)) zone = &candidate;
  if (!zone || zone->cells.empty()) return;
  Cell* cell = zone->cells.at(p - zone->base, bytes, zone->bytes);
  for (Cell* end = cell + std::max<uint64_t>(1, bytes / zone->cells.granule()); cell != end; ++cell)
    if (cell->writer == from) {
      cell->writer = t.number;
      cell->written = t.view.now & Cell::kCount;
    }
}

//===-- Barriers ------------------------------------------------------------------------===//

/// Makes the fence of one of these threads count for all: a fence before a barrier holds for every thread
/// that passes the barrier.
template <typename Threads>
static void mergeFences(const Threads& threads, bool wholeBlock) {
  SharedClock all;
  uint32_t least = UINT32_MAX;
  for (Thread* t : threads) least = std::min(least, t->hasFenced ? t->fenced.now : 0);
  auto own = std::make_shared<Clock>();
  for (Thread* t : threads) {
    if (!t->hasFenced) continue;
    all = joined(all, t->fenced.foreign);
    own->raiseBlock(t->block->order, std::max(t->fenced.block, wholeBlock ? least : 0));
    if (!wholeBlock || t->fenced.now > least) own->raiseThread(t->number, t->fenced.now);
  }
  if (own->blocks() == 0) return;
  all = joined(all, own);
  for (Thread* t : threads) {
    if (!t->hasFenced) t->fenced = View{.now = 0};
    t->fenced.foreign = all;
    t->hasFenced = true;
  }
}

template <typename Threads>
static uint32_t mergeForeign(const Threads& threads) {
  uint32_t last = 0;
  SharedClock foreign, observed;
  for (Thread* t : threads) {
    last = std::max(last, t->view.now);
    if (t->view.foreign) foreign = joined(foreign, t->view.foreign);
    if (t->observed) observed = joined(observed, t->observed);
  }
  if (foreign || observed)
    for (Thread* t : threads) {
      t->view.foreign = foreign;
      t->observed = observed;
    }
  return last;
}

void mergeBlock(Block& block) {
  if (!block.run->checksRaces()) return;
  std::vector<Thread*> threads;
  threads.reserve(block.threads.size());
  for (Thread& t : block.threads) threads.push_back(&t);
  uint32_t last = mergeForeign(threads);
  for (Thread* t : threads) {
    t->view.block = last;
    t->view.now = last + 1;
  }
  if (block.fenced) mergeFences(threads, /*wholeBlock=*/true);
  block.fenced = false;
}

void mergeWarp(Block& block, uint32_t warp, uint32_t mask) {
  if (!block.run->checksRaces()) return;
  Thread* lanes[32];
  uint32_t count = 0;
  for (uint32_t rest = mask; rest; rest &= rest - 1)
    lanes[count++] = &block.threads[warp * 32 + std::countr_zero(rest)];
  std::span<Thread*> threads(lanes, count);
  uint32_t last = mergeForeign(threads);
  if (mask == block.warps[warp].members) {
    for (Thread* t : threads) {
      t->view.warp = last;
      t->view.now = last + 1;
    }
    if (count == block.threads.size())  // a block of one warp
      for (Thread* t : threads) t->view.block = last;
  } else {
    std::array<uint32_t, 32> all{};
    uint32_t whole = 0;
    for (Thread* t : threads) {
      for (int lane = 0; lane < 32; ++lane) all[lane] = std::max(all[lane], t->view.lanes[lane]);
      all[t->lane] = t->view.now;
      whole = std::max(whole, t->view.warp);
    }
    for (Thread* t : threads) {
      t->view.lanes = all;
      t->view.warp = whole;
      ++t->view.now;
    }
  }
  if (block.fenced) mergeFences(threads, /*wholeBlock=*/false);
}

void mergeThreads(std::span<Thread* const> threads) {
  if (threads.empty() || !threads[0]->run->checksRaces()) return;
  SharedClock all;
  for (Thread* t : threads) all = joined(all, knowledge(*t, t->view));
  for (Thread* t : threads) {
    t->view.foreign = all;
    ++t->view.now;
  }
}

//===-- Fences and strong accesses --------------------------------------------------------===//

/// True if an access of the scope orders its thread and the other one.
static bool reaches(const Thread& t, uint32_t other, Scope scope) {
  const uint32_t order = t.run->orderOf(other), size = uint32_t(t.block->cluster->blocks.size());
  if (scope == Scope::Device || order == t.block->order) return true;
  return scope == Scope::Cluster && order / size == t.block->order / size;
}

/// Gives strong reads the clocks of fences before strong writes of the same address.
static void handOn(Thread& t, std::byte* p, uint32_t index, uint8_t flags) {
  auto& released = t.run->released;
  auto found = released.find(p);
  const Scope own = t.run->sites[index].scope;
  if ((flags & Site::Read) && found != released.end()) {
    const Scope scope = std::min(own, found->second.scope);
    if (!reaches(t, found->second.thread, scope))
      t.run->scheduler->fail(t, Fault::Race,
                             "reads " + describe(t, p) + ", which another thread has released; a scope of " +
                                 (scope == Scope::Block ? ".cta orders the threads of a block"
                                                        : ".cluster orders the blocks of a cluster") +
                                 " alone",
                             index, nameOfThread(*t.run, found->second.thread));
    SharedClock& to = flags & Site::Acquire ? t.view.foreign : t.observed;
    to = joined(to, found->second.clock);
  }
  if (!(flags & Site::Write)) return;
  const View* source = flags & Site::Release ? &t.view : t.hasFenced ? &t.fenced : nullptr;
  SharedClock mine = source ? knowledge(t, *source) : nullptr;
  if (flags & Site::Release) ++t.view.now;
  if (flags & Site::Read) {  // extends the chain of read-modify-writes
    if (!mine) return;
    const bool follows = found != released.end();
    released[p] = {follows ? joined(found->second.clock, mine) : mine, t.number,
                   follows ? std::min(own, found->second.scope) : own};
  } else if (mine) {
    released[p] = {mine, t.number, own};
  } else if (found != released.end()) {
    released.erase(found);
  }
}

static void strongAccess(Thread& t, std::byte* p, uint64_t bytes, uint32_t site, uint8_t flags) {
  // A thread that reads what others write may be in a waiting loop.
  if (flags & Site::Read) {
    t.site = site;
    lookAhead(t, p, bytes);
    t.run->scheduler->yield(t, site);
  }
  access(t, p, bytes, site, flags);
  if ((flags & Site::Read) && (flags & Site::Write)) ++t.run->report.atomics;
  if (t.run->checksRaces()) handOn(t, p, site, flags);
}

static void emuStrong(Thread* t, std::byte* p, uint32_t index) {
  const Site& site = t->run->sites[index];
  strongAccess(*t, p, site.bytes, index, site.flags);
}

static void emuFence(Thread* t) {
  if (!t->run->checksRaces()) return;
  t->view.foreign = joined(t->view.foreign, t->observed);
  t->observed.reset();
  t->fenced = t->view;
  t->hasFenced = true;
  t->block->fenced = true;
  ++t->view.now;
}

static void emuYield(Thread* t, uint32_t site) {
  step(*t, site);
  t->run->scheduler->yield(*t, site);
}

std::span<const Hook> strongHooks() {
  static const Hook hooks[] = {hook("emu.strong", emuStrong), hook("emu.fence", emuFence),
                               hook("emu.yield", emuYield)};
  return hooks;
}

}  // namespace normc::emulator
