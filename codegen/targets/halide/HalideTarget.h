// The second generator of CPU kernels: the same plan, the same calls, another
// compiler. What it makes goes into the same packages (docs/halide.md).
#pragma once

#include "codegen/Target.h"
#include "codegen/targets/halide/Process.h"

namespace normc::codegen::halide {

/// For an instruction set by name, "host" among them. An error where it is none of a CPU, or
/// where there is no generator.
llvm::Expected<TargetPtr> findTarget(llvm::StringRef name);
/// With a program of the caller's choice.
llvm::Expected<TargetPtr> targetWith(Generator, llvm::StringRef name);

}  // namespace normc::codegen::halide
