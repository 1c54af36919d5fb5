// Barriers in shared memory that count arrivals and bytes, phase after phase.
#include <algorithm>

#include "codegen/emulator/Hooks.h"
#include "codegen/emulator/Scheduler.h"

namespace normc::emulator {

static constexpr uint8_t kChange = Site::Strong | Site::Read | Site::Write;
static constexpr uint8_t kLook = Site::Strong | Site::Read;

static Mbarrier* find(const Thread& t, const std::byte* p) {
  Block* block = blockHolding(t, p);
  if (!block) return nullptr;
  for (auto& mbarrier : block->mbarriers)
    if (mbarrier->address == p) return mbarrier.get();
  return nullptr;
}

static void checkInitialised(Thread& t, const Mbarrier& m, const std::byte* p, uint32_t site) {
  if (!t.run->checksRaces() || known(t, m.initialiser, m.initialised)) return;
  t.run->scheduler->fail(t, Fault::Race,
                         "uses the mbarrier at " + describe(t, p) +
                             " that another thread has initialised; nothing orders the two",
                         site, nameOfThread(*t.run, m.initialiser));
}

static Mbarrier& at(Thread& t, std::byte* p, uint32_t site, uint8_t flags) {
  access(t, p, 8, site, flags);
  Mbarrier* m = find(t, p);
  if (!m)
    t.run->scheduler->fail(t, Fault::Misuse, "no mbarrier has been initialised at " + describe(t, p), site);
  checkInitialised(t, *m, p, site);
  return *m;
}

/// Returns the clock of those that have sent stores in this phase. A block is one entry if every thread of it
/// has sent, or has shared a warp with a sender.
static SharedClock ofSenders(const Run& run, const Mbarrier& m) {
  auto all = std::make_shared<Clock>();
  for (const auto& [order, count] : m.sending.byBlock())
    for (const auto& block : run.blocks) {
      if (block->order != order) continue;
      uint32_t least = UINT32_MAX;
      for (const Thread& t : block->threads)
        least = std::min(least, std::max(count, m.sending.ofThread(t.number)));
      all->raiseBlock(order, least);
      if (least == count)
        for (const Thread& t : block->threads) all->raiseThread(t.number, m.sending.ofThread(t.number));
      for (const auto& own : block->mbarriers) all->raiseThread(own->copier, m.sending.ofThread(own->copier));
    }
  return all;
}

/// Ends the phase if all arrivals and bytes are complete.
static void settle(Run& run, Mbarrier& m) {
  if (m.pending || m.bytes) return;
  if (m.sending.blocks()) {
    m.sent = joined(m.sent, ofSenders(run, m));
    m.sending = Clock();
  }
  ++m.phase;
  m.pending = m.expected;
  m.passed = joined(m.passed, m.arriving);
  m.arriving.reset();
  run.scheduler->wakeAll(m.waiting);
}

static void arrive(Thread& t, Mbarrier& m, uint32_t count, uint32_t site) {
  if (count > m.pending)
    t.run->scheduler->fail(t, Fault::Misuse,
                           "arrives at an mbarrier at which all " + std::to_string(m.expected) +
                               " expected arrivals of this phase have been",
                           site);
  if (t.run->checksRaces()) {
    m.arriving = joined(m.arriving, knowledge(t, t.view));
    ++t.view.now;
  }
  m.pending -= count;
  settle(*t.run, m);
}

void arriveAt(Thread& t, std::byte* p, uint32_t count, uint32_t site) {
  Mbarrier& m = at(t, p, site, kChange);
  if (count) arrive(t, m, count, site);
}

static void emuInit(Thread* t, std::byte* p, uint32_t count, uint32_t site) {
  access(*t, p, 8, site, Site::Write);
  auto fail = [&](const std::string& what) { t->run->scheduler->fail(*t, Fault::Misuse, what, site); };
  if (count == 0 || count >= 1u << 20)
    fail("initialises an mbarrier for " + std::to_string(count) + " arrivals");
  if (find(*t, p)) fail("initialises the mbarrier at " + describe(*t, p) + " again without invalidating it");
  auto m = std::make_unique<Mbarrier>();
  Block* block = blockHolding(*t, p);
  if (!block) fail("initialises an mbarrier at " + describe(*t, p) + ", which is not in shared memory");
  auto threads = uint32_t(block->threads.size());
  m->initialiser = t->number;
  m->initialised = t->view.now;
  m->address = p;
  m->expected = m->pending = count;
  m->copier =
      block->threads[0].number + 2 * threads + uint32_t(std::min<size_t>(block->mbarriers.size(), 63));
  block->mbarriers.push_back(std::move(m));
}

static void emuInvalidate(Thread* t, std::byte* p, uint32_t site) {
  Mbarrier& m = at(*t, p, site, kChange);
  auto& all = blockHolding(*t, p)->mbarriers;
  std::erase_if(all, [&](const auto& one) { return one.get() == &m; });
}

/// `expected`: bytes to expect in this phase in addition. Returns the state, which is the phase's number.
static uint64_t emuArrive(Thread* t, std::byte* p, uint32_t count, uint32_t expected, bool drop,
                          uint32_t site) {
  Mbarrier& m = at(*t, p, site, kChange);
  uint64_t phase = m.phase;
  m.bytes += expected;
  if (drop) m.expected -= std::min(count, m.expected);
  arrive(*t, m, count, site);
  return phase;
}

/// `bytes`: negative for bytes that have arrived.
static void emuExpect(Thread* t, std::byte* p, int64_t bytes, uint32_t site) {
  Mbarrier& m = at(*t, p, site, kChange);
  m.bytes += bytes;
  settle(*t->run, m);
}

/// `state`: the number of a phase, or its parity. With `blocks` it waits for the end of the phase; a device
/// may return earlier.
static bool emuTest(Thread* t, std::byte* p, uint64_t state, bool parity, bool blocks, uint32_t site) {
  Mbarrier& m = at(*t, p, site, kLook);
  auto passed = [&] { return parity ? (m.phase & 1) != (state & 1) : m.phase > state; };
  if (!blocks && !passed()) t->run->scheduler->yield(*t, site);
  while (blocks && !passed()) {
    step(*t, site);
    t->wait = Wait::Mbarrier;
    t->mbarrier = &m;
    t->site = site;
    m.waiting.push_back(t);
    t->run->scheduler->wait(*t);
  }
  bool done = passed();
  if (!done) return false;
  t->view.foreign = joined(t->view.foreign, m.passed);
  if (m.sent) {
    t->view.read = joined(t->view.read, m.sent);
    t->view.now = std::max(t->view.now, m.latest + 1);
  }
  return true;
}

//===-- Bulk copies -------------------------------------------------------------------------===//

static void bulkTo(Thread& t, std::byte* to, std::byte* mbarrier, const std::byte* from, uint32_t bytes,
                   uint32_t toSite) {
  Mbarrier* m = find(t, mbarrier);
  if (!m)
    t.run->scheduler->fail(t, Fault::Misuse, "no mbarrier has been initialised at " + describe(t, mbarrier),
                           toSite);
  auto count = uint32_t(m->phase) + 1;
  access(t, to, bytes, toSite, Site::Write | Site::Copied, {m->copier, count});
  std::memcpy(to, from, bytes);
  if (t.run->checksRaces()) {
    auto copied = std::make_shared<Clock>();
    copied->raiseThread(m->copier, count);
    m->arriving = joined(m->arriving, copied);
  }
  m->bytes -= bytes;
  settle(*t.run, *m);
}

/// Bulk copies have whole pieces of 16 bytes.
static void requirePieces(Thread& t, uint32_t bytes, uint32_t site) {
  constexpr uint32_t kPiece = 16;
  if (bytes % kPiece)
    t.run->scheduler->fail(t, Fault::Misaligned,
                           "copies " + std::to_string(bytes) + " bytes; a bulk copy needs a multiple of " +
                               std::to_string(kPiece),
                           site);
}

/// `blocks`: a mask of the ranks in the cluster that receive the copy; 0: only the block of `to`.
static void emuBulk(Thread* t, std::byte* to, std::byte* mbarrier, std::byte* from, uint32_t bytes,
                    uint32_t blocks, uint32_t toSite, uint32_t fromSite) {
  requirePieces(*t, bytes, toSite);
  if (bytes == 0) return;
  access(*t, from, bytes, fromSite, Site::Read | Site::Copied);
  Block* target = blockHolding(*t, to);
  if (!blocks || !target) return bulkTo(*t, to, mbarrier, from, bytes, toSite);
  const Cluster& cluster = *t->block->cluster;
  for (Block* block : cluster.blocks)
    if (blocks >> block->rank & 1)
      bulkTo(*t, block->arena + (to - target->arena), block->arena + (mbarrier - t->block->arena), from,
             bytes, toSite);
}

//===-- Asynchronous stores -----------------------------------------------------------------===//

/// Stores the low `bytes` bytes of `value`; the mbarrier, of the same block, counts them.
static void emuStoreAsync(Thread* t, std::byte* to, std::byte* mbarrier, uint64_t value, uint32_t bytes,
                          uint32_t site) {
  auto fail = [&](const std::string& what) { t->run->scheduler->fail(*t, Fault::Misuse, what, site); };
  Mbarrier* m = find(*t, mbarrier);
  if (!m) fail("no mbarrier has been initialised at " + describe(*t, mbarrier));
  if (blockHolding(*t, to) != blockHolding(*t, mbarrier))
    fail("stores to " + describe(*t, to) + ", and the mbarrier is of another block");
  checkInitialised(*t, *m, mbarrier, site);
  if (t->run->checksRaces()) {
    note(m->sending, *t, t->view);
    if (t->view.foreign)
      for (const auto& own : t->block->mbarriers)
        m->sending.raiseThread(own->copier, t->view.foreign->ofThread(own->copier));
    m->latest = std::max(m->latest, t->view.now++);
  }
  bulkTo(*t, to, mbarrier, reinterpret_cast<std::byte*>(&value), bytes, site);
}

static void emuBulkStore(Thread* t, std::byte* to, std::byte* from, uint32_t bytes, uint32_t toSite,
                         uint32_t fromSite) {
  requirePieces(*t, bytes, toSite);
  if (bytes == 0) return;
  access(*t, from, bytes, fromSite, Site::Read);
  access(*t, to, bytes, toSite, Site::Write);
  std::memcpy(to, from, bytes);
}

std::span<const Hook> mbarrierHooks() {
  static const Hook hooks[] = {
      hook("emu.mbarrier.init", emuInit),     hook("emu.mbarrier.inval", emuInvalidate),
      hook("emu.mbarrier.arrive", emuArrive), hook("emu.mbarrier.expect", emuExpect),
      hook("emu.mbarrier.test", emuTest),     hook("emu.bulk", emuBulk),
      hook("emu.bulk.store", emuBulkStore),   hook("emu.store.async", emuStoreAsync)};
  return hooks;
}

}  // namespace normc::emulator
