// Counts the loads and stores of X-sized tensors by walking the loops of a lowered phase for one
// small shape, to compare them with the plan.
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

/// Counts one task that has all units, as if every condition held.
Traffic trafficOf(const Halide::Internal::LoweredFunc&, const Memory&, const Shape&);

}  // namespace normc::halide
