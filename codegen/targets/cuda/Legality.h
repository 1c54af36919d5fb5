// What schedules of the CUDA target share with the reasons against them. whyIllegal() itself is in
// Schedule.h.
#pragma once

#include <optional>
#include <string>

#include "codegen/targets/cuda/Schedule.h"

namespace normc::codegen::cuda {

/// The most steps that runs are copied ahead.
inline constexpr int64_t kMostAhead = 3;

/// Returns the registers that a thread needs for what it holds; an estimate.
int64_t registersOf(const KernelTraits&, const Schedule&);

/// Returns why rows of one alignment class cannot be taken together; nothing if they can.
std::optional<std::string> whyNotCongruent(const KernelTraits&, const Schedule&);

/// Returns the combiner of a sweep that the lowering to threads does not know; nothing if it knows all of
/// them.
std::optional<std::string> whyNotReduced(KernelOp);

}  // namespace normc::codegen::cuda
