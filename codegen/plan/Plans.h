// The plans: the phases of a kernel, for each of the structures that Planner.h describes.
#pragma once

#include <cstdint>

#include "codegen/plan/Builder.h"

namespace normc::codegen {

void planInSlab(KernelBuilder&, int64_t vector);
void planInRowChunks(KernelBuilder&);
void planInFeatureChunks(KernelBuilder&);

/// Calls the plan's function for an entry that is not over ranks.
template <typename Plan>
void planEntry(Plan&& plan, Entry entry) {
  switch (entry) {
    case Entry::Forward:
      return plan.forward();
    case Entry::Backward:
    case Entry::InferBackward:
      return plan.backward();
    case Entry::Infer:
      return plan.infer();
    default:
      llvm_unreachable("an entry over ranks");
  }
}

}  // namespace normc::codegen
