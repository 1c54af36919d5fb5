// The second generator of CPU kernels: the same plan and the same calls by another
// compiler. Its kernels go into the same packages (docs/halide.md).
#pragma once

#include "codegen/Target.h"
#include "codegen/targets/halide/Process.h"

namespace normc::codegen::halide {

/// Returns the target for an instruction set by name, also "host". An error if it is not one of a CPU, or
/// if there is no generator.
llvm::Expected<TargetPtr> findTarget(llvm::StringRef name);
/// Returns the target for a given generator program.
llvm::Expected<TargetPtr> targetWith(Generator, llvm::StringRef name);

}  // namespace normc::codegen::halide
