#include "codegen/emulator/Scheduler.h"

#include <algorithm>
#include <bit>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace normc::emulator {

namespace fibers = boost::context::detail;

static constexpr uint64_t kCanary = 0x6e6f726d632d6b65;
static constexpr uint64_t kRoomForCalls = 48 << 10;

/// The arguments of a switch between fibers: the place for the old fiber's context, and the next fiber.
struct Handover {
  Context* left;
  Thread* next;
};

llvm::Expected<std::unique_ptr<Scheduler>> Scheduler::create(Run& run, StackPool& pool, uint64_t threads) {
  std::unique_ptr<Scheduler> scheduler(new Scheduler(run, pool));
  scheduler->ready_.resize(std::bit_ceil(threads + 1));
  // Odd multiples of a cache line: stacks at multiples of a page would compete for a few sets of the cache.
  uint64_t room = run.entry.stackBytes * 2 + kRoomForCalls;
  scheduler->stackStride_ = ((room + 4095) & ~uint64_t(4095)) + 5 * 64;
  auto stacks = pool.take(scheduler->stackStride_ * threads + 4096);
  if (!stacks) return stacks.takeError();
  scheduler->stacks_ = std::move(*stacks);
  return scheduler;
}

Scheduler::~Scheduler() {
  if (stacks_) pool_.giveBack(std::move(stacks_));
}

void Scheduler::arrange(std::vector<uint32_t>& blocks) {
  if (run_.options.order == Order::Descending) std::reverse(blocks.begin(), blocks.end());
  if (run_.options.order == Order::Random) std::shuffle(blocks.begin(), blocks.end(), random_);
}

//===-- Switching ---------------------------------------------------------------===//

void Scheduler::prepare(Thread& thread, uint64_t slot) {
  std::byte* end = stacks_->data() + slot * stackStride_;
  thread.stackEnd = end;
  std::memcpy(end, &kCanary, sizeof kCanary);
  auto top = (reinterpret_cast<uintptr_t>(end) + stackStride_) & ~uintptr_t(63);
  thread.stackTop = reinterpret_cast<std::byte*>(top);
  thread.context =
      fibers::make_fcontext(reinterpret_cast<void*>(top), top - reinterpret_cast<uintptr_t>(end), enter);
}

void Scheduler::enter(fibers::transfer_t from) {
  auto* handover = static_cast<Handover*>(from.data);
  *handover->left = from.fctx;
  Thread& self = *handover->next;
  Run& run = *self.run;
  run.entry.code(&self, run.launch.words.data());

  Scheduler& scheduler = *run.scheduler;
  uint64_t canary;
  std::memcpy(&canary, self.stackEnd, sizeof canary);
  if (canary != kCanary) scheduler.fail(self, Fault::OutOfBounds, "its local variables overran its stack", 0);
  self.wait = Wait::Exited;
  Block& block = *self.block;
  block.warps[self.index / 32].exited |= 1u << self.lane;
  ++block.exited;
  scheduler.spins_ = 0;
  --scheduler.alive_;
  leaveCluster(self);
  self.copies.clear();
  self.view = View();
  self.fenced = View();
  self.observed.reset();
  self.clusterGiven.reset();
  scheduler.switchTo(self.context, scheduler.pick());
}

void Scheduler::switchTo(Context& from, Thread* next) {
  Handover handover{&from, next};
  auto back = fibers::jump_fcontext(next ? next->context : main_, &handover);
  *static_cast<Handover*>(back.data)->left = back.fctx;
}

void Scheduler::wait(Thread& self) {
  ++run_.report.switches;
  Thread* next = pick();
  if (next != &self) switchTo(self.context, next);
}

void Scheduler::yield(Thread& self, uint32_t site) {
  // Every thread that could make progress has run often.
  if (++spins_ > 100'000 + 100 * alive_) {
    self.site = site;
    run_.report.finding = diagnose(run_, /*spinning=*/true);
    switchTo(self.context, nullptr);
  }
  self.site = site;
  push(&self);
  wait(self);
}

void Scheduler::fail(Thread& self, Fault fault, std::string what, uint32_t site, std::string earlier) {
  Finding finding = findingOf(self, fault, std::move(what), site);
  finding.earlier = std::move(earlier);
  run_.report.finding = std::move(finding);
  switchTo(self.context, nullptr);
  llvm_unreachable("a thread that failed went on");
}

//===-- Which thread runs next -------------------------------------------------------------===//

void Scheduler::push(Thread* thread) { ready_[tail_++ & (ready_.size() - 1)] = thread; }

Thread* Scheduler::pick() {
  if (head_ == tail_) return nullptr;
  uint64_t mask = ready_.size() - 1;
  if (run_.options.order == Order::Random)
    std::swap(ready_[head_ & mask], ready_[(head_ + random_() % (tail_ - head_)) & mask]);
  return ready_[head_++ & mask];
}

void Scheduler::wake(Thread& thread) {
  thread.wait = Wait::None;
  spins_ = 0;
  push(&thread);
}

void Scheduler::wakeAll(std::vector<Thread*>& threads) {
  bool descending = run_.options.order == Order::Descending;
  const auto before = [&](const Thread* a, const Thread* b) {
    return descending ? a->number > b->number : a->number < b->number;
  };
  // Threads that were woken in this order mostly arrive in it.
  if (!std::is_sorted(threads.begin(), threads.end(), before))
    std::sort(threads.begin(), threads.end(), before);
  for (Thread* thread : threads) wake(*thread);
  threads.clear();
}

void Scheduler::runResident() {
  std::vector<Thread*> all;
  for (auto& block : run_.blocks)
    for (Thread& thread : block->threads) all.push_back(&thread);
#if defined(__x86_64__)
  unsigned mode = _mm_getcsr();  // a new context copies the current mode: denormals are kept
  _mm_setcsr(mode & ~0x8040u);
#endif
  for (uint64_t i = 0; i < all.size(); ++i) prepare(*all[i], i);
#if defined(__x86_64__)
  _mm_setcsr(mode);
#endif
  head_ = tail_ = spins_ = 0;
  alive_ = all.size();
  wakeAll(all);
  switchTo(main_, pick());
  if (alive_ && !run_.report.finding) run_.report.finding = diagnose(run_, /*spinning=*/false);
}

}  // namespace normc::emulator
