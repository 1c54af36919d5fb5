// The LLVM part that all targets have in common: a machine for a triple, the optimiser, the emitter.
#pragma once

#include <memory>
#include <string>

#include "llvm/Support/Error.h"
#include "llvm/Target/TargetMachine.h"

namespace llvm {
class Module;
}

namespace normc::codegen {

/// LLVM's names of a target.
struct MachineName {
  std::string triple, cpu, features;
  llvm::CodeGenOptLevel level = llvm::CodeGenOptLevel::Aggressive;
};
llvm::Expected<std::unique_ptr<llvm::TargetMachine>> machineFor(const MachineName&);

/// Sets the module's triple and data layout from the machine. Must precede any use of type sizes.
void layOut(llvm::Module&, const llvm::TargetMachine&);
/// Runs these passes, in the syntax of `opt -passes`, after those that the target requires to be first. No
/// library function is assumed, so no loop becomes a library call.
void optimize(llvm::Module&, llvm::TargetMachine&, llvm::StringRef passes);
/// Returns machine code. `without`: LLVM's name of a pass of code generation that is left out, with the
/// analyses that it alone needs.
llvm::Expected<std::string> emit(llvm::Module&, llvm::TargetMachine&, llvm::CodeGenFileType,
                                 llvm::StringRef without = {});

}  // namespace normc::codegen
