// Architectures of NVIDIA GPUs as targets.
#pragma once

#include "codegen/Target.h"

namespace normc::codegen::cuda {

/// Returns the target of an architecture, `sm_90`; a null pointer if the name is not one of an architecture.
llvm::Expected<TargetPtr> findTarget(llvm::StringRef name);
/// Returns the names that a user may give.
std::vector<std::string> targetNames();

}  // namespace normc::codegen::cuda
