// Instruction sets of CPUs as targets.
#pragma once

#include "codegen/Target.h"

namespace normc::codegen::cpu {

/// Returns the target of an instruction set, as findIsa reads its name.
llvm::Expected<TargetPtr> findTarget(llvm::StringRef name);
/// Returns the names that a user may give, "host" first.
std::vector<std::string> targetNames();

}  // namespace normc::codegen::cpu
