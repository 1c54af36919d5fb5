// Results that all targets have in common: a stage of a problem as text, a compiled kernel. The compiler of
// each target is targets/*/Compile.h.
#pragma once

#include <string>
#include <vector>

#include "codegen/package/Writer.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"

namespace llvm {
class Module;
}  // namespace llvm

namespace normc::codegen {

/// A stage as text; a target has some of them.
enum class Stage { Sweeps, Loops, Gpu, Llvm, Assembly, Ptx, Sass };
/// Returns the stage of a name. An error has the `legal` names.
llvm::Expected<Stage> findStage(llvm::StringRef name, llvm::ArrayRef<std::string> legal);

/// A pass that has run, and the module after it as text, if that was asked for.
struct PassText {
  std::string pass, text;
};

/// Returns LLVM IR as text.
std::string textOf(const llvm::Module&);

/// A program that makes machine code from PTX: ptxas of some release of the CUDA Toolkit.
struct Assembler {
  std::string program;  ///< its path
  std::string release;  ///< "12.4"; empty: unknown
};

/// Whether and how PTX becomes a cubin. Kernels of CPUs do not use it.
struct CubinOptions {
  bool make = true;
  /// The first that can assembles a kernel; empty: the ptxas that `cuda::findPtxas` returns.
  std::vector<Assembler> assemblers = {};
};

/// One compiled kernel and its entry in a package's manifest, without the indices of its blobs and norm.
struct CompiledKernel {
  std::string object;      ///< relocatable code of a CPU
  std::string ptx, cubin;  ///< code of a GPU; the cubin is empty if ptxas failed
  std::string assembled;   ///< the release of the ptxas that made the cubin; empty: unknown, or no cubin
  std::string note;        ///< why there is no cubin, though one was to be made
  package::Kernel manifest;
};

}  // namespace normc::codegen
