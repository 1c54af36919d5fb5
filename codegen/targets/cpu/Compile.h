// The compiler of a CPU's kernels, top to bottom: Problem -> sweeps -> loops -> LLVM -> object.
//
// Functions are pure and may run on any number of threads at once.
#pragma once

#include "codegen/Compile.h"
#include "codegen/dialect/Norm.h"
#include "codegen/targets/cpu/CpuSchedule.h"

namespace normc::codegen::cpu {

/// Returns the problem after one stage: sweeps, loops, llvm or assembly.
llvm::Expected<std::string> emitStage(const Problem&, const Schedule&, const Isa&, Stage);

/// Returns the passes up to the LLVM dialect in order, those named in `shown` with the module after them.
llvm::Expected<std::vector<PassText>> passTexts(const Problem&, const Schedule&, const Isa&,
                                                llvm::ArrayRef<std::string> shown);

llvm::Expected<CompiledKernel> compileKernel(const Problem&, const Schedule&, const Isa&,
                                             llvm::StringRef symbol);

/// Returns the entry of a planned kernel in a package, without `blob` and `norm`, which the package as a
/// whole decides.
package::Kernel kernelManifest(const Problem&, const Schedule&, const Isa&, KernelOp);

/// Returns the passes of MLIR between loops and blocks-to-llvm, as one pipeline text.
llvm::StringRef loopsToBlocksPipeline();

}  // namespace normc::codegen::cpu
