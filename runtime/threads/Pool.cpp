#include "runtime/threads/Pool.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <thread>

namespace normc::runtime {
namespace {

using Clock = std::chrono::steady_clock;

/// The time for which an idle worker looks for work: most calls of a host follow each other sooner. After the
/// second, shorter time it yields the processor between two looks.
constexpr std::chrono::microseconds kLinger(1000), kLingerAlone(50);
/// Waking a thread takes the waker 10 to 20 us, and 50 us until the thread runs, on virtual processors. A
/// caller that has worked alone for kPatience, in this call and those just before, gains from it if more
/// calls follow. It also gains if the rest of this call takes longer than kWorthWaking.
constexpr std::chrono::microseconds kPatience(20), kWorthWaking(70);
/// The looks for work between two reads of the clock: some microseconds.
constexpr int kLooks = 100;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

/// Blocks all signals on this thread and on the threads that it begins.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

/// One call of run(), on the stack of the caller.
struct Pool::Job {
  WorkShares shares;
  normc_task task;
  void* data;
  int64_t offers = 0;              ///< offers that were not withdrawn
  std::atomic<int64_t> ended = 0;  ///< workers that have ended, of those

  void work(int64_t thread) {
    shares.draw(thread, [this](int64_t chunk) { task(data, chunk); });
  }
};

/// A worker's state is one word, which the worker and callers change by compare-and-exchange: one of these
/// constants, or the address of the job that is offered.
struct alignas(64) Pool::Worker {
  static constexpr uintptr_t kLooking = 0, kAsleep = 1, kBusy = 2, kStop = 3;
  static uintptr_t orderOf(const Job& job) { return reinterpret_cast<uintptr_t>(&job); }

  explicit Worker(int64_t index) : thread([this, index] { live(index); }) {}

  bool change(uintptr_t from, uintptr_t to) {
    return order.load(std::memory_order_relaxed) == from &&
           order.compare_exchange_strong(from, to, std::memory_order_acq_rel, std::memory_order_relaxed);
  }

  void wake() {
    asleep.store(0, std::memory_order_release);
    asleep.notify_one();
  }

  void live(int64_t index) {
    pthread_setname_np(pthread_self(), "normc");
    for (uintptr_t next; (next = nextOrder()) != kStop;) {
      if (!change(next, kBusy)) continue;  // withdrawn
      Job& job = *reinterpret_cast<Job*>(next);
      job.work(index + 1);
      order.store(kLooking, std::memory_order_release);
      job.ended.fetch_add(1, std::memory_order_release);  // the job may be gone from here on
    }
  }

  /// Sleeps until the order changes. The waker changes the order first and `asleep` afterwards, perhaps much
  /// later.
  void sleep() {
    for (;; asleep.wait(1, std::memory_order_acquire)) {
      asleep.exchange(1, std::memory_order_acq_rel);
      if (order.load(std::memory_order_acquire) != kAsleep) return;
    }
  }

  uintptr_t nextOrder() {
    auto since = Clock::now();
    for (;;) {
      for (int i = 0; i < kLooks; ++i, relax())
        if (const uintptr_t next = order.load(std::memory_order_acquire); next != kLooking) return next;
      const auto idle = Clock::now() - since;
      if (idle < kLinger) {
        if (idle > kLingerAlone) std::this_thread::yield();
        continue;
      }
      if (change(kLooking, kAsleep)) sleep();
      since = Clock::now();
    }
  }

  std::atomic<uintptr_t> order = kLooking;
  std::atomic<uint32_t> asleep = 0;  ///< the futex that it waits on; no lock, which a fork could leave locked
  std::thread thread;
};

Pool::Pool(int workers) : process_(getpid()) {
  const SignalsBlocked blocked;  // signals of the host are delivered to its own threads
  try {
    workers_.reserve(workers);  // so that adding a thread that has begun cannot fail
    while (this->workers() < workers) workers_.push_back(std::make_unique<Worker>(this->workers()));
  } catch (const std::exception&) {  // no more threads, or no memory
  }
}

Pool::~Pool() {
  for (auto& worker : workers_) {
    if (getpid() != process_) {
      (void)worker.release();
      continue;
    }
    worker->order.store(Worker::kStop, std::memory_order_release);
    worker->wake();
    worker->thread.join();
  }
}

void Pool::offer(Job& job, int64_t wanted, bool wake) {
  for (auto& worker : workers_) {
    if (job.offers >= wanted || job.shares.allDrawn()) return;
    const uintptr_t order = Worker::orderOf(job);
    if (worker->change(Worker::kLooking, order)) {
      ++job.offers;
    } else if (wake && worker->change(Worker::kAsleep, order)) {
      ++job.offers;
      worker->wake();
    }
  }
}

void Pool::finish(Job& job) {
  for (auto& worker : workers_)
    if (worker->change(Worker::orderOf(job), Worker::kLooking)) --job.offers;
  for (int looks = 0; job.ended.load(std::memory_order_acquire) < job.offers; relax())
    if (++looks % kLooks == 0) std::this_thread::yield();
}

void Pool::run(int64_t count, int64_t limit, normc_task task, void* data, ChunkOrder order) {
  const int64_t wanted = std::min(limit, count) - 1;
  Job job{WorkShares(count, std::min<int64_t>(limit, workers() + 1), order), task, data};
  offer(job, wanted, false);
  if (job.offers < wanted) {
    workAlone(job, count, wanted);
  } else {
    job.work(0);
  }
  if (job.offers > 0) finish(job);
}

void Pool::workAlone(Job& job, int64_t count, int64_t wanted) {
  const auto begin = Clock::now().time_since_epoch();
  auto before = std::chrono::nanoseconds(alone_.load(std::memory_order_relaxed));
  if (begin - std::chrono::nanoseconds(lastAlone_.load(std::memory_order_relaxed)) > kLinger) before = {};
  bool woken = before > kPatience;
  if (woken) offer(job, wanted, true);
  int64_t done = 0;
  job.shares.draw(0, [&](int64_t chunk) {
    job.task(job.data, chunk);
    ++done;
    if (woken) return;
    const auto here = Clock::now().time_since_epoch() - begin;
    if (before + here < kPatience || here * (count - done) < kWorthWaking * done) return;
    woken = true;
    offer(job, wanted, true);
  });
  const auto end = Clock::now().time_since_epoch();
  alone_.store(woken ? 0 : std::chrono::nanoseconds(before + (end - begin)).count(),
               std::memory_order_relaxed);
  lastAlone_.store(std::chrono::nanoseconds(end).count(), std::memory_order_relaxed);
}

}  // namespace normc::runtime
