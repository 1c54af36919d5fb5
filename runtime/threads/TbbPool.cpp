// libnormc_threads: the default pool of the runtime, oneTBB.
//
// Each caller works on its own tasks and idle workers help, so callers never
// wait for a slot in a pool. `isolate` keeps a caller that waits for its last
// task from starting unrelated work of a host that uses oneTBB too.
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include <cstdint>

extern "C" __attribute__((visibility("default"))) int normc_threads_parallel_for(void*, int64_t count,
                                                                                 void (*task)(void*, int64_t),
                                                                                 void* data) {
  namespace tbb = oneapi::tbb;
  try {
    tbb::this_task_arena::isolate([&] {
      tbb::parallel_for(
          tbb::blocked_range<int64_t>(0, count, 1),
          [&](const tbb::blocked_range<int64_t>& range) {
            for (int64_t i = range.begin(); i < range.end(); ++i) task(data, i);
          },
          tbb::simple_partitioner());
    });
  } catch (...) {  // out of memory
    return 1;
  }
  return 0;
}
