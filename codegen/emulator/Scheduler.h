// Fibers: one for each GPU thread. A thread runs until it waits; then the next one
// that can run goes on, directly, on the same host thread.
#pragma once

#include <random>

#include "codegen/emulator/Stacks.h"
#include "codegen/emulator/State.h"

namespace normc::emulator {

class Scheduler {
 public:
  /// Stacks for `threads` fibers with this much room for local variables.
  static llvm::Expected<std::unique_ptr<Scheduler>> create(Run&, StackPool&, uint64_t threads);
  ~Scheduler();

  /// Runs all threads of the resident blocks to their end, or to the first finding.
  void runResident();

  /// For the thread that runs: waits until wake(). `self.wait` and `self.site` say for what.
  void wait(Thread& self);
  /// Lets the others go first. After too many of these without any progress, a deadlock.
  void yield(Thread& self, uint32_t site);
  void wake(Thread&);
  /// Wakes these in the order of the launch's options.
  void wakeAll(std::vector<Thread*>&);
  [[noreturn]] void fail(Thread& self, Fault, std::string what, uint32_t site, std::string earlier = {});

  /// The blocks in the order of the launch's options.
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

/// A thread of the cluster has exited: threads that wait for the cluster do not wait for it any more.
void leaveCluster(Thread&);

/// Finds out why no thread of the resident blocks can run, and says so.
Finding diagnose(const Run&, bool spinning);

/// A finding about this thread.
Finding findingOf(const Thread&, Fault, std::string what, uint32_t site);
/// e.g. `block (0, 0, 0) thread (5, 0, 0)`, of any thread of the launch.
std::string nameOfThread(const Run&, uint32_t number);

}  // namespace normc::emulator
