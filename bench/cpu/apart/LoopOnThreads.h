// A loop whose rows are shared out to threads, and whose sums are completed.
#pragma once

#include <array>
#include <vector>

#include "bench/cpu/apart/Loops.h"
#include "runtime/threads/Pool.h"

namespace normc::bench::apart {

class LoopOnThreads {
 public:
  /// `sums`: [segments, features] of the type of the loop for each sum of its operation.
  /// The pool outlives it.
  LoopOnThreads(const Loop&, int64_t segments, std::array<void*, 2> sums, runtime::Pool&);
  void run();

 private:
  void part(int64_t index);
  /// Returns where a part adds up its sum `k`: in place, or in memory of its own.
  float* partial(int64_t part, int k);
  void fold(int64_t segment, int k);

  Loop loop_;
  int64_t segments_;
  std::array<void*, 2> sums_;
  int sumCount_, threads_;
  int64_t parts_, partsOfSegment_ = 1;
  bool direct_ = true;  ///< sums are added up where they belong
  std::vector<float> partials_;
  runtime::Pool* pool_;
};

}  // namespace normc::bench::apart
