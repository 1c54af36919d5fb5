// LLVM's part of every target: a machine for a triple, its optimiser, its emitter.
#pragma once

#include <memory>
#include <string>

#include "llvm/Support/Error.h"
#include "llvm/Target/TargetMachine.h"

namespace llvm {
class Module;
}

namespace normc::codegen {

/// What LLVM calls the target.
struct MachineName {
  std::string triple, cpu, features;
  llvm::CodeGenOptLevel level = llvm::CodeGenOptLevel::Aggressive;
};
llvm::Expected<std::unique_ptr<llvm::TargetMachine>> machineFor(const MachineName&);

/// Gives the module the machine's triple and layout. Before anything asks for its types' sizes.
void layOut(llvm::Module&, const llvm::TargetMachine&);
/// `freestanding`: no library function is known, so no loop may become a call of one.
void optimize(llvm::Module&, llvm::TargetMachine&, bool freestanding);
/// By these passes alone, as `opt -passes` names them, behind those that the target asks to be first.
void optimize(llvm::Module&, llvm::TargetMachine&, llvm::StringRef passes);
llvm::Expected<std::string> emit(llvm::Module&, llvm::TargetMachine&, llvm::CodeGenFileType);

}  // namespace normc::codegen
