// Fibers: one for each GPU thread. A thread runs until it waits; then the next runnable one continues on the
// same host thread.
#pragma once

#include <random>

#include "codegen/emulator/Stacks.h"
#include "codegen/emulator/State.h"

namespace normc::emulator {

class Scheduler {
 public:
  /// Creates stacks for `threads` fibers with room for the entry's local variables.
  static llvm::Expected<std::unique_ptr<Scheduler>> create(Run&, StackPool&, uint64_t threads);
  ~Scheduler();

  /// Runs all threads of the resident blocks to their end, or to the first fault.
  void runResident();

  /// Suspends the running thread until wake(). `self.wait` and `self.site` describe the reason.
  void wait(Thread& self);
  /// Lets other threads run first. Too many calls without progress are a deadlock.
  void yield(Thread& self, uint32_t site);
  void wake(Thread&);
  /// Wakes threads in the order of the launch's options.
  void wakeAll(std::vector<Thread*>&);
  [[noreturn]] void fail(Thread& self, Fault, std::string what, uint32_t site, std::string earlier = {});

  /// Sorts the blocks in the order of the launch's options.
  void arrange(std::vector<uint32_t>&);

 private:
  Scheduler(Run& run, StackPool& pool) : run_(run), random_(run.options.seed), pool_(pool) {}
  static void enter(boost::context::detail::transfer_t);
  void switchTo(Context& from, Thread* next);
  Thread* pick();
  void push(Thread*);
  void prepare(Thread&, uint64_t slot);

  Run& run_;
  std::mt19937_64 random_;
  std::vector<Thread*> ready_;  ///< a ring; a power of two
  uint64_t head_ = 0, tail_ = 0;
  Context main_ = nullptr;
  uint64_t alive_ = 0, spins_ = 0;
  StackPool& pool_;
  std::unique_ptr<Stacks> stacks_;
  uint64_t stackStride_ = 0;
};

/// Handles the exit of a thread: threads that wait for the cluster no longer wait for it.
void leaveCluster(Thread&);

/// Returns the reason why no thread of the resident blocks can run.
Finding diagnose(const Run&, bool spinning);

/// Returns a fault of this thread.
Finding findingOf(const Thread&, Fault, std::string what, uint32_t site);
/// Returns e.g. `block (0, 0, 0) thread (5, 0, 0)`, for any thread of the launch.
std::string nameOfThread(const Run&, uint32_t number);

}  // namespace normc::emulator
