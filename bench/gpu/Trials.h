// The gate over every kernel of a package, on the device; resumable.
//
// Two passes: a few telling trials of every kernel first, then the rest, so that a
// run which is cut short has seen all kernels. Several threads evaluate references
// at once, each with a stream of its own.
//
// A kernel can take the whole context with it (an illegal address), or never end.
// So a record says when a kernel's trials begin, and another what came of them.
// After a loss the program ends; the next run finds who had begun and not ended, and
// tries these alone, one after another: who loses the device then is to blame, and
// is not tried a third time.
#pragma once

#include <functional>
#include <string>

#include "autotune/gate/Gate.h"
#include "bench/gpu/Kernels.h"

namespace normc::gpu {

struct TestOptions {
  std::string driver = gate::CudaDriver::kLibrary;
  int threads = 1;
  std::string only;  ///< kernels whose problem has this in it; empty: all
  std::function<bool()> stop = [] { return false; };
  std::function<void(const Json&)> record;  ///< called from one thread at a time
};

enum class TestEnd {
  Finished,
  Stopped,    ///< there is more to do
  DeviceLost  ///< there may be more to do, in a new process
};

/// Judges what `before`, the records of earlier runs, leaves to do.
TestEnd testPackage(const Kernels&, const std::vector<Json>& before, const TestOptions&);

/// What all records together say: kernels, trials and failures, the worst error over its bound, and the texts
/// of what failed.
Json testSummary(const std::vector<Json>& records);

/// The trials of one pass. Huge rows are tried in smaller numbers, since the reference is slow.
std::vector<gate::Trial> trialsOf(const Problem&, int64_t features, bool first);

}  // namespace normc::gpu
