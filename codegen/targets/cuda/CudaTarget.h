// Architectures of NVIDIA GPUs as targets.
#pragma once

#include "codegen/Target.h"

namespace normc::codegen::cuda {

/// Returns the target of an architecture, `sm_90`; a null pointer where the name is none of one.
llvm::Expected<TargetPtr> findTarget(llvm::StringRef name);
/// Those that a user may name.
std::vector<std::string> targetNames();

}  // namespace normc::codegen::cuda
