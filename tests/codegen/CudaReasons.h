// Reasons against schedules of the CUDA target that are legal but for one change.
#pragma once

#include "codegen/Target.h"
#include "codegen/targets/cuda/Legality.h"
#include "codegen/targets/cuda/Schedule.h"
#include "codegen/targets/cuda/Traits.h"
#include "tests/codegen/Support.h"

namespace normc::codegen::cuda {

inline Arch archOf(const char* name) { return llvm::cantFail(findArch(name)); }

/// The reason against a schedule that is legal but for what `change` does.
template <typename Change>
std::string reason(const Problem& problem, Schedule s, Change change, const char* arch = "sm_90") {
  change(s);
  return whyIllegal(traitsOf(problem, s.strategy), s, archOf(arch)).value_or("");
}

template <typename Change>
std::string reason(const char* problem, Schedule s, Change change, const char* arch = "sm_90") {
  return reason(problemOf(problem), s, change, arch);
}

/// A warp for a row.
template <typename Change>
std::string reasonOfRow(Change change, const Problem& problem, const char* arch = "sm_90") {
  return reason(problem,
                {.strategy = Strategy::Resident,
                 .threads = 128,
                 .team = 32,
                 .vector = 4,
                 .tile = 2,
                 .rows = 1,
                 .chunks = 8},
                change, arch);
}

/// The same for LayerNorm, unless another problem is named.
template <typename Change>
std::string reasonOfRow(Change change, const char* problem = "layer_norm:forward@f32[*x256]",
                        const char* arch = "sm_90") {
  return reasonOfRow(change, problemOf(problem), arch);
}

/// Eight warps below each other, for a norm over rows.
template <typename Change>
std::string reasonOfStream(Change change, const char* problem = "batch_norm:forward@f32[*x256]") {
  return reason(problem,
                {.strategy = Strategy::Streamed,
                 .threads = 256,
                 .team = 32,
                 .vector = 4,
                 .tile = 1,
                 .rows = 2,
                 .chunks = 8},
                change);
}

}  // namespace normc::codegen::cuda
