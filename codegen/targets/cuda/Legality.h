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
/// `packed`: narrow elements of a line stay as they are in memory (WidenAgain.h).
int64_t registersOf(const KernelTraits&, const Schedule&, bool packed = false);

/// Returns why rows of one alignment class cannot be taken together; nothing if they can.
std::optional<std::string> whyNotCongruent(const KernelTraits&, const Schedule&);

}  // namespace normc::codegen::cuda
