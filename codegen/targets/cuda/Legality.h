// Which schedules are legal for a kernel on an architecture.
#pragma once

#include <optional>
#include <string>

#include "codegen/targets/cuda/Arch.h"
#include "codegen/targets/cuda/Traits.h"

namespace normc::codegen::cuda {

/// Returns why the schedule does not fit kernel and architecture, with the numbers; nothing if it does.
std::optional<std::string> whyIllegal(const KernelTraits&, const Schedule&, const Arch&);

/// Returns the registers that the block leaves to each thread.
int64_t registersFor(const Schedule&);
/// Returns the registers that a thread needs for what it holds; an estimate.
/// `packed`: narrow elements of a line stay as they are in memory (WidenAgain.h).
int64_t registersOf(const KernelTraits&, const Schedule&, bool packed = false);

/// Returns why rows of one alignment class cannot be taken together; nothing if they can.
std::optional<std::string> whyNotCongruent(const KernelTraits&, const Schedule&);

}  // namespace normc::codegen::cuda
