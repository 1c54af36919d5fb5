// cp.async: copies that a thread begins and waits for later, by groups. The bytes are copied at once. Until
// the wait they count as written by another thread, so that a read before the wait is a race.
#include "codegen/emulator/Hooks.h"
#include "codegen/emulator/Scheduler.h"

namespace normc::emulator {

static uint32_t twin(const Thread& t) { return t.number + uint32_t(t.block->threads.size()); }

void completeCopies(Thread& t, uint32_t left, bool withOpen) {
  if (t.copies.empty()) return;
  size_t closed = t.copies.size() - 1;
  size_t done = withOpen ? t.copies.size() : closed > left ? closed - left : 0;
  if (t.run->checksRaces())
    for (size_t i = 0; i < done; ++i)
      for (const Copy& copy : t.copies[i]) adopt(t, copy.to, copy.bytes, twin(t));
  t.copies.erase(t.copies.begin(), t.copies.begin() + ptrdiff_t(done));
}

/// Copies `given` bytes and fills the rest, up to `bytes`, with zeros.
static void emuCopy(Thread* t, std::byte* to, std::byte* from, uint32_t bytes, uint32_t given,
                    uint32_t toSite, uint32_t fromSite) {
  if (given > bytes)
    t->run->scheduler->fail(
        *t, Fault::Misuse, "takes " + std::to_string(given) + " bytes for a copy of " + std::to_string(bytes),
        toSite);
  access(*t, from, given, fromSite, Site::Read | Site::Copied);
  access(*t, to, bytes, toSite, Site::Write | Site::Copied, {twin(*t), t->view.now & Cell::kCount});
  std::memcpy(to, from, given);
  std::memset(to + given, 0, bytes - given);
  if (t->copies.empty()) t->copies.emplace_back();
  t->copies.back().push_back({to, bytes});
}

static void emuCommit(Thread* t) {
  if (t->copies.empty()) t->copies.emplace_back();
  t->copies.emplace_back();
}

static void emuWaitGroup(Thread* t, uint32_t left) { completeCopies(*t, left, false); }
static void emuWaitAll(Thread* t) { completeCopies(*t, 0, true); }

/// Completes the copies that the thread has begun, then arrives at the mbarrier. With `counts`, this is one
/// of the expected arrivals.
static void emuCopyArrive(Thread* t, std::byte* mbarrier, bool counts, uint32_t site) {
  completeCopies(*t, 0, true);
  arriveAt(*t, mbarrier, counts ? 1 : 0, site);
}

std::span<const Hook> copyHooks() {
  static const Hook hooks[] = {hook("emu.copy", emuCopy), hook("emu.copy.commit", emuCommit),
                               hook("emu.copy.wait", emuWaitGroup), hook("emu.copy.waitall", emuWaitAll),
                               hook("emu.copy.arrive", emuCopyArrive)};
  return hooks;
}

}  // namespace normc::emulator
