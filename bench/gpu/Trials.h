// The gate over every kernel of a package, on the device; resumable.
//
// Two passes: a few important trials of every kernel first, then the rest, so that a
// run that is cut short has tried all kernels. Several threads evaluate references
// at once, each with a stream of its own.
//
// A kernel can destroy the whole context (an illegal address), or never end.
// So one record says when a kernel's trials begin, and another has their results.
// After a loss the program ends. The next run finds the kernels that began and did not end, and
// tries them one by one: a kernel that loses the device again is the cause, and
// is not tried a third time.
#pragma once

#include <functional>
#include <string>

#include "autotune/gate/Gate.h"
#include "bench/gpu/Records.h"
#include "bench/kit/Kernels.h"

namespace normc::gpu {
using namespace bench;

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

/// Returns the summary of all records: kernels, trials and failures, the worst error over its bound, and the
/// texts of the failures.
Json testSummary(const std::vector<Json>& records);

/// Returns the trials of one pass. Huge rows are tried in smaller numbers, because the reference is slow.
std::vector<gate::Trial> trialsOf(const Problem&, int64_t features, bool first);

}  // namespace normc::gpu
