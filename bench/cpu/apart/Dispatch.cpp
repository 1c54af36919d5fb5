#include "bench/cpu/apart/Loops.h"

namespace normc::bench::apart {

namespace baseline {
void runRows(const Loop&, int64_t, int64_t, float* const*);
}
#ifdef NORMC_LOOPS_X86
namespace v3 {
void runRows(const Loop&, int64_t, int64_t, float* const*);
}
namespace v4 {
void runRows(const Loop&, int64_t, int64_t, float* const*);
}
#endif

namespace {

auto widest() {
#ifdef NORMC_LOOPS_X86
  if (__builtin_cpu_supports("x86-64-v4")) return v4::runRows;
  if (__builtin_cpu_supports("x86-64-v3")) return v3::runRows;
#endif
  return baseline::runRows;
}

}  // namespace

bool mayStream(const Loop& loop) { return loop.features * (loop.bf16 ? 2 : 4) % 64 == 0; }

void runRows(const Loop& loop, int64_t row, int64_t rows, float* const sums[2]) {
  static const auto run = widest();
  run(loop, row, rows, sums);
}

}  // namespace normc::bench::apart
