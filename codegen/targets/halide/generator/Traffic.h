// What a lowered phase does to X-sized tensors, counted by walking its loops for one
// small shape: the plan's promise, read off the statement that Halide made.
#pragma once

#include <map>

#include "codegen/targets/halide/generator/Memory.h"

namespace normc::halide {

struct Shape {
  int64_t segments = 1, rows = 1, features = 1;
};

/// Elements loaded and stored over the elements of x; what one step loads twice counts once.
struct Traffic {
  double reads = 0, writes = 0;
};

/// For one task that has all units, and as if every condition held.
Traffic trafficOf(const Halide::Internal::LoweredFunc&, const Memory&, const Shape&);

}  // namespace normc::halide
