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

/// One compiled kernel and its entry in a package's manifest, without the indices of its blobs and norm.
struct CompiledKernel {
  std::string object;      ///< relocatable code of a CPU
  std::string ptx, cubin;  ///< code of a GPU; the cubin is empty if ptxas failed
  std::string note;        ///< why there is no cubin
  package::Kernel manifest;
};

}  // namespace normc::codegen
