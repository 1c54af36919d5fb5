// The compiler of a GPU's kernels, top to bottom: Problem -> sweeps -> threads -> LLVM -> PTX -> cubin.
//
// Functions are pure and may run on any number of threads at once.
#pragma once

#include <functional>

#include "codegen/Compile.h"
#include "codegen/dialect/Norm.h"
#include "codegen/targets/cuda/Arch.h"
#include "codegen/targets/cuda/Schedule.h"

namespace normc::codegen::cuda {

/// Returns the problem after one stage: sweeps, gpu, llvm, ptx or sass.
llvm::Expected<std::string> emitStage(const Problem&, const Schedule&, const Arch&, Stage);

/// Returns the passes up to the LLVM dialect in order, those named in `shown` with the module after them.
llvm::Expected<std::vector<PassText>> passTexts(const Problem&, const Schedule&, const Arch&,
                                                llvm::ArrayRef<std::string> shown);

llvm::Expected<CompiledKernel> compileKernel(const Problem&, const Schedule&, const Arch&,
                                             llvm::StringRef symbol, const CubinOptions& = {});

/// Returns the entry of a planned kernel in a package, without `blob` and `norm`, which the package as a
/// whole decides.
package::Kernel kernelManifest(const Problem&, const Schedule&, const Arch&, KernelOp);

}  // namespace normc::codegen::cuda
