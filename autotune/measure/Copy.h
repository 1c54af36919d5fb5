// The speed of memory itself: copies with the reads and writes of a kernel.
//
// A kernel cannot be faster than a loop that moves the same bytes and computes
// nothing, so that loop runs beside it: as many passes over the inputs as the kernel has,
// the last of which writes. It comes twice, with ordinary and with streaming
// (non-temporal) stores; which one is faster depends on machine and footprint.
#pragma once

#include <memory>
#include <vector>

#include "autotune/measure/Contestant.h"

namespace normc::measure {

/// What moves: X-sized transfers.
struct Traffic {
  int reads = 1, writes = 1;
  int total() const { return reads + writes; }
  auto operator<=>(const Traffic&) const = default;
};

enum class Stores { Cached, Streaming };

/// Reads all of a buffer: what the next layer does with an output.
std::unique_ptr<Contestant> makeReader(const void* input, int64_t bytes, int threads);

/// Reads `inputs` (one or two) until `traffic.reads` reads are done, the last of each together with writing
/// `output`. Needs traffic.reads >= inputs.size() and one write. All have `bytes`, a multiple of 64 of which
/// count.
std::unique_ptr<Contestant> makeCopy(const std::vector<const void*>& inputs, void* output, int64_t bytes,
                                     Traffic traffic, Stores stores, int threads);

}  // namespace normc::measure
