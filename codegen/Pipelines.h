// The whole compiler, top to bottom: Problem -> sweeps -> loops -> LLVM -> object.
//
// Everything else in this folder is a stage of what is written here. Functions are
// pure and may run on any number of threads at once; each compilation has its own
// MLIR context.
#pragma once

#include <string>

#include "codegen/package/Writer.h"
#include "codegen/plan/Plan.h"
#include "codegen/targets/cpu/Schedule.h"
#include "codegen/targets/cuda/Schedule.h"

namespace normc::codegen {

/// A stage as text.
enum class Stage { Sweeps, Loops, Llvm, Assembly };
llvm::Expected<Stage> findStage(llvm::StringRef name);

/// The problem after one stage, e.g. for `normc compile --emit loops`.
llvm::Expected<std::string> emitStage(const Problem&, const cpu::Schedule&, const cpu::Isa&, Stage);

llvm::Expected<std::string> emitStage(const Problem&, const cuda::Schedule&, const cuda::Arch&, Stage);

/// One compiled kernel: relocatable code and its entry in a package's manifest,
/// complete but for the indices of its blob and norm.
struct CompiledKernel {
  std::string object;
  package::Kernel manifest;
};
llvm::Expected<CompiledKernel> compileKernel(const Problem&, const cpu::Schedule&, const cpu::Isa&,
                                             llvm::StringRef symbol);

/// The passes between loops and the LLVM dialect, as one pipeline text.
llvm::StringRef loopsToLlvmPipeline();

}  // namespace normc::codegen
