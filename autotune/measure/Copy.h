// The speed of memory: copies with the reads and writes of a kernel.
//
// A kernel cannot be faster than a loop that moves the same bytes and computes nothing, so that loop is timed
// in the same race: as many passes over the inputs as the kernel has, the last of which writes. There are
// two, with ordinary and with non-temporal stores. Which one is faster depends on machine and footprint.
#pragma once

#include <memory>
#include <vector>

#include "autotune/measure/Contestant.h"
#include "autotune/measure/Memory.h"

namespace normc::measure {

/// Numbers of X-sized transfers.
struct Traffic {
  int reads = 1, writes = 1;
  int total() const { return reads + writes; }
  auto operator<=>(const Traffic&) const = default;
};

enum class Stores { Cached, Streaming };

/// Memory of its own for copies, zeros, with as many inputs and outputs as a call has.
struct CopyTensors {
  /// `bytes`: of each.
  CopyTensors(size_t inputs, size_t outputs, int64_t bytes);

  std::vector<Memory> memory;
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
};

/// Returns a contestant that reads a whole buffer, as the next layer reads an output.
std::unique_ptr<Contestant> makeReader(const void* input, int64_t bytes, int threads);

/// Returns a contestant with the traffic of a kernel: passes over `inputs`, of which the last reads as many
/// as it can at once and writes `outputs`. It uses no more inputs and outputs than there are reads and
/// writes, and repeats them where there are fewer. Needs one of each. All buffers have `bytes`, of which a
/// multiple of 64 counts.
std::unique_ptr<Contestant> makeCopy(const std::vector<const void*>& inputs,
                                     const std::vector<void*>& outputs, int64_t bytes, Traffic traffic,
                                     Stores stores, int threads);

}  // namespace normc::measure
