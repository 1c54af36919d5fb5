// What is worth trying on a CPU, and which of it first.
#pragma once

#include <vector>

#include "codegen/Tuning.h"
#include "codegen/targets/cpu/Schedule.h"

namespace normc::codegen::cpu {

/// A space for each legal strategy. Knobs that the slabs of the problem do not look at stay at their defaults.
std::vector<KnobSpace> knobSpaces(const Problem&, const Isa&, const Load&);

/// Nanoseconds, roughly: what memory moves against what the core computes, the larger of them, plus tasks.
/// The coefficients are those of a common server core; they order schedules and claim no more.
double predict(const Problem&, const Schedule&, const Isa&, const Load&);

}  // namespace normc::codegen::cpu
