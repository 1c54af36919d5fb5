// The whole compiler, top to bottom: Problem -> sweeps -> loops or threads -> LLVM -> object or PTX.
//
// Everything else in this folder is a stage of what is written here. Functions are
// pure and may run on any number of threads at once; each compilation has its own
// MLIR context.
#pragma once

#include <functional>
#include <string>

#include "codegen/package/Writer.h"
#include "codegen/plan/Plan.h"
#include "codegen/targets/cpu/Schedule.h"
#include "codegen/targets/cuda/Schedule.h"

namespace llvm {
class Module;
}  // namespace llvm

namespace normc::codegen {

/// A stage as text; not every target has every one.
enum class Stage { Sweeps, Loops, Gpu, Llvm, Assembly, Ptx, Sass };
/// An error names `legal` stages.
llvm::Expected<Stage> findStage(llvm::StringRef name, llvm::ArrayRef<std::string> legal);

/// The problem after one stage, e.g. for `normc compile --emit loops`.
llvm::Expected<std::string> emitStage(const Problem&, const cpu::Schedule&, const cpu::Isa&, Stage);
llvm::Expected<std::string> emitStage(const Problem&, const cuda::Schedule&, const cuda::Arch&, Stage);

/// One compiled kernel and its entry in a package's manifest, complete but for the
/// indices of its blobs and norm.
struct CompiledKernel {
  std::string object;      ///< relocatable code, of a CPU
  std::string ptx, cubin;  ///< of a GPU; no cubin where ptxas could not make one, and then
  std::string note;        ///< why
  package::Kernel manifest;
};
llvm::Expected<CompiledKernel> compileKernel(const Problem&, const cpu::Schedule&, const cpu::Isa&,
                                             llvm::StringRef symbol);
struct CudaOptions {
  bool assemble = true;                                  ///< also to a cubin
  std::function<void(const llvm::Module&)> observe = {}; ///< sees the IR that NVPTX is given: the emulator runs it
};
llvm::Expected<CompiledKernel> compileKernel(const Problem&, const cuda::Schedule&, const cuda::Arch&,
                                             llvm::StringRef symbol, const CudaOptions& = {});

/// The passes between loops and the LLVM dialect, as one pipeline text.
llvm::StringRef loopsToLlvmPipeline();

}  // namespace normc::codegen
